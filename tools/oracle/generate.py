"""Makes the fixtures: `NAME-b-f32.gguf`, `NAME-b.json` and `NAME-b.safetensors` for every family.

    pip install -r tools/oracle/requirements.txt
    python tools/oracle/generate.py --converter LLAMA_CPP --out testdata/oracle [NAME ...]

Seeds are tried in order from the family's name, so that a second run gives the same files.
"""

import argparse
import json
import tempfile
import zlib
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

import convert
import reference
import weights
from families import FAMILIES

VARIANT = "b"
MIN_GAP, MIN_MARGIN, MAX_NOISE = 1e-4, 0.01, 2e-4


def find(name, family, tries=400):
    """A model whose choices are clear: experts by `MIN_GAP`, greedy tokens by `MIN_MARGIN`."""
    model = weights.build(family)
    text = getattr(model.config, "text_config", model.config)
    first, start = zlib.crc32(name.encode()) % 100_000, weights.centres(model)
    for seed in range(first, first + tries):
        weights.randomise(model, start, seed, family.get("embed", weights.EMBED_STD))
        found = reference.evaluate(model, text.vocab_size, seed, MIN_GAP)
        if found is None:
            continue
        entries, tensors, gap = found
        margin = min(m for entry in entries for m in entry["margins"])
        if margin > MIN_MARGIN and noise(entries) < MAX_NOISE:
            return model, seed, entries, tensors, gap
    raise SystemExit(f"{name}: none of {tries} seeds is clear")


def noise(entries):
    """What float32 itself differs by, between decoding through the cache and one pass."""
    return max(entry["cache_vs_full"] for entry in entries)


@torch.no_grad()
def add_alternative(model, family, entries, tensors):
    """`alt_*`: the same weights and ids under `family["alternative"]`, another reading of the same GGUF."""
    other = weights.build({**family, "config": {**family["config"], **family["alternative"]}})
    other.load_state_dict(model.state_dict())
    for i, entry in enumerate(entries):
        logits = other(torch.tensor([entry["ids"] + entry["greedy"]])).logits[0]
        tensors[f"alt_p{i}_logits"] = logits[entry["logits_positions"]].contiguous()
        tensors[f"alt_p{i}_gen_logits"] = logits[len(entry["ids"]) :].contiguous()


def add_prediction_block(style, seed, folder):
    """Adds the block to a saved checkpoint; `transformers` itself ignores it."""
    path = folder / "model.safetensors"
    config = json.loads((folder / "config.json").read_text())
    saved = load_file(path)
    block = weights.prediction_block(style, saved, config, seed)
    save_file({**saved, **block}, path, metadata={"format": "pt"})
    key = weights.PREDICTION[style]["key"]
    (folder / "config.json").write_text(json.dumps({**config, key: 1}))


def generate(name, family, converter, out):
    model, seed, entries, tensors, gap = find(name, family)
    if "alternative" in family:
        add_alternative(model, family, entries, tensors)
    title = f"{name}-{VARIANT}"
    file = f"{title}-f32.gguf"
    files = {"f32": file}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        convert.convert(converter, Path(folder), out / file, family["tokenizer"], title)
        if family.get("mtp"):
            files["mtp_f32"] = f"{title}-mtp-f32.gguf"
            add_prediction_block(family["mtp"], seed, Path(folder))
            convert.convert(converter, Path(folder), out / files["mtp_f32"], family["tokenizer"], title, mtp=True)
    description = {
        "name": title, "family": name, "hf_model_type": model.config.model_type, "hf_class": family["class"],
        "n_vocab": getattr(model.config, "text_config", model.config).vocab_size, "seed": seed,
        "transformers": transformers.__version__, "torch": torch.__version__, "gguf": files,
        "config": family["config"], "notes": family.get("notes", []),
    }
    if gap is not None:
        description["min_router_gap"] = gap
    description["prompts"] = entries
    (out / f"{title}.json").write_text(json.dumps(description) + "\n")
    save_file({key: tensor.float() for key, tensor in sorted(tensors.items())}, out / f"{title}.safetensors")
    spread = [round(entry["logits_std"], 2) for entry in entries]
    sizes = [(out / name).stat().st_size for name in files.values()]
    print(f"{title}: {sizes} bytes, seed {seed}, std {spread}, gap {gap}, cache {noise(entries):.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter", required=True, help="root of a llama.cpp checkout")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("names", nargs="*", help="families; all by default")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or FAMILIES:
        generate(name, FAMILIES[name], args.converter, args.out)


if __name__ == "__main__":
    main()
