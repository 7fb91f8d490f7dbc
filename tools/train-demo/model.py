"""gpt-oss as a training model: parameters stacked over layers, so that casts, quantisation and updates are few launches.

The mathematics is that of `GptOssForCausalLM` in transformers; a test holds it to that.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

import attention
import moe
import mxfp4

EXPERTS = ("up", "down")
MATRICES = ("q", "k", "v", "o", "up", "down")


def shapes(c):
    """Parameter shapes; all but the last three are stacked over layers."""
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    per_layer = {
        "attn_norm": (c.width,), "q": (q, c.width), "k": (kv, c.width), "v": (kv, c.width), "o": (c.width, q),
        "q_bias": (q,), "k_bias": (kv,), "v_bias": (kv,), "o_bias": (c.width,), "sinks": (c.heads,),
        "ffn_norm": (c.width,), "router": (c.experts, c.width), "router_bias": (c.experts,),
        "up": (c.experts, 2 * c.expert_width, c.width), "up_bias": (c.experts, 2 * c.expert_width),
        "down": (c.experts, c.width, c.expert_width), "down_bias": (c.experts, c.width),
    }
    whole = {"embedding": (c.vocab, c.width), "final_norm": (c.width,), "head": (c.vocab, c.width)}
    return {name: (c.layers, *shape) for name, shape in per_layer.items()} | whole


def norm(x, weight, eps):
    h = x.float()
    return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)


def block(x, cos, sin, mask, p, config, attend, product):
    """One layer over x [batch, length, width]; `p` its parameters by name."""
    batch, length, width = x.shape
    h = norm(x, p["attn_norm"], config.eps)
    weight = torch.cat([p["q"], p["k"], p["v"]])
    bias = torch.cat([p["q_bias"], p["k_bias"], p["v_bias"]])
    heads = F.linear(h, weight, bias).view(batch, length, -1, config.head_dim).transpose(1, 2)
    q, k, v = heads.split([config.heads, config.kv_heads, config.kv_heads], 1)
    q, k = attention.rotate(q, cos, sin), attention.rotate(k, cos, sin)
    mixed = attend(q, k, v.contiguous(), p["sinks"], mask)
    x = x + F.linear(mixed.transpose(1, 2).reshape(batch, length, -1), p["o"], p["o_bias"])
    h = norm(x, p["ffn_norm"], config.eps).view(-1, width)
    out, counts, balance, spread = moe.experts(
        h, p["router"], p["router_bias"], p["up"], p["up_bias"], p["down"], p["down_bias"], config, product)
    return x + out.view_as(x), counts, balance, spread


def head_loss(x, weight, norm_weight, targets, eps):
    """Sum of cross-entropies and number of right first guesses."""
    logits = F.linear(norm(x, norm_weight, eps), weight).flatten(0, 1).float()
    targets = targets.flatten()
    loss = F.cross_entropy(logits, targets, reduction="sum")
    return loss, (logits.detach().argmax(-1) == targets).sum()


def prepared(p, dtype, quantise):
    """Matrices and their biases in the dtype of computation, expert matrices through MXFP4 if asked."""
    out = {}
    for name, value in p.items():
        if quantise and name in EXPERTS:
            value = mxfp4.straight_through(value)
        keep = name in ("attn_norm", "ffn_norm", "final_norm", "router", "router_bias", "sinks", "down_bias")
        out[name] = value if keep else value.to(dtype)
    return out


class Model(nn.Module):
    """`mode` is "compiled" (layers compiled), "eager" (only attention compiled) or "plain" (nothing, any device)."""

    def __init__(self, config, dtype=torch.bfloat16, mode="plain", seed=0):
        super().__init__()
        self.config, self.dtype, self.mode = config, dtype, mode
        draw = torch.Generator().manual_seed(seed)
        for name, shape in shapes(config).items():
            value = torch.zeros(shape)
            if name.endswith("norm"):
                value.fill_(1.0)
            elif name == "embedding":
                value.normal_(0.0, 0.1, generator=draw)
            elif not name.endswith("bias") and name != "sinks":
                value.normal_(0.0, 0.02 if name in ("head", "router") else 0.04, generator=draw)
                if name in ("o", "down"):
                    value /= math.sqrt(2 * config.layers)
            self.register_parameter(name, nn.Parameter(value))
        angles = torch.outer(torch.arange(config.context).double(), torch.tensor(config.frequencies()).double())
        self.register_buffer("cos", (angles.cos() * config.magnitude()).float(), persistent=False)
        self.register_buffer("sin", (angles.sin() * config.magnitude()).float(), persistent=False)
        self.masks = {}
        self.choose()

    def choose(self):
        """Binds the forms of attention, products and loss that the mode asks for."""
        self.is_fused = self.mode != "plain" and attention.flex_attention is not None
        grouped = self.mode != "plain" and hasattr(torch, "_grouped_mm")
        attend = attention.plain
        if self.is_fused:
            flex = torch.compile(attention.flex_attention, dynamic=False) if self.mode == "eager" else None
            attend = partial(attention.fused, attend=flex)
        product = moe.grouped if grouped else moe.looped
        layer = partial(block, config=self.config, attend=attend, product=product)
        compiled = partial(torch.compile, dynamic=False) if self.mode == "compiled" else (lambda f: f)
        # Two compilations of the layer: the masks differ in more than their data.
        self.layers = {windowed: compiled(layer) for windowed in (True, False)}
        self.loss_of = compiled(head_loss)
        self.prepared = compiled(prepared)

    def mask(self, windowed, length, device):
        key = (windowed, length, str(device))
        if key not in self.masks:
            make = attention.fused_mask if self.is_fused else attention.plain_mask
            self.masks[key] = make(self.config.window if windowed else None, length, device)
        return self.masks[key]

    def hidden(self, tokens, quantise=False):
        """Hidden states before the last norm, the prepared parameters, and what the routers did."""
        c = self.config
        p = self.prepared(dict(self.named_parameters()), self.dtype, quantise)
        whole = {name: p.pop(name) for name in ("embedding", "final_norm", "head")}
        by_layer = {name: value.unbind(0) for name, value in p.items()}
        length = tokens.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        x = F.embedding(tokens, whole["embedding"])
        counts, balance, spread = [], 0.0, 0.0
        for i in range(c.layers):
            windowed = c.windowed(i)
            own = {name: value[i] for name, value in by_layer.items()}
            x, n, b, s = self.layers[windowed](x, cos, sin, self.mask(windowed, length, x.device), own)
            counts.append(n)
            balance, spread = balance + b, spread + s
        return x, whole, (torch.stack(counts), balance / c.layers, spread / c.layers)

    def forward(self, tokens, targets, quantise=False):
        """Sum of cross-entropies, right first guesses, rows per layer and expert, mean balance loss, mean z-loss."""
        x, whole, (counts, balance, spread) = self.hidden(tokens, quantise)
        loss, right = self.loss_of(x, whole["head"], whole["final_norm"], targets, self.config.eps)
        return loss, right, counts, balance, spread

    def logits(self, tokens, quantise=False):
        x, whole, _ = self.hidden(tokens, quantise)
        return F.linear(norm(x, whole["final_norm"], self.config.eps), whole["head"]).float()
