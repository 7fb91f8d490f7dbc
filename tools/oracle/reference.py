"""What `transformers` gives for a model: logits of prompts, a greedy continuation through the cache, and how close the
choices were.

A continuation is only worth comparing where the first choice leads clearly, and a routed model only where no expert is
chosen by a hair: both are recorded, and the generator draws another seed when either is too small.
"""

import contextlib

import torch

SHORT, LONG, STEPS, TAIL = 5, 80, 8, 2


def prompts(vocab, seed):
    """Ids of the two prompts, without the special tokens at the front of the vocabulary."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(8, vocab, (length,), generator=generator).tolist() for length in (SHORT, LONG)]


@contextlib.contextmanager
def router_gaps():
    """The distance between the last chosen and the first rejected score of every routing done meanwhile."""
    gaps, plain = [], torch.topk

    def watch(scores, k, *args, **kwargs):
        dim = kwargs.get("dim", args[0] if args else -1)
        # The best two inside a group of three dimensions are summed, not chosen.
        if scores.dim() == 2 and dim in (-1, 1) and k < scores.shape[-1]:
            top = plain(scores, k + 1, dim=-1).values
            gaps.append(float((top[:, k - 1] - top[:, k]).min()))
        return plain(scores, k, *args, **kwargs)

    method = torch.Tensor.topk
    torch.topk = watch
    torch.Tensor.topk = lambda scores, k, *args, **kwargs: watch(scores, k, *args, **kwargs)
    try:
        yield gaps
    finally:
        torch.topk, torch.Tensor.topk = plain, method


@torch.no_grad()
def run(model, ids):
    """One prompt: its entry for the description, and its tensors."""
    full = model(torch.tensor([ids])).logits[0]
    positions = list(range(len(ids))) if len(ids) <= SHORT else list(range(len(ids) - TAIL, len(ids)))
    state = model(torch.tensor([ids]), use_cache=True)
    cache, row = state.past_key_values, state.logits[0, -1]
    greedy, margins, rows = [], [], []
    for _ in range(STEPS):
        best = torch.topk(row, 2)
        greedy.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 6))
        state = model(torch.tensor([[greedy[-1]]]), past_key_values=cache, use_cache=True)
        cache, row = state.past_key_values, state.logits[0, -1]
        rows.append(row)
    whole = model(torch.tensor([ids + greedy])).logits[0, len(ids) :]
    generated = torch.stack(rows)
    entry = {
        "ids": ids,
        "logits_positions": positions,
        "greedy": greedy,
        "margins": margins,
        "logits_std": float(full.std()),
        "cache_vs_full": float((generated - whole).abs().max()),
    }
    return entry, full[positions].contiguous(), generated.contiguous()


@torch.no_grad()
def evaluate(model, vocab, seed, min_gap):
    """All prompts: entries, tensors by name, the smallest router gap (None without routing); None below `min_gap`."""
    entries, tensors = [], {}
    with router_gaps() as gaps:
        for i, ids in enumerate(prompts(vocab, seed)):
            # One pass says whether this seed is worth the others.
            model(torch.tensor([ids]))
            if gaps and min(gaps) <= min_gap:
                return None
            entry, logits, generated = run(model, ids)
            entries.append(entry)
            tensors[f"p{i}_logits"], tensors[f"p{i}_gen_logits"] = logits, generated
    if gaps and min(gaps) <= min_gap:
        return None
    return entries, tensors, min(gaps) if gaps else None
