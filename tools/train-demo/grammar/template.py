"""Templates: sentences with slots and inline choices, parsed once.

`{h.his}` is a slot (variable and form), `{#pool}` draws a word from a pool and
`[a|b|]` chooses one alternative, nesting allowed.  A template becomes a tuple
of parts; a part is a literal, a `Slot`, a `Choice`, or `BREAK` where one
sentence ends and the next begins, so that pronouns are resolved per sentence.
"""
import re

BREAK = object()
_END = re.compile(r'(?<=[.!?]) |(?<=[.!?]") (?=[A-Z"])')


class Slot:
    __slots__ = ("var", "form", "pool")

    def __init__(self, text):
        self.pool = text.startswith("#")
        if self.pool:
            self.var, self.form = text[1:], ""
        else:
            self.var, _, self.form = text.partition(".")


class Choice:
    __slots__ = ("options",)

    def __init__(self, options):
        self.options = options


def _literal(text, out):
    """Splits a literal at sentence ends, keeping the blank."""
    pieces = _END.split(text)
    for i, piece in enumerate(pieces):
        if i:
            out.append(BREAK)
        if piece:
            out.append(piece)


def _sequence(text, at, nested):
    """Parses until the end of the text or of the option; returns (parts, next)."""
    parts, literal = [], []

    def flush():
        if literal:
            _literal("".join(literal), parts)
            literal.clear()

    while at < len(text):
        c = text[at]
        if c == "{":
            flush()
            end = text.index("}", at)
            parts.append(Slot(text[at + 1:end]))
            at = end + 1
        elif c == "[":
            flush()
            options = []
            while text[at] != "]":
                option, at = _sequence(text, at + 1, True)
                options.append(option)
            parts.append(Choice(options))
            at += 1
        elif nested and c in "|]":
            break
        else:
            literal.append(c)
            at += 1
    flush()
    return tuple(parts), at


_cache = {}


def compiled(text):
    """The parts of a template; parsed on first use."""
    parts = _cache.get(text)
    if parts is None:
        # A joined subject keeps its name: "Tom and Mia", never "he and Mia".
        named = text.replace("{h} and {", "{h.N} and {")
        parts, at = _sequence(named, 0, False)
        if at != len(named):
            raise ValueError(f"template ends early at {at}: {text}")
        _cache[text] = parts
    return parts
