"""What every plot uses: the registry and the makers of state and beats."""
from ..beats import aside, ask_help, cheer, close, comfort, feel, idea, opening, thanks, tries
from ..characters import elder, friend, helper, hero, parent
from ..objects import MATERIAL, thing
from ..places import IN, day, detail, place

PLOTS = {}


def plot(function):
    """Registers a plot under its name."""
    PLOTS[function.__name__] = function
    return function


__all__ = ["plot", "aside", "ask_help", "cheer", "close", "comfort", "feel", "idea", "opening", "thanks", "tries",
           "elder", "friend", "helper", "hero", "parent", "MATERIAL", "thing", "IN", "day", "detail", "place"]
