"""What every plot uses: the registry and the makers of state and beats."""
from ..beats import aside, ask_help, cheer, close, comfort, feel, idea, opening, thanks, tries
from ..characters import elder, friend, helper, hero, parent
from ..objects import MATERIAL, thing
from ..places import IN, day, detail, place

PLOTS = {}
# Told over more than a day or in the night, so no evening may close them.
LONG = set("""message_bottle little_garden hurt_bird nest_egg busy_autumn moving_away new_baby sick_parent saving_coins learn_swim
helping_grump cried_wolf give_away last_piece high_jump loose_tooth broken_lie secret_told storm_night dark_room bad_dream stars_moon""".split())


def plot(function):
    """Registers a plot under its name."""
    PLOTS[function.__name__] = function
    return function


__all__ = ["plot", "aside", "ask_help", "cheer", "close", "comfort", "feel", "idea", "opening", "thanks", "tries",
           "elder", "friend", "helper", "hero", "parent", "MATERIAL", "thing", "IN", "day", "detail", "place"]
