"""Writes a GGUF with the converter of a llama.cpp checkout, which is used and not copied.

Only the vocabulary is ours: released tokenizers are far larger than these models, and the converter knows them by their
hash. Everything else (names, metadata, permutations, fusions) is what real files have.
"""

import json
import logging
import sys
from pathlib import Path

SPECIAL = {"gpt2": ["<|bos|>", "<|eos|>", "<|pad|>"], "llama": ["<unk>", "<s>", "</s>"],
           "phi3": ["<unk>", "<s>", "</s>", "<|endoftext|>"],
           "gemma": ["<pad>", "</s>", "<s>", "<unk>"], "gemma4": ["<pad>", "<eos>", "<bos>", "<unk>"]}
PAIRS = [("t", "h"), ("i", "n"), ("e", "r"), ("a", "n"), ("o", "n"), ("th", "e"), ("in", "g"), ("an", "d")]


def byte_letters():
    """The letters that byte-level vocabularies write bytes with, printable ones first."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in kept]
    return [chr(256 + moved.index(ord(" ")))] + [chr(byte) for byte in kept] + [
        chr(256 + at) for at, byte in enumerate(moved) if byte != ord(" ")
    ]


def vocabulary(kind, size):
    """Tokens, types, scores and merges of a vocabulary of `size`."""
    special = SPECIAL[kind]
    joined = [a + b for a, b in PAIRS]
    letters = byte_letters() if kind == "gpt2" else ["\u2581", *map(chr, range(0x21, 0x7F)), *map(chr, range(0xC0, 0x180))]
    plain = joined + letters
    assert size <= len(special) + len(plain)
    tokens = special + plain[: size - len(special)]
    types = [3] * len(special) + [1] * (size - len(special))
    if kind in ("llama", "phi3", "gemma"):
        types[special.index("<unk>")] = 2
    ranks = {piece: -float(at + 1) for at, piece in enumerate(plain)}
    scores = [ranks.get(token, 0.0) for token in tokens]
    return tokens, types, scores, [f"{a} {b}" for a, b in PAIRS]


def add_vocabulary(writer, kind, pre, size):
    """The keys that the converter writes for a vocabulary of `kind`."""
    tokens, types, scores, merges = vocabulary(kind, size)
    writer.add_tokenizer_model("llama" if kind in ("gemma", "phi3") else kind)
    if kind != "gemma4":
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    if kind != "gpt2":
        writer.add_token_scores(scores)
    writer.add_token_types(types)
    if kind in ("gpt2", "gemma4"):
        writer.add_token_merges(merges)
    first = {"gpt2": (0, 1, 2), "llama": (1, 2, None), "phi3": (1, 2, None), "gemma": (2, 1, 0), "gemma4": (2, 1, 0)}[kind]
    writer.add_bos_token_id(first[0])
    writer.add_eos_token_id(first[1])
    if kind == "gemma4":
        writer.add_unk_token_id(3)
    if first[2] is not None:
        writer.add_pad_token_id(first[2])
    if kind in ("gemma", "gemma4"):
        writer.add_add_space_prefix(False)
    if kind == "gemma4":
        writer.add_add_bos_token(True)


def load(checkout):
    """The converter's modules, from a checkout's root."""
    root = Path(checkout).resolve()
    sys.path[:0] = [str(root), str(root / "gguf-py")]
    import conversion
    import gguf

    logging.getLogger("hf-to-gguf").setLevel(logging.ERROR)
    logging.getLogger("gguf.gguf_writer").setLevel(logging.ERROR)
    return conversion, gguf


def convert(checkout, folder, target, tokenizer, name, mtp=False):
    """Converts the checkpoint in `folder` to the file `target`, with its prediction block if `mtp`."""
    import torch

    conversion, gguf = load(checkout)
    base = conversion.ModelBase
    hparams = base.load_hparams(folder, False)
    architecture = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
    kind, _, pre = tokenizer.partition(":")
    vocab = hparams.get("text_config", hparams).get("vocab_size") or hparams["vocab_size"]
    # Gemma 3 cuts the embedding to the tokens listed here.
    (folder / "tokenizer.json").write_text(
        json.dumps({"model": {"vocab": {str(i): i for i in range(vocab)}}, "added_tokens": []}))
    model_class = conversion.get_model_class(architecture, mmproj=False)
    if model_class.supports_mtp_export:
        model_class.no_mtp = not mtp
    with torch.inference_mode():
        model = model_class(
            folder, gguf.LlamaFileType.ALL_F32, target, eager=True, model_name=f"tiny {name}")
        for part in (model, getattr(model, "impl", None)):
            if part is not None:
                part.set_vocab = lambda part=part: add_vocabulary(part.gguf_writer, kind, pre or "default", vocab)
        model.write()
