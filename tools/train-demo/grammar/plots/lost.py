"""Plots about what is lost and what is found."""
from .kit import *  # noqa: F403


@plot
def lost_toy(s):
    h = hero(s); o = thing(s, s.pick(("toy", "wear", "tool"))); f = friend(s); g = helper(s); place(s)
    s.v["spot"] = s.pick(s.v["p"].spots)
    s.title("{h} and the {o}", "The lost {o.n}", "Where is the {o.n}?"); s.topic("loses {h.his} {o}", "looks for a lost {o.n}", "cannot find {h.his} {o.n}")
    opening(s)
    s("{h.s} favourite thing was a {o}. {h.e} took it everywhere.", "{h.e} had a {o} that [{g}|Grandma|an uncle] had given {h.him}. {h.e} loved it very much.",
      "Of all {h.his} things, {h.e} loved a {o} the most.", "{h} owned a {o}, and {h.he} never went out without it.", "On {h.his} birthday, {h} had got a {o}. It was {h.his} greatest treasure.")
    s("{when}, {h} took the {o.n} {p.to} to play.", "{when}, {h.e} went {p.to} with the {o.n}.", "{when}, {h} played {p.in} all by {h.self}, and of course the {o.n} came along.")
    detail(s)
    s.par()
    s("But when it was time to go home, the {o.n} was gone!", "After a while, {h.e} looked down. The {o} was not there anymore!", "{h.e} ran and jumped and rolled in the grass. Then {h.he} noticed that the {o.n} was missing.", "{h.e} chased a butterfly for a while. When {h.he} came back, {h.he} could not see the {o.n} anywhere.")
    s.maybe(0.6, '"Oh no! Where is my {o.n}?" {h} cried.', '"My {o.n}! It was here a moment ago!" said {h}.', '"It is gone!" whispered {h}.')
    feel(s, "h", "sad")
    s.par()
    tries(s, [("{h.e} looked {p.spot}.", "[There was nothing but an old leaf|It was not there|Only a beetle lived there]."), ("{h.e} walked all the way back along the path.", "[The path was empty.|{h.e} found a feather and a nutshell, but no {o.n}.]"),
              ("{h.e} emptied {h.his} bag.", "Out fell [a pencil|a crumb|two pebbles|a string], but not the {o.n}."), ("{h.e} asked a passing [snail|beetle|ant], just for fun.", "But it only crawled on." ), ("{h.e} looked {p.spot} and {p.spot}.", "The {o.n} was in neither place.")])
    if s.chance(0.6):
        s.v["x"] = f
        ask_help(s, "f"); comfort(s, "f")
        s.q("f", "When did you last see it?", "Where did you play first?", "Let us walk back the way you came.", "I will look on this side, and you look on that side.")
        s("{h} thought hard. {h.e} remembered that {h.he} had [rested|sat|stopped] {spot}.", "Together they searched every corner.", "They went along slowly, step by step, and looked at everything.")
        s("And there, {spot}, [lay|they found] the {o}!", "There it was, {spot}! The {o.n} was [a little dusty|a bit wet|safe and sound].", "{f} pointed. Something {o.adj} was lying {spot}. It was the {o.n}!")
        feel(s, "h", "happy", 1); thanks(s, "f")
        moral = "help"
    else:
        idea(s, "h")
        s("{h.e} closed {h.his} eyes and remembered every step. First {h.he} had run, and then {h.he} had sat down {spot}.", "{h.e} went back to the very first place where {h.he} had played.")
        s("{h.e} ran there {#simile_fast}. And there it was, the {o}!", "And look! The {o} was lying {spot}, just where {h.he} had left it.")
        feel(s, "h", "happy", 1)
        moral = "careful"
    s.v["home"] = "yes"
    s("{h} held the {o.n} tight all the way home.", "From that day, the {o.n} always had its own safe place [by the bed|on the shelf|near the door].", "{h} [wiped|brushed] the {o.n} clean and carried it home.", "That night the {o} lay right beside {h.s} pillow.")
    close(s, moral)


@plot
def missing_key(s):
    h = hero(s, "child"); g = parent(s); f = friend(s); o = thing(s, "tool", only=("key",)); day(s)
    s.v["lock"] = s.pick(("garden shed", "old wooden chest", "front door", "little cupboard", "music room", "attic", "boathouse"))
    s.v["spot"] = s.pick(("in the pocket of an old coat", "under the doormat", "in a flowerpot", "inside a teacup", "behind the clock", "in the cat's basket", "between two books"))
    s.title("The missing key", "The {o}"); s.topic("looks for a missing key", "helps {g} to find a {o}")
    opening(s)
    s("{when}, {g} wanted to open the {lock}, but the key was gone.", "{when}, {g} stood in front of the {lock} and shook {g.his} head. The key was missing!", "{when}, {g} could not find the {o} to the {lock}.")
    s.q("g", "I had it yesterday. Where can it be?", "It is a {o}. Have you seen it?", "Without the key, we cannot get in.", "I have looked everywhere.")
    s.q("h", "I will find it!", "Don't worry. I am a good detective.", "Let me help you look.", "I will look in every corner.")
    s.par()
    tries(s, [("{h.e} looked under the bed.", "There was only [dust|a sock|an old slipper]."), ("{h.e} looked behind the curtain.", "A [spider|moth] sat there, but there was no key."), ("{h.e} turned out the drawers in the kitchen.", "{h.e} found spoons, strings and corks, but no key."),
              ("{h.e} crawled under the table.", "{h.e} found [a dry pea|a button|a pencil] and bumped {h.his} head."), ("{h.e} shook every pair of boots by the door.", "A pebble fell out of one. That was all.")])
    feel(s, "h", "worried", 0.6)
    if s.chance(0.5):
        s("Then {f} came to play and joined the search.", "{f} knocked at the door and wanted to help too.")
        s.q("f", "Where did {g} go yesterday?", "Let us think like a key. Where would we hide?", "What did {g} wear yesterday?", "Let us look in places where nobody would look.")
    else:
        idea(s, "h", 1)
    s("{h} asked {g} about everything {g.he} had done the day before.", "{h} walked through the whole house once more, very slowly.")
    s("And there, {spot}, something [gleamed|glinted|shone]. It was the {o}!", "At last {h} found the {o} {spot}.", "Then {h} looked {spot}. The {o} was there!")
    s.q("h", "Here it is!", "I found it! I found it!", "Look what I have!")
    s("{g} laughed with relief and opened the {lock}. Click!", "The key turned in the lock with a click, and the {lock} was open.", "{g} hugged {h}. Then the {o.n} went into the lock, and the door of the {lock} swung open." if s.v["lock"] not in ("front door", "old wooden chest") else "The key fitted, and soon the {lock} was open.")
    s("Inside there was [a surprise: an old sledge|a box of old photos|a jar of sweets], and they [looked at it|enjoyed it] together." if s.v["lock"] in ("attic", "old wooden chest", "little cupboard") else "{g} hung the key on a hook by the door, so that it would never get lost again.",
      "After that, the key hung on a [red|blue|long] ribbon where everyone could see it.")
    thanks_from(s, "g")
    close(s, "patient")


def thanks_from(s, who):
    """The other one thanks the hero."""
    s.q(who, "Thank you, {h.name}! What would I do without you?", "Well done, {h.name}!", "You are a great help, {h.name}.", "You never gave up. I am proud of you.", "You have sharp eyes, {h.name}.")


@plot
def found_purse(s):
    h = hero(s); o = thing(s, "find"); g = elder(s); f = friend(s); place(s)
    s.title("The {o}", "{h} finds a {o.n}", "Whose {o.n} is it?"); s.topic("finds a {o}", "finds a {o.n} and gives it back")
    opening(s)
    s("{when}, {h} was walking {p.in} when something glinted {p.spot}.", "{when}, {h} went {p.to}. There, {p.spot}, {h.he} saw something strange.", "{when}, on the way {p.to}, {h.e} nearly stepped on something.")
    s("It was a {o}!", "{h.e} bent down and picked up a {o}.", "{h.e} brushed off the dust. It was a {o}!")
    detail(s, 0.4)
    s("It was very pretty, and {h} wished that {h.he} could keep it.", "{h} turned it over and over. It was the nicest {o.n} {h.he} had ever seen.", "{h.e} had always wanted a {o.n} like that.")
    if s.chance(0.6):
        s("{h} showed it to {f}.", "Just then {f} came along and saw it.")
        s.q("f", "Finders keepers! Nobody will know.", "You are so lucky! Will you keep it?", "Ooh, it is so pretty. Is it yours?")
    s.q("h", "But somebody must be sad about it.", "It belongs to someone. I must give it back.", "I want to find out who lost it.", "If I lost it, I would want it back.")
    s.par()
    tries(s, [("{h.e} asked [a farmer|a woodcutter|an old woman] on the road.", "But [it was not theirs|nobody there had lost a {o.n}]."), ("{h.e} knocked at the first house.", "The people there shook their heads." if h.world == "child" else "The badger family there shook their heads."),
              ("{h.e} made a sign that said \"FOUND\".", "{h.e} waited a long time, but nobody came."), ("{h.e} sat down beside the path and waited.", "Only a cat walked by.")], 2)
    s("Then {h} met {g}, who was looking at the ground with a sad face.", "At last {h} saw {g}. {g.e} was searching the ground, and {g.his} eyes were red.", "Near the [old bridge|well|big gate], {h} found {g}, who looked very sad.")
    s.q("g", "I have lost my {o.n}. It was a gift from my [mother|sister|brother].", "My {o} is gone. I have had it since I was small.", "I dropped my {o} somewhere, and I cannot find it.")
    s("{h} held out {h.his} {h.hand}. \"Is it this one?\"", "{h.e} smiled and held up the {o}.", "Without a word, {h} put the {o.n} into {g.s} {g.hand}.")
    s("{g.s} face lit up like the sun.", "{g} was so happy that {g.he} laughed and cried at the same time.", "{g.e} pressed it to {g.his} heart.")
    thanks_from(s, "g")
    s("As a thank-you, {g} gave {h} {#snack}.", "{g} invited {h} for {#snack}, and they talked all afternoon.", "{g} wanted to give {h} a coin, but {h} only wanted to hear the story of the {o.n}.")
    feel(s, "h", "happy")
    close(s, "kind")


@plot
def lost_in_forest(s):
    h = hero(s); g = parent(s); f = elder(s, "w"); place(s, "forest")
    s.v["goal"] = s.pick(("a bright butterfly", "a white feather that danced in the wind", "the sound of a cuckoo", "a trail of blue flowers", "a hopping toad", "a trail of sweet berries"))
    s.title("{h} loses the way", "Lost in the forest", "The long way home"); s.topic("gets lost in the forest", "loses the way in the forest and finds home again")
    opening(s)
    s("{when}, {h} and {g} went to the forest to pick [berries|mushrooms|flowers|nuts].", "{when}, {g} took {h} along to the forest to gather [wood|berries|nuts|herbs].")
    s.q("g", "Stay close to me.", "Do not go too far.", "Stay where you can see me.")
    detail(s)
    s("But {h} saw {goal} and followed it, deeper and deeper." if "sound" not in s.v["goal"] else "But {h} heard {goal} and followed it, deeper and deeper.", "Then {h} noticed {goal}. {h.e} forgot everything else and went after it.")
    s.par()
    s("When {h.he} looked up, all the trees looked the same.", "Suddenly {h.he} stopped. The path was gone, and {g} was nowhere to be seen.", "After a while, {h} turned around. {h.e} was all alone.")
    feel(s, "h", "scared")
    tries(s, [("{h.e} shouted for {g} as loudly as {h.he} could.", "Only an echo came back."), ("{h.e} walked towards a big tree that {h.he} seemed to know.", "But it was a different tree."), ("{h.e} followed a narrow track.", "It ended at a thorn bush."), ("{h.e} climbed onto a stump and looked around.", "There was nothing but trees and more trees."), ("{h.e} tried to find {h.his} own footprints.", "The leaves had covered them all.")])
    if s.chance(0.5):
        s("Then {h} remembered what {g} always said: if you are lost, stay in one place.", "{h} thought of the old rule: when you are lost, stay where you are.")
        s("So {h.he} sat down under a tree and sang {#song}, as loudly as {h.he} could.", "{h.e} sat down on a log and [whistled|clapped|sang], again and again.")
        s("Soon a voice called {h.s} name. It was {g}!", "After what felt like hours, there were footsteps. {g} had heard {h}!")
        moral = "listen"
    else:
        s("Just then, {w} came along the path.", "There was a rustle in the bushes, and out came {w}.", "At that moment, {h} met {w}.")
        s.q("w", "Are you lost, little one?", "What are you doing here all alone?")
        s("{h} nodded. A tear ran down {h.his} cheek.", "{h} told {w} everything.")
        s.q("w", "Follow the stream. It always leads out of the forest.", "Come with me. I know every tree here.", "Moss grows on one side of the trees. I will show you the way.")
        s("They walked together, past [a fallen tree|a mossy stone|a little spring], until the forest grew bright.", "Step by step they went, and {w} told [funny stories|old tales|a joke] on the way.")
        s("At the edge of the forest stood {g}.", "And there was {g}, who had been looking everywhere.")
        moral = "help"
    s("{g} ran to {h} and held {h.him} tight.", "{h} ran straight into {g.s} arms.", "{g} hugged {h} for a long, long time.")
    s.q("h", "I am sorry that I ran off.", "I will never run off again.", "I was so afraid!")
    s.q("g", "I am so glad that you are safe.", "You are here now. That is all that matters.", "Next time, stay close to me.")
    close(s, moral)


@plot
def lost_baby(s):
    h = hero(s); place(s); f = friend(s)
    young, voice, home, mum, where = s.pick((("duckling", "Peep, peep", "pond", "mother duck", "under a bush"), ("lamb", "Baa, baa", "field", "mother sheep", "behind a wall"), ("kitten", "Mew, mew", "barn", "mother cat", "under a cart"),
                                ("chick", "Cheep, cheep", "hen house", "mother hen", "in the tall grass"), ("piglet", "Oink, oink", "farmyard", "mother pig", "in a ditch"), ("puppy", "Yip, yip", "farmhouse", "mother dog", "behind a barrel"), ("gosling", "Peep, peep", "pond", "mother goose", "between two stones")))
    if young.startswith(h.kind[:3]) or young == h.kind or young.startswith(f.kind[:3]):
        young, voice, home, mum, where = "calf", "Moo, moo", "cowshed", "mother cow", "behind a hedge"
    s.v.update(b=young, voice=voice, bh=home, mum=mum, where=where); s.tags.append(young)
    s.title("The lost {b}", "{h} and the {b}", "The little {b}"); s.topic("finds a lost {b}", "helps a lost {b} to get home", "brings a little {b} back to its mother")
    opening(s)
    s("{when}, {h} was on the way {p.to} when {h.he} heard a sound.", "{when}, {h} heard a strange sound.", "{when}, {h} was playing {p.in}. Then {h.he} heard something.")
    s("\"{voice}!\" It came from somewhere near.", "\"{voice}!\" said a tiny voice.", "\"{voice}!\" It sounded very sad.")
    s("{h.e} looked around, and {where} sat a little {b}.", "It was a {b}, all alone {where}.", "{where} {h.he} found a {b}. It was shaking.")
    s.q("h", "Hello, little one. Where is your mother?", "Poor thing! Are you lost?", "Don't be afraid. I will help you.")
    s("The {b} looked up with big, round eyes.", "The {b} came a little closer.", "The {b} pressed itself against {h.s} leg.")
    s.par()
    if s.chance(0.5):
        s("{h} called {f}, and together they made a plan.", "{f} came too, and they looked at the {b} together.")
        s.q("f", "It must have come from the {bh}.", "Its mother must be looking for it.", "Let us follow the tracks.")
    tries(s, [("{h.e} looked for tracks on the ground.", "But the ground was too dry."), ("{h.e} listened for the {mum}.", "There was no sound but the wind."), ("{h.e} tried to feed the {b} [a crumb|some grass|a leaf].", "But it did not want to eat. It wanted its mother."), ("{h.e} carried the {b} to the nearest gate.", "Nobody there knew where it lived.")], 2)
    idea(s, "h", 0.6)
    s("{h.e} wrapped the {b} in {h.his} scarf and set off for the {bh}.", "{h.e} walked slowly to the {bh}, and the {b} trotted behind.", "{h.e} picked it up gently and carried it to the {bh}.")
    aside(s)
    s("The way was long, but {h} sang {#song}, and the {b} grew calm.", "On the way, {h.e} told the {b} that everything would be fine.", "Every few steps, the {b} said \"{voice}\" again, as if to say thank you.")
    s("At the {bh}, the {mum} was calling and calling.", "And there was the {mum}! She had looked everywhere.", "When they came near, the {mum} lifted her head.")
    s("The {b} ran to her, and the two cuddled up.", "The {b} gave a happy cry and ran to its mother.", "In a moment, the {b} was at its mother's side.")
    feel(s, "h", "happy", 1)
    s.maybe(0.7, "From then on, {h} often visited the {b} at the {bh}.", "Before {h} left, the {b} nudged {h.his} {h.hand} one more time.", "After that, the {b} always ran to the fence when {h} came by.")
    close(s, "kind")
