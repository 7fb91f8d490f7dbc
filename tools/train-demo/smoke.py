"""Times the parts of a training step of the full model, each form that may run; a failure is printed and passed over."""

import time
import traceback

import torch

import attention
from config import Config
from model import Model
from optim import Optimizer


def timed(run, device, repeats=1):
    """Seconds a call."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    begun = time.monotonic()
    for _ in range(repeats):
        run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.monotonic() - begun) / repeats


def compare_attention(device):
    """Largest differences between the two forms of attention, of outputs and of all gradients."""
    flex = torch.compile(attention.flex_attention, dynamic=False)
    c = Config()
    draw = torch.Generator(device=device).manual_seed(0)
    for window in (None, c.window):
        first = [torch.randn(2, h, 512, c.head_dim, device=device, generator=draw) for h in (c.heads, c.kv_heads, c.kv_heads)]
        first.append(torch.linspace(-1, 2, c.heads, device=device))
        results = []
        for fused in (True, False):
            q, k, v, sinks = inputs = [t.bfloat16().clone().requires_grad_() for t in first]
            make = attention.fused_mask if fused else attention.plain_mask
            attend = (lambda *a: attention.fused(*a, attend=flex)) if fused else attention.plain
            out = attend(q, k, v, sinks, make(window, 512, device))
            (out.float() * torch.linspace(-1, 1, 512, device=device)[:, None]).sum().backward()
            results.append([out, *(t.grad for t in inputs)])
        off = [((a - b).abs().max() / b.abs().max()).item() for a, b in zip(*results)]
        print(f"  window {window}: out, q, k, v, sinks differ by " + ", ".join(f"{x:.1e}" for x in off), flush=True)


def one_mode(mode, batch, length, device, steps):
    c = Config()
    model = Model(c, mode=mode, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32).to(device)
    optimizer = Optimizer(model)
    tokens = torch.randint(c.vocab, (batch, length + 1), device=device)
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    kept = {}

    def forward(quantise):
        loss, _, counts, balance, spread = model(inputs, targets, quantise)
        kept["loss"] = loss / targets.numel() + 0.01 * balance + 1e-4 * spread

    def backward():
        kept["loss"].backward()

    def step(quantise=False):
        forward(quantise)
        backward()
        optimizer.step(1e-3)

    print(f"{mode}, {batch} x {length}: first step {timed(step, device):.1f} s", flush=True)
    print(f"  loss {kept['loss'].item():.3f}, first step with MXFP4 {timed(lambda: step(True), device):.1f} s", flush=True)
    parts = {"forward": lambda: forward(True), "backward": backward, "optimizer": lambda: optimizer.step(1e-3)}
    print("  " + ", ".join(f"{name} {timed(run, device) * 1e3:.1f} ms" for name, run in parts.items()), flush=True)
    seconds = timed(lambda: step(True), device, steps)
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0
    print(f"  {steps} steps of {seconds * 1e3:.1f} ms: {targets.numel() / seconds / 1e6:.2f} M tokens/s, loss "
          f"{kept['loss'].item():.3f}, {memory:.1f} GiB", flush=True)
    return step


def kernels(step):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as taken:
        step(True)
        torch.cuda.synchronize()
    print(taken.key_averages().table(sort_by="self_device_time_total", row_limit=22, max_name_column_width=70)[:7000])


def run(args, device):
    steps = args.steps or 20
    begun = time.monotonic()

    def attempt(name, what):
        try:
            return what()
        except Exception:
            print(f"{name} fails:\n{traceback.format_exc()[-1800:]}", flush=True)
        finally:
            if device.type == "cuda":
                torch.cuda.empty_cache()
            print(f"  [{time.monotonic() - begun:.0f} s]", flush=True)

    if device.type != "cuda":
        attempt("plain", lambda: one_mode("plain", args.batch, args.length, device, steps))
        return
    attempt("attention", lambda: compare_attention(device))
    step = attempt("compiled", lambda: one_mode("compiled", args.batch, args.length, device, steps))
    if step is not None:
        attempt("profile", lambda: kernels(step))
    for mode, batch in (("eager", args.batch), ("compiled", 2 * args.batch)):
        if time.monotonic() - begun < 65 and (mode == "eager" or step is not None):
            attempt(mode, lambda: one_mode(mode, batch, args.length, device, steps))
