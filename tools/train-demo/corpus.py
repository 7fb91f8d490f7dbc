"""Makes the corpus on all cores: shards of 16-bit tokens that training picks up as they appear.

    python corpus.py DIR [--tokens 400e6] [--seconds 300] [--text FILE.gz]

Writes DIR/tokenizer.json unless it is there, DIR/heldout.bin and DIR/heldout.txt (from seeds that training never
sees), then DIR/train-*.bin, each renamed into place when it is whole. A document is <|endoftext|> and a story, or a
conversation of one or two turns for the stories that have a prompt, about 15 % of the grammar's.
"""

import argparse
import gzip
import multiprocessing
import os
import random
import time
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np

import tokenizer as tok
from config import Config

STORIES_OF_A_SHARD = 5000
HELD_OUT_SEED, TOKENIZER_SEED = 1_000_000_007, 2_000_000_011
SECOND_TURN_SHARE = 0.25

_written = None


def written_stories(path):
    """Stories of a gzipped file, separated by lines of <|endoftext|>."""
    global _written
    if _written is None:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            parts = [part.strip() for part in file.read().split("<|endoftext|>")]
        _written = [part for part in parts if part]
    return _written


def stories(seed, count, text=None):
    """`count` dicts with `story` and `prompt`, the same for the same seed."""
    if text is None:
        import grammar
        yield from grammar.stories(seed, count)
        return
    # A tenth is held out; the seed says which part to draw from.
    every = written_stories(text)
    cut = len(every) // 10
    pool = every[:cut] if seed == HELD_OUT_SEED else every[cut:]
    for drawn in random.Random(seed).choices(pool, k=count):
        yield {"prompt": "Tell me a story.", "story": drawn}


def documents(seed, count, tokenizer, text=None):
    """Token lists of `count` stories."""
    draw = random.Random(seed * 2 + 1)
    found = list(stories(seed, count, text))
    bodies = [e.ids for e in tokenizer.encode_batch([s["story"] for s in found], add_special_tokens=False)]
    waiting = None
    for item, ids in zip(found, bodies):
        prompt = item.get("prompt")
        if not prompt:
            yield tok.story(ids)
            continue
        turn = (tokenizer.encode(prompt, add_special_tokens=False).ids, ids)
        if waiting is None and draw.random() < SECOND_TURN_SHARE:
            waiting = turn
            continue
        yield tok.chat([turn] if waiting is None else [waiting, turn])
        waiting = None


def save(path, lists):
    tokens = np.fromiter((t for ids in lists for t in ids), np.uint16)
    part = path.with_suffix(".part")
    tokens.tofile(part)
    part.rename(path)
    return len(tokens)


def shard(task):
    folder, number, count, text = task
    path = folder / f"train-{number:05}.bin"
    if path.exists():
        return path.stat().st_size // 2
    return save(path, documents(number, count, tok.load(folder / "tokenizer.json"), text))


def plain_texts(task):
    seed, count, text = task
    return [s["story"] for s in stories(seed, count, text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=float, default=400e6, help="stop after about this many")
    parser.add_argument("--seconds", type=float, default=1e9, help="or after this long")
    parser.add_argument("--heldout", type=int, default=6000, help="stories held out")
    parser.add_argument("--for-tokenizer", type=int, default=40000, help="stories the tokenizer is trained on")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--text", type=Path, help="gzipped stories to use instead of the grammar")
    args = parser.parse_args()
    started = time.monotonic()
    args.folder.mkdir(parents=True, exist_ok=True)
    os.nice(5)

    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        vocabulary = args.folder / "tokenizer.json"
        if not vocabulary.exists():
            tasks = [(TOKENIZER_SEED + i, 500, args.text) for i in range(-(-args.for_tokenizer // 500))]
            os.environ["TOKENIZERS_PARALLELISM"] = "true"
            trained = tok.train((t for texts in pool.imap(plain_texts, tasks) for t in texts), Config.vocab)
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
            trained.save(str(vocabulary))
            print(f"tokenizer: {trained.get_vocab_size()} tokens, {time.monotonic() - started:.1f} s", flush=True)

        held_out = args.folder / "heldout.bin"
        if not held_out.exists():
            tokenizer = tok.load(vocabulary)
            sample = list(stories(HELD_OUT_SEED, 200, args.text))
            for item in sample:
                back = tokenizer.decode(tokenizer.encode(item["story"]).ids, skip_special_tokens=False)
                assert back == item["story"], "the tokenizer must give the text back"
            (args.folder / "heldout.txt").write_text("\n\n".join(s["story"] for s in sample), encoding="utf-8")
            count = save(held_out, documents(HELD_OUT_SEED, args.heldout, tokenizer, args.text))
            print(f"held out: {count} tokens, {time.monotonic() - started:.1f} s", flush=True)

        total = shards = 0
        tasks = ((args.folder, n, STORIES_OF_A_SHARD, args.text) for n in range(1, 1_000_000))
        # A queue no longer than the processes, so that stopping loses no more than what is in work.
        running = []
        while True:
            while len(running) < args.processes + 2:
                running.append(pool.apply_async(shard, (next(tasks),)))
            total += running.pop(0).get()
            shards += 1
            elapsed = time.monotonic() - started
            if shards % 20 == 0:
                print(f"{shards} shards, {total / 1e6:.1f} M tokens, {elapsed:.0f} s", flush=True)
            if total >= args.tokens or elapsed >= args.seconds:
                break
        pool.terminate()
    print(f"{shards} shards, {total / 1e6:.1f} M tokens, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
