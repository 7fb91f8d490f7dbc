"""Perplexity of a GGUF model on a text by llama.cpp, with the definition of `turbospark eval perplexity`.

    target/peers/bin/python bench/peers/perplexity.py MODEL TEXT [--context 512] [--json]

The text is tokenised as a whole, with BOS where the file's rule puts one, and cut into chunks of `context` tokens, at least
two; what is left at the end is dropped. Each chunk is fed from an empty cache. Where the file's rule adds BOS, it replaces the first token of
every chunk. Scored are the tokens context/2 + 1 .. context - 1 of each chunk, each given all tokens of the chunk before it:
context - context/2 - 1 tokens a chunk. Perplexity is exp of the mean negative log-probability (natural logarithm). This is the
default scheme of llama.cpp's own perplexity tool.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
from llama import Llama


def negative_log_probability(logits, token):
    """-log softmax(logits)[token], in float64."""
    x = logits.astype(np.float64)
    top = x.max()
    return math.log(np.exp(x - top).sum()) + top - x[token]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    # The output buffer holds n_batch rows of the vocabulary: 64 rows of Gemma's are 67 MB.
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--flash-attention", choices=["on", "off"], default="on")
    parser.add_argument("--kv", choices=["f16", "f32"], default="f16")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    llama = Llama(
        args.model,
        n_ctx=args.context,
        n_batch=args.batch,
        threads=args.threads,
        flash_attention=args.flash_attention == "on",
        kv=args.kv,
    )
    tokens, bos = llama.tokenize(args.text.read_bytes()), llama.bos()
    chunks, first = len(tokens) // args.context, args.context // 2
    if chunks < 2 or args.context < 3:
        raise SystemExit(f"the text has {len(tokens)} tokens: too few for two chunks of {args.context}")
    total, scored = 0.0, 0
    for c in range(chunks):
        chunk = tokens[c * args.context : (c + 1) * args.context]
        if bos is not None:
            chunk[0] = bos
        llama.clear()
        for start in range(0, args.context, args.batch):
            ids = chunk[start : start + args.batch]
            rows = [i for i in range(len(ids)) if first <= start + i < args.context - 1]
            llama.feed(ids, start, set(rows))
            for i in rows:
                total += negative_log_probability(llama.logits(i), chunk[start + i + 1])
                scored += 1
    perplexity = math.exp(total / scored)
    if args.json:
        result = {"tokens": len(tokens), "context": args.context, "chunks": chunks, "scored": scored}
        print(json.dumps({**result, "perplexity": perplexity}))
    else:
        print(f"{len(tokens)} tokens, {chunks} chunks of {args.context}, {scored} scored: perplexity {perplexity:.4f}")


if __name__ == "__main__":
    main()
