"""The exported file in the engine: logits, tokens and perplexity as in PyTorch.

The binary is `TURBOSPARK` in the environment, or target/release/turbospark.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[1]))
import export
import tokenizer as tok
from config import Config
from model import Model

BINARY = Path(os.environ.get("TURBOSPARK", Path(__file__).parents[3] / "target/release/turbospark"))
pytestmark = pytest.mark.skipif(not BINARY.exists(), reason=f"no engine at {BINARY}: build it or set TURBOSPARK")
TEXT = ("Once upon a time there was a fox who couldn't sleep. \"Why not?\" asked the owl.\n\n"
        "  The fox didn't say; he'd lost 12 red buttons -- and the moon, too!  It was naïve, perhaps.\n") * 24


def engine(*arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A random model that routes and attends sharply enough for mistakes to show, as exported and as it then is."""
    folder = tmp_path_factory.mktemp("export")
    model = Model(Config(), dtype=torch.float32)
    draw = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p += torch.randn(p.shape, generator=draw) * (0.5 if name == "sinks" else 0.05)
    tok.train([TEXT], Config.vocab).save(str(folder / "tokenizer.json"))
    export.write(model, folder / "tokenizer.json", folder / "model.gguf", {"name": "random"})
    export.shipped(model)
    return folder, model.eval()


def test_size_is_what_the_project_allows(exported):
    assert (exported[0] / "model.gguf").stat().st_size <= export.MOST_BYTES


@torch.no_grad()
def test_logits_are_those_of_the_engine(exported):
    safetensors = pytest.importorskip("safetensors.torch")
    folder, model = exported
    tokens = torch.randint(4, 300, (700,), generator=torch.Generator().manual_seed(2)).tolist()
    (folder / "tokens.json").write_text(json.dumps(tokens))
    engine("eval", "logits", folder / "model.gguf", "--kv", "f32", "--tokens", folder / "tokens.json",
           "--out", folder / "logits.safetensors")
    theirs = safetensors.load_file(folder / "logits.safetensors")["logits"]
    ours = model.logits(torch.tensor([tokens]))[0]
    divergence = F.kl_div(theirs.log_softmax(-1), ours.log_softmax(-1), log_target=True, reduction="batchmean")
    rows = (theirs - ours).norm(dim=1) / ours.norm(dim=1)
    # The engine rounds rows to 8 bits before each product. Where that flips a choice among these random experts, which
    # nothing has made robust, a row moves by a tenth; the others move by a few hundredths.
    assert divergence < 1e-2
    assert rows.quantile(0.2) < 0.03
    assert rows.max() < 0.5


@torch.no_grad()
def test_without_quantisation_the_engine_agrees_in_every_row(exported, monkeypatch):
    safetensors = pytest.importorskip("safetensors.torch")
    folder, model = exported
    monkeypatch.setattr(export, "EXPERTS", ())
    monkeypatch.setattr(export, "EIGHT_BIT", ())
    export.write(model, folder / "tokenizer.json", folder / "exact.gguf", {"name": "exact"})
    tokens = torch.randint(4, 300, (400,), generator=torch.Generator().manual_seed(3)).tolist()
    (folder / "exact.json").write_text(json.dumps(tokens))
    engine("eval", "logits", folder / "exact.gguf", "--kv", "f32", "--tokens", folder / "exact.json",
           "--out", folder / "exact.safetensors")
    theirs = safetensors.load_file(folder / "exact.safetensors")["logits"]
    assert (theirs - model.logits(torch.tensor([tokens]))[0]).abs().max() < 1e-2


@torch.no_grad()
def test_perplexity_is_that_of_the_engine(exported):
    folder, model = exported
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    context = 256
    result = json.loads(engine("eval", "perplexity", folder / "model.gguf", "--kv", "f32", "--json", "-c", context,
                               "--file", folder / "text.txt"))
    ids = tok.story(tok.load(folder / "tokenizer.json").encode(TEXT).ids)
    windows = torch.tensor(ids[: len(ids) // context * context]).view(-1, context).clone()
    scored = windows[:, context // 2 + 1 :]
    windows[:, 0] = 0
    logits = model.logits(windows)[:, context // 2 : -1]
    ours = math.exp(F.cross_entropy(logits.flatten(0, 1), scored.flatten()).item())
    print(result, ours)
    assert result["perplexity"] == pytest.approx(ours, rel=0.01)


def test_the_chat_template_writes_what_training_saw(exported):
    jinja2 = pytest.importorskip("jinja2")
    trained = tok.load(exported[0] / "tokenizer.json")
    trained.encode_special_tokens = False
    turns = [("A story?", "Once."), ("Another!", "Twice.")]
    messages = [{"role": "system", "content": "Be kind."}]
    for prompt, answer in turns:
        messages += [{"role": "user", "content": f" {prompt}\n"}, {"role": "assistant", "content": answer}]
    text = jinja2.Template(tok.CHAT_TEMPLATE).render(messages=messages, add_generation_prompt=True)
    ids = [tuple(trained.encode(part).ids for part in turn) for turn in turns]
    assert [0, *trained.encode(text).ids] == [*tok.chat(ids), 2]
