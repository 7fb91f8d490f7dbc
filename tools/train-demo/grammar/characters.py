"""Characters: who can be in a story, and how each is referred to.

Invariant: the first mention of anyone but the hero introduces them
("her friend Ben", "Mrs Green from next door"); later mentions use the name.
"""

GIRLS = """Mia Lily Anna Zoe Ella Ruby Nora Ivy Maya Lucy Rosa Emma Clara Amy Lena Sofia Tara Nina Daisy Hana
Leila Alice Priya Molly Sara Eva June Kira Mina Holly Poppy Freya Aisha Yuki Carmen Edith Wendy Bella Iris Naomi
Ines Greta Olga Tess Fern Ada Maud Zara Elsa Mei Dora Amina Josie Hattie Pia Sally Ruth Tilda Vera Willa""".split()
BOYS = """Tom Ben Max Leo Sam Jack Finn Noah Eli Omar Luca Theo Hugo Oscar Tim Adam Jonah Milo Felix Ravi
Kofi Hiro Diego Peter Will Henry Arthur George Louis Karl Emil Ali Samir Jamal Nico Otto Ezra Rory Toby Simon
Mateo Pablo Ivan Kenji Anton Ned Walter Frank Joe Dan Gus Callum Owen Rafi Yusuf Bram Edwin Piet Marco Silas""".split()
PETS = """Pip Dot Bramble Clover Hazel Nutmeg Pepper Rusty Button Acorn Bean Berry Biscuit Bubbles Cricket Dash
Dusty Fig Fuzzy Ginger Honey Jumper Juniper Kip Lark Maple Mossy Muffin Nibbles Noodle Olive Patch Peanut Pebble
Pickle Plum Poppyseed Puddle Pumpkin Quill Radish Robin Rosie Sandy Scout Skip Smudge Snug Socks Sorrel Sparky
Spot Sprout Sunny Tansy Teddy Thistle Tilly Toffee Truffle Tumble Twig Waffle Whisker Willow Winnie Ziggy Zip""".split()

# kind: (home, hand, looks, can't learn to swim because it can, is a climber)
ANIMALS = {
    "fox": ("den under an old oak", "paw", ("a bushy tail", "a bright red coat", "a white tip on {h.his} tail")),
    "rabbit": ("burrow under the hill", "paw", ("long soft ears", "a fluffy white tail", "one ear that always flopped down")),
    "mouse": ("hole behind a barn", "paw", ("tiny pink ears", "a long thin tail", "shiny black eyes")),
    "hedgehog": ("nest of dry leaves", "paw", ("tidy little spikes", "a wet black nose", "short quick legs")),
    "squirrel": ("hollow tree", "paw", ("a big curly tail", "quick little paws", "round brown eyes")),
    "bear": ("warm cave", "paw", ("thick brown fur", "small round ears", "big soft paws")),
    "badger": ("den under the roots of a tree", "paw", ("a black and white face", "strong little paws", "a wide stripy nose")),
    "otter": ("den by the river", "paw", ("sleek brown fur", "long whiskers", "a strong flat tail")),
    "duck": ("nest among the reeds", "wing", ("soft yellow feathers", "a shiny beak", "big flat feet")),
    "beaver": ("house of sticks on the river", "paw", ("two big front teeth", "a wide flat tail", "thick brown fur")),
    "raccoon": ("hollow log", "paw", ("a stripy tail", "dark rings around {h.his} eyes", "clever little paws")),
    "frog": ("hut of leaves beside the pond", "hand", ("smooth green skin", "big gold eyes", "long springy legs")),
    "turtle": ("hut beside a quiet pond", "foot", ("a shiny round shell", "kind sleepy eyes", "short green legs")),
    "pig": ("straw house on a farm", "foot", ("a curly pink tail", "a round pink nose", "two floppy ears")),
    "lamb": ("barn on a green farm", "foot", ("white woolly curls", "four black feet", "a soft pink nose")),
    "kitten": ("basket in a farmhouse", "paw", ("soft grey fur", "white paws like socks", "bright green eyes")),
    "puppy": ("little house in a farmyard", "paw", ("floppy brown ears", "a wagging tail", "one white paw")),
    "mole": ("tunnel under the meadow", "paw", ("soft black fur", "wide digging paws", "a pink pointed nose")),
    "chipmunk": ("hole under a mossy stone", "paw", ("stripes down {h.his} back", "round cheeks", "a tiny twitching nose")),
    "goat": ("shed on a windy hill", "foot", ("a short white beard", "two tiny horns", "shaggy white hair")),
    "donkey": ("stable at the edge of a village", "foot", ("long grey ears", "a soft grey nose", "dark gentle eyes")),
    "panda": ("bamboo hut on a green hill", "paw", ("black patches around {h.his} eyes", "thick soft fur", "round black ears")),
    "koala": ("house in a tall tree", "paw", ("fluffy round ears", "a big black nose", "soft grey fur")),
    "monkey": ("house of leaves in the trees", "hand", ("a long curly tail", "quick brown hands", "a cheeky face")),
}
CHILD_HOMES = """small house by the sea|cottage near the forest|tall house in the city|farm at the end of a long road
yellow house on a hill|flat above a bakery|village between two hills|little town by a river|stone cottage beside a mill
wooden house by a lake|white house with a blue door|quiet street full of trees|narrow house beside a park
red brick house near the school|lighthouse on a rocky shore|houseboat on a slow river|valley full of apple trees"""
CHILD_HOMES = CHILD_HOMES.replace("\n", "|").split("|")
CHILD_LOOKS = ("curly hair", "short black hair", "two long braids", "freckles on {h.his} nose", "a gap between {h.his} front teeth",
               "bright brown eyes", "messy hair", "round glasses", "a big warm smile", "red cheeks", "a yellow raincoat that {h.he} wore every day",
               "a pair of green boots that {h.he} loved", "pockets full of pebbles", "a laugh like a little bell", "a blue cap", "hair the colour of straw")
SIZES = ("little", "small", "young", "tiny", "little", "small")
TRAITS = """kind|curious|cheerful|gentle|brave|clever|quiet|shy|lively|careful|friendly|helpful|patient|playful|honest
dreamy|busy|thoughtful|bold|merry|polite|hopeful|funny|eager|sensible|daring|loyal|bouncy|neat|generous"""
TRAITS = TRAITS.replace("\n", "|").split("|")
NEIGHBOURS = ("Green Hill Brown Wood Bell Rose Moss Lane Baker Finch Marsh Stone Miller Field Potter Reed Cook Winter "
              "Gray Parker Silver Dale Honeywell Appleby Fisher Thorn Lake Carter").split()
WISE = (("owl", "Olga"), ("owl", "Oswald"), ("toad", "Tobias"), ("goose", "Gerda"), ("heron", "Harold"), ("crow", "Cora"),
        ("tortoise", "Theodore"), ("stork", "Selma"), ("hare", "Hector"), ("mule", "Matilda"), ("raven", "Rufus"), ("hen", "Henrietta"))
WISE_SHE = {"Olga", "Gerda", "Cora", "Selma", "Matilda", "Henrietta"}


class Character:
    """One being with a name, a gender and a kind."""
    __slots__ = ("name", "she", "kind", "intro", "known", "hand", "trait", "home", "looks", "size", "world")

    def __init__(self, name, she, kind, intro, hand="hand"):
        self.name, self.she, self.kind, self.intro, self.hand = name, she, kind, intro, hand
        self.known = False
        self.trait = self.home = self.looks = ""
        self.size = "little"
        self.world = "child"

    def rivals(self, group):
        for c in group:
            if c is not self and c.she == self.she:
                return True
        return False

    def naming(self, s, suffix=""):
        """The name, with the introduction at the first mention."""
        if self.known:
            if self not in s.cur:
                s.cur.append(self)
            return self.name + suffix
        self.known = True
        if suffix and self.kind == "neighbour":
            s.cur.append(self)
            return self.name + suffix
        text = s.text(self.intro)
        s.cur.append(self)
        return text + suffix

    def short(self, s):
        """Whether a pronoun is clear here."""
        cur = s.cur
        if self in cur:
            return cur[0] is self or not self.rivals(cur)
        if self in s.prev and not self.rivals(s.prev) and not self.rivals(cur):
            cur.append(self)
            return True
        return False

    def form(self, form, s):
        if form == "":
            if (s.fresh_sentence and not s.quoting and self.known and s.prev and s.prev[0] is self and s.rand() < 0.6
                    and self.short(s)):
                return "she" if self.she else "he"
            return self.naming(s)
        if form == "N":
            return self.naming(s)
        if form == "e":
            if self.known and s.rand() < 0.85 and self.short(s):
                return "she" if self.she else "he"
            if self.known and s.rand() < 0.12 and self.size and s.alone(self):
                if self not in s.cur:
                    s.cur.append(self)
                return f"the {self.kind}" if s.rand() < 0.5 else f"the {self.size} {self.kind}"
            return self.naming(s)
        if form == "he":
            return ("she" if self.she else "he") if self.short(s) else self.naming(s)
        if form == "him":
            return ("her" if self.she else "him") if self.short(s) else self.naming(s)
        if form == "his":
            return ("her" if self.she else "his") if self.short(s) else self.naming(s, "'s")
        if form == "s":
            return self.naming(s, "'s")
        if form == "self":
            return "herself" if self.she else "himself"
        if form == "kind":
            return self.kind
        if form == "boy":
            return "girl" if self.she else "boy"
        if form == "a":
            return f"a {self.size} {self.kind}"
        if form == "name":
            return self.name
        if form == "hand":
            return self.hand
        if form == "hands":
            return "feet" if self.hand == "foot" else self.hand + "s"
        if form == "home":
            return self.home
        raise KeyError(form)


def hero(s, world=None, avoid=()):
    """Makes the hero `h`; `world` is "child", "animal" or None for either."""
    if world is None:
        world = "child" if s.rand() < 0.55 else "animal"
    she = s.rand() < 0.5
    if world == "child":
        c = Character(s.pick(GIRLS if she else BOYS), she, "girl" if she else "boy", "")
        c.home = s.pick(CHILD_HOMES)
        c.looks = s.pick(CHILD_LOOKS)
    else:
        kinds = [k for k in ANIMALS if k not in avoid] if avoid else list(ANIMALS)
        kind = s.pick(kinds)
        home, hand, looks = ANIMALS[kind]
        c = Character(s.pick(PETS), she, kind, "", hand)
        c.home, c.looks = home, s.pick(looks)
    c.size = s.pick(SIZES)
    c.world = world
    c.trait = s.pick(TRAITS)
    c.known = True
    s.join("h", c)
    return c


def friend(s, var="f", role="friend", avoid=()):
    """A character of the hero's world and age; the gender differs mostly."""
    h = s.v["h"]
    she = (not h.she) if s.rand() < 0.8 else h.she
    taken = {c.name for c in s.cast}
    while True:
        if h.world == "child":
            c = Character(s.pick(GIRLS if she else BOYS), she, "girl" if she else "boy", "")
        else:
            kind = s.pick([k for k in ANIMALS if k not in avoid])
            c = Character(s.pick(PETS), she, kind, "", ANIMALS[kind][1])
            if kind in {x.kind for x in s.cast}:
                continue
        if c.name not in taken and all(c.name[:2] != n[:2] for n in taken):
            break
    c.world = h.world
    c.size = ""
    if role == "new":
        c.intro = c.name
    elif h.world == "animal":
        c.intro = "{h.his} %s %s the %s" % (role, c.name, c.kind)
    else:
        c.intro = "{h.his} %s %s" % (role, c.name)
    return s.join(var, c)


def parent(s, var="g"):
    """A grown-up of the hero's family."""
    taken = {c.name for c in s.cast}
    while True:
        name, she = s.pick((("Mama", 1), ("Papa", 0), ("Grandma", 1), ("Grandpa", 0), ("Mom", 1), ("Dad", 0), ("Aunt Rose", 1), ("Uncle Bill", 0)))
        if name not in taken:
            break
    if s.v["h"].world == "animal" and name in ("Mom", "Dad"):
        name = {"Mom": "Mama", "Dad": "Papa"}[name]
        if name in taken:
            name = "Grandma" if she else "Grandpa"
    c = Character(name, bool(she), "grown-up", name)
    c.size = ""
    c.hand = s.v["h"].hand
    return s.join(var, c)


def elder(s, var="g"):
    """A wise helper who is not family: a neighbour or an old animal."""
    h = s.v["h"]
    if h.world == "child":
        she = s.rand() < 0.5
        name = ("Mrs " if she else "Mr ") + s.pick(NEIGHBOURS)
        place = s.pick(("from next door", "from across the street", "who lived nearby", "from the corner shop", "the postman" if not she else "the baker", "the gardener", "the teacher"))
        intro = f"{name} {place}" if not place.startswith("the ") else f"{name} {place}"
        c = Character(name, she, "neighbour", intro)
    else:
        while True:
            kind, name = s.pick(WISE)
            if name not in {x.name for x in s.cast}:
                break
        c = Character(name, name in WISE_SHE, kind, s.pick(("a wise old %s named %s", "an old %s called %s", "a friendly %s named %s")) % (kind, name))
        c.hand = "wing"
    c.size = ""
    return s.join(var, c)


def helper(s, var="g"):
    """A grown-up who helps: family or neighbour."""
    return parent(s, var) if s.rand() < 0.55 else elder(s, var)
