"""Checks fixtures against llama.cpp, a second implementation that reads the GGUF, and records the difference.

    pip install llama-cpp-python==0.3.36
    python tools/oracle/peer.py testdata/oracle [NAME ...]

Writes `llama_cpp_max_abs_diff` into `NAME.json`: largest absolute differences over the stored prompt positions and over the
decode steps, with an f32 cache and without flash attention, and the number of greedy tokens that differ. Where the fixture
has a second reading (`alt_*`), the differences are to that one.
"""

import json
import sys
from pathlib import Path

import llama_cpp
import numpy as np


def tensors(path):
    """The arrays of a safetensors file of float32."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        found[name] = np.frombuffer(raw[8 + length :][start:end], "<f4").reshape(entry["shape"])
    return found


def compare(file, description, reference):
    """The differences of one GGUF, or the reason why llama.cpp has none."""
    try:
        model = llama_cpp.Llama(
            str(file), n_ctx=256, n_batch=256, n_ubatch=256, n_threads=1, logits_all=True, flash_attn=False, type_k=0,
            type_v=0, swa_full=False, verbose=False)
    except ValueError as error:
        return {"error": str(error).split(":")[0]}
    prompt_diff, step_diff, mismatches, steps = 0.0, 0.0, 0, 0
    for i, prompt in enumerate(description["prompts"]):
        model.reset()
        model.eval(prompt["ids"])
        got = model.scores[prompt["logits_positions"]]
        wanted = reference.get(f"alt_p{i}_logits", reference[f"p{i}_logits"])
        following = reference.get(f"alt_p{i}_gen_logits", reference[f"p{i}_gen_logits"])
        prompt_diff = max(prompt_diff, float(np.abs(got - wanted).max()))
        row = model.scores[len(prompt["ids"]) - 1]
        for step, token in enumerate(prompt["greedy"]):
            mismatches += int(np.argmax(row)) != token
            model.eval([token])
            row = model.scores[len(prompt["ids"]) + step]
            step_diff = max(step_diff, float(np.abs(row - following[step]).max()))
            steps += 1
    model.close()
    return {"prompt": prompt_diff, "gen": step_diff, "greedy_mismatch": mismatches, "greedy_steps": steps}


def main():
    folder = Path(sys.argv[1])
    names = sys.argv[2:] or sorted(path.stem for path in folder.glob("*-b.json"))
    for name in names:
        path = folder / f"{name}.json"
        description = json.loads(path.read_text())
        reference = tensors(folder / f"{name}.safetensors")
        found = {kind: compare(folder / file, description, reference) for kind, file in description["gguf"].items()}
        print(name, found, flush=True)
        prompts = description.pop("prompts")
        path.write_text(json.dumps({**description, "llama_cpp_max_abs_diff": found, "prompts": prompts}) + "\n")


if __name__ == "__main__":
    main()
