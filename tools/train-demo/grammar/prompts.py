"""Titles and requests: both name facts which the finished story holds."""
from .story import polish

SMALL = {"a", "an", "the", "and", "of", "in", "on", "for", "to", "with", "at", "by", "from", "who", "that"}
ASK = ("Tell me a story about {what}.", "Write a story about {what}.", "Can you tell me a story about {what}?", "Please tell me a short story about {what}.",
       "I would like a story about {what}.", "Write a short story about {what}.", "Tell me a bedtime story about {what}.", "Could you write a little story about {what}?",
       "A story about {what}, please.", "Make up a story about {what}.", "Do you know a story about {what}?", "Tell a story about {what}.")
PLAIN = ("Tell me a story.", "Tell me a bedtime story.", "Write a short story.", "Please tell me a story.", "Can you tell me a story?", "I want to hear a story.")


def title_line(s):
    """A title in title case."""
    words = s.plain(s.pick(s.titles)).split()
    return polish(" ".join(w if w in SMALL and i else w[0].upper() + w[1:] for i, w in enumerate(words)))


def request(s):
    """What a reader may ask for to get this story."""
    h = s.v["h"]
    r = s.rand()
    who = f"a {h.kind}"
    if r < 0.06:
        return s.pick(PLAIN)
    if r < 0.3:
        who = f"a {h.kind} named {h.name}"
    elif r < 0.42:
        who = f"a {h.size} {h.kind}"
    if s.topics and r < 0.86:
        what = f"{who} who {s.plain(s.pick(s.topics))}"
    elif s.tags:
        what = f"{who} and a {s.pick(s.tags)}"
    else:
        what = who
    return polish(s.pick(ASK).replace("{what}", what))
