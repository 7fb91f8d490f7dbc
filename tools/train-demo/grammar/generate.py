"""From a seed to stories: draws a plot, tells it, titles it, asks for it.

Invariant: the text depends on the seed and the index alone, and no sentence
stands twice in one story.
"""
import random
import re

from .plots import LONG, PLOTS
from .prompts import request, title_line
from .story import Story

SHORTEST, LONGEST = 70, 360
_SENTENCE = re.compile(r'(?<=[.!?])"?\s+')
_ALL = tuple(PLOTS.values())


def tell(rng, plot):
    """One story in paragraphs by this plot, or None where it must be retold."""
    s = Story(rng)
    s.long = plot.__name__ in LONG
    plot(s)
    paragraphs = s.finish()
    text = "\n\n".join(paragraphs)
    if not SHORTEST <= text.count(" ") <= LONGEST:
        return s, None
    # A short cry or sound may come back; a real sentence may not.
    sentences = [t for t in _SENTENCE.split(text) if t.count(" ") > 3 or t[-1:] == "."]
    if len(set(sentences)) != len(sentences):
        return s, None
    return s, text


def stories(seed, count, plot=None):
    """Yields `count` samples {"prompt", "story"}; same seed, same samples."""
    rng = random.Random(seed * 1_000_003 + 17)
    for _ in range(count):
        text = None
        while text is None:
            s, text = tell(rng, PLOTS[plot] if plot else s_pick(rng))
        prompt = None
        r = rng.random()
        if r < 0.15:
            prompt = request(s)
        elif r < 0.27 and s.titles:
            text = title_line(s) + "\n\n" + text
        yield {"prompt": prompt, "story": text}


def s_pick(rng):
    return _ALL[int(rng.random() * len(_ALL))]
