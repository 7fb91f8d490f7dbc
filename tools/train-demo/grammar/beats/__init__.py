"""Beats: reusable moments that plots are composed of."""
from .openings import opening
from .feelings import feel, cheer
from .turns import idea, tries, comfort, ask_help, thanks, aside
from .endings import close

__all__ = ["opening", "feel", "cheer", "idea", "tries", "comfort", "ask_help", "thanks", "aside", "close"]
