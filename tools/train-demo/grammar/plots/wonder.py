"""Plots about maps, magic, the sea and other wonders."""
from .kit import *  # noqa: F403


@plot
def secret_map(s):
    h = hero(s); f = friend(s); place(s); g = parent(s)
    s.v["src"] = s.pick(("in an old book", "in a bottle", "behind a loose brick", "in Grandpa's coat", "under a floorboard", "in an old chest"))
    s.v["spot"] = s.pick(s.v["p"].spots)
    s.v["gold"] = s.pick(("a box full of {#treasure}", "a tin with old letters and {#treasure}", "a chest full of chocolate coins", "a jar of marbles in every colour", "a little golden bell", "a box with a pirate hat and a wooden sword"))
    s.v["gold"] = s.plain(s.v["gold"]); s.tags.append("map")
    s.title("The secret map", "{h} and the treasure"); s.topic("finds a secret map", "follows a map to a treasure")
    opening(s)
    s("{when}, {h} found a yellow map {src}.", "{when}, {h} found an old map {src}.")
    s("In the middle there was a big red cross!" , "There were lines and arrows on it, and a big red cross.")
    s("{h} ran to {f} with the map.", "{h} showed the map to {f}.")
    s.q("f", "A treasure map! Let us go at once!", "Where does it begin?", "I know that place! It is not far.", "Do you think it is real?")
    s.par()
    for step in s.rng.sample(("They took twenty steps to the big stone.", "They crossed a stream on a fallen tree.", "They crawled through a hedge full of thorns.", "They turned left at the crooked tree.", "They went past an old well and counted to fifty.", "They climbed over a wall.", "They followed a line of white pebbles."), 2 + (s.rich > 0.6)):
        s(step)
    tries(s, [("they dug under a bush.", "They found only a rusty spoon."), ("they dug beside a rock.", "There was nothing but a fat worm."), ("they turned the map around.", "They had been holding it upside down!"), ("the wind took the map away.", "They had to chase it {#simile_fast}.")])
    feel(s, "h", "tired", 0.5)
    s("At last they came to the place with the cross. It was {p.in}, {spot}.", "And there it was, {spot}: a cross made of two sticks!")
    s("They dug and dug. Clonk! There was something hard.", "{h} dug with both {h.hands}, and {f} helped.")
    s("It was {gold}!", "Out came {gold}!")
    cheer(s, 0.7)
    s("At the bottom lay a note: \"Well done! Hide it again for the next ones.\"", "{g} smiled when {g.he} saw it. \"I buried that when I was little!\"")
    s("They shared it fairly, one for you and one for me." if "bell" not in s.v["gold"] else "From then on, the bell hung between their two houses.", "Then they drew a new map of their own.", "And they hid it again, in a place that only they knew.")
    close(s)


@plot
def small_dragon(s):
    h = hero(s); f = elder(s, "w"); place(s, "hill", "forest", "lake shore", "meadow")
    c = s.v["c"] = s.pick(("green", "blue", "red", "silver", "purple", "golden")); prob = s.pick((("could not breathe fire", "only a puff of smoke came out", "blew and blew, and out came a tiny warm flame"), ("could not fly", "it landed on its nose", "flapped its wings and rose into the air"), ("was afraid of heights", "its knees shook", "looked down from the top and laughed"), ("could not roar", "only a squeak came out", "roared so loudly that the stones shook")))
    s.v["p1"], s.v["p2"], s.v["p3"] = prob; s.tags.append("dragon")
    s.title("The little {c} dragon", "{h} and the dragon"); s.topic("meets a little {c} dragon", "helps a dragon that {p1}")
    opening(s)
    s("{when}, {h} heard someone sobbing {p.in}.", "{when}, {h} went {p.to} and saw smoke behind a rock.")
    s("There sat a little {c} dragon with tears on its nose.", "It was a dragon! It was {c} and no bigger than a sheep.")
    s("{h} wanted to run away, but the dragon looked so sad.", "{h.e} was a bit afraid, but {h.he} went closer.")
    s.q("h", "Why are you crying?", "What is the matter, dragon?")
    s('"All the other dragons laugh at me," said the dragon, for it {p1}.', 'The dragon sniffed. It {p1}, and so it had run away from home.')
    s('"Show me," said {h}. The dragon tried, but {p2}.', "The dragon tried it, but {p2}.")
    s.par()
    tries(s, [("{h} told it to think of something angry.", "It only hiccuped."), ("{h} gave it a peppermint.", "It sneezed and blew over a bush."), ("{h} counted to three.", "At two, the dragon lost its courage."), ("{h} showed it how {h.he} would do it.", "That made the dragon giggle, but it did not help.")])
    if s.chance(0.5):
        s("Then {w} came along and gave them some advice.", "They asked {w} what to do.")
        s.q("w", "It must believe that it can.", "Laugh first. Then it will be easy.", "Do not try so hard. Think of something lovely.")
    s("{h} told a joke, and the dragon laughed. It forgot to be afraid.", "{h} stroked its neck and said, \"I know that you can do it.\"")
    s("It took a deep breath, and then it {p3}!", "And suddenly the dragon {p3}!")
    s.q("h", "You did it!", "Hooray!", "I knew that you could!")
    s("The dragon danced until the ground shook.", "The dragon was so happy that it turned a somersault.")
    s("In the evening, the dragon went home, and nobody laughed anymore.", "As a thank-you, the dragon gave {h} one of its {c} scales.")
    s("Sometimes, when the stars are out, a {c} shadow flies over {h.s} roof." if "fly" in s.v["p1"] else "And every year, the little dragon comes to visit {h}.")
    close(s, "brave" if s.chance(0.5) else "kind")


@plot
def message_bottle(s):
    h = hero(s); f = friend(s, role="new"); place(s, "beach", "river bank", "lake shore"); g = parent(s)
    f.intro = f.name
    s.title("The message in the bottle", "{h} writes a letter"); s.topic("sends a message in a bottle", "gets an answer to a message in a bottle"); s.tags.append("bottle")
    opening(s)
    s("{when}, {h} wrote a letter and put it in a bottle.", "{when}, {h} had an idea. {h.e} wrote a letter and pushed it into an empty bottle.")
    s('"Whoever finds this, please write to me," it said.', 'In it stood: "My name is {h.name}. Will you be my friend?"')
    s("{h} went {p.to} and threw it into the water. Splash!", "At the water, {h} put in the cork and let the bottle go.")
    detail(s, 0.5)
    s("The waves carried it away, farther and farther.", "It bobbed up and down, until it was only a tiny dot.")
    s.par()
    s("Every day, {h} ran to the water to look for an answer.", "A week went by, and then another.")
    tries(s, [("a shiny thing floated by.", "It was only a tin."), ("{h} saw a bottle on the shore.", "It was empty."), ("{h} waited until sunset.", "There was nothing but water and sky."), ("{h} asked the gulls.", "They screeched and flew away.")])
    feel(s, "h", "sad", 0.7)
    s.q("g", "The water is wide. Give it time.", "Good answers travel slowly.", "Somebody will find it. You will see.")
    s("Then, one morning, a bottle lay on the shore, and there was a paper in it!", "And then, when {h} had almost given up, a bottle with a letter came back.")
    f.known = True
    s('"Dear {h.name}," it said, "I found your letter. My name is {f}, and I live on the other side."', 'It was from somebody called {f}, who lived far along the shore.')
    feel(s, "h", "happy", 1)
    s("{h} wrote back at once, and so it went on, bottle after bottle.", "They wrote to each other all summer long.")
    s("And one day, a little boat came, and in it sat {f}!", "In the last bottle there was a map, and {g} took {h} to visit {f}.")
    s("They knew each other already, and they talked and laughed as if they had always been friends.", "They looked at each other and began to laugh.")
    close(s, "friend", 0.5)


@plot
def rainbow_end(s):
    h = hero(s); f = friend(s); place(s, "meadow", "hill", "river bank", weather="rainy"); g = parent(s)
    s.title("The end of the rainbow", "{h} follows the rainbow"); s.topic("wants to find the end of the rainbow", "follows a rainbow with a friend"); s.tags.append("rainbow")
    opening(s)
    s("{when}, the rain stopped, and a rainbow stood over the land.", "{when}, there was rain and sun at the same time. A rainbow appeared!")
    s.q("f", "At its end there is a pot of gold!", "They say that there is gold at the end of it.", "I want to see where it ends!")
    s("So {h} and {f} set off at once.", "{h} and {f} ran towards it as fast as they could.")
    s.par()
    for step in s.rng.sample(("They waded through a stream.", "They climbed over a fence.", "They walked through wet grass up to their knees." if h.world == "child" else "They walked through tall wet grass.", "They asked a cow for the way. \"Moo,\" said the cow.", "They helped a beetle that lay on its back.", "They shared a handful of berries."), 2 + (s.rich > 0.6)):
        s(step)
    s("But the rainbow was always just as far away.", "The nearer they came, the farther away the rainbow seemed.")
    s("Then the last drops fell, and the rainbow faded.", "And then, suddenly, it was gone.")
    feel(s, "h", "sad", 0.8)
    s.q("h", "Now we will never find the gold.", "All that way for nothing.", "It is gone!")
    s("{f} looked around. \"But see where we are!\"", '"Look," whispered {f}.')
    s("They stood in a field full of golden flowers.", "In front of them lay a field of {#flower}, and every drop on them shone in all the colours.", "In the grass stood a tree full of golden pears.")
    s("\"Here is our gold!\" said {h}.", "\"We found it after all!\" {h} laughed.")
    s("They picked [an armful|a little] for {g} and walked home.", "They stayed until the sun went down.")
    cheer(s, 0.5)
    close(s)
