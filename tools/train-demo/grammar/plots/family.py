"""Plots about family: babies, illness, teeth, chores, school."""
from .kit import *  # noqa: F403


@plot
def new_baby(s):
    h = hero(s); g = parent(s); day(s); o = thing(s, "toy", only=("teddy bear", "toy rabbit", "rag doll"))
    s.v["baby"] = s.pick(("sister", "brother")); s.v["bhe"] = "she" if s.v["baby"] == "sister" else "he"; s.v["bhim"] = "her" if s.v["baby"] == "sister" else "him"
    s.tags.append("baby")
    s.title("The new baby", "{h} and the baby"); s.topic("gets a baby {baby}", "is jealous of a new baby {baby}")
    opening(s)
    s("Then a baby {baby} was born.", "Then there was a new baby in the house, {h.s} little {baby}.")
    s("Everyone came to look at the baby. Nobody looked at {h}.", "The baby was very small and very loud. \"Waah! Waah!\"", "All day long, it was baby here and baby there.")
    s.talk("h", "g", ("Will you play with me?", "Not now, {h.name}. The baby is hungry."), ("Can we read a story?", "Later. The baby must sleep first."), ("Look what I made!", "Hush, {h.name}, or you will wake the baby."))
    feel(s, "h", "angry", 0.8); s.par()
    tries(s, [("{h.e} made a lot of noise with two spoons.", "Now the baby cried even more."), ("{h.e} crept into the cradle and said, \"Waah!\"", "{g} only laughed."), ("{h.e} asked if they could give the baby back.", '"No," said {g}. "Babies stay."'), ("{h.e} packed a bag and moved under the table.", "It was lonely there.")])
    s("Then, one evening, the baby cried and cried, and nobody could help.", "One night, the baby would not stop crying.")
    s("{g} rocked the cradle and sang, but it was no use.", "{g} was so tired that {g.he} could hardly stand.")
    s("{h} tiptoed to the cradle and sang {#song}.", "{h} made a funny face and wiggled {h.his} nose.", "{h} laid {h.his} own {o} next to the baby.")
    s("The baby stopped crying and looked at {h} with big eyes.", "All at once it was quiet. And then the baby smiled!")
    s.q("g", "Nobody can do that as well as you.", "The baby loves you, {h.name}.", "You are the best big {h.boy} in the world." if h.world == "child" else "You are a wonderful helper.")
    s("{h} held the tiny {h.hand} and did not feel angry anymore.", "Something warm grew in {h.s} heart.")
    s("From then on, {h} sang for the baby every evening.", "\"When you are bigger, I will show you everything,\" whispered {h}.")
    s("And {g} read a long story that night, just for {h}.", "Afterwards, {g} took {h} on {g.his} lap, just like before." if h.she != g.she else "Afterwards, there was time for a long hug.")
    close(s)


@plot
def sick_parent(s):
    h = hero(s); g = parent(s); f = friend(s); day(s)
    s.title("{h} takes care", "The little nurse"); s.topic("takes care of {g.name}", "helps when {g.name} is ill")
    opening(s)
    s("{when}, {g} stayed in bed. {g.e} had a bad cold.", "{when}, {g} woke up with a red nose and a hot head.")
    s.q("g", "I can't get up today.", "Atchoo! I feel so weak.", "I only need a little rest.")
    s.q("h", "Don't worry. I will do everything today.", "Today I will take care of you.", "You stay in bed, and I will be the nurse.")
    s.par()
    tries(s, [("{h.e} wanted to cook soup.", "It boiled over, and the floor was covered with noodles."), ("{h.e} washed the clothes.", "Now everything was pink."), ("{h.e} swept the floor.", "The dust flew up, and {g} sneezed ten times."), ("{h.e} carried a cup of tea up to the bed.", "Half of it ended up on the floor."), ("{h.e} made the bed with {g} in it.", "That was not so easy.")])
    feel(s, "h", "worried", 0.6)
    s("Luckily, {f} came by and helped.", "{h} ran to {f} and asked for help.")
    s.q("f", "First we will clean up, and then we will cook.", "My grandma always makes tea with honey.", "If we do it together, it will be easy.")
    s("They made tea with honey and toasted some bread.", "They washed, wiped and stirred, and soon everything was tidy.")
    s("{h} put a flower on the tray and carried it in.", "{h} read a story aloud and changed all the voices.")
    s("{g} drank the tea and smiled for the first time that day.", '"That is the best medicine," said {g}.')
    s.par()
    s("{g} slept all night, and in the morning {g.he} felt much better.", "Two days later, {g} was well again.")
    s("But then, atchoo! Now it was {h} who had the cold. And {g} brought the tea.", "{g} hugged {h} and said, \"What would I do without you?\"")
    feel(s, "h", "proud", 0.5)
    close(s, "kind")


@plot
def loose_tooth(s):
    h = hero(s, "child"); f = friend(s); g = parent(s); day(s); s.tags.append("tooth")
    s.title("The loose tooth", "Wiggle, wiggle"); s.topic("has a loose tooth", "wants to lose {h.his} first tooth")
    opening(s)
    s("{when}, {h} bit into an apple and felt something strange. A tooth was loose!", "{when}, {h} looked in the mirror. One of {h.his} teeth wiggled!")
    s("{f} had already lost three teeth.", "All the others in the class had gaps in their teeth, only {h} did not.")
    s.q("h", "I want it to come out today!", "How long will it take?", "Will it hurt?")
    s.par()
    tries(s, [("{h.e} wiggled it all morning.", "It only wobbled."), ("{h.e} ate a hard crust.", "The tooth stayed in."), ("{h.e} tied a thread to the tooth and to the door.", "But then {h.he} was too scared to close the door."), ("{h.e} asked the tooth to be so kind and fall out.", "It did not answer."), ("{h.e} chewed a sticky toffee.", "Now {h.his} teeth were glued together.")])
    s.q("g", "It will come out when it is ready.", "Don't think about it. Go out and play.", "Good things take their time.")
    s("So {h} went out to play with {f}.", "{h} and {f} played tag, and {h} forgot all about the tooth.")
    s("{f} told a joke, and {h} laughed so hard that, plop, something fell into the grass." , "{h} sneezed. Atchoo! And plop, there was the tooth!")
    s.q("f", "Your tooth! It is out!", "Look, you have a gap!", "Now you can whistle like me!")
    s("They searched for the tooth on hands and knees until they found it.", "{h} held the tooth in {h.his} hand. It was tiny and white, like a grain of rice.")
    s("That night, the tooth lay under {h.his} pillow.", "{h} put it in a little box beside the bed.")
    s("In the morning, there was a shiny coin in its place.", "When {h} smiled, everyone could see the gap.")
    feel(s, "h", "proud", 0.7)
    close(s, "patient", 0.4)


@plot
def messy_room(s):
    h = hero(s); g = parent(s); f = friend(s); day(s); o = thing(s, "toy")
    s.title("The messy room", "{h} cleans up"); s.topic("has a very messy room", "does not want to tidy up")
    opening(s)
    s("There was just one thing {h} never did. {h.e} never tidied up.", "{h.s} room was always a mess.")
    s("Socks lay on the lamp, and books lay under the bed.", "There were {#treasure} on the floor and crumbs in the bed.", "Nobody could see the floor anymore.")
    s.talk("g", "h", ("Please tidy your room today.", "I will do it tomorrow."), ("How can you find anything in there?", "I know where everything is."), ("It is time to clean up.", "But I like it that way!"))
    s("{when}, {f} wanted to play with {h.s} {o}.", "{when}, {h} wanted to show {f} {h.his} {o}.")
    s("But the {o.n} was nowhere to be found.", "But where was it?")
    s.par()
    tries(s, [("{h.e} dug in the heap on the chair.", "The heap fell over. {#noise}"), ("{h.e} crawled under the bed.", "{h.e} found an old sandwich, and it was green."), ("{h.e} looked in the wardrobe.", "Everything fell out on {h.his} head."), ("{h.e} felt around under the blanket.", "There was only a wet sock.")])
    feel(s, "h", "sad", 0.5)
    s.q("f", "If we tidy up, we will find it.", "Let us make a game of it.", "I will take the left side, and you take the right side.")
    s("They sang {#song} and put one thing after the other in its place.", "They pretended to be giants who gathered villages into sacks.")
    s("Slowly the floor appeared. It was blue! {h} had forgotten that.", "The books went on the shelf, and the socks went into the drawer.")
    s("And at the very bottom lay the {o}!", "When the last heap was gone, there was the {o}!")
    cheer(s, 0.5)
    s("{g} looked in and could not believe {g.his} eyes.", '"Is this the same room?" asked {g}.')
    s("Now there was so much space that they could play until supper.", "From then on, everything had its place. Well, nearly everything.")
    close(s, "careful", 0.4)


@plot
def boat_adrift(s):
    h = hero(s, avoid=("duck", "otter", "beaver", "frog", "turtle")); f = friend(s, avoid=("duck", "otter", "beaver", "frog", "turtle")); o = thing(s, "boat"); place(s, "river bank", "lake shore", season="summer"); g = elder(s)
    s.v["o2"] = o.noun
    s.title("The {o}", "{h} and the {o}", "Where does the {o.n} go?"); s.topic("builds a {o}", "follows a {o} down the water")
    opening(s)
    s("{when}, {h} made a {o} and wrote {h.his} name on it.", "{when}, {h} and {f} built a little {o.n}. It was a {o}." if o.adj != "little" else "{when}, {h} and {f} built a little {o.n}.")
    s("{h} and {f} went {p.to} and put it in the water.", "{h} took it {p.to}, and {f} came along.")
    s("It rocked to the left and to the right, but it floated!", "The wind filled its tiny sail.")
    detail(s, 0.5); s.par()
    s("But then the water took hold of it and carried it away.", "Suddenly a wave came, and off it went.")
    s.q("h", "Stop! Come back!", "My {o.n}!", "Quick, after it!")
    for step in s.rng.sample(("It shot under a bridge.", "It spun around in a whirl, three times.", "It sailed past a family of ducks. Quack, quack!", "It bumped against a stone and went on.", "It slipped between the reeds.", "A fish gave it a push with its nose."), 2):
        s(step)
    tries(s, [("{h.e} reached for it with a stick.", "The stick was too short."), ("{f} threw a stone behind it to make waves.", "The waves pushed it even farther out."), ("they ran ahead to catch it.", "It floated by on the other side.")], 2)
    feel(s, "h", "sad", 0.5)
    s("Farther down sat {g} with a fishing rod.", "At the next bend they saw {g}, standing in the shallow water.")
    s("{g} saw it coming and caught it.", "With a quick move, {g} fished it out.")
    s.q("g", "I was hoping for a fish, but this is better.", "Is this your ship, captain?", "What a fine {o.n} you have built!")
    thanks(s, "g")
    s("{h} tied a long string to it, and after that it could sail and always come back.", "Then they built a harbour of stones, so that the {o.n} was safe.")
    cheer(s, 0.5)
    close(s, "careful")


@plot
def hide_seek(s):
    h = hero(s); f = friend(s); r = friend(s, "r", role="neighbour"); place(s)
    s.v["spot"] = s.pick(("inside a hollow tree", "under an upturned boat", "in an empty barrel", "behind a stack of hay", "under a big basket", "in an old cart")); s.tags.append("game")
    s.title("The best hiding place", "Hide-and-seek"); s.topic("plays hide-and-seek", "finds the best hiding place")
    opening(s)
    s("{when}, {h} played hide-and-seek with {f} and {r} {p.in}.", "{when}, {f} and {r} came to play hide-and-seek {p.in}.")
    s("{f} closed {f.his} eyes and began to count. \"One, two, three!\"", "It was {f.s} turn to seek.")
    s("{r} crouched behind a bush.", "{r} lay down flat in the grass.")
    s("{h} wanted the best hiding place of all.", "{h} looked around. This time, nobody was going to find {h.him}!" )
    tries(s, [("{h.e} stood behind a thin tree.", "But {h.his} tummy could be seen on both sides."), ("{h.e} lay down under a heap of leaves.", "The leaves tickled, and {h.he} had to sneeze."), ("{h.e} crept under a bench.", "An ant walked over {h.his} nose.")], 2)
    s("Then {h.he} crawled {spot}. It was perfect!", "At last {h.he} found a place {spot}. {h.e} did not make a sound.")
    s.par()
    s("{f} found {r} very soon. But where was {h}?", "{r} was found at once, but nobody could find {h}.")
    s("They looked here and they looked there. They called and called.", "{h} heard them walk past and giggled softly.")
    s("It was warm and dark, and {h} yawned. Soon {h.he} was fast asleep!", "{h} waited and waited. {h.s} eyes grew heavy, and then {h.he} fell asleep.")
    s("When {h} woke up, the sky was already pink.", "{h} woke up because an owl called. It was getting dark!")
    s("{h} heard {f} cry, \"Please come out, {h.name}! We give up!\"", "Outside, {f} and {r} were calling, and they sounded afraid.")
    s("{h} crawled out at once. \"Here I am!\"", "\"Here I am!\" called {h} and jumped out.")
    s.q("f", "We were so worried!", "We thought that you were lost!", "Where have you been?")
    s.q("h", "I fell asleep. I am sorry.", "It was so cosy that I fell asleep.", "I won the game, but I missed all the fun.")
    s("They all laughed and walked home together.", "{r} laughed. \"You are the champion of hiding, and of sleeping too!\"")
    close(s)
