"""Objects: things a character can own, lose, break, mend, give and share.

Invariant: an object keeps its noun and its adjective through the whole story.
"""

COLOURS = "red|blue|green|yellow|orange|purple|pink|white|silver|golden|brown|striped|spotted".split("|")
WOODEN = "wooden|painted|carved|little|old|tiny|small|smooth".split("|")
SHINY = "shiny|silver|golden|little|old|tiny|small|bright".split("|")
SOFT = "soft|woolly|fluffy|warm|blue|red|green|yellow|grey|striped".split("|")

NOUNS = {
    "toy": [("kite", COLOURS), ("ball", COLOURS), ("drum", COLOURS), ("toy boat", WOODEN + COLOURS), ("toy train", WOODEN + COLOURS),
            ("spinning top", WOODEN + COLOURS), ("puppet", WOODEN), ("teddy bear", SOFT), ("rag doll", SOFT), ("wooden horse", ["little", "painted", "old", "brown", "white"]),
            ("yo-yo", COLOURS), ("marble", ["glass", "blue", "green", "shiny", "golden"]), ("toy car", COLOURS), ("toy rabbit", SOFT)],
    "wear": [("scarf", SOFT), ("hat", SOFT), ("mitten", SOFT), ("cap", COLOURS), ("ribbon", COLOURS), ("button", COLOURS + SHINY), ("ring", SHINY), ("necklace", SHINY), ("sock", SOFT)],
    "tool": [("lantern", SHINY), ("bell", SHINY), ("key", SHINY), ("whistle", SHINY + WOODEN), ("flute", WOODEN), ("cup", COLOURS), ("spoon", SHINY + WOODEN), ("basket", ["woven", "little", "brown", "round", "old"]),
             ("umbrella", COLOURS), ("book", COLOURS), ("notebook", COLOURS), ("paintbrush", ["thin", "thick", "new", "old"]), ("bucket", COLOURS), ("compass", SHINY), ("music box", WOODEN + COLOURS)],
    "break": [("cup", COLOURS), ("vase", COLOURS), ("bowl", COLOURS), ("plate", COLOURS), ("teapot", COLOURS), ("jug", COLOURS), ("lamp", COLOURS), ("flowerpot", COLOURS), ("clay bird", COLOURS), ("glass bottle", ["green", "blue", "tall", "round"])],
    "mend": [("kite", COLOURS), ("toy boat", WOODEN + COLOURS), ("wagon", COLOURS + ["wooden"]), ("cart", ["little", "wooden", "green", "old"]), ("scooter", COLOURS), ("swing", ["old", "wooden", "blue", "red"]),
             ("toy train", WOODEN + COLOURS), ("drum", COLOURS), ("birdhouse", WOODEN + COLOURS), ("chair", ["little", "blue", "wooden", "old"]), ("umbrella", COLOURS), ("puppet", WOODEN), ("basket", ["brown", "round", "old"]), ("sledge", COLOURS + ["wooden"])],
    "fly": [("kite", COLOURS), ("hat", SOFT), ("scarf", SOFT), ("balloon", COLOURS), ("cap", COLOURS), ("paper plane", COLOURS)],
    "find": [("purse", COLOURS), ("key", SHINY), ("ring", SHINY), ("bell", SHINY), ("necklace", SHINY), ("watch", SHINY), ("mitten", SOFT), ("music box", WOODEN), ("coin", ["gold", "silver", "shiny", "old"]), ("brooch", SHINY), ("toy rabbit", SOFT), ("teddy bear", SOFT)],
    "share": [("ball", COLOURS), ("swing", ["old", "wooden", "blue", "red"]), ("wagon", COLOURS), ("kite", COLOURS), ("scooter", COLOURS), ("drum", COLOURS), ("sledge", COLOURS), ("toy boat", COLOURS), ("paint box", ["new", "big", "little", "shiny"])],
    "gift": [("scarf", SOFT), ("hat", SOFT), ("drawing", ["big", "bright", "funny", "little"]), ("necklace of beads", ["long", "bright", "blue", "red"]), ("birdhouse", WOODEN + COLOURS), ("cushion", SOFT), ("basket", ["woven", "little", "round"]), ("paper crown", ["golden", "silver", "blue", "red"]), ("wooden spoon", ["long", "smooth", "little"]), ("bookmark", COLOURS)],
    "boat": [("boat", ["little", "wooden", "paper", "red", "blue", "green", "white"]), ("raft", ["little", "wooden", "wobbly"]), ("ship", ["paper", "toy", "tiny", "blue"])],
    "food": [("pie", ["apple", "cherry", "plum", "berry", "pear"]), ("cake", ["honey", "lemon", "carrot", "chocolate", "apple", "nut"]), ("loaf of bread", ["warm", "round", "crusty", "fresh"]), ("pancake", ["big", "golden", "round"]), ("cookie", ["ginger", "big", "round", "nut", "oat"]), ("jar of jam", ["big", "little", "full"]), ("pot of soup", ["big", "hot", "little"])],
}
MATERIAL = ("a strip of cloth", "some string", "a little glue", "a piece of rope", "some strong thread", "two small nails", "a drop of paint", "a bit of wire", "a smooth stick", "some sticky tape", "a scrap of leather")


class Thing:
    """One object: its noun and the adjective that tells it apart."""
    __slots__ = ("noun", "adj")

    def __init__(self, noun, adj):
        self.noun, self.adj = noun, adj

    def form(self, form, s):
        if form == "":
            return f"{self.adj} {self.noun}"
        if form == "n":
            return self.noun
        if form == "a":
            return f"a {self.adj} {self.noun}"
        if form == "the":
            return f"the {self.adj} {self.noun}" if s.rand() < 0.35 else f"the {self.noun}"
        if form == "adj":
            return self.adj
        raise KeyError(form)


def thing(s, kind, var="o", only=None, never=()):
    """Draws an object of a kind into the state."""
    while True:
        noun, adjs = s.pick(NOUNS[kind])
        if (only is None or noun in only) and noun not in never:
            break
    t = Thing(noun, s.pick(adjs))
    s.v[var] = t
    s.tags.append(noun)
    return t
