"""Times llama.cpp on a GGUF model and prints what `turbospark bench --json` prints.

    target/peers/bin/python bench/peers/speed.py MODEL [-p 512,...] [-n 128,...] [-r 5] [--threads 2] [--depth 0] [--cold] [--no-repack]

Prefill: `-p` tokens into an empty cache, logits for the last. Decode: `-n` tokens one after the other, logits for each, into a
cache of `--depth` tokens. Each takes several lengths; 0 measures nothing. The tokens are fixed in advance, so that nothing is
sampled. One untimed run of each goes before, unless `--cold`.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

from llama import Llama


def prefill(llama, ids):
    for start in range(0, len(ids), llama.n_batch):
        part = ids[start : start + llama.n_batch]
        last = start + len(part) == len(ids)
        llama.feed(part, start, {len(part) - 1} if last else ())
    llama.synchronize()


def decode(llama, ids, depth):
    for i, token in enumerate(ids):
        llama.feed([token], depth + i, {0})
        llama.synchronize()


def lengths(text):
    return [int(n) for n in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("-p", "--prompt", type=lengths, default=[512], metavar="N,...")
    parser.add_argument("-n", "--generate", type=lengths, default=[128], metavar="N,...")
    parser.add_argument("-r", "--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--cold", action="store_true", help="no untimed run before")
    parser.add_argument("--no-repack", action="store_true", help="weights stay in the mapped file")
    parser.add_argument("--flash-attention", choices=["on", "off"], default="on")
    args = parser.parse_args()
    work = [("prefill", n) for n in args.prompt if n] + [("decode", n) for n in args.generate if n]
    longest = max([args.depth, *(n for _, n in work)])
    started = time.perf_counter()
    llama = Llama(
        args.model,
        n_ctx=max(args.depth + longest, 16),
        n_batch=args.batch,
        threads=args.threads,
        flash_attention=args.flash_attention == "on",
        repack=not args.no_repack,
    )
    open_seconds = time.perf_counter() - started
    warm_up = 0 if args.cold else 1
    # Most vocabularies begin with special tokens and single bytes.
    first = min(300, llama.n_vocab // 2)
    ids = [(7919 * i + 104729) % (llama.n_vocab - first) + first for i in range(longest)]
    results = []
    for phase, count in work:
        rates = []
        for run in range(warm_up + args.runs):
            llama.clear()
            if phase == "decode" and args.depth:
                prefill(llama, ids[: args.depth])
            start = time.perf_counter()
            prefill(llama, ids[:count]) if phase == "prefill" else decode(llama, ids[:count], args.depth)
            if run >= warm_up:
                rates.append(count / (time.perf_counter() - start))
        results.append(
            {
                "phase": phase,
                "tokens": count,
                "tokens_per_second": statistics.median(rates),
                "min": min(rates),
                "max": max(rates),
                "runs": len(rates),
            }
        )
    about = {"engine": "llama.cpp", "threads": args.threads, "depth": args.depth, "open_seconds": open_seconds}
    print(json.dumps({**about, "results": results}))


if __name__ == "__main__":
    main()
