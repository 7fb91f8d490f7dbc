"""A story grammar with state: short English stories, coherent by construction.

`stories(seed, count)` yields dicts {"prompt": str or None, "story": str}.
"""
from .generate import stories

__all__ = ["stories"]
