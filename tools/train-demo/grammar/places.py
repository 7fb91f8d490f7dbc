"""Places with the props that fit them, and the weather of the day.

Invariant: a story's season, weather and place agree (snow only in winter).
"""

# name: (preposition, spots where something may lie, details, worlds)
OUT = {
    "meadow": ("in", ("under a clump of daisies", "in the long grass", "behind a fence post", "beside a molehill", "among the poppies"),
               ("Bees hummed over the clover.", "The tall grass tickled {h.his} legs.", "White daisies nodded in the wind.", "A butterfly drifted past like a scrap of silk.")),
    "forest": ("in", ("under a pile of leaves", "behind a mossy log", "between the roots of an old oak", "under a fern", "beside a ring of mushrooms"),
               ("The trees whispered high above.", "The air smelled of pine and moss.", "A woodpecker went tap, tap, tap.", "Spots of sunlight danced on the path.")),
    "park": ("in", ("under a bench", "behind the fountain", "beside the swings", "near the duck pond", "under the big chestnut tree"),
             ("Pigeons cooed on the path.", "The fountain splashed and sparkled.", "An old man was feeding the ducks.", "The swings creaked in the breeze.")),
    "beach": ("on", ("under a heap of seaweed", "behind a smooth rock", "beside a rock pool", "half under the sand", "next to an old boat"),
              ("The waves went swish, swish on the sand.", "Gulls cried over the water.", "The air tasted of salt.", "Small shells glittered like stars.")),
    "garden": ("in", ("under the rose bush", "behind the watering can", "among the cabbages", "beside the gate", "under the apple tree"),
               ("The roses smelled sweet.", "A fat bumblebee buzzed from flower to flower.", "A snail crept slowly up the wall.", "Sparrows hopped along the fence.")),
    "river bank": ("on", ("among the reeds", "under a willow", "behind a big stone", "beside an old log", "near the little bridge"),
                   ("The river sang over the stones.", "A blue dragonfly darted by.", "A fish jumped with a plop.", "The willows dipped their branches in the water.")),
    "orchard": ("in", ("under a ladder", "in a heap of leaves", "behind an apple crate", "under the oldest tree", "beside the stone wall"),
                ("The branches were heavy with fruit.", "A wasp buzzed around a fallen pear.", "The air smelled of apples.", "The grass was soft and cool.")),
    "hill": ("on", ("behind a grey rock", "under a thorn bush", "beside a rabbit hole", "in the heather", "at the foot of a crooked pine"),
             ("The wind whistled over the grass.", "Far below, the roofs looked like toys.", "A lark sang high in the sky.", "Clouds sailed by like ships.")),
    "lake shore": ("on", ("among the reeds", "under an upturned boat", "behind a tree stump", "beside the jetty", "between two flat stones"),
                   ("The lake lay smooth as glass.", "Ducks paddled in a line.", "Tiny waves lapped at the stones.", "A frog croaked somewhere near.")),
}
CHILD_ONLY = ("park",)
IN = ("under the bed", "behind the big cupboard", "in the laundry basket", "under the kitchen table", "behind the curtain", "on the top shelf",
      "in the toy chest", "under a cushion", "beside the stove", "at the back of a drawer", "in an old boot", "under the rug")

SEASONS = {
    "spring": (("sunny", "windy", "mild", "bright", "rainy", "cloudy", "fresh"), ("The first flowers were out.", "Birds were building nests everywhere.", "The trees had tiny new leaves.")),
    "summer": (("sunny", "hot", "bright", "warm", "golden", "windy"), ("The sky was as blue as a cornflower.", "It was so warm that even the cats slept in the shade.", "The days were long and bright.")),
    "autumn": (("windy", "cool", "foggy", "golden", "rainy", "crisp", "grey"), ("Red and yellow leaves covered the ground.", "The mornings had grown cool and misty.", "Chestnuts dropped from the trees.")),
    "winter": (("cold", "frosty", "snowy", "grey", "icy", "quiet"), ("Snow lay on every roof.", "Breath hung in the air like little clouds.", "Icicles shone under the roofs.")),
}
WINTER = ("The snow glittered in the sun.", "A robin hopped over the snow.", "It was so quiet that you could hear the snow fall.", "The bare branches creaked in the cold.", "Little tracks ran across the snow.")
GREEN = ("Bee", "daisies", "butterfly", "roses", "bumblebee", "dragonfly", "tall grass", "lark", "Snail", "snail", "frog")
PARTS = ("morning", "afternoon", "morning", "afternoon", "day", "Monday", "Saturday", "Sunday", "Friday")


class Place:
    """One place of the story."""
    __slots__ = ("noun", "prep", "spots", "details")

    def __init__(self, noun, prep, spots, details):
        self.noun, self.prep, self.spots, self.details = noun, prep, spots, details

    def form(self, form, s):
        if form == "":
            return "the " + self.noun
        if form == "in":
            return f"{self.prep} the {self.noun}"
        if form == "to":
            return f"to the {self.noun}"
        if form == "spot":
            return s.fresh(self.spots)
        if form == "n":
            return self.noun
        raise KeyError(form)


def place(s, *names, season=None, weather=None):
    """Draws a place and a fitting day into the state as `p` and `when`."""
    child = s.v["h"].world == "child"
    names = names or tuple(n for n in OUT if child or n not in CHILD_ONLY)
    noun = s.pick(names)
    prep, spots, details = OUT[noun]
    s.v["p"] = Place(noun, prep, spots, details)
    day(s, season, weather)
    if s.v["season"] == "winter":
        s.v["p"].details = WINTER
    elif s.v["season"] == "autumn":
        s.v["p"].details = tuple(d for d in details if not any(w in d for w in GREEN)) or SEASONS["autumn"][1]
    return s.v["p"]


def day(s, season=None, weather=None):
    """Draws season, weather and the words for the day."""
    if season is None:
        season = s.pick(("spring", "summer", "autumn", "spring", "summer"))
    s.v["season"] = season
    s.v["weather"] = weather or s.pick(SEASONS[season][0])
    s.v["part"] = s.pick(PARTS)
    s.v["when"] = when


def when(s):
    """Opens the action: the day at first, a loose link if it was told."""
    if s.timed:
        return s.pick(("that day", "a little later", "after breakfast" if s.v["part"] == "morning" else "soon", "before long"))
    s.timed = True
    r = s.rand()
    part, weather = s.v["part"], s.v["weather"]
    if r < 0.55:
        return f"one {weather} {part}"
    if r < 0.75:
        return "one day"
    if r < 0.85 and part in ("morning", "afternoon", "day"):
        return f"on a {weather} {part} in {s.v['season']}"
    return f"one {part}" if part != "day" else f"one {s.v['season']} day"


def detail(s, p=0.5):
    """A sight, sound or smell of the place, at times."""
    if s.rand() < p * (0.4 + s.rich):
        s(*s.v["p"].details)
