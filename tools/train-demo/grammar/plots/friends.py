"""Plots about friends: new ones, quarrels, teasing, parting."""
from .kit import *  # noqa: F403


@plot
def new_friend(s):
    h = hero(s); f = friend(s, role="new"); place(s); o = thing(s, "share", never=("swing",))
    s.v["fk"] = f.kind
    s.title("A new friend", "{h} and {f.name}", "The new {fk}"); s.topic("makes a new friend", "meets a shy {fk}", "finds a friend to play with")
    opening(s)
    s("But {h} had nobody to play with.", "There was just one thing missing. {h} had no friend nearby.", "{h} often played alone and wished for a friend.")
    s("{when}, {h} went {p.to} and saw a {fk} who sat there all alone.", "{when}, a new family moved in close by. Their {fk} was sitting {p.in}.", "{when}, {h} noticed a {fk} {p.in}. {h} had never seen this {fk} before.")
    detail(s, 0.4)
    s.par()
    s("{h} wanted to say hello, but {h.he} did not dare.", "{h} felt shy. What should {h.he} say?", "{h} hid behind a tree and watched for a while.")
    tries(s, [("{h.e} waved.", "But the {fk} looked down."), ("{h.e} said hello very softly.", "But the wind carried the word away."), ("{h.e} hummed a tune and walked by.", "The {fk} listened but did not say a word."), ("{h.e} made a funny face.", "The {fk} smiled a tiny smile and looked away.")], 2)
    idea(s, "h", 0.7)
    s("{h.e} fetched {h.his} {o} and held it out.", "{h.e} went home and came back with {h.his} {o}.", "{h.e} took {h.his} {o} and sat down next to the {fk}.")
    s.q("h", "Do you want to play with me?", "Would you like a turn?", "We can share it, if you like.", "My name is {h.name}. What is yours?")
    s("The {fk} looked up and smiled.", "The {fk} nodded slowly.", "The {fk} got up at once.")
    f.known = True
    s('"I am {f}," said the {fk}.', '"My name is {f}. I thought that nobody here liked me," said the {fk}.', '"I would love to. I am {f}," the {fk} said.')
    s.par()
    s("They played with the {o} [until it got dark|all afternoon|until they were out of breath].", "First {h} had a turn, and then {f}. They laughed and laughed.", "{f} knew a trick with the {o.n}, and {h} knew another.")
    s("They found out that they both loved [pancakes|puddles|funny songs|ghost stories|plum jam].", "{h} showed {f} the best places {p.in}.", "{f} told a joke, and {h} laughed so hard that {h.he} got the hiccups.")
    cheer(s, 0.4)
    s.q("f", "Will you come again tomorrow?", "Today I was sad, and now I am so glad.", "I am happy that you came over to me.")
    s.q("h", "Tomorrow and every day!", "Of course I will!", "I am happy too.")
    close(s, "friend", 0.7)


@plot
def quarrel(s):
    h = hero(s); f = friend(s, role="best friend"); place(s); o = thing(s, "share")
    s.title("The quarrel", "{h} and {f.name} make up", "One {o.n} for two"); s.topic("quarrels with a friend over a {o}", "has a fight with {h.his} best friend", "does not want to share a {o.n}")
    opening(s)
    s("{h} did everything together with {f}.", "{h} and {f} played together every day.")
    s("{when}, they found a {o} {p.in}, and both wanted it." if o.noun != "swing" else "{when}, there was a {o} {p.in}, and both wanted to use it.", "{when}, they were playing with a {o}. But both of them wanted to be first.", "{when}, both {h} and {f} wanted the {o} at the same time.")
    s.q("h", "I saw it first!", "It is my turn!", "You always get everything!")
    s.q("f", "No, it is mine!", "That is not fair!", "You never share!")
    if o.noun != "swing":
        s("{h} pulled on one side, and {f} pulled on the other.", "They pulled and pulled until both fell on their bottoms.")
    feel(s, "h", "angry", 0.8)
    s("{h} went home without saying goodbye.", "{f} ran away, and {h} stayed behind with the {o.n}.", "They turned their backs on each other and went home.")
    s.par()
    s("But playing alone was no fun.", "At home it was very quiet.", "The {o} did not seem so special anymore.", "{h} tried to play alone, but nobody laughed at {h.his} jokes.")
    feel(s, "h", "sorry", 0.8)
    s.v["g2"] = s.pick(("Grandma", "Grandpa", "Mama", "Papa"))
    s.maybe(0.6, '"A friend is worth more than a {o.n}," said {g2}.', '"Someone has to say sorry first," said {g2}. "Why not you?"', '"Do you want to be right, or do you want to be friends?" asked {g2}.')
    s("So {h} picked [a flower|the reddest apple|a handful of berries] and set off for {f.s} house.", "{h} made up {h.his} mind and ran to find {f}.", "In the end, {h} set off to see {f}.")
    s("Halfway there, {h} met {f}, who was coming the other way!", "{f} opened the door before {h} could even knock.", "There was {f}, sitting on the step and looking sad.")
    s.q("h", "I am sorry. I was mean.", "I'm sorry. Let us share it.", "You are more important than a {o.n}.")
    s.q("f", "I am sorry too.", "I am sorry too. I missed you.", "Me too. It was a silly fight.")
    s("They [hugged|shook {h.hands}] and laughed.", "And just like that, they were friends again.")
    s("After that, they took turns. First one counted to twenty, and then the other.", "They found out that the {o} was much more fun for two.", "They played with the {o.n} together until the stars came out.")
    close(s, "share")


@plot
def left_out(s):
    h = hero(s); f = friend(s); place(s)
    s.v["game"] = s.pick(("hide-and-seek", "tag", "leapfrog", "catch", "hopscotch", "pirates"))
    s.v["bad"], s.v["good"] = s.pick((("too small", "fit into tiny places"), ("too slow", "think very carefully"), ("too quiet", "move without a sound"), ("too young", "see things that others did not")))
    s.title("Too small to play?" if s.v["bad"] == "too small" else "{h} is left out", "Room for one more"); s.topic("is {bad} to play with the others", "is left out of a game")
    opening(s)
    s("{when}, the others were playing {game} {p.in}. {h} wanted to play too.", "{when}, {h} ran {p.to}, where some [children|big kids] were playing {game}." if h.world == "child" else "{when}, {h} ran {p.to}, where the other animals were playing {game}.")
    s('"You are {bad}," they said.', '"Not you. You are {bad}!" said one of them.', '"Sorry, {h.name}. You are {bad} for this game," they said.')
    feel(s, "h", "sad", 1)
    s("{h} sat down under a tree and watched from far away.", "{h.e} walked off and kicked a pebble.", "{h.e} sat on a stone and drew circles in the dust.")
    aside(s, 0.5); s.par()
    if s.chance(0.7):
        s("{f} came over and sat down too.", "{f} saw it and left the game.")
        comfort(s, "f", 0.5)
        s.q("f", "I would rather play with you.", "It is not nice to leave someone out.", "I was left out once. It hurts.")
        s("{h} smiled a little.", "That made {h} feel a bit better.")
    s("Then there was a shout. The ball had rolled into a narrow hole, and nobody could get it out." if s.v["bad"] in ("too small", "too young") else "Then there was a shout. A tiny bird had hopped into the middle of the game, and nobody knew how to catch it and bring it to safety." if s.v["bad"] == "too quiet" else "Then there was a shout. The game had come to a stop, for the rope was one big knot." if s.v["bad"] == "too slow" else "")
    tries(s, [("one of them tried with a stick.", "It was no use."), ("the biggest one tried.", "It did not work.")] if s.v["bad"] != "too quiet" else [("the biggest one ran after it.", "The bird only got more frightened.")], 1)
    s.q("h", "Let me try.", "I think I can do it.", "May I?")
    s("For {h} could {good}.", "It was a good thing that {h} could {good}.")
    s({"too small": "{h.e} crawled into the hole and came out with the ball.", "too young": "{h.e} saw a second, smaller hole and pushed the ball out from behind.", "too quiet": "{h.e} crept up softly, held out {h.his} {h.hands}, and the bird hopped right in.", "too slow": "{h.e} looked at the knot for a long time and then pulled at just the right end. It came undone!"}[s.v["bad"]])
    s("Everyone cheered.", "\"Hooray for {h.name}!\" they all cried.", "The others stared with open mouths.")
    s('"We are sorry," they said. "Will you play with us?"', '"We were wrong," said the biggest one. "Please play with us."')
    s("{h} nodded happily, and the game began again.", "So {h} joined in, and {game} had never been so much fun.", "From then on, nobody was left out anymore.")
    feel(s, "h", "happy", 0.8)
    close(s, "self")


@plot
def moving_away(s):
    h = hero(s, "child"); f = friend(s, role="best friend"); day(s); o = thing(s, "gift", never=("cushion", "basket", "birdhouse")); g = parent(s)
    s.title("Goodbye, {f.name}", "Letters from far away"); s.topic("has a friend who moves away", "says goodbye to {h.his} best friend")
    opening(s)
    s("{h} and {f} were like two peas in a pod.", "{h} and {f} walked to school together every day.")
    s("{when}, {f} came with sad news.", "{when}, {f} knocked at the door and looked at the floor.")
    s.q("f", "We are moving to another town.", "We have to move away, far away.", "Papa has a new job. We will move next week.")
    feel(s, "h", "sad", 1)
    tries(s, [("{h.e} asked if {f} could live in the attic.", "But {f} had to go with the family."), ("they hid the moving boxes.", "But the boxes were found very soon."), ("{h.e} wished on a star that it was all a dream.", "But in the morning it was still true.")], 2)
    s.par()
    s.q("g", "True friends stay friends, even far apart.", "You can write letters. Letters can go anywhere.", "The same moon shines on both of you.")
    s("{h} made a {o} so that {f} would not forget {h.him}." if h.she != f.she else "{h} made a {o} as a farewell gift for {f}.", "On the last day, {h} gave {f} a {o}.")
    s("{f} gave {h} a [smooth stone|blue marble|tiny shell] in return. They hugged for a long time.", "They promised to write every week.")
    s("Then the car drove off, and {h} waved until it was out of sight.", "{h} waved and waved until the car was only a dot.")
    s.par()
    s("A week later, the postman brought a letter. It was from {f}!", "The house next door was empty and quiet. But then a letter came!")
    s("In it were a drawing and a pressed leaf.", "{f} wrote about the new house, a new cat and a very tall tree.", "{h} read it three times and put it under {h.his} pillow.")
    s("{h} wrote back at once.", "{h} sat down and wrote four pages.")
    s("In the summer, they would see each other again.", "And when {h} missed {f}, {h.he} looked at the moon." if h.she != f.she else "And on clear nights, both of them looked at the moon and waved.")
    close(s)


@plot
def helping_grump(s):
    h = hero(s); g = elder(s); day(s); f = friend(s)
    s.title("Grumpy {g.name}", "The grumpy neighbour", "{h} and the grump"); s.topic("makes a grumpy neighbour smile", "is kind to a grumpy old neighbour")
    g.known = True
    if h.world == "animal": s.v["gn"] = "an old %s named %s" % (g.kind, g.name)
    else: s.v["gn"] = "old " + g.name
    opening(s)
    s("Not far from {h.him} lived {gn}, who was always in a bad mood.", "Nearby lived {gn}, who never smiled.", "Everybody was a little afraid of {gn}, who lived nearby.")
    s.cur = [] ; s.prev = [g]
    s('"Too loud! Go away!" {g} always grumbled.', "When anyone laughed, {g} slammed the window.", "{g} never said good morning to anyone.")
    s("{when}, {h} walked by and saw that {g.s} curtains were closed.", "{when}, {h} noticed that {g} had not come out for two days.", "{when}, {h} heard a sneeze from {g.s} house, and then another.")
    s.q("h", "Maybe {g.name} is ill.", "Maybe nobody ever visits {g.name}.", "I wonder if {g.name} is lonely.")
    s.maybe(0.6, '"Don\'t go there!" said {f}. "{g.name} will shout at you."', '"Are you not afraid?" asked {f}.')
    s.par()
    tries(s, [("{h.e} knocked at the door.", '"Go away!" called a voice.'), ("{h.e} put flowers on the doorstep.", "They were still there an hour later."), ("{h.e} waved at the window.", "The curtain moved, but nobody waved back.")], 2)
    s("But {h} came back with [a pot of soup|a warm cake|a jar of honey] and knocked again.", "The next day, {h} brought [a basket of apples|hot soup|fresh bread].")
    s("The door opened a crack.", "Slowly the door opened, just a little.")
    s.talk("g", "h", ("Why do you do this?", "Because everyone needs a friend."), ("For me? Nobody ever brings me anything.", "I thought that you might be hungry."),
           ("Hm. That smells good.", "It tastes even better. May I come in?"), ("What do you want?", "I only wanted to see how you are."), ("Is that really for me?", "Yes, I made it just for you."))
    s("{g} was silent for a while. Then {g.he} opened the door wide.", "Something strange happened. {g} smiled!", "The corners of {g.s} mouth went up, slowly, as if they were rusty.")
    s("They sat by the [fire|window] and talked. {g} knew wonderful stories.", "{g} showed {h} [an old fiddle|a box full of letters|a ship in a bottle] and told its story.")
    s("It turned out that {g} was not grumpy at all, only lonely.", "{h} found out that {g} had been sad for a long time.")
    s("After that, {h} came every Sunday, and {f} came too.", "From then on, {g} waved from the window whenever {h} walked by.", "Soon {g} laughed louder than anyone else.")
    close(s, "kind")


@plot
def copycat(s):
    h = hero(s); f = friend(s); place(s)
    skill = s.pick((("sing", "sang", "singing"), ("run fast", "ran", "running"), ("dance", "danced", "dancing"), ("paint", "painted", "painting"), ("juggle", "juggled", "juggling"), ("whistle", "whistled", "whistling")))
    own = s.pick((("tell stories", "stories", "Tell us a story"), ("bake buns", "buns", "Could you bake some buns for us"), ("grow flowers", "flowers", "Show us your flowers"), ("build little boats", "boats", "Build us a boat"), ("make others laugh", "jokes", "Tell us a joke")))
    s.v.update(sk=skill[0], sking=skill[2], own=own[0], owns=own[1], askfor=own[2])
    s.title("Just like {f.name}", "{h} wants to be different"); s.topic("wants to {sk} like a friend", "wants to be like somebody else", "finds out what {h.he} is good at")
    opening(s)
    s("{h} had a great wish. {h.e} wanted to {sk} just like {f}.", "{f} could {sk} better than anyone, and {h} wished that {h.he} could do it too." if h.she != f.she else "{f} could {sk} better than anyone, and {h} wished for nothing more than to do it too.")
    s("{when}, {h} went {p.to} to practise.", "{when}, {h} decided to try it.")
    s.par()
    tries(s, [("{h.e} tried it in front of a puddle.", "It did not go well."), ("{h.e} tried it with closed eyes.", "{h.e} bumped into a tree."), ("{h.e} practised all morning.", "In the end, only {h.his} head hurt."), ("{h.e} did everything exactly as {f} did.", "But it just was not the same.")])
    feel(s, "h", "sad", 1)
    s.q("h", "I will never be like you.", "I am no good at anything.", "Why is it so easy for you?")
    s("{f} looked surprised.", "{f} put {f.his} head to one side.")
    s.q("f", "But you can {own}! I always wished that I could do that.", "Nobody can {own} the way you do.", "Why do you want to be like me? You can {own}!")
    s("{h} had never thought about that.", "{h} blinked. Was that something special?", "{h.s} ears turned red." if h.world == "child" else "{h} looked up.")
    s("Just then, some others came along. \"{askfor}, {h.name}!\" they begged.", "Then the little ones came running. \"{askfor}, please!\" they called.")
    s("So {h} did, and everyone was delighted.", "{h} did what {h.he} could do best, and everyone clapped.")
    s("{f} was good at {sking}, and {h} was good at {h.his} own thing. That was just right.", "One could {sk}, and the other could {own}. Together they were a wonderful team." )
    cheer(s, 0.4); feel(s, "h", "proud", 0.6)
    close(s, "self")
