"""Causal attention with a sink logit per query head, in two forms that give the same result.

`fused` runs on `flex_attention`, which knows no sinks: a sink only adds exp(sink) to the softmax's denominator, so the
result without it is multiplied by sigmoid(lse - sink). `plain` writes the scores out, for any device.
"""

import torch

try:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError:
    create_block_mask = flex_attention = None
try:
    from torch.nn.attention.flex_attention import AuxRequest
except ImportError:
    AuxRequest = None


def visible(window):
    """Whether key position `k` is seen from query position `q`, as flex_attention asks it."""
    if window is None:
        return lambda b, h, q, k: q >= k
    return lambda b, h, q, k: (q >= k) & (q - k < window)


def fused_mask(window, length, device):
    """The blocks that `fused` visits."""
    return create_block_mask(visible(window), None, None, length, length, device=device)


def plain_mask(window, length, device):
    """The positions that `plain` may see, [length, length]."""
    at = torch.arange(length, device=device)
    return visible(window)(None, None, at[:, None], at[None, :])


def fused(q, k, v, sinks, mask, attend=None):
    """[batch, heads, length, head_dim] from q of that shape and k, v with fewer heads."""
    how = {"return_aux": AuxRequest(lse=True)} if AuxRequest is not None else {"return_lse": True}
    out, extra = (attend or flex_attention)(q, k, v, block_mask=mask, enable_gqa=True, **how)
    lse = extra.lse if AuxRequest is not None else extra
    share = torch.sigmoid(lse.float() - sinks.float()[None, :, None])
    return (out * share[..., None]).to(q.dtype)


def plain(q, k, v, sinks, mask):
    """As `fused`, for a mask from `plain_mask`."""
    batch, heads, length, dim = q.shape
    group = heads // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = (q @ k.transpose(-1, -2)).float() * dim**-0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    sink = sinks.float().view(1, heads, 1, 1).expand(batch, heads, length, 1)
    weights = torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]
    return weights.to(v.dtype) @ v


def rotate(x, cos, sin):
    """Rotary embedding over halves; cos and sin [length, head_dim / 2] carry YaRN's magnitude."""
    first, second = x.float().chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x.dtype)
