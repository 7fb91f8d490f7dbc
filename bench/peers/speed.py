"""Times llama.cpp on a GGUF model and prints what `turbospark bench --json` prints.

    target/peers/bin/python bench/peers/speed.py MODEL [-p 512] [-n 128] [-r 5] [--threads 2] [--depth 0]

Prefill: `-p` tokens into an empty cache, logits for the last. Decode: `-n` tokens one after the other, logits for each, into a
cache of `--depth` tokens. The tokens are fixed in advance, so that nothing is sampled. One untimed run of each goes before.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--generate", type=int, default=128)
    parser.add_argument("-r", "--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--flash-attention", choices=["on", "off"], default="on")
    args = parser.parse_args()
    llama = Llama(
        args.model,
        n_ctx=max(args.prompt, args.depth + args.generate, 16),
        n_batch=args.batch,
        threads=args.threads,
        flash_attention=args.flash_attention == "on",
    )
    ids = [(7919 * i + 104729) % (llama.n_vocab - 300) + 300 for i in range(max(args.prompt, args.depth, args.generate))]
    rates = {"prefill": [], "decode": []}
    for run in range(args.runs + 1):
        for phase, count in (("prefill", args.prompt), ("decode", args.generate)):
            llama.clear()
            if count == 0:
                continue
            if phase == "decode" and args.depth:
                prefill(llama, ids[: args.depth])
            start = time.perf_counter()
            prefill(llama, ids[:count]) if phase == "prefill" else decode(llama, ids[:count], args.depth)
            if run > 0:
                rates[phase].append(count / (time.perf_counter() - start))
    results = [
        {
            "phase": phase,
            "tokens": args.prompt if phase == "prefill" else args.generate,
            "tokens_per_second": statistics.median(values),
            "min": min(values),
            "max": max(values),
            "runs": len(values),
        }
        for phase, values in rates.items()
        if values
    ]
    print(json.dumps({"engine": "llama.cpp", "threads": args.threads, "depth": args.depth, "results": results}))


if __name__ == "__main__":
    main()
