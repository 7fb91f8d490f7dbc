"""Trains the demo model in one or several calls that continue from a checkpoint.

    python train.py WORK --call-seconds 540 --to 0.4

WORK/corpus is what corpus.py writes, also while this runs; WORK/checkpoint.pt is read if it is there and written at the
end and every two minutes. Progress runs from 0 to 1 over the whole training; a call takes it from where the checkpoint
stands to `--to` over the time that it has, whatever the machine's speed. `--smoke` times the parts of a step instead.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

STARTED = time.monotonic()

import torch

import smoke
from config import Config
from data import Corpus, held_out
from model import Model
from optim import Optimizer, rate_at


def evaluate(model, folder, device, batch, length, quantise, limit=2_000_000):
    """Held-out perplexity, share of right first guesses, and each expert's share by layer."""
    loss = right = 0.0
    tokens, counts = 0, 0
    with torch.no_grad():
        for inputs, targets in held_out(folder, device, length, batch, limit):
            part, hits, routed, *_ = model(inputs, targets, quantise)
            loss, right, counts = loss + part.double(), right + hits, counts + routed
            tokens += targets.numel()
    shares = counts.double() / counts.sum(1, keepdim=True)
    return {"perplexity": math.exp(loss.item() / tokens), "top1": right.item() / tokens, "tokens": tokens,
            "shares": shares.cpu().tolist()}


def summary(result):
    experts = len(result["shares"][0])
    flat = [s * experts for layer in result["shares"] for s in layer]
    return (f"perplexity {result['perplexity']:.4f}, top-1 {result['top1']:.4f}, experts' share of the mean "
            f"{min(flat):.2f} to {max(flat):.2f}, {result['tokens']} tokens")


def save(path, model, optimizer, state):
    part = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state(), **state}, part)
    part.replace(path)


def build(device, mode, seed):
    """The model in the fastest form that runs here, and its name."""
    if device.type != "cuda":
        return Model(Config(), mode="plain", dtype=torch.float32, seed=seed).to(device), "plain"
    modes = ["compiled", "eager", "plain"] if mode == "auto" else [mode]
    for name in modes:
        try:
            model = Model(Config(), mode=name, seed=seed).to(device)
            tokens = torch.zeros(2, 256, dtype=torch.long, device=device)
            if name != "compiled":
                loss, *_ = model(tokens, tokens)
                loss.backward()
                model.zero_grad(set_to_none=True)
            return model, name
        except Exception as error:
            print(f"mode {name} fails: {type(error).__name__}: {str(error)[:600]}", flush=True)
    raise SystemExit("no form of the model runs on this device")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--call-seconds", type=float, default=540, help="from start to end of this process")
    parser.add_argument("--reserve", type=float, default=25, help="kept of that for evaluation and checkpoint")
    parser.add_argument("--to", type=float, default=1.0, help="progress at the end of this call")
    parser.add_argument("--steps", type=int, help="end this call after so many steps, for tests")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=Config.context)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--balance", type=float, default=0.01)
    parser.add_argument("--spread", type=float, default=1e-4)
    parser.add_argument("--quantise-from", type=float, default=0.6, help="progress at which experts become MXFP4")
    parser.add_argument("--wait-tokens", type=float, default=20e6, help="start when so many tokens of corpus are there")
    parser.add_argument("--eval-tokens", type=int, default=2_000_000)
    parser.add_argument("--mode", default="auto", choices=["auto", "compiled", "eager", "plain"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()

    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(args.work.resolve() / "inductor"))
    torch.backends.cuda.matmul.allow_tf32 = True
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 64)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}", flush=True)
    if args.smoke:
        return smoke.run(args, device)

    model, mode = build(device, args.mode, args.seed)
    optimizer = Optimizer(model)
    state = {"progress": 0.0, "step": 0, "tokens": 0, "seconds": 0.0}
    checkpoint = args.work / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load(saved["optimizer"])
        state = {key: saved[key] for key in state}
        print(f"continues from {state}", flush=True)
    generator = torch.Generator(device=device).manual_seed(args.seed + 1 + state["step"])

    folder = args.work / "corpus"
    corpus = Corpus(folder, device, args.length)
    while True:
        corpus.refresh()
        if (corpus.count >= args.wait_tokens and (folder / "heldout.bin").exists()) or args.steps:
            break
        if time.monotonic() - STARTED > args.call_seconds / 2:
            raise SystemExit(f"{folder} holds {corpus.count} tokens, fewer than --wait-tokens; is corpus.py running?")
        time.sleep(0.5)
    assert corpus.starts.numel(), f"no documents in {folder}: run corpus.py first"
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters / 1e6:.2f} M parameters, mode {mode}, {corpus.count / 1e6:.1f} M tokens in "
          f"{corpus.starts.numel()} documents, {time.monotonic() - STARTED:.1f} s after the start", flush=True)

    history = open(args.work / "log.jsonl", "a", encoding="utf-8")
    first, first_step = state["progress"], state["step"]
    end = STARTED + args.call_seconds - args.reserve
    begun = logged = saved_at = refreshed = time.monotonic()
    logged_step, total, routed, norm = state["step"], 0.0, 0, None
    before = state["seconds"]
    if first >= 1:
        end = begun
    now = begun
    while now < end and (args.steps is None or state["step"] - first_step < args.steps):
        portion = (now - begun) / (end - begun)
        if args.steps is not None:
            portion = (state["step"] - first_step) / args.steps
        state["progress"] = first + (args.to - first) * portion
        quantise = state["progress"] >= args.quantise_from
        inputs, targets = corpus.batch(args.batch, generator)
        try:
            loss, _, counts, balance, spread = model(inputs, targets, quantise)
            mean = loss / targets.numel()
            (mean + args.balance * balance + args.spread * spread).backward()
        except Exception as error:
            if mode != "compiled" or args.mode != "auto" or state["step"] != first_step:
                raise
            # A compiler that fails on this machine must not cost the run.
            print(f"compiling fails, going on without: {type(error).__name__}: {str(error)[:800]}", flush=True)
            model.zero_grad(set_to_none=True)
            model.mode = mode = "eager"
            model.masks.clear()
            model.choose()
            continue
        norm = optimizer.step(rate_at(state["progress"], state["step"], args.rate))
        state["step"] += 1
        state["tokens"] += targets.numel()
        total, routed = total + mean.detach(), routed + counts
        if state["step"] - first_step == 1:
            print(f"first step {time.monotonic() - begun:.1f} s (launches only)", flush=True)
        if state["step"] % 10 == 0 and device.type == "cuda":
            torch.cuda.synchronize()
        now = time.monotonic()
        state["seconds"] = before + now - begun
        if now - logged >= 5 or args.steps is not None and state["step"] % 5 == 0:
            steps = state["step"] - logged_step
            shares = (routed.double() / routed.sum(1, keepdim=True) * routed.shape[1]).cpu()
            row = {**{k: round(v, 4) for k, v in state.items()}, "loss": round(float(total) / steps, 4),
                   "rate": rate_at(state["progress"], state["step"], args.rate), "norm": round(float(norm), 3),
                   "tokens_per_second": round(steps * targets.numel() / (now - logged)),
                   "least": round(float(shares.min()), 3), "most": round(float(shares.max()), 3),
                   "balance": round(float(balance.detach()), 3), "corpus": corpus.count, "quantised": quantise}
            history.write(json.dumps(row) + "\n")
            history.flush()
            print(f"{row['seconds']:7.1f} s  {row['progress']:.3f}  step {row['step']}  loss {row['loss']:.4f}  "
                  f"{row['tokens_per_second'] / 1e6:.2f} M/s  rate {row['rate']:.1e}  norm {row['norm']:.2f}  experts "
                  f"{row['least']:.2f}..{row['most']:.2f}  corpus {corpus.count / 1e6:.0f} M{'  MXFP4' if quantise else ''}",
                  flush=True)
            logged, logged_step, total, routed = now, state["step"], 0.0, 0
            if not math.isfinite(row["loss"]):
                raise SystemExit("the loss is not finite; the last checkpoint stays as it is")
        if now - refreshed > 20:
            corpus.refresh()
            refreshed = now
        if now - saved_at > 120:
            save(checkpoint, model, optimizer, state)
            saved_at = now
    state["progress"] = max(first, args.to)
    save(checkpoint, model, optimizer, state)
    print(f"checkpoint saved, {time.monotonic() - STARTED:.1f} s after the start", flush=True)
    quantise = state["progress"] >= args.quantise_from
    result = evaluate(model, folder, device, args.batch, args.length, quantise, args.eval_tokens)
    print(f"held out{' (MXFP4)' if quantise else ''}: {summary(result)}; "
          f"{time.monotonic() - STARTED:.1f} s after the start", flush=True)


if __name__ == "__main__":
    main()
