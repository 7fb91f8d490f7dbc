"""Plots about storm, rain, snow and wind."""
from .kit import *  # noqa: F403
from .lost import thanks_from


@plot
def kite_in_tree(s):
    h = hero(s, avoid=("squirrel", "monkey", "koala", "duck")); o = thing(s, "fly"); f = friend(s, avoid=("duck",)); g = helper(s, "g"); place(s, "meadow", "hill", "orchard", "garden", weather="windy")
    s.title("The {o} in the tree", "{h} and the windy day", "The {o.n} that flew away"); s.topic("loses {h.his} {o} in the wind", "gets {h.his} {o} out of a tree", "has a {o.n} that is stuck in a tree")
    opening(s)
    s("{when}, {h} went {p.to} with {h.his} new {o}.", "{when}, {h} took {h.his} {o} {p.to}. The wind blew and blew.", "{when}, {h} and {f} were {p.in}. {h} had brought a {o}.")
    s("Whoosh! A gust of wind came and [pulled|tore] the {o.n} away.", "Suddenly the wind grew stronger. Whoosh! It took the {o.n} and carried it off.", "All at once, a gust caught the {o.n} and whirled it up into the air.")
    s("It flew higher and higher, until it got stuck in a tall tree.", "Up, up it went, and then it was caught in the branches of a tall tree.", "It sailed over a hedge and landed at the top of an old tree.")
    feel(s, "h", "sad"); s.par()
    tries(s, [("{h.e} jumped as high as {h.he} could.", "But the branch was much too high."), ("{h.e} shook the tree.", "Only leaves fell down."), ("{h.e} threw a stick at the branch.", "The stick [got stuck too|came down with a thump]."), ("{h.e} tried to climb up.", "But the trunk was too smooth, and {h.he} slid down again."), ("{h.e} shouted at the wind to blow the other way.", "The wind did not listen."), ("{h.e} poked at it with a long branch.", "The branch was a little too short.")])
    if s.chance(0.4):
        ask_help(s, "f"); s.q("f", "Climb on my shoulders!", "If I stand on the stump, and you stand on me, we can reach it.")
        s("{h} climbed onto {f.s} shoulders. They wobbled a lot, but at last {h.he} got hold of the {o.n}." if h.she != f.she else "{h} climbed onto {f.s} shoulders. They wobbled a lot, but at last they got hold of the {o.n}.", "They wobbled to the left and to the right. Then {h} stretched out {h.his} {h.hand} and caught the {o.n}.")
        who = "f"
    elif s.chance(0.5):
        ask_help(s, "g"); s("{g} fetched a long ladder and leaned it against the tree.", "{g} came back with a rake that had a very long handle.")
        s("Carefully, {g.he} freed the {o.n} from the branches.", "A little push here, a little pull there, and the {o.n} came down.")
        who = "g"
    else:
        who = "b"
        s("Then a little squirrel peeped out of the leaves.", "High above, a squirrel was watching.")
        s.q("h", "Dear squirrel, could you help me, please?", "Please, can you push it down?")
        s("The squirrel ran along the branch and gave the {o.n} a push.", "The squirrel nibbled at a twig until it snapped, and the {o.n} floated down.")
    s("The {o} [had only a little scratch|was as good as new|was a bit dirty, but whole].", "Down came the {o}, right into {h.s} arms.") if who != "f" else s("The {o} was safe.", "Nothing was broken. The {o} was as good as new.")
    feel(s, "h", "happy", 1)
    if who == "b":
        s("{h} left [three nuts|a handful of nuts|an apple] under the tree to say thank you.")
    else:
        thanks(s, who)
    s("After that, {h} held the {o.n} with both {h.hands} when the wind blew.", "{h} tied [a long string|a ribbon] to the {o.n}, so that it could not fly away again.", "They played with the {o.n} until the wind went to sleep.") if who == "f" else s("After that, {h} held the {o.n} with both {h.hands} when the wind blew.", "{h} tied [a long string|a ribbon] to the {o.n}, so that it could not fly away again.")
    close(s, "help" if who != "b" else "kind")


@plot
def picnic_rain(s):
    h = hero(s); f = friend(s); g = parent(s); place(s, "meadow", "lake shore", "orchard", "hill", weather=s.pick(("sunny", "warm", "bright")))
    s.title("The wet picnic", "A picnic in the rain", "{h}'s picnic"); s.topic("wants to have a picnic in the rain", "has a picnic that gets wet", "plans a picnic with a friend")
    opening(s)
    s("{when}, {h} wanted to have a picnic {p.in}.", "{when}, {h} packed a basket for a picnic {p.in}.", "{when}, {h} invited {f} to a picnic {p.in}.")
    s("Into the basket went {#snacks}, {#snacks} and {#snacks}.", "{h} packed {#snacks}, {#snacks} and a bottle of [lemonade|apple juice|cold tea].", "There were {#snacks} and {#snacks}, and {g} had baked [a cake|a pie|buns] too.")
    s("{f} brought [a big blanket|plates and cups|a bunch of flowers|a ball].", "{h} and {f} spread a blanket on the grass.")
    detail(s); s.par()
    s("But then a dark cloud came over the hill.", "They had just sat down when the sky turned grey.", "Suddenly a drop fell on {h.s} nose.")
    s("Plip, plop! The first drops fell, and soon it was pouring.", "A moment later, the rain came down in buckets.", "Drip, drop, drip, drop! Everything got wet.")
    s.q("h", "Oh no! Our picnic is ruined!", "Our {#snacks} are getting wet!", "Quick, grab the basket!", "Why does it have to rain today?")
    feel(s, "h", "sad", 0.7)
    tries(s, [("they sat under a tree.", "But big drops fell through the leaves."), ("they held the blanket over their heads.", "Soon the blanket was dripping wet."), ("they waited for the rain to stop.", "But it only rained harder.")], 2)
    s.par()
    s.v["spot"] = s.pick(("a dry barn", "an old boat house", "a little cave", "a hollow tree", "a garden shed", "the kitchen at home", "a tent made of branches"))
    s.v["x"] = f; idea(s, s.pick(("h", "f")), 1)
    s.q("f", "We can have our picnic somewhere dry!", "Who says that a picnic must be on the grass?", "Follow me! I know a place.")
    s("They ran to {spot} and spread the blanket on the floor.", "Hand in hand they ran through the puddles to {spot}.")
    s("The rain drummed on the roof while they ate {#yum} {#snacks}.", "It was dry and cosy there, and everything tasted twice as good.", "They ate, told stories and listened to the rain.") if "kitchen" not in s.v["spot"] else s("{g} made hot cocoa, and they ate the picnic on the kitchen floor.", "They spread the blanket under the kitchen table and pretended it was a cave.")
    s("When the rain stopped, a rainbow stood in the sky.", "Afterwards they jumped in all the puddles.", "Later the sun came out, and the whole world glittered.")
    cheer(s, 0.6)
    s.q("h", "That was the best picnic ever!", "Let us have a picnic in the rain again.", "I like rainy picnics best.")
    close(s)


@plot
def storm_night(s):
    h = hero(s); g = parent(s); day(s, weather=s.pick(("rainy", "windy", "grey")), season=s.pick(("autumn", "summer", "spring")))
    o = thing(s, "toy", only=("teddy bear", "toy rabbit", "rag doll"))
    s.title("The big storm", "{h} and the thunder", "A stormy night"); s.topic("is afraid of thunder", "is scared of a storm at night", "learns not to fear the storm")
    opening(s, timed=False)
    s("There was only one thing that {h} did not like: thunder.", "But there was one thing that scared {h}. It was thunder.", "{h} was afraid of nothing, except storms.")
    s("One night, {h} lay in bed when the wind began to howl.", "One dark night, a storm came over the hills.", "One evening, black clouds rolled in from the [sea|hills|west].")
    s("Boom! Thunder rolled across the sky.", "A flash lit up the room. Then came a loud boom!", "Rain beat on the roof, and the thunder went boom, boom, boom!", "The windows rattled. Flash! Boom!")
    feel(s, "h", "scared", 1); s.par()
    tries(s, [("{h.e} pulled the blanket over {h.his} head.", "But the thunder was just as loud."), ("{h.e} hugged {h.his} {o}.", "It helped a little, but not enough."), ("{h.e} put {h.his} {h.hands} over {h.his} ears.", "But {h.he} could still see the flashes."), ("{h.e} tried to sing {#song}.", "But {h.his} voice was shaking too much.")])
    s("The door opened, and {g} came in with a [candle|lamp|lantern].", "{h} tiptoed to {g.s} bed.", "{g} heard {h} and came quickly.")
    s.q("h", "I am scared of the thunder.", "Will the storm take our house away?", "Please make it stop!", "Why is it so loud?")
    s.q("g", "The thunder is only the voice of the clouds. It cannot hurt us in here.", "Our house is strong. It has seen a hundred storms.", "Count with me after the flash. Then you know how far away the storm is.", "The clouds are just playing drums. Shall we drum along?")
    s("They counted together. One, two, three, four, boom! The next time, they got to seven.", "So they made a tent of blankets and listened to the rain.", "They drummed along on the bed frame, and soon {h} was laughing.", "{g} told a story about a cloud that had hiccups, and {h} began to giggle.")
    s("Little by little, the thunder grew quiet.", "The storm moved on, farther and farther away.", "After a while, there was only the soft sound of rain.")
    s("Before {h} could count again, {h.he} was asleep.", "{h} leaned on {g} and fell asleep.", "{h.s} eyes grew heavy.")
    s("In the morning, the sun shone, and the [puddles|leaves|roofs] glittered.", "When {h} woke up, the sky was blue, and the air smelled fresh.")
    s.maybe(0.7, "When the next storm came, {h} drummed along and was not afraid.", "The next time it thundered, {h} sat at the window and counted.", "Now {h} tells the {o} not to be afraid when it thunders.")
    close(s, "brave", 0.4)


@plot
def snow_day(s):
    h = hero(s, avoid=("frog", "turtle")); f = friend(s, avoid=("frog", "turtle")); g = parent(s); place(s, "hill", "meadow", "garden", season="winter", weather=s.pick(("snowy", "cold", "frosty")))
    what = s.v["what"] = s.pick(("snowman", "snow castle", "snow fox", "snow rabbit", "snow bear", "snow queen"))
    s.title("The {what}", "Snow day", "{h} and the {what}"); s.topic("builds a {what}", "plays in the snow", "makes a {what} with a friend")
    opening(s)
    s("{when}, everything outside was white. It had snowed all night!", "{when}, {h} woke up and saw snow, snow everywhere.", "{when}, thick white flakes fell from the sky.")
    s.q("h", "Snow! Snow!", "Look, the world is white!", "Let us go out and play!", "I want to build a {what}!")
    s("{g} helped {h.him} put on [warm boots|a thick scarf|a woolly hat], and out {h.he} went.", "{h.e} put on a warm hat and ran outside.")
    s("The snow went crunch, crunch under {h.his} feet.", "The air was cold and smelled of smoke.", "Every branch wore a white cap.")
    s("{f} was already there, and they began to build a {what}.", "{h} called {f}, and together they started on a {what}.")
    s.par()
    tries(s, [("they rolled a ball of snow.", "But the snow was too dry, and the ball fell apart."), ("they piled the snow up high.", "But it slid down with a soft whump."), ("they made the body very big.", "It was so big that they could not lift the head onto it."), ("they put the head on top.", "It rolled off and landed on {f.s} foot.")], 2)
    idea(s, "h", 0.6)
    s("{h.e} [sprinkled a little water on the snow|pressed the snow with both {h.hands}], and now it held together.", "They started again, with a wide base and a smaller top.", "{g} came out and helped them with strong arms.")
    s("Two [black stones|buttons|nuts] became the eyes, and [a carrot|a pine cone|a red berry] became the nose.", "They gave it a [scarf|hat|crown of twigs] and a smile made of [pebbles|berries|acorns].")
    s("The {what} looked [wonderful|so funny that they laughed|almost alive].", "It was the finest {what} {p.in}.")
    if s.chance(0.5):
        s("But now {f.s} {f.hands} were [cold as ice|red with cold].", "Then {f} began to shiver.")
        s("{h} gave {f} {h.his} own [mittens|scarf|warm shawl].", "{h} shared {h.his} mittens: one for {h.him}, one for {f}." if h.she != f.she else "{h} took off one mitten and gave it to {f}. Now they had one each.")
    s("In the end, they sat by the stove with hot [cocoa|milk|soup].", "Then {g} called them in for {#snack}.", "When their toes were cold, they went in and drank cocoa.")
    s.v["home"] = "yes"
    s("From the window they could see the {what}. It seemed to wave.", "Outside, the {what} stood in the moonlight and smiled.", "\"Good night, {what}!\" they called through the window.")
    close(s)


@plot
def hat_in_wind(s):
    h = hero(s); o = thing(s, "fly"); f = elder(s, "w"); place(s, weather="windy")
    s.title("The runaway {o.n}", "The {o} and the wind"); s.topic("chases {h.his} {o} in the wind", "runs after {h.his} {o}")
    opening(s)
    s("{when}, {h} went out with {h.his} {o}.", "{when}, {h} walked {p.to}. {h.e} had {h.his} {o} with {h.him}.", "{when}, {h} showed {h.his} {o} to everyone {p.in}.")
    s("The wind was wild. It blew the {o.n} right out of {h.his} {h.hands}.", "Whoosh! The wind snatched the {o.n} away.", "Suddenly the {o.n} was off, over the grass.")
    s.q("h", "Stop! Come back!", "Hey, that is mine!", "Wait for me, {o.n}!")
    s("{h} {#ran} after it {#simile_fast}.", "{h.e} ran as fast as {h.his} legs could carry {h.him}.")
    s.par()
    for way in s.rng.sample(("It rolled under a gate, and {h} crawled after it.", "It hopped over a puddle, and {h} splashed right through.", "It flew past a flock of geese, and they all honked at it.", "It danced around a haystack, once, twice, three times.", "It landed on a goat's back, but before {h} could grab it, it was off again.", "It got caught on a fence. {h} reached out, but the wind was quicker.", "It sailed over a washing line full of socks.", "It swept through a heap of leaves, and the leaves flew up like birds."), 2 + int(2 * s.rich)):
        s(way)
    feel(s, "h", "tired", 0.8)
    s("At last it fell down right in front of {w}.", "In the end, the {o.n} landed at the feet of {w}.", "Then {w} reached out and caught it.")
    s.q("w", "Is this yours?", "What a fast {o.n} you have!", "I think this belongs to you.", "The wind brought me a present, but I think it is yours.")
    s("{h} laughed and told {w} about the long chase.", "{h} was so out of breath that {h.he} could only nod.")
    thanks(s, "w")
    s("They sat down together and shared {#snack}.", "{w} showed {h} how to tie a good knot, so that the {o.n} could not fly away again.", "And because it was such a long way home, {w} walked with {h}.")
    close(s)
