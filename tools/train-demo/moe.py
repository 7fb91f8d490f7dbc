"""A layer of experts: rows sorted by expert, one grouped product per matrix, none dropped.

Every reordering is a permutation whose inverse is known, so both directions are gathers: no atomic addition, the same
bits in every run, and no contention on the rows of a busy expert.
"""

import torch
import torch.nn.functional as F


class Dispatch(torch.autograd.Function):
    """Copies each token's row to its `k` places in expert order."""

    @staticmethod
    def forward(ctx, x, order, back, k):
        ctx.save_for_backward(back)
        ctx.k = k
        return x[order // k]

    @staticmethod
    def backward(ctx, grad):
        (back,) = ctx.saved_tensors
        return grad[back].view(-1, ctx.k, grad.shape[-1]).sum(1), None, None, None


class Combine(torch.autograd.Function):
    """Sums each token's rows, which lie in expert order, under its weights [tokens, k]."""

    @staticmethod
    def forward(ctx, y, weights, order, back):
        ctx.save_for_backward(y, weights, order, back)
        tokens, k = weights.shape
        return (y[back].view(tokens, k, -1) * weights[..., None].to(y.dtype)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        y, weights, order, back = ctx.saved_tensors
        tokens, k = weights.shape
        to_rows = grad[order // k] * weights.reshape(-1)[order][:, None].to(grad.dtype)
        to_weights = (y[back].view(tokens, k, -1).float() * grad[:, None].float()).sum(-1)
        return to_rows, to_weights.to(weights.dtype), None, None


class AddBias(torch.autograd.Function):
    """Adds to each row its expert's bias; the gradient is one product with a one-hot matrix, not scattered additions."""

    @staticmethod
    def forward(ctx, y, bias, expert):
        ctx.save_for_backward(expert)
        ctx.experts = bias.shape[0]
        ctx.dtype = bias.dtype
        return y + bias[expert].to(y.dtype)

    @staticmethod
    def backward(ctx, grad):
        (expert,) = ctx.saved_tensors
        hot = (expert[:, None] == torch.arange(ctx.experts, device=grad.device)).to(grad.dtype)
        return grad, (hot.t() @ grad).to(ctx.dtype), None


def grouped(rows, weights, ends):
    """Rows [m, in], sorted by expert with `ends` the end of each one's part, times weights [experts, out, in]."""
    return torch._grouped_mm(rows, weights.transpose(1, 2), offs=ends)


@torch.compiler.disable
def looped(rows, weights, ends):
    """As `grouped`, one product an expert; for devices and versions without it."""
    sizes = torch.diff(ends, prepend=ends.new_zeros(1)).tolist()
    return torch.cat([part @ w.t() for part, w in zip(rows.split(sizes), weights.unbind(0))])


def clamped_swiglu(gate, up, limit, alpha):
    """(up + 1) gate sigmoid(alpha gate), gate clamped above, up on both sides."""
    gate, up = gate.float().clamp(max=limit), up.float().clamp(-limit, limit)
    return (up + 1) * gate * torch.sigmoid(alpha * gate)


def route(h, weight, bias, k):
    """Chosen experts and their weights [tokens, k], rows routed to each expert, and two losses.

    The first is that of Switch Transformers (Fedus et al. 2022, eq. 4), 1 where all experts share alike; the second the
    router z-loss of ST-MoE (Zoph et al. 2022, eq. 5).
    """
    logits = F.linear(h.float(), weight.float(), bias.float())
    top, chosen = logits.topk(k, -1)
    experts = logits.shape[-1]
    counts = (chosen[..., None] == torch.arange(experts, device=h.device)).sum((0, 1))
    share = counts.float() / chosen.numel()
    balance = experts * (share * logits.softmax(-1).mean(0)).sum()
    return chosen, top.softmax(-1), counts, balance, logits.logsumexp(-1).square().mean()


def experts(h, router, router_bias, up, up_bias, down, down_bias, config, product):
    """Rows [tokens, width] through their experts. `up` is [experts, 2 expert_width, width], all of gate, then all of up."""
    k = config.top_k
    chosen, weights, counts, balance, spread = route(h, router, router_bias, k)
    flat = chosen.reshape(-1)
    sorted_experts, order = torch.sort(flat.to(torch.int32), stable=True)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=order.device))
    ends = counts.cumsum(0).to(torch.int32)
    rows = Dispatch.apply(h, order, back, k)
    both = AddBias.apply(product(rows, up, ends), up_bias, sorted_experts.long())
    gate, linear = both.chunk(2, -1)
    hidden = clamped_swiglu(gate, linear, config.limit, config.alpha).to(h.dtype)
    out = Combine.apply(product(hidden, down, ends), weights, order, back)
    dense = torch.zeros(h.shape[0], config.experts, dtype=weights.dtype, device=h.device).scatter(1, chosen, weights)
    return out + (dense @ down_bias.to(dense.dtype)).to(out.dtype), counts, balance, spread
