"""Checkpoint to GGUF, with a report of what the quantisation costs.

    python export.py WORK OUT [--name demo]

Writes OUT/demo.gguf and OUT/demo.json. Expert matrices become MXFP4, other matrices Q8_0; router, biases, norms and sinks
stay F32. Perplexity "as shipped" is that of the values which the file holds, read back from its own blocks.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

import gguf_writer as gguf
import mxfp4
import tokenizer as tok
from config import END, ENDOFTEXT, Config
from model import EXPERTS
from train import build, evaluate, summary

# Their matrices are Q8_0; the last two are not stacked over layers.
EIGHT_BIT = ("q", "k", "v", "o", "embedding", "head")
MOST_BYTES = 16_000_000
NAMES = {
    "attn_norm": "attn_norm.weight", "ffn_norm": "post_attention_norm.weight", "sinks": "attn_sinks.weight",
    "q": "attn_q.weight", "k": "attn_k.weight", "v": "attn_v.weight", "o": "attn_output.weight",
    "q_bias": "attn_q.bias", "k_bias": "attn_k.bias", "v_bias": "attn_v.bias", "o_bias": "attn_output.bias",
    "router": "ffn_gate_inp.weight", "router_bias": "ffn_gate_inp.bias",
    "down": "ffn_down_exps.weight", "down_bias": "ffn_down_exps.bias",
}


def metadata(writer, c, vocabulary, details):
    a = "gpt-oss"
    writer.add("general.architecture", "str", a)
    for key, value in details.items():
        writer.add(f"general.{key}", "str", value)
    writer.add("general.languages", ["str"], ["en"])
    writer.add("general.file_type", "u32", 38)
    writer.add("general.quantization_version", "u32", 2)
    for key, value in {
        "block_count": c.layers, "context_length": c.context, "embedding_length": c.width,
        "feed_forward_length": c.expert_width, "expert_feed_forward_length": c.expert_width,
        "expert_count": c.experts, "expert_used_count": c.top_k, "vocab_size": c.vocab,
        "attention.head_count": c.heads, "attention.head_count_kv": c.kv_heads,
        "attention.key_length": c.head_dim, "attention.value_length": c.head_dim,
        "attention.sliding_window": c.window, "rope.dimension_count": c.head_dim,
        "rope.scaling.original_context_length": c.original_context,
    }.items():
        writer.add(f"{a}.{key}", "u32", value)
    writer.add(f"{a}.attention.layer_norm_rms_epsilon", "f32", c.eps)
    writer.add(f"{a}.rope.freq_base", "f32", c.theta)
    writer.add(f"{a}.rope.scaling.type", "str", "yarn")
    writer.add(f"{a}.rope.scaling.factor", "f32", c.yarn_factor)
    writer.add(f"{a}.rope.scaling.yarn_beta_fast", "f32", c.beta_fast)
    writer.add(f"{a}.rope.scaling.yarn_beta_slow", "f32", c.beta_slow)
    pieces, types, merges = tok.for_gguf(vocabulary, c.vocab)
    writer.add("tokenizer.ggml.model", "str", "gpt2")
    writer.add("tokenizer.ggml.pre", "str", "gpt-2")
    writer.add("tokenizer.ggml.tokens", ["str"], pieces)
    writer.add("tokenizer.ggml.token_type", ["i32"], types)
    writer.add("tokenizer.ggml.merges", ["str"], merges)
    for key, value in {"bos": ENDOFTEXT, "eos": ENDOFTEXT, "padding": ENDOFTEXT, "eot": END}.items():
        writer.add(f"tokenizer.ggml.{key}_token_id", "u32", value)
    writer.add("tokenizer.ggml.add_bos_token", "bool", True)
    writer.add("tokenizer.ggml.add_eos_token", "bool", False)
    writer.add("tokenizer.chat_template", "str", tok.CHAT_TEMPLATE)


def tensors(model):
    """Name, shape, type and bytes of each tensor, in the order of the layers."""
    p = {name: value.detach().float().cpu() for name, value in model.named_parameters()}

    def encoded(name, value):
        if name in EXPERTS:
            return gguf.MXFP4, mxfp4.encode(value)
        if name in EIGHT_BIT:
            return gguf.Q8_0, mxfp4.encode_q8_0(value)
        return gguf.F32, value.contiguous().numpy().astype("<f4").tobytes()

    yield "token_embd.weight", tuple(p["embedding"].shape), *encoded("embedding", p["embedding"])
    for i in range(model.config.layers):
        for name, theirs in NAMES.items():
            yield f"blk.{i}.{theirs}", tuple(p[name][i].shape), *encoded(name, p[name][i])
        for name, kind in (("up", "weight"), ("up_bias", "bias")):
            for theirs, part in zip(("gate", "up"), p[name][i].chunk(2, 1)):
                yield f"blk.{i}.ffn_{theirs}_exps.{kind}", tuple(part.shape), *encoded(name, part)
    yield "output_norm.weight", tuple(p["final_norm"].shape), *encoded("final_norm", p["final_norm"])
    yield "output.weight", tuple(p["head"].shape), *encoded("head", p["head"])


@torch.no_grad()
def shipped(model):
    """Puts the values that the file holds into `model`."""
    for name, p in model.named_parameters():
        if name in EXPERTS:
            p.copy_(torch.from_numpy(mxfp4.decode(mxfp4.encode(p))).view_as(p))
        elif name in EIGHT_BIT:
            p.copy_(torch.from_numpy(mxfp4.decode_q8_0(mxfp4.encode_q8_0(p))).view_as(p))


def write(model, vocabulary, path, details):
    writer = gguf.Writer()
    metadata(writer, model.config, vocabulary, details)
    for tensor in tensors(model):
        writer.tensor(*tensor)
    writer.write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", default="demo")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=Config.context)
    parser.add_argument("--eval-tokens", type=int, default=2_000_000)
    parser.add_argument("--mode", default="eager", choices=["auto", "compiled", "eager", "plain"])
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args.out.mkdir(parents=True, exist_ok=True)
    saved = torch.load(args.work / "checkpoint.pt", map_location=device, weights_only=True)
    model, _ = build(device, args.mode, 0)
    model.load_state_dict(saved["model"])
    path = args.out / f"{args.name}.gguf"
    write(model, args.work / "corpus" / "tokenizer.json", path, {
        "type": "model", "name": "TurboSpark demo", "size_label": "32x0.6M", "license": "MIT OR Apache-2.0",
        "description": "A small Mixture of Experts that tells short English stories, trained for TurboSpark"})
    size = path.stat().st_size
    print(f"{path}: {size} bytes", flush=True)
    assert size <= MOST_BYTES, f"the file may have at most {MOST_BYTES} bytes"

    where = (model, args.work / "corpus", device, args.batch, args.length, False, args.eval_tokens)
    plain = evaluate(*where)
    print(f"{'BF16' if device.type == 'cuda' else 'F32'}: {summary(plain)}", flush=True)
    shipped(model)
    quantised = evaluate(*where)
    print(f"as shipped: {summary(quantised)}", flush=True)
    cost = quantised["perplexity"] / plain["perplexity"] - 1
    shares = [s * Config.experts for layer in quantised["shares"] for s in layer]
    print(f"quantisation costs {cost:+.2%} of perplexity", flush=True)
    report = {"bytes": size, "parameters": sum(p.numel() for p in model.parameters()), "config": asdict(Config()),
              "steps": saved["step"], "tokens": saved["tokens"], "seconds": saved["seconds"],
              "progress": saved["progress"], "dtype": str(model.dtype), "plain": plain, "shipped": quantised,
              "cost": cost, "least_share": min(shares), "most_share": max(shares),
              "balanced": min(shares) >= 0.2 and max(shares) <= 5.0}
    (args.out / f"{args.name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
