"""Feelings: how a character takes what happened."""

SAD = (
    "{x} felt {#sad}.", "{x} was so {#sad} that {x.he} could not smile.", "A tear rolled down {x.s} cheek.", "{x.e} sat down and sighed.",
    "{x.e} hung {x.his} head.", "{x} wanted to cry.", "{x.e} swallowed hard and tried not to cry.", "{x.s} heart felt as heavy as a stone.",
    "{x.s} smile was gone.", "{x.e} blinked away a tear.", "{x} was very [sad|unhappy|upset].", "{x.e} sniffed and wiped {x.his} eyes.",
    "There was a lump in {x.s} throat.",
)
WORRIED = (
    "{x} felt {#worried}.", "{x.s} tummy felt tight.", "{x.e} bit {x.his} lip.", "{x} did not know what to do.", "{x.e} frowned and thought hard.",
    "{x.s} heart beat faster.", "{x} was [very|so|quite] {#worried}.", "{x.e} looked around and {x.his} heart sank.", "What should {x} do now?",
    "{x.e} took a deep breath and tried to stay calm.", "{x.e} walked up and down, up and down.",
)
SCARED = (
    "{x} was {#scared}.", "{x.s} knees shook like jelly.", "{x.s} heart went thump, thump, thump.", "{x.e} held {x.his} breath.",
    "{x.e} wanted to run away.", "A cold shiver ran down {x.s} back.", "{x.e} shut {x.his} eyes tight.", "{x} felt very small.",
    "{x.s} mouth went dry.", "{x.e} trembled from head to toe.",
)
HAPPY = (
    "{x} was {#happy}.", "{x.e} {#smiled}.", "{x} jumped for joy.", "{x.e} laughed out loud.", "{x.e} felt warm inside.", "{x.s} eyes shone like {#star}.",
    "{x.e} clapped and [cheered|danced|laughed].", "{x.e} danced around in a circle.", "{x.s} heart felt as light as a feather.", "{x} could not stop smiling.",
    "{x.e} spun around with joy.", "What a happy moment that was!", "{x} had never felt so [happy|glad].",
)
PROUD = (
    "{x} felt very proud.", "{x.e} stood up tall.", "{x} felt ten feet tall.", "{x.e} glowed with pride.", "{x.s} cheeks were pink with pride.",
    "{x} had done it!", "{x.e} felt {#bigger} and proud.", "{x.e} could hardly believe it.",
)
SORRY = (
    "{x} felt [bad|awful|ashamed].", "{x.s} cheeks turned red.", "{x.e} looked at the ground.", "{x.e} wished that it had never happened.",
    "A heavy feeling sat in {x.s} tummy.", "{x} knew that it was not right.", "{x.e} could not look up.",
)
ANGRY = (
    "{x} was angry.", "{x.e} stamped {x.his} foot.", "{x.e} crossed {x.his} arms.", "{x.s} face grew hot.", "{x.e} turned away with a frown.", "{x.e} did not want to talk to anyone.",
)
TIRED = ("{x} was {#tired}.", "{x.e} sat down to rest.", "{x.s} legs felt heavy.", "{x.e} had to stop and catch {x.his} breath.")
GROUPS = {"sad": SAD, "worried": WORRIED, "scared": SCARED, "happy": HAPPY, "proud": PROUD, "sorry": SORRY, "angry": ANGRY, "tired": TIRED}

TOGETHER = (
    "They laughed and hugged each other.", "They were both {#happy}.", "The two friends laughed until their tummies hurt.",
    "{h} and {f} danced in a circle.", "They smiled at each other.", "{h} hugged {f} tightly.", "{f} clapped and {h} bowed.",
    "\"Hooray!\" they shouted together.", "They jumped up and down with joy.",
)


def feel(s, who, kind, p=0.85):
    """Tells a feeling of the character, at times."""
    if s.rand() < p * (0.5 + 0.5 * s.rich):
        s.v["x"] = s.v[who]
        s(*GROUPS[kind])
    return s


def cheer(s, p=0.7):
    """Joy of hero and friend together."""
    if s.rand() < p:
        s(*TOGETHER)
    return s
