"""Plots: each tells one kind of story from the state, beat by beat."""
from .kit import LONG, PLOTS
from . import lost, weather, making, friends, courage, truth, gifts, nature, wonder, family  # noqa: F401

__all__ = ["LONG", "PLOTS"]
