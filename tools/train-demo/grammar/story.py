"""The story under construction: its state, its discourse and its paragraphs.

Plots call a `Story` with alternative templates; it chooses one, realises it
from the state and remembers who was mentioned.  Invariant: a pronoun is only
used where exactly one character it can mean was mentioned.
"""
import re

from .template import BREAK, Choice, compiled
from .words import POOLS

_ARTICLE = re.compile(r"\b([Aa])n? (?=([A-Za-z]+))")
_SILENT_H = ("hour", "honest", "honour")
_HARD_U = ("uni", "use", "usu", "one", "once", "eu")


def vowel_sound(word):
    """Whether `an` stands before this word."""
    word = word.lower()
    if word.startswith(_SILENT_H):
        return True
    return word[0] in "aeiou" and not word.startswith(_HARD_U)


def _article(match):
    return match.group(1) + ("n " if vowel_sound(match.group(2)) else " ")


def polish(text):
    """Puts `a` and `an` right and capitals at sentence starts."""
    text = _ARTICLE.sub(_article, text)
    return text[0].upper() + text[1:] if text[0] != '"' else text


class Story:
    """State and text of one story; all randomness comes from `rng`."""

    def __init__(self, rng):
        self.rng = rng
        self.rand = rng.random
        self.v = {}
        self.cast = []
        self.cur, self.prev = [], []
        self.pars = [[]]
        self.used = set()
        self.said = set()
        self.titles, self.topics, self.tags = [], [], []
        self.timed = False
        self.long = False
        self.paragraphs = self.rand() < 0.72
        self.own_lines = self.paragraphs and self.rand() < 0.45
        self.rich = 0.3 + 0.7 * self.rand()
        self.fresh_sentence = True

    # choices

    def pick(self, items):
        return items[int(self.rand() * len(items))]

    def chance(self, p):
        return self.rand() < p

    def fresh(self, items):
        """One of the items, preferring one that this story has not used."""
        for _ in range(6):
            item = items[int(self.rand() * len(items))]
            if item not in self.used:
                break
        self.used.add(item)
        return item

    # realisation

    def next_sentence(self):
        self.prev, self.cur = self.cur, []
        self.fresh_sentence = True

    def text(self, template):
        """Realises a template from the state."""
        out = []
        self._parts(compiled(template), out)
        return "".join(out)

    def _parts(self, parts, out):
        for part in parts:
            kind = type(part)
            if kind is str:
                piece = part
            elif kind is Choice:
                options = part.options
                self._parts(options[int(self.rand() * len(options))], out)
                continue
            elif part is BREAK:
                self.next_sentence()
                out.append(" ")
                continue
            elif part.pool:
                piece = self.fresh(POOLS[part.var])
            else:
                value = self.v[part.var]
                if type(value) is str:
                    piece = value
                elif callable(value):
                    piece = value(self)
                else:
                    piece = value.form(part.form, self)
            if self.fresh_sentence and piece:
                self.fresh_sentence = False
                if piece[0].islower():
                    piece = piece[0].upper() + piece[1:]
            out.append(piece)

    def plain(self, template):
        """Realises a phrase outside the story, with every pronoun a pronoun."""
        keep = self.cur, self.prev, self.fresh_sentence
        self.cur, self.fresh_sentence = [self.v["h"]], False
        text = self.text(template)
        self.cur, self.prev, self.fresh_sentence = keep
        return text

    def add(self, text):
        text = polish(text)
        self.pars[-1].append(text)
        self.next_sentence()

    def __call__(self, *alternatives):
        """Adds one of the alternatives as one or more sentences."""
        self.fresh_sentence = True
        self.add(self.text(self.fresh(alternatives)))
        return self

    def maybe(self, p, *alternatives):
        """Adds one of the alternatives at times; more often in rich stories."""
        if self.rand() < p * (0.4 + self.rich):
            self(*alternatives)
        return self

    def par(self, p=0.8):
        """A place where a new paragraph may begin."""
        if self.paragraphs and self.pars[-1] and self.rand() < p:
            self.pars.append([])
            self.prev = []
        return self

    def q(self, who, *lines, how=None):
        """A line of dialogue with its speaker, in one of several shapes."""
        if self.own_lines and self.pars[-1]:
            self.pars.append([])
        speaker = self.v[who]
        self.fresh_sentence = True
        self.quoting = True
        line = self.text(self.fresh(lines))
        self.quoting = False
        mark = line[-1]
        first, rest = line, ""
        cut = re.search(r'(?<=[.!?]) ', line)
        if cut and self.rand() < 0.6:
            first, rest = line[:cut.start()], line[cut.end():]
            mark = first[-1]
        verb = how or self.pick(
            ("asked",) if mark == "?" else
            ("cried", "called", "shouted", "said") if mark == "!" else
            ("said", "said", "said", "answered" if self.asked not in (None, who) else "said"))
        self.asked = who if line.endswith("?") else None
        if mark == ".":
            inner = first[:-1] + ","
        else:
            inner = first
        self.fresh_sentence = False
        shape = self.rand()
        if shape < 0.68 or rest:
            name = speaker.form("", self) if speaker not in self.prev or self.rand() < 0.6 else speaker.form("he", self)
            if name in ("he", "she"):
                text = f'"{inner}" {name} {verb}'
            else:
                text = f'"{inner}" {verb} {name}' if self.rand() < 0.7 else f'"{inner}" {name} {verb}'
            text += "." + (f' "{rest}"' if rest else "")
        else:
            self.cur, keep = [], self.prev
            name = speaker.form("e", self)
            text = f'{name[0].upper() + name[1:]} {verb}, "{line}"'
        self.add(text)
        self.cur, self.prev = [], [speaker] if not self.prev else [speaker] + [c for c in self.prev if c is not speaker]
        if self.own_lines:
            self.pars.append([])
        return self

    asked = None
    quoting = False

    def talk(self, one, other, *pairs):
        """A line and the reply that belongs to it."""
        line, reply = self.fresh(pairs)
        self.q(one, line)
        return self.q(other, reply)

    # state

    def join(self, name, character):
        """Brings a character into the cast under a variable."""
        self.v[name] = character
        self.cast.append(character)
        return character

    def alone(self, character):
        """Whether no other character shares this one's kind."""
        return not any(c is not character and c.kind == character.kind for c in self.cast)

    def title(self, *titles):
        self.titles.extend(titles)

    def topic(self, *topics):
        self.topics.extend(topics)

    def finish(self):
        return [" ".join(p) for p in self.pars if p]
