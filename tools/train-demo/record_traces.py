"""Records which experts the demo model uses on held-out stories; standard library only.

    python3 record_traces.py TURBOSPARK STORIES.trace TEXT.trace [--told 16] [--read 200]

STORIES.trace: the model is given the first two sentences of a held-out story and ends it (temperature 0.8, the story's
number as seed), one story after another. TEXT.trace: held-out stories as they are, each read as one prompt.
Recordings of one model have the same header, and what follows it can be joined.
"""

import argparse
import re
import struct
import subprocess
import tempfile
from pathlib import Path

import grammar

# As in corpus.py, which needs more than the standard library.
HELD_OUT_SEED = 1_000_000_007


def header_bytes(trace):
    """Bytes before the first record: crates/experts/src/trace/wire.rs has the format."""
    (name,) = struct.unpack_from("<I", trace, 12)
    (layers,) = struct.unpack_from("<I", trace, 16 + name + 4)
    return 16 + name + 8 + 12 * layers


def record(program, out, runs):
    with tempfile.TemporaryDirectory() as folder, open(out, "wb") as joined:
        prompt, trace = Path(folder, "prompt"), Path(folder, "trace")
        for i, (text, options) in enumerate(runs):
            prompt.write_text(text + "\n", encoding="utf-8")
            command = [program, "trace", "record", "demo", "--out", trace, "--file", prompt, "--raw", "--quiet"]
            subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
            data = trace.read_bytes()
            joined.write(data[header_bytes(data) if i else 0:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("stories", type=Path, metavar="STORIES.trace")
    parser.add_argument("texts", type=Path, metavar="TEXT.trace")
    parser.add_argument("--told", type=int, default=16, help="stories that the model ends")
    parser.add_argument("--read", type=int, default=200, help="stories that it reads")
    args = parser.parse_args()
    held_out = [s["story"] for s in grammar.stories(HELD_OUT_SEED, max(args.told, args.read))]
    begun = [" ".join(re.split(r"(?<=[.!?]) ", story)[:2]) for story in held_out[:args.told]]
    record(args.program, args.stories, ((text, ["--seed", str(i + 1)]) for i, text in enumerate(begun)))
    record(args.program, args.texts, ((text, ["--greedy", "-n", "1"]) for text in held_out[:args.read]))


if __name__ == "__main__":
    main()
