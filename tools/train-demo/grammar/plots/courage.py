"""Plots about fear, practice, contests and races."""
from .kit import *  # noqa: F403
from .lost import thanks_from


@plot
def learn_swim(s):
    h = hero(s, avoid=("otter", "duck", "beaver", "frog", "turtle")); g = parent(s); f = friend(s, avoid=("mouse", "mole", "kitten", "lamb")); place(s, "lake shore", "beach", "river bank", season="summer", weather=s.pick(("hot", "sunny", "warm")))
    s.title("{h} learns to swim", "Into the water", "Splash!"); s.topic("learns to swim", "is afraid of the water", "is scared of deep water")
    opening(s)
    s("{h} loved many things, but not the water. It was too deep and too cold.", "But {h} was afraid of deep water.", "All of {h.his} friends could swim. Only {h} could not.")
    s("{when}, {f} ran {p.to} and jumped in with a splash.", "{when}, everybody went {p.to} to swim.", "{when}, {h} stood {p.in} and watched {f} dive.")
    s.q("f", "Come in! The water is lovely!", "Come on, {h.name}! It is so much fun!", "Jump in! I will catch you!")
    s.q("h", "No, thank you. I like it here.", "I can't swim.", "Maybe tomorrow.", "It is too deep for me.")
    feel(s, "h", "scared", 0.7); s.par()
    s("{g} sat down beside {h}.", "{g} saw {h.s} face and came over.")
    s.q("g", "Shall we start very small? Just one toe.", "You do not have to be brave all at once.", "I was afraid too when I was little. I will hold you.", "We will go in step by step.")
    s("So {h} put one toe in the water. Brr! It was cold, but not so bad.", "First {h} only got {h.his} feet wet. That tickled.")
    tries(s, [("{h} blew bubbles.", "Water went up {h.his} nose, and {h.he} coughed."), ("{h} tried to float.", "{h.e} sank like a stone, but {g} held on."), ("{h.e} kicked with both legs.", "There was a lot of splashing, but {h.he} stayed in the same place."), ("a wave came.", "It rolled right over {h.s} head, and {h.he} wanted to go home.")])
    s("Day after day, {h} practised with {g}.", "They came back the next day, and the next, and the next.", "{g} held {h.him} and said, \"Kick, kick, kick!\"" if h.she != g.she else "\"Kick, kick, kick!\" said {g}.")
    s("And then, one day, {g} let go, and {h} did not even notice.", "Little by little, {h} sank less and splashed less.", "One morning, {h} kicked and paddled, and suddenly {h.he} was moving!")
    s.q("h", "I am swimming! Look, I am swimming!", "Look at me!", "I can do it!")
    s("{f} clapped and cheered.", "{f} swam up and swam along beside {h}.", "Splash! {f} jumped in to celebrate.")
    feel(s, "h", "proud", 1)
    s("After that, nobody could get {h} out of the water.", "The water was still deep, but {h} was not afraid of it now.", "That summer, {h} swam every single day.")
    close(s, s.pick(("brave", "practice")))


@plot
def the_race(s):
    h = hero(s); f = friend(s); r = friend(s, "r", role="neighbour"); place(s)
    s.title("The big race", "{h} runs a race"); s.topic("wants to win a race", "runs in a big race", "stops in a race to help a friend")
    s.tags.append("race")
    opening(s)
    s("{when}, there was going to be a big race {p.in}.", "{when}, everyone was talking about the big race.")
    s("The winner would get a [golden cup|blue ribbon|giant cake|basket of plums].", "The prize was a [silver medal|huge pie|red cap with a feather].")
    s("{h} wanted to win so much.", "{h} had practised every day for two weeks.", "{h} wanted to win. But {r} was very fast, and {f} was fast too.")
    s('"I am the fastest here," {r} boasted.', '{r} laughed. "You will never beat me!"')
    s.maybe(0.6, "{h} said nothing, but {h.he} tied {h.his} shoes extra tight." if h.world == "child" else "{h} said nothing and stretched {h.his} legs.")
    s("Ready, steady, go! They all dashed off {#simile_fast}.", "A whistle blew, and off they went!", "One, two, three, go! Dust flew up behind them.")
    s.par()
    s("{h} ran and ran. {r} was in front.", "At first {h} was last, but then {h.he} caught up.", "{h} ran {#simile_fast}. Soon {h.he} was near the front.")
    detail(s, 0.3)
    if s.chance(0.55):
        s("Halfway along, {f} tripped and fell. \"Ouch! My knee!\"" if h.world == "child" else "Halfway along, {f} tripped and fell with a cry.", "Then {h} heard a cry. {f} had fallen into a ditch!")
        s("{h} looked at the finish line. It was so close.", "If {h} stopped now, {h.he} could not win.", "The others ran on.")
        s("But {h} turned around and helped {f} up.", "{h} stopped at once and knelt down beside {f}.")
        s.q("f", "Go on, {h.name}! You can still win!", "Don't wait for me.", "You will lose because of me.")
        s.q("h", "A friend is more important than a race.", "I won't leave you here.", "We will finish together.")
        s("They crossed the line together, arm in arm. They were last." if h.hand != "wing" else "They crossed the line together. They were last.", "Slowly, side by side, they walked to the finish.")
        s("But everyone clapped louder than they did for the winner.", "But the crowd cheered as if they had won.", "{r} came over with the prize. \"You should have it,\" said {r}. \"You were the kindest.\"")
        feel(s, "h", "happy", 1); moral = "kind"
    elif s.chance(0.6):
        s("{r} was so sure of winning that {r.he} stopped for a rest under a tree.", "{r} looked back, laughed and did not see the big puddle. Splash!", "{r} stopped to wave at the crowd.")
        s("{h} kept going, step by step.", "{h} did not look left or right and just ran on.")
        s("When {r} jumped up again, it was too late. {h} had crossed the line!", "{h} passed {r} just before the end and won!")
        s.q("h", "I won! I really won!", "I can't believe it!", "We all ran well.")
        s("{r} held out a {r.hand}. \"Well done, {h.name}.\"", "{h} shared the prize with {f} and even with {r}.")
        feel(s, "h", "proud", 0.8); moral = "practice"
    else:
        s("{h} gave everything, but {r} was quicker and won.", "In the end, {r} won, {f} was second and {h} was third.")
        feel(s, "h", "sad", 0.6)
        s.q("f", "You ran faster than ever before!", "Last year you were much slower. Did you notice?", "I saw you fly up that hill!")
        s("{h} thought about it. That was true!", "That made {h} smile.")
        s("{h.e} went to {r} and said, \"Well done!\"", "{h} shook {r.s} {r.hand}, and {r} said, \"You were good too!\"")
        s("They [shared the prize|all had a drink of cold water together|lay in the grass and laughed].", "And next year, they would race again.")
        moral = "practice"
    close(s, moral)


@plot
def shy_singer(s):
    h = hero(s); f = friend(s); g = helper(s); day(s)
    s.v["show"] = s.pick(("spring concert", "village feast", "summer fair", "talent show", "lantern feast", "harvest feast"))
    s.v["act"], s.v["acts"] = s.pick((("sing", "song"), ("play the flute", "tune"), ("recite a poem", "poem"), ("dance", "dance"), ("play the drum", "piece"), ("tell a story", "story")))
    s.title("The shy little star", "{h} on the stage", "{h} and the {show}"); s.topic("is too shy to {act}", "wants to {act} at the {show}", "is shy but finds the courage to {act}")
    opening(s, "shy")
    s("{h} could {act} beautifully, but only when nobody was near.", "When {h.he} was alone, {h} loved to {act}. In front of others, {h.he} never did.", "{h} loved to {act}, but nobody knew it.")
    s("{when}, {f} came by and heard it.", "{when}, {f} was standing under the window and heard everything.", "{when}, {h} thought that {h.he} was alone, but {f} was listening.")
    s.q("f", "That was wonderful! You must do that at the {show}!", "Why did you never tell me? You are so good!", "Please do that at the {show}!")
    s.q("h", "Oh no! Everyone would look at me.", "I can't. My voice would shake." if "sing" in s.v["act"] or "story" in s.v["act"] or "poem" in s.v["act"] else "I can't. My {h.hands} would shake.", "What if I make a mistake?")
    feel(s, "h", "scared", 0.5); s.par()
    tries(s, [("{h.e} practised in front of a mirror.", "But even {h.his} own face made {h.him} nervous."), ("{h.e} tried it in front of the cat.", "The cat yawned and walked away."), ("{h.e} tried it for one single neighbour.", "{h.e} forgot how it began."), ("{h.e} practised behind a curtain.", "It went well, until the curtain moved.")])
    s.q("g", "Pick one kind face and do it just for that one.", "Take three deep breaths. Then begin.", "Everyone is afraid before they start. Even me.", "Being scared is fine. You can be scared and still do it.")
    s("Then came the evening of the {show}.", "At last the big evening came. The hall was full.")
    s("{h} stepped onto the stage. It was so quiet that {h.he} could hear {h.his} own heart.", "When {h.his} name was called, {h.s} legs felt like jelly.")
    s("{h.e} looked for {f} and saw {f.him} wave." if h.she != f.she else "In the first row, {f} waved.", "In the first row, {f} smiled and nodded.")
    s("{h} took a deep breath and began, first softly, then louder and louder.", "{h.e} closed {h.his} eyes, counted to three and began.")
    s("The whole hall held its breath.", "After a while, {h.he} forgot that anyone was there.", "It was the loveliest {acts} that they had ever heard.")
    s("When the {acts} was over, everyone jumped up and clapped.", "Then the clapping began, and it did not stop for a long time.")
    feel(s, "h", "proud", 1)
    s.q("f", "I knew that you could do it!", "You were the best of all!", "Did you hear how they clapped?")
    close(s, "brave")


@plot
def dark_room(s):
    h = hero(s); g = parent(s); day(s)
    s.v["noise1"] = s.pick(("Scratch, scratch", "Tap, tap, tap", "Creak, creak", "Hoo, hoo", "Rustle, rustle"))
    s.v["truth"] = {"Scratch, scratch": "a mouse that was nibbling at a crust", "Tap, tap, tap": "a branch that knocked against the window", "Creak, creak": "an old door that moved in the draught", "Hoo, hoo": "an owl on the roof", "Rustle, rustle": "a paper bag that had fallen off the chair"}[s.v["noise1"]]
    if h.kind == "mouse" and "mouse" in s.v["truth"]: s.v["truth"] = "a beetle in a box"
    s.title("The noise in the night", "{h} and the dark", "What is that noise?"); s.topic("is afraid of the dark", "hears a strange noise at night")
    opening(s, timed=False)
    s("In the daytime, {h} was not afraid of anything. But at night it was different.", "But when the light went out, {h} felt small.", "There was only one thing {h} feared, and that was the dark.")
    s("One night, {h.he} woke up. \"{noise1}!\" went something in the dark.", "One night, there was a sound. \"{noise1}!\"", "One evening, {h} lay in bed and heard a noise. \"{noise1}!\"")
    s.q("h", "Is it a monster?", "Who is there?", "What was that?", "Maybe it is a ghost.")
    feel(s, "h", "scared", 1); s.par()
    tries(s, [("{h.e} hid under the pillow.", '"{noise1}!" it went again.'), ("{h.e} thought of nice things: {#fruit}, {#flower} and the sea.", "But the noise did not stop."), ("{h.e} sang very softly.", "The noise was louder than the song."), ("{h.e} pulled the blanket up to {h.his} nose.", "Now {h.his} feet stuck out at the other end.")])
    if s.chance(0.6):
        s("{h} called for {g}, who came with a lamp.", "{g} heard {h} and came in with a candle.")
        s.q("g", "Shall we look together?", "Let us find out what it is.", "Do you want to hold the lamp?")
        s("Hand in hand they went to look." if h.hand == "hand" else "Side by side they went to look.", "{h} held on to {g} and tiptoed along.")
        moral = "brave"
    else:
        s("At last {h} had enough. {h.e} lit a little lamp and got up.", "Then {h} took a deep breath. \"I want to know what it is,\" {h.he} whispered.")
        s("Step by step, {h.he} went towards the noise.", "{h.s} knees shook, but {h.he} went on.")
        moral = "brave"
    s("And what did they see? It was only {truth}!", "There was no monster at all. It was {truth}!", "The scary noise was {truth}. That was all!")
    s("{h} laughed out loud.", "{h} giggled with relief.", "What a silly monster that was!")
    s("Back in bed, {h.he} listened again. \"{noise1}!\" Now it sounded almost friendly.", "{h} crawled back into bed and was not afraid anymore.", "After that, the dark was just the dark.")
    s("Soon {h.he} was fast asleep.", "Before long, {h.he} was dreaming of {#flower} and {#treasure}.")
    close(s, moral, 0.5)


@plot
def bad_dream(s):
    h = hero(s); g = parent(s); day(s); o = thing(s, "toy", only=("teddy bear", "toy rabbit", "rag doll"))
    s.v["mon"] = s.pick(("a big green monster", "a giant with a bag", "a dragon with no friends", "a huge shadow", "a wolf as tall as a house", "a storm with angry eyes"))
    s.title("The bad dream", "{h} and the monster"); s.topic("has a bad dream", "dreams of {mon}", "makes friends with the monster in a dream")
    opening(s, timed=False)
    s("One night, {h} had a bad dream.", "One night, {h} went to bed and dreamed.", "One evening, {h} ate too much cheese, and in the night a bad dream came.")
    s("In the dream, {mon} ran after {h.him}.", "{h.e} dreamed that {mon} was chasing {h.him}.")
    s("{h.e} ran and ran, but {h.his} legs were as slow as honey.", "{h.e} wanted to shout, but no sound came out.")
    s("{h} woke up with a cry.", "Then {h} sat up in bed. {h.s} heart was pounding.")
    feel(s, "h", "scared", 0.5); s.par()
    s("{g} came in and sat on the bed.", "In came {g} with a glass of water.")
    s.q("g", "It was only a dream. It is over now.", "Tell me about it. Then it will get smaller.", "You know, it was your dream. You can change it.")
    s("{h} told {g} about {mon}.", "{h} cried a little and told {g} everything.")
    s.q("g", "Maybe it only wanted to play. Next time, ask what it wants.", "Next time, turn around and say hello.", "Perhaps it was lonely. What could you give it?")
    s("{h} thought about that. Then {h.he} took {h.his} {o} and lay down again.", "{h} hugged {h.his} {o} and closed {h.his} eyes.")
    s.par()
    s("The dream came back, but this time {h} stopped and turned around.", "Soon {h.he} was in the same dream again. But now {h.he} did not run.")
    s.q("h", "What do you want?", "Hello! Why are you chasing me?", "Stop! Who are you?")
    s('"I only wanted to ask if you would play with me," said the voice in the dream.', 'It stopped too. "Nobody ever asks me that," it said. "I would like a friend."', '"You lost this," it said, and it held out the {o}.')
    s("They danced and played in the dream until the stars grew pale.", "So they had a picnic on a cloud, with {#snacks} and {#snacks}.", "It grew smaller and smaller, until it was no bigger than a kitten." if h.kind != "kitten" else "It grew smaller and smaller, until it was no bigger than a nut.")
    s("In the morning, {h} woke up and laughed.", "When the sun came up, {h} told {g} the end of the dream at breakfast.")
    close(s, "brave")


@plot
def high_jump(s):
    h = hero(s, avoid=("squirrel", "monkey", "koala", "duck", "frog", "goat")); f = friend(s); place(s)
    sk = s.pick((("ride a bicycle", "the bicycle", "rode in a big circle", "fell into the grass"), ("skate", "the skates", "glided along like a swan", "landed on {h.his} bottom"), ("walk on stilts", "the stilts", "stalked along like a stork", "tipped over like a tree"), ("juggle three balls", "the balls", "kept all three balls in the air", "dropped all three"), ("do a cartwheel", "the cartwheel", "turned like a wheel", "rolled over sideways"), ("jump over the stream", "the stream", "flew over the water like a bird", "landed in the water with a splash"), ("skip with a rope", "the rope", "skipped a hundred times", "got tangled up in it")))
    s.v["sk"], s.v["thing"], s.v["does"] = sk[:3]; s.v["fails"] = s.plain(sk[3])
    if "stream" in sk[1]: place(s, "meadow", "forest")
    s.title("{h} never gives up", "Try again, {h}"); s.topic("wants to learn to {sk}", "learns to {sk}")
    opening(s)
    s("{h} had one big wish. {h.e} wanted to {sk}.", "{when}, {h} saw {f} {sk}. {h.e} wanted to do that too." if h.she != f.she else "{when}, {h} made a plan. {h.e} wanted to learn how to {sk}.")
    s("So {h} went {p.to} to practise.", "{when}, {h} went {p.to} to try it.")
    s("It looked so easy. But {h.he} {fails}.", "{h.e} counted to three and tried. And then {h.he} {fails}.")
    s.q("h", "Ouch!", "That was not so good.", "Why is it so hard?")
    s.par()
    tries(s, [("{h.e} tried it slowly.", "It was wobbly, and {h.he} had to stop." if "stream" not in s.v["thing"] else "That was not fast enough, and {h.he} got wet to the knees."), ("{h.e} tried it fast.", "That went wrong even sooner."), ("{h.e} tried it with closed eyes.", "That was the worst idea of all."), ("{h.e} watched a [bird|beetle|grasshopper] and tried to be as light as that.", "It helped a little, but not enough.")])
    feel(s, "h", "sad", 0.7)
    s("{f} had been watching.", "{f} sat down next to {h}." , "{f} came over with a drink of water.")
    s.q("f", "I needed a hundred tries before it worked.", "You are already better than this morning.", "Don't look at your feet. Look ahead.", "Nobody can do it the first time.", "I will stay until you can do it.")
    s("Every day after school, {h} practised." if h.world == "child" else "Every day, {h} went back and practised.", "{h} got up, brushed off the dust and went on.", "{h} tried again, and again, and again.")
    s("And one day, something wonderful happened. {h} {does}!", "Then, at last, it worked! {h} {does}!", "On the [tenth|twentieth|hundredth] try, {h} {does}.")
    s.q("f", "You did it!", "Hooray, {h.name}!", "I knew it!")
    feel(s, "h", "proud", 1)
    s("Now it was {h} who taught the little ones.", "{h} did it again ten times, just because it felt so good.", "The bruises were soon forgotten.")
    close(s, "practice")


@plot
def dentist(s):
    h = hero(s, "child"); g = parent(s); day(s); f = elder(s, "w")
    first = s.pick((("first day at school", "the school", "the teacher"), ("visit to the dentist", "the dentist", "the dentist"), ("first haircut", "the barber", "the barber"), ("first night at a friend's house", "the house of a friend", "the friend's mother"), ("first swimming lesson", "the pool", "the swimming teacher"), ("first ride on a big train", "the station", "the train driver")))
    s.v["first"], s.v["at"], s.v["who"] = first
    s.title("The {first}", "{h} is brave"); s.topic("is nervous about the {first}", "is afraid of the {first}")
    opening(s)
    s("{when}, it was time for {h.his} {first}.", "Soon it would be time for {h.his} {first}. {h} had been thinking about it for days.")
    feel(s, "h", "worried", 1)
    s.q("h", "Do I have to go?", "What if nobody is nice to me?", "I have a tummy ache.", "Can we go tomorrow instead?")
    s.q("g", "Everybody feels like that the first time.", "I will be with you all the way to the door.", "New things feel big, and then they get small.", "Put this [button|pebble|chestnut] in your pocket. It will bring you luck.")
    tries(s, [("{h.e} hid behind the sofa.", "But {h.his} feet stuck out."), ("{h.e} put {h.his} shoes on the wrong feet to lose time.", "{g} only laughed."), ("{h.e} pretended to be asleep.", "But {h.he} had to giggle.")], 2)
    s.par()
    s("When they came to {at}, {h} held {g.s} hand very tight.", "At last they stood in front of {at}. {h.s} heart went thump, thump.")
    s("{who} had a kind face and a [funny tie|big laugh|red nose].", "{who} smiled and said, \"You must be {h.name}. I was waiting for you!\"")
    s("{who} showed {h} everything.", "{who} told a joke about a [goose|penguin|sleepy cow], and {h} laughed.")
    s("Time flew by, and before {h} knew it, it was over.", "It was not bad at all. It was even fun!")
    s.q("h", "Is it over already?", "Can we come again?", "That was easy!", "I was brave, wasn't I?")
    s("On the way home, {h} talked without stopping.", "{g} bought {h} a [warm bun|little flag|balloon] to celebrate.")
    feel(s, "h", "proud", 0.8)
    close(s, "brave")
