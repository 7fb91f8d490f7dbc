"""Plots about what is broken, mended, built, baked and painted."""
from .kit import *  # noqa: F403
from .lost import thanks_from


@plot
def broken_mended(s):
    h = hero(s); o = thing(s, "mend"); g = helper(s); f = friend(s); day(s)
    s.v["m"] = s.pick(MATERIAL)
    s.title("The broken {o.n}", "{h} mends the {o}", "The {o}"); s.topic("breaks {h.his} {o}", "mends a broken {o.n}", "has a {o.n} that breaks")
    opening(s)
    s("{h} had a {o}. It was the thing {h.he} loved best.", "{h.e} had a {o} that [{g}|an old uncle] had made for {h.him}.", "{h.s} {o} was {h.his} greatest joy.")
    s("{when}, {h} was playing with the {o.n}, and it slipped. {#noise}", "{when}, {h} was in a hurry and did not look. {#noise} The {o.n} fell over.", "{when}, {h} and {f} were too wild. {#noise} Something cracked.", "{when}, {h} stumbled over a stone, and the {o.n} flew out of {h.his} {h.hands}. {#noise}")
    s("The {o} was broken.", "Now the {o.n} had a [big|long|deep] crack.", "One side of the {o.n} had come off.", "The {o.n} lay there in two pieces.")
    feel(s, "h", "sad"); s.par()
    tries(s, [("{h.e} tried to push the pieces together.", "But they fell apart again."), ("{h.e} used a bit of mud as glue.", "The mud dried and crumbled."), ("{h.e} tied a blade of grass around it.", "The grass snapped at once."), ("{h.e} pressed hard and counted to a hundred.", "When {h.he} let go, it was as broken as before."), ("{h.e} stuck it together with honey.", "That only made it sticky, and the ants came.")])
    if s.chance(0.75):
        ask_help(s, "g"); s.q("g", "Broken things can be mended.", "Let us see what we can do.", "I think I have just the thing for that.", "Do you know what we need? We need {m} and some patience.")
        s("{g} brought {m}, and they sat down at the table.", "They looked in a drawer and found {m}.", "{g} showed {h} how to use {m}.")
        s("{h} held the pieces while {g} worked.", "{g} held the pieces still, and {h} did the rest.", "It took a long time, but slowly the {o.n} became whole again.")
        who, moral = "g", "help"
    else:
        idea(s, "h", 1)
        s("{h.e} found {m} and went to work.", "{h.e} fetched {m} and tried a new way.")
        s("{h.e} worked slowly and carefully until it held.", "This time, {h.he} did not hurry.")
        who, moral = None, "patient"
    s("At last the {o} was mended.", "When they were done, the {o.n} was as good as new." if who else "When {h.he} was done, the {o.n} was as good as new.", "You could still see the crack, but the {o.n} was strong again.")
    feel(s, "h", "happy", 1)
    if who:
        thanks(s, who)
    s("{h} painted a little star over the crack. Now the {o.n} was even more special.", "The {o.n} was not perfect anymore, but {h} loved it even more.", "From then on, {h} carried the {o.n} with both {h.hands}.", "{h} showed the mended {o.n} to everyone.")
    close(s, moral)


@plot
def wobbly_tower(s):
    h = hero(s); f = friend(s); place(s)
    what, stuff = s.pick((("tree house", "old boards"), ("bridge over the stream", "flat stones and planks"), ("hut of branches", "long branches"), ("tower of blocks", "wooden blocks"), ("sand castle", "wet sand"), ("raft", "dry logs"), ("dam", "sticks and mud"), ("bench", "a plank and two logs")))
    if what == "sand castle": place(s, "beach")
    if what == "raft" or what.startswith(("dam", "bridge")): place(s, "river bank")
    if what == "tower of blocks": place(s, "garden")
    s.v.update(what=what, stuff=stuff); s.v["w1"] = what.split()[0] if what not in ("tree house", "sand castle") else what
    s.title("The {w1} that would not stand", "{h} builds a {what}", "The {w1}"); s.topic("builds a {what}", "wants to build a {what} with a friend")
    s.tags.append(s.v["w1"])
    opening(s)
    s("{when}, {h} had a great plan. {h.e} wanted to build a {what}.", "{when}, {h} said to {f}, \"Let us build a {what}!\"", "{when}, {h} and {f} went {p.to}. They wanted to build a {what}.")
    s("They gathered {stuff} and began.", "{h} and {f} collected {stuff} all [morning|day long].", "For this, {h} and {f} needed {stuff}, and they found plenty.")
    detail(s); s.par()
    tries(s, [("they built it as quickly as they could.", "{#noise} It fell down."), ("they made one side bigger than the other.", "The {w1} leaned to the left and fell over."), ("they put the biggest pieces on top.", "It wobbled, wobbled and came down."), ("{h} worked alone, without listening to {f}.", "Soon nothing fitted together."), ("they tied everything with thin string.", "The string broke with a snap.")])
    if s.chance(0.5):
        s.q("h", "It will never work!", "This is too hard!", "I give up!")
        s.q("f", "Let us try it once more, but slowly.", "Maybe we should start at the bottom.", "Every builder starts again sometimes.", "We only have to find out why it falls.")
    else:
        idea(s, "h", 1)
    s("They put the heavy pieces at the bottom and the light ones on top.", "This time, {h} held everything steady while {f} put the pieces in place.", "They looked at how [a bird builds its nest|the old wall was made], and did it the same way.", "First they made a drawing, and then they built it step by step.")
    s("Slowly the {w1} grew.", "Piece by piece, the {w1} grew.", "They worked until the sun stood low.")
    s("At last it was done. It was strong, and it did not even wobble!", "And this time, the {w1} stood firm.", "{h} gave it a push. It did not move at all!")
    cheer(s); feel(s, "h", "proud", 0.6)
    s("{h} and {f} put a little flag on it.", "They called it [Fort Fun|The Great Wonder|Lion Rock|Cloud House].", "Then they sat beside the {w1} and shared {#snack}.", "All their friends came to see the {w1}.")
    close(s, s.pick(("patient", "practice")))


@plot
def baking_day(s):
    h = hero(s); g = parent(s); day(s); o = thing(s, "food", never=("jar of jam", "pancake", "cookie"))
    f = friend(s)
    s.title("The {o}", "{h} bakes", "A surprise in the oven") if o.noun != "pot of soup" else s.title("The {o}", "{h} cooks", "Soup for everyone")
    s.topic("makes a {o}", "makes a {o} with {g}")
    s.v["verb"] = "cook" if o.noun == "pot of soup" else "bake"
    opening(s)
    s("{when}, {h} wanted to {verb} a {o}.", "{when}, {h} asked {g} if they could {verb} a {o}.", "{when}, {g} said, \"Today we will {verb} a {o}.\"")
    s("{h} [washed {h.his} {h.hands}|put on an apron|fetched a big spoon] and began." if h.hand != "wing" else "{h} put on an apron and began.", "{h} put everything on the table: " + ("{#veg}, {#veg} and a pinch of salt." if o.noun == "pot of soup" else "flour, eggs, butter and a pinch of salt."))
    s("Stir, stir, stir, went the spoon.", "The kitchen was warm, and the kettle sang.", "A little flour flew up and landed on {h.s} nose." if o.noun != "pot of soup" else "Chop, chop, chop, went the knife in {g.s} {g.hand}." )
    s.par()
    if s.chance(0.5):
        s("But then {h} took the wrong jar. Instead of sugar, {h.he} put in salt!" if o.noun != "pot of soup" else "But then {h} dropped the whole salt pot into the soup!", "But {h} looked out of the window for too long, and soon there was a smell of smoke.")
        s.q("h", "Oh no, it is spoiled!", "Now nobody will want to eat it!", "What have I done?")
        feel(s, "h", "sad", 0.6)
        s.q("g", "That happens to every cook.", "Even the best cooks make mistakes.", "Never mind. We will try again.", "My first one was as black as coal.")
        s("So they began again, and this time {h} [tasted everything first|read every label|watched closely].", "They laughed, cleaned the table and started again.")
    else:
        s("But there were no eggs left." if o.noun != "pot of soup" else "But there were no onions left.", "But the milk jug was empty." if o.noun != "pot of soup" else "But there was no salt in the house.")
        s("{h} ran to {f} and asked for some. {f} was glad to help.", "{h} knocked at {f.s} door, and {f} came along with just what they needed.")
    s("Soon a wonderful smell filled the house.", "Before long, the smell made everyone's tummy rumble.", "At last it was ready. It was golden and smelled like heaven." if o.noun != "pot of soup" else "At last it was ready. Steam rose from the pot.")
    s("{h} carried the {o} to the table very carefully.", "{h} blew on the first bite and tasted it. It was {#yum}!", "They could hardly wait until it was cool enough.")
    s("Everyone wanted a second helping.", "They ate and ate until only crumbs were left." if o.noun != "pot of soup" else "They ate and ate until the pot was empty.", "{g} said that it was the best {o.n} in the world.", "{h} kept the biggest piece for {f}." if o.noun != "pot of soup" else "{h} kept a big bowl for {f}.")
    feel(s, "h", "proud", 0.8)
    close(s, s.pick(("practice", "help")))


@plot
def painting_contest(s):
    h = hero(s); f = friend(s, role="friend"); place(s)
    theme = s.v["theme"] = s.pick(("the sea", "a summer day", "the moon", "a garden in bloom", "the oldest tree", "a happy family", "the town at night", "a dancing bear", "a boat in the wind"))
    s.title("The painting contest", "{h} and the picture", "The spilled paint"); s.topic("takes part in a painting contest", "paints a picture of {theme}", "spills paint on {h.his} picture")
    opening(s)
    s("{when}, {h} heard of a painting contest. Everyone was to paint {theme}.", "{when}, there was a sign by the [gate|well|road]: \"Painting contest! Paint {theme}!\"", "{when}, {f} told {h} about a painting contest. The pictures should show {theme}.")
    s.q("h", "I will paint the best picture ever!", "I want to try it!", "Do you think I can do it?", "I have never been in a contest before.")
    s("{h} took {h.his} brush and went {p.to} to paint.", "{h} got {h.his} paints ready and thought for a long time.", "{h} mixed [blue and yellow|red and white|all the colours] and began.")
    s("{h.e} worked all morning.", "Stroke by stroke, the picture grew.", "{h.e} even got paint on {h.his} nose.")
    s.par()
    s("But then {h.his} elbow hit the jar. Splash! A big [blue|red|green|brown] blot ran over the picture." if h.world == "child" else "But then {h} hit the jar. Splash! A big [blue|red|green|brown] blot ran over the picture.", "But just before {h.he} was done, a drop of dark paint fell right in the middle.", "Then a gust of wind blew [leaves|sand|dust] all over the wet paint.")
    feel(s, "h", "sad", 1)
    tries(s, [("{h.e} tried to wipe it off.", "That only made it worse."), ("{h.e} turned the paper over.", "But the paint had gone right through."), ("{h.e} blew on it.", "Now there were little splashes everywhere.")], 2)
    if s.chance(0.6):
        ask_help(s, "f"); s.q("f", "Look closely. What could that spot be?", "I do not see a mistake. I see something new.", "Maybe the picture wants to be something else.")
    idea(s, "h", 1)
    s("{h.e} gave the spot two wings, and it became a bird.", "{h.e} painted eyes and fins, and the spot became a fish.", "With a few strokes, the spot turned into a [cloud|cat|whale|flower].", "{h.e} dipped a finger in the paint and made the spot into a big friendly dragon." if h.hand == "hand" else "{h.e} made the spot into a big friendly dragon.")
    s("Now it was the most unusual picture of all.", "Nobody would ever guess that it had been a mistake.", "{h} had to laugh, it looked so good.")
    s.par()
    s("At the contest, everyone stopped in front of {h.s} picture.", "When all the pictures hung in a row, people smiled at {h.s}." if h.world == "child" else "When all the pictures hung in a row, everyone smiled at {h.s}.")
    if s.chance(0.5):
        s("And {h} won the first prize, a box of new paints!", "The judge gave {h} a golden ribbon.", "{h} won!")
    else:
        s("{h} did not win, but {f} said that {h.his} picture was the best." if h.she != f.she else "{h} did not win, but {f} said, \"Yours is the best of all.\"", "{h} came in third, and {h.he} was very happy with that.", "{f} won the prize, and {h} clapped the loudest.")
    feel(s, "h", "proud", 0.6)
    close(s, "self", 0.2)


@plot
def lemonade_stand(s):
    h = hero(s, "child"); f = friend(s); day(s, "summer", s.pick(("hot", "sunny", "warm"))); g = elder(s)
    s.v["drink"] = s.pick(("lemonade", "apple juice", "raspberry juice", "cold mint tea")); goal = s.v["goal"] = s.pick(("a new ball", "a pair of roller skates", "a big box of paints", "a birthday gift for {h.his} sister", "a fishing net", "a ticket to the circus", "a book about stars"))
    s.v["goal"] = s.plain(goal)
    s.title("The {drink} stand", "{h} sells {drink}"); s.topic("sells {drink}", "wants to earn money for {goal}", "opens a {drink} stand")
    opening(s)
    s("{when}, {h} wanted to earn money for {goal}.", "{when}, {h} saw {goal} in a shop window. But {h.he} had no money." if "gift" not in goal and "ticket" not in goal else "{when}, {h} wished for {goal}, but {h.he} had no money.", "{h} had been saving for {goal}, but {h.his} money box was almost empty.")
    s.q("h", "I will sell {drink}!", "I know what to do. I will make {drink} and sell it.", "On a day like this, everyone is thirsty.")
    s("{f} came to help. They carried a table to the street and painted a sign.", "With {f}, {h.he} set up a little table under a tree.", "{h} and {f} mixed a big jug of {drink} and put out ten cups.")
    s.par()
    s("But nobody came.", "They waited and waited, but the street was empty.", "One hour went by, and they had sold just one cup.")
    tries(s, [("{h.e} called, \"Cold {drink}! Fresh and cold!\"", "Only a [cat|dog|pigeon] looked up."), ("they made the sign bigger.", "The wind blew it over."), ("{h.e} tasted the {drink} to see if something was wrong.", "It was much too sour, and {h.his} face crumpled up." if s.v["drink"] == "lemonade" else "It was fine, but the ice had melted."), ("they drank a cup each to show how good it was.", "Now there was less to sell, and still nobody came.")], 2)
    feel(s, "h", "sad", 0.5)
    if s.chance(0.5):
        s("Then {g} came by, red and hot from working.", "Then {g} came along with heavy bags.")
        s("{h} felt sorry for {g} and gave {g.him} a cup for free." if h.she != g.she else "{h} thought, \"Poor {g.name}!\" and gave away a cup for free.")
        s.q("g", "This is the best {drink} I have ever had!", "How kind of you! I will tell everyone.", "You have saved my day.")
        s("{g} told all the neighbours, and soon there was a long line.", "Soon {g} came back with ten thirsty friends.")
        moral = "kind"
    else:
        s("Then {f} had an idea. \"Let us move to the park. The ball game is there!\"", "Then {h} had an idea. \"We must go where people are thirsty!\"")
        s("They put the jug on a wagon and rolled it to the playing field.", "They moved the table to the park gate.")
        s("There, everybody was hot and wanted a drink.", "In no time, there was a long line.")
        moral = "practice"
    s("Clink, clink, clink, went the coins in the jar.", "{h} poured, and {f} took the money.", "Cup after cup was sold.")
    s("When the jug was empty, the jar was full.", "In the evening, {h} and {f} counted the coins twice.")
    s("There was enough for {goal}, and even for two [ice creams|buns].", "{h} shared the money fairly with {f}, and it was still enough for {goal}.")
    feel(s, "h", "proud", 0.7)
    close(s, moral)


@plot
def wonky_gift(s):
    h = hero(s); f = friend(s); o = thing(s, "gift"); day(s); g = parent(s)
    s.title("A gift for {f.name}", "The {o}", "{h}'s gift"); s.topic("makes a {o} for a friend", "has no money for a gift")
    opening(s)
    s("Soon it was {f.s} birthday.", "{when}, {h} got a letter. It was an invitation to {f.s} birthday party!", "{when}, {h} remembered that it would soon be {f.s} birthday.")
    s("{h} wanted to give {f} something nice, but {h.he} had no money.", "{h} looked in {h.his} money box. There was only one [coin|button] in it.", "{h} went to the shop, but everything there cost too much.")
    feel(s, "h", "worried", 0.7)
    s.par()
    tries(s, [("{h.e} thought of picking flowers.", "But the garden was bare that week."), ("{h.e} wanted to bake a cake.", "But the oven was broken."), ("{h.e} tried to write a song.", "But nothing rhymed with {f.name}.")], 2)
    s.v["x"] = g
    s.q("g", "The best gifts are made by hand.", "Why don't you make something yourself?", "A gift does not need to cost anything.")
    s("So {h} made a {o}. It took the whole [evening|day|afternoon].", "{h.e} sat down and made a {o}, all by {h.self}.", "{h.e} set to work and made a {o} for {f}.")
    s("It was a little crooked, but it was made with love.", "One side was bigger than the other.", "It was not perfect, and {h} worried a bit.")
    s.par()
    s("At the party, {f} got [big boxes and shiny toys|many fine things].", "On the day of the party, all the guests brought big, shiny boxes.")
    s("{h} held the {o.n} behind {h.his} back. Was it good enough?", "{h.s} gift was the smallest of all.")
    s("But {f} opened it and gasped.", "{f} unwrapped it slowly, and then {f.his} eyes grew wide.", "At last {f} opened the small parcel from {h}.")
    s.q("f", "Did you make this yourself? It is the best gift of all!", "Nobody has ever made something just for me!", "I love it! I will keep it forever.", "There is only one like it in the whole world!")
    feel(s, "h", "happy", 1)
    s("The {o} got a special place in {f.s} room.", "{f} did not let go of the {o.n} all evening." , "From then on, everybody wanted to learn how to make such a {o.n}.")
    close(s, "kind", 0.3)


@plot
def old_bench(s):
    h = hero(s); g = elder(s); place(s, "garden", "orchard", "river bank", "lake shore"); f = friend(s)
    what = s.v["what"] = s.pick(("bench", "fence", "gate", "bridge", "boat", "swing", "mailbox", "wheelbarrow")); c = s.v["c"] = s.pick(("blue", "green", "yellow", "red", "white"))
    s.tags.append(what)
    s.title("The old {what}", "A new {what} for {g.name}"); s.topic("helps to mend an old {what}", "paints an old {what} {c}")
    opening(s)
    s("Near {h.s} home stood an old {what}. It belonged to {g}.", "Every day, {h} walked past an old {what}. It was {g.s}.")
    s("The paint was gone, and it creaked in the wind.", "It was grey, and one board was loose.", "Once it had been {c}, but that was long ago.")
    s("{when}, {h} saw {g} standing in front of it. {g.e} looked sad.", "{when}, {g} sighed and said, \"My back is too old to mend it.\"")
    s.q("h", "We could make it like new!", "I can help you!", "What if we painted it?")
    s("{h} called {f}, and they brought brushes, nails and a pot of {c} paint.", "{h} and {f} fetched a hammer, some nails and a pot of {c} paint.")
    s.par()
    tries(s, [("they painted over the dirt.", "The paint came off in flakes, so they had to scrub it first."), ("{h.e} hammered in a nail.", "It went in crooked, and {g} showed {h.him} how to hold it." if h.she != g.she else "It went in crooked, and {g} had to pull it out again."), ("they started without a plan.", "Soon there was more paint on the grass than on the {what}.")], 2)
    s("Scrub, scrub! Tap, tap! Swish, swish! They worked all afternoon.", "{g} told stories of the old days while they worked.", "{h} painted the left side, and {f} painted the right side. They met in the middle.")
    s("When it was done, the {what} shone {c} in the sun.", "At last the {what} was as {c} as [ever|on its first day].")
    s("{g} could not believe {g.his} eyes.", "{g} wiped away a happy tear.", "{g} clapped {g.his} {g.hands}." if g.hand != "wing" else "{g} flapped {g.his} wings with joy.")
    s.q("g", "It is just like when I was young!", "It is more beautiful than ever!", "You two are real treasures.")
    s("Nobody touched it until the paint was dry. Well, almost nobody. {h} had a {c} {h.hand} all week.", "Then {g} brought [a plate of cookies|warm buns|cold juice] for everyone.")
    feel(s, "h", "proud", 0.6)
    close(s, "kind")
