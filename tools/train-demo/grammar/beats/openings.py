"""Openings: who the story is about and where they live.

Invariant: after `opening` the hero is introduced by name and kind.
"""
from ..places import SEASONS, day
from ..words import HOBBIES

ONCE = (
    "Once upon a time, there was {ah} named {h}.",
    "Once upon a time, there was {ah} called {h}.",
    "Once upon a time, there was {atrait} named {h}.",
    "Once upon a time, there lived {ah} named {h}.",
    "Once upon a time, {ah} named {h} lived in a {h.home}.",
    "Once upon a time, {atrait} named {h} lived in a {h.home}.",
    "Once upon a time, in a {h.home}, there lived {ah} named {h}.",
    "Once upon a time, in a {h.home}, there was {atrait} called {h}.",
    "Once upon a time, there was {ah} named {h} who lived in a {h.home}.",
    "Once upon a time, {h}, {ah}, lived in a {h.home}.",
)
OTHER = (
    "There was once {ah} named {h}.",
    "There once was {atrait} named {h} who lived in a {h.home}.",
    "In a {h.home} lived {ah} named {h}.",
    "In a {h.home} there lived {atrait} called {h}.",
    "{h} was {ah} with {looks}.",
    "{h} was {atrait} who loved {hobby}.",
    "{h} was {ah}, and {h.he} lived in a {h.home}.",
    "Not so long ago, {ah} named {h} lived in a {h.home}.",
    "Long ago, in a {h.home}, lived {atrait} named {h}.",
    "Everyone knew {h}, {athe} who lived in a {h.home}.",
    "Far away, in a {h.home}, there lived {ah} named {h}.",
    "This is the story of {h}, {ah} who loved {hobby}.",
    "{ah} named {h} lived in a {h.home}.",
    "Do you know {h}? {h} is {ah}, and this is what happened to {h.him} one day.",
)
TIMED = (
    "One {weather} {part}, {ah} named {h} woke up early.",
    "On a {weather} {part} in {season}, {ah} named {h} looked out of the window.",
    "It was a {weather} {part}, and {atrait} named {h} had nothing to do.",
    "One {weather} {part}, {ah} named {h} was humming a tune.",
    "It was a {weather} {part} in {season}. {ah} named {h} opened the door and took a deep breath.",
    "One {weather} {part}, {atrait} called {h} ate {#snack} and looked outside.",
    "The day had just begun. {ah} named {h} stretched and yawned.",
    "On a {weather} {part}, {h} sat on the doorstep of {h.his} home. {h} was {ah}.",
)
MORE = (
    "{h.e} had {looks}.", "{h.e} loved {hobby}.", "{h.e} was {size2} but very {trait}.", "More than anything, {h.e} liked {hobby}.",
    "{h.e} loved {hobby} and {hobby2}.", "{h.e} had {looks} and a {#good} heart.", "{h.e} was {trait} and {trait2}.",
    "Every day, {h.e} liked {hobby}.", "Everyone said that {h} was {trait}.", "When the sun was out, {h.e} loved {hobby}.",
    "{h.e} had {looks}, and {h.he} loved {hobby}.", "{h.e} was never bored, for {h.he} loved {hobby}.",
    "Of all the things in the world, {h.e} liked best {hobby}.",
)




def opening(s, trait=None, timed=True):
    """Introduces the hero; a given trait is the one told."""
    h = s.v["h"]
    if "when" not in s.v:
        day(s)
    if trait:
        h.trait = trait
    t2 = s.pick(("kind", "cheerful", "friendly", "lively", "gentle"))
    while t2 == h.trait:
        t2 = s.pick(("helpful", "curious", "merry", "honest"))
    s.v["ah"] = "a " + h.size + " " + h.kind
    s.v["athe"] = "the " + h.size + " " + h.kind
    s.v["atrait"] = "a " + h.trait + (" " if s.rand() < 0.5 else f" {'little' if h.size != 'young' else 'young'} ") + h.kind
    s.v["size2"] = "small" if h.size == "young" else h.size
    s.v["trait"], s.v["trait2"] = h.trait, t2
    s.v["looks"] = s.plain(h.looks)
    hobby = s.pick(HOBBIES)
    hobby2 = s.pick(HOBBIES)
    while hobby2 == hobby:
        hobby2 = s.pick(HOBBIES)
    s.v["hobby"], s.v["hobby2"] = s.plain(hobby), s.plain(hobby2)
    r = s.rand()
    if r < 0.42:
        group = ONCE
    elif r < 0.78 or not timed:
        group = OTHER
    else:
        group, s.timed = TIMED, True
    first = s.pick(group)
    s(first)
    told = "hobby" in first, "looks" in first
    many = 1 if s.rand() < 0.75 else 2
    if s.rich > 0.85:
        many += 1
    if group is TIMED:
        many -= 1
    for _ in range(many):
        for _ in range(4):
            more = s.pick(MORE)
            if more in s.used or ("hobby" in more and told[0]) or ("looks" in more and told[1]) or ("trait" in more and "trait" in s.v.get("told", "")):
                continue
            told = told[0] or "hobby" in more, told[1] or "looks" in more
            if "trait" in more:
                if "atrait" in first or s.v.get("told"):
                    continue
                s.v["told"] = "trait"
            s(more)
            break
    if trait and "trait" not in first + s.v.get("told", ""):
        s("{h.e} was [very |rather |]{trait}.")
    if group is TIMED or s.rand() < 0.15:
        s.maybe(0.4, *SEASONS[s.v["season"]][1])
    s.par(0.7)
