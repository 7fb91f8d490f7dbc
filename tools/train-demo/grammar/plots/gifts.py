"""Plots about wishes, giving, sharing and surprises."""
from .kit import *  # noqa: F403


@plot
def surprise_party(s):
    h = hero(s); f = friend(s); r = friend(s, "r", role="neighbour"); g = parent(s); day(s)
    s.title("The surprise", "{h}'s birthday", "Did everyone forget?"); s.topic("thinks that everyone forgot {h.his} birthday", "gets a surprise party")
    opening(s)
    s("{when}, {h} woke up very early. It was {h.his} birthday!", "{when}, {h} jumped out of bed. Today was {h.his} birthday!")
    s("{h} ran into the kitchen, but {g} only said, \"Good morning.\"", "{h.e} waited for a song, but {g} was busy and said nothing about it.")
    s("There was no cake, and there were no candles.", "There was not even a card on the table.")
    s.q("h", "Did they forget?", "Maybe they are only a little late.", "I will ask my friends.")
    s.par()
    tries(s, [("{h.e} asked {g} what day it was.", '"It is the day to clean the shed," said {g}.'), ("{h.e} met {r} on the road.", "{r} said hello and hurried on with a big bag."), ("{h.e} hummed the birthday song very loudly.", "Nobody joined in."), ("{h.e} counted on {h.his} {h.hands} how old {h.he} was.", "Nobody asked why.")])
    s("Even {f} had no time to play.", "{h} knocked at {f.s} door, but nobody was home.", "{f} ran past and called, \"I can't play today!\"")
    feel(s, "h", "sad", 1)
    s("In the evening, {h} walked home slowly.", "{h} sat on a stone until it was almost dark. Then {h.he} went home.")
    s("The house was dark and quiet.", "There was no light in the windows.")
    s("{h} opened the door. And then, suddenly, all the lights went on!", "{h} pushed the door open. Something rustled, someone giggled, and then the lamps lit up.")
    s('"Surprise!" they all shouted. "Happy birthday, {h.name}!"', '"Happy birthday!" called {g}, {f} and {r}.')
    s("There were [lanterns|paper stars|flowers], and in the middle stood a giant cake.", "Everyone was there, and the table was full of {#snacks}, {#snacks} and {#snacks}.")
    s.q("h", "I thought that you had forgotten me!", "You did not forget!", "So that is why nobody had time!")
    s.q("f", "We could never forget you!", "It was so hard to keep the secret!", "We worked on it all day long!")
    feel(s, "h", "happy", 1)
    s("{h} blew out the candles and made a wish.", "They danced and sang until late.", "{h} got a [red drum|book of stars|new scarf|little boat], but the best gift was having such friends.")
    close(s, None)


@plot
def wishing(s):
    h = hero(s); f = friend(s); day(s); g = parent(s)
    s.v["src"] = s.pick(("a wishing well", "a falling star", "a golden fish", "a tiny fairy in a bluebell", "an old brass lamp", "a talking stone", "a snow white bird"))
    src = s.v["src"]
    s.v["thesrc"] = "the " + src.split(" ", 1)[1]
    wish = s.pick((("to be as tall as a tree", "{h.he} was as tall as a tree", "{h.he} did not fit into the house anymore, and nobody could hear what {h.he} said"),
                   ("that everything {h.he} touched would turn into cake", "everything {h.he} touched turned into cake", "{h.his} pillow was full of crumbs, and {h.he} could not even have a drink of water"),
                   ("to be invisible", "nobody could see {h.him}", "nobody said good morning, and everyone bumped into {h.him}"),
                   ("that it would be {h.his} birthday every day", "it was {h.his} birthday every day", "{h.he} was sick of cake, and nobody came to the party anymore"),
                   ("to sleep as long as {h.he} liked", "{h.he} slept for a whole week", "{h.he} had missed the fair, and all the berries had been eaten"),
                   ("to be able to fly", "{h.he} rose into the air like a balloon", "{h.he} could not get down again, and it was cold and lonely up there"),
                   ("that nobody would ever tell {h.him} what to do", "all the grown-ups were gone", "nobody cooked, nobody told stories, and it was very quiet")))
    s.v["wish"], s.v["done"], s.v["but"] = (s.plain(w) for w in wish)
    s.title("{h}'s wish", "Be careful what you wish for", "The wish"); s.topic("gets a wish from {src}", "wishes {wish}")
    opening(s)
    s("{when}, {h} found {src}." if "star" not in src else "One clear night, {h} saw {src}.", "{when}, while looking for {#treasure}, {h} came upon {src}." if "star" not in src else "One night, {h} could not sleep, and through the window {h.he} saw {src}.")
    s('"You may make one wish," said a soft voice.', '"Make a wish," said a voice, "but think about it well."')
    s("{h} did not think for long. {h.e} wished {wish}.", "{h} knew at once what {h.he} wanted. {h.e} wished {wish}.")
    s("Puff! The wish came true, and {done}.", "There was a flash, and then {done}.", "In the blink of an eye, {done}.")
    s.q("h", "This is wonderful!", "Hooray! It worked!", "I am so lucky!")
    s("At first it was great fun.", "For a while, {h} enjoyed it very much.", "{h} laughed and danced with joy.")
    s.par()
    s("But soon {but}.", "But before long, {but}.")
    s("{h} missed {f} and {g}.", "{h} could not even play with {f} as before." )
    feel(s, "h", "sad", 1)
    s.q("h", "I don't want this anymore.", "I wish that I had never wished!", "It was better before.")
    s("{h} went back to the same place and called.", "So {h} went to find {thesrc} again." if "star" not in src else "That night, {h} looked up at the sky and called.")
    s("The voice laughed softly. \"What have you learned?\"", '"Ah, there you are again," said the voice. "What do you want now?"')
    s.q("h", "I had everything that I need, and I did not know it.", "I want everything to be as it was.", "The best things are the ones that I had before.")
    s("Puff! Everything was as before.", "And with a little puff, everything was normal again.")
    s("{h} ran home and hugged {g}. Then {h.he} ran to {f} to play." if h.she != g.she else "{h} ran home and hugged {g}. Then it was time to play with {f}.", "There was {f}, and {h} had never been so glad to see someone.")
    s("{h} did not need another wish after that.", "From then on, {h} thought twice before {h.he} wished for something.")
    close(s, "self", 0.3)


@plot
def last_piece(s):
    h = hero(s); f = friend(s); day(s); o = thing(s, "food", never=("jar of jam", "pot of soup")); r = elder(s, "w")
    s.title("The last {o.n}", "Half and half"); s.topic("shares {h.his} last {o.n}", "has only one {o} left", "learns to share a {o}")
    opening(s)
    s("{when}, {h} had a {o}. It was still warm and smelled {#yum}.", "{when}, {h} got a {o}. {h.e} had looked forward to it all week.")
    s.q("h", "I will eat it all by myself.", "This is all mine.", "I will sit down somewhere and enjoy it.")
    s("{h} looked for a quiet spot, where nobody would ask for a bite.", "{h} hid it under a cloth and walked off.")
    s.par()
    tries(s, [("{h.e} sat down under a tree.", "A sparrow hopped near and looked at {h.him} with hungry eyes, so {h.he} moved on."), ("{h.e} sat down on a wall.", "Some ants marched up in a long line, so {h.he} moved on."), ("{h.e} sat down by the well.", "But {h.he} did not like it there all alone.")], 2)
    s("Then {h} saw {f}, who was sitting there with nothing to eat.", "Then {f} came along. {f.e} had dropped {f.his} lunch in a puddle.", "Near the road, {h} met {f}. \"I am so hungry,\" said {f}.")
    s("{h} looked at the {o.n}. It was not very big.", "{h} thought about it. If {h.he} shared it, there would be only half.")
    s("{h} wanted to walk on, but {h.his} feet stopped.", "{h} remembered how hungry {h.he} had been once.")
    s("So {h} broke the {o.n} in two and gave the bigger half to {f}.", "\"Here,\" said {h}, and gave half of the {o.n} to {f}.")
    s.q("f", "Really? For me? Thank you!", "You are so kind!", "This is the best {o.n} in the world!")
    s("They sat side by side and chewed happily.", "They ate slowly, and it tasted better than any other before.")
    if s.chance(0.5):
        s("{w} came by and saw how they shared.", "{w} had been watching them.")
        s('"I like to see that," said {w}, and gave them a whole bag of {#snacks}.', "The next day, {w} gave both of them a whole basket of {#snacks}.")
    else:
        s("The next day, {f} brought a big bag of {#snacks} and gave half of it to {h}.", "A week later, {h} had nothing to eat, and it was {f} who shared.")
    s("Half a {o.n} with a friend is more than a whole one alone.", "{h} was only half full, but twice as happy.", "Only the sparrow got the crumbs, and it was happy too.")
    close(s, "share")


@plot
def give_away(s):
    h = hero(s); f = friend(s); place(s, season="winter", weather=s.pick(("cold", "frosty", "icy", "snowy"))); o = thing(s, "wear", only=("scarf", "hat", "mitten", "cap")); g = parent(s)
    s.title("The warm {o.n}", "{h} gives away a {o.n}"); s.topic("gives away {h.his} {o}", "helps someone who is cold"); s.tags.append("winter")
    who = s.pick(("an old beggar", "a tiny bird", "a lost kitten", "a small hedgehog", "a shivering puppy"))
    if h.kind in who or f.kind in who: who = "a tiny bird"
    s.v["who"], s.v["thewho"] = who, "the " + who.split()[-1]
    opening(s)
    s("{g} had knitted {h.him} a {o} for the winter." if h.she != g.she else "{g} had knitted a {o} for {h}.", "{h} had a {o}, the warmest one in the whole village.")
    s("{when}, {h} put on the {o.n} and went {p.to}.", "{when}, {h} went out to play in the snow {p.in}. The {o.n} kept {h.him} warm.")
    s("The wind bit like a little dog.", "The snow creaked at every step.", "Everything was white and still.")
    s.par()
    s("There {h} saw {who}, shaking with cold.", "Beside the path sat {who}. It was shaking with cold." if "beggar" not in who else "Beside the path sat {who}, blowing on his hands.")
    s("{h} looked at {h.his} {o}. Then {h.he} looked at {thewho}.", "{h} stopped. {h.e} could not just walk on.")
    s("{f} said, \"You will be cold without it!\"", '"But it is your best {o.n}!" said {f}.')
    s.q("h", "I have a warm home to go to.", "I can run to keep warm.", "It is needed here more than on my head." if o.noun in ("hat", "cap") else "It is needed here more than on me.")
    s("{h} took off the {o.n} and wrapped it around {thewho}." if o.noun == "scarf" else "{h} took off the {o.n} and laid it gently around {thewho}." if "beggar" not in who else "{h} took off the {o.n} and gave it to {thewho}.")
    s("{thewho} stopped shaking.", "Two grateful eyes looked up at {h}.")
    s("{h} ran all the way home to keep warm.", "Together with {f}, {h} hopped home to keep warm.")
    s.par()
    s("At home, {h} told {g} what had happened. Would {g} be angry?", '"Where is your {o.n}?" asked {g}. {h} told the whole story.')
    s("But {g} only smiled.", "{g} was quiet for a moment and then gave {h} a kiss.")
    s.q("g", "Wool can be knitted again. A kind heart cannot.", "Then I will knit another one.", "I am proud of you.")
    s("A week later, {h} had a new {o.n}, and it was even warmer.", "That very evening, the needles went click, click, click.")
    s("And whenever the wind blew cold, {h} thought of {thewho} and felt warm.", "All winter long, {h} saw {thewho} now and then, warm and well.")
    s.v["home"] = "yes"
    close(s, "kind")


@plot
def saving_coins(s):
    h = hero(s, "child"); f = friend(s); g = elder(s); day(s); o = thing(s, "share", never=("swing",))
    s.title("The {o} in the window", "{h} saves up"); s.topic("saves {h.his} coins for a {o}", "wants to buy a {o}")
    opening(s)
    s("{when}, {h} saw a {o} in the shop window.", "{when}, {h} stopped in front of the toy shop. In the window was a {o}.")
    s("It cost [ten|twelve|twenty] coins, and {h} had only [two|three|one].", "{h} counted {h.his} coins. It was not nearly enough.")
    feel(s, "h", "sad", 0.5)
    s.q("h", "I will save until I have enough.", "I will work for it.", "I will not spend a single coin.")
    s.par()
    for job in s.rng.sample(("{h} swept {g.s} yard and got a coin.", "{h} carried wood for a neighbour and got two coins.", "{h} walked a dog that pulled like a horse.", "{h} picked beans until {h.his} back hurt.", "{h} washed a very dirty cart.", "{h} fed the hens every morning.", "{h} pulled up weeds in the garden.", "{h} read the newspaper to an old lady."), 3 if s.rich > 0.6 else 2):
        s(job)
    s("Clink, clink, the money box grew heavier.", "Week after week, the little heap of coins grew.")
    s("At last {h} had enough. {h.e} ran to the shop {#simile_fast}.", "Then came the day when it was enough. {h} put the coins in a bag and set off.")
    s.par()
    if s.chance(0.5):
        s("But on the way, {h} met {f}, who was crying.", "But at the corner stood {f} in tears.")
        s.q("f", "I lost the money for our bread.", "My dog is ill, and I can't pay for the medicine.", "I broke a window, and I have to pay for it.")
        s("{h} held the bag of coins tight. Then {h.he} sighed and gave it to {f}." , "{h} thought of the {o}. Then {h.he} thought of {f}, and {h.he} opened the bag.")
        s("{f} could hardly believe it. \"I will pay it all back,\" {f.he} promised.", "{f} hugged {h} and promised to pay back every coin.")
        s("The {o} stayed in the window, but {h} felt rich.", "{h} walked past the shop window and did not even look.")
        s("A month later, there was a parcel at the door. In it was the {o}, from {f}!", "When {g} heard the story, {g.he} bought the {o} and put it on {h.s} doorstep." if h.she != g.she else "When {g} heard the story, something appeared on {h.s} doorstep. It was the {o}!")
        moral = "kind"
    else:
        s("But the window was empty. The {o} had been sold!", "But the {o} was gone.")
        s.q("h", "I came too late!", "Oh no! All that work for nothing!")
        s("The shopkeeper smiled and reached under the counter.", '"Wait," said the shopkeeper, and went into the back room.')
        s('"I saw how hard you worked, so I kept it for you," he said.', 'He came back with the {o}. "I saved it for you," he said.')
        s("{h} put all the coins on the table, one by one.", "{h} paid and carried the {o} home like a crown.")
        s("{f} was the first who was allowed to try it.", "That afternoon, {h} and {f} played with it until dark.")
        moral = "patient"
    feel(s, "h", "happy", 0.8)
    close(s, moral)


@plot
def mystery_box(s):
    h = hero(s); f = friend(s); g = parent(s); day(s)
    s.v["box"] = s.pick(("a small wooden box", "a parcel tied with string", "a round tin", "a basket with a lid", "a paper bag with holes", "a blue box with a ribbon"))
    s.v["n"] = next(n for n in ("box", "parcel", "tin", "basket", "bag") if n in s.v["box"])
    inside = s.pick(("a kitten", "seeds of a hundred flowers", "a set of paints", "a tiny music box", "warm mittens", "a puzzle with a picture of the sea", "an egg that was about to hatch", "a wind chime made of shells"))
    if h.kind == "kitten" or f.kind == "kitten": inside = "a set of paints"
    s.v["inside"] = inside; s.tags.append(s.v["n"])
    s.title("The {n}", "What is in the {n}?"); s.topic("finds {box} on the doorstep", "wonders what is in {box}")
    opening(s)
    s("{when}, there was {box} on the doorstep.", "{when}, the postman brought {box}.", "{when}, {h} found {box} in front of the door.")
    s('On it was written: "Do not open before evening."', 'A note on it said: "Please wait until the sun goes down."')
    s.q("h", "What could it be?", "How can I wait so long?", "Maybe it is a treasure!")
    s.par()
    tries(s, [("{h.e} shook it a little.", "Something moved inside." if "kitten" not in inside and "egg" not in inside else "\"Careful!\" called {g} from the kitchen."), ("{h.e} sniffed at it.", "It smelled of nothing but paper and string." ), ("{h.e} held it up to the light.", "There was nothing to be seen."), ("{h.e} tried to forget about it and swept the floor.", "But {h.he} swept the same spot four times."), ("{h.e} asked {g} to give {h.him} a hint." if h.she != g.she else "{h.e} begged for a hint.", "But {g} only smiled.")])
    s("{f} came to play, and they made guesses.", "{h} showed it to {f}, and the two of them guessed.")
    s.talk("f", "h", ("It could be a hat for a mouse.", "Or shoes for a bird!"), ("I bet it is full of sweets.", "I hope so! Then we will share them."), ("Let us peek, just a little.", "No, I want to wait. It says so on the note."), ("Perhaps it is empty.", "Then why would anybody send it?"))
    s("The day was as long as a week.", "The sun seemed to stand still in the sky.", "{h} looked at the sun every two minutes.")
    s("At last evening came. With shaking {h.hands}, {h} opened the {n}.", "When the sun had gone down, {h} and {f} opened the {n} together.")
    s("Inside was {inside}!" if "seeds" not in inside and "mittens" not in inside else "Inside were {inside}!")
    s("\"Oh!\" was all that {h} could say.", "{h} held {h.his} breath.", "{f} clapped with joy.")
    s({"k": "{h} gave the kitten some milk and called it Secret.", "s": "In spring, there were flowers all around the house.", "a set": "That very night, {h} and {f} painted a picture of the day."}.get("a set" if inside.startswith("a set") else "k" if "kitten" in inside else "s" if "seeds" in inside else "", "{h} could not stop looking at it." if "mittens" not in inside else "They fitted just right."))
    s('There was a card too. "For someone who can wait," it said.', "It was a present from {g}, because {h} had been so helpful all week.")
    feel(s, "h", "happy", 0.8)
    close(s, "patient")
