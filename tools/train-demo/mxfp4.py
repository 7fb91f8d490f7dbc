"""MXFP4 (OCP Microscaling specification): blocks of 32 E2M1 values under one power of two; and Q8_0.

Training and export use the same choice of scale and the same rounding, so what is trained for is what is shipped.
"""

import numpy as np
import torch

BLOCK = 32
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def power(exponent):
    """2^exponent for int32 exponents from -126 to 127, exact on every device."""
    return ((exponent + 127) << 23).view(torch.float32)


def nearest(x):
    """The nearest E2M1 magnitude of each x >= 0."""
    fine, middle, coarse = torch.round(x * 2) / 2, torch.round(x), torch.round(x / 2) * 2
    return torch.where(x < 2, fine, torch.where(x < 4, middle, coarse)).clamp(max=6.0)


def quantised(w):
    """Values under the best scale of each block, and the scales' exponents [..., blocks].

    The candidates are the exponent that puts the largest magnitude into the top octave and its neighbours: a larger
    step can cost less than cutting that magnitude to 6, and in rare blocks cutting costs less than the step.
    """
    blocks = w.float().unflatten(-1, (-1, BLOCK))
    size = blocks.abs()
    base = ((size.amax(-1).view(torch.int32) >> 23) - 127 - 2).clamp(-126, 125)
    best = error = exponents = None
    for offset in (0, 1, -1):
        e = (base + offset).clamp(-126, 125)
        scale = power(e)[..., None]
        candidate = nearest(size / scale) * scale
        off = (candidate - size).square().sum(-1)
        if best is None:
            best, error, exponents = candidate, off, e
        else:
            better = off < error
            best = torch.where(better[..., None], candidate, best)
            error, exponents = torch.where(better, off, error), torch.where(better, e, exponents)
    return torch.copysign(best, blocks).flatten(-2), exponents


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        return quantised(w)[0].to(w.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad


def straight_through(w):
    """Quantised values, with the gradient passed on unchanged (Bengio et al. 2013)."""
    return StraightThrough.apply(w)


def encode(w):
    """Bytes of MXFP4 blocks along the last axis: an E8M0 exponent, then 16 bytes, byte j with element j in its low
    nibble and element j + 16 in its high one."""
    values, exponents = quantised(w)
    blocks = values.unflatten(-1, (-1, BLOCK)).cpu().numpy()
    exponents = exponents.cpu().numpy()
    scaled = np.abs(blocks) / np.exp2(exponents.astype(np.float32))[..., None]
    codes = np.searchsorted(np.array(MAGNITUDES, np.float32), scaled).astype(np.uint8)
    codes |= ((blocks < 0) & (codes > 0)).astype(np.uint8) << 3
    nibbles = codes[..., :16] | codes[..., 16:] << 4
    first = (exponents + 127).astype(np.uint8)[..., None]
    return np.concatenate([first, nibbles], -1).tobytes()


def decode(data):
    """Values of MXFP4 blocks, flat."""
    blocks = np.frombuffer(data, np.uint8).reshape(-1, 17)
    table = np.array([*MAGNITUDES, *(-m for m in MAGNITUDES)], np.float32)
    codes = np.concatenate([blocks[:, 1:] & 15, blocks[:, 1:] >> 4], -1)
    return (table[codes] * np.exp2(blocks[:, :1].astype(np.float32) - 127)).reshape(-1)


def encode_q8_0(w):
    """Bytes of Q8_0 blocks along the last axis: an f16 scale, then 32 signed bytes."""
    blocks = w.detach().float().cpu().numpy().reshape(-1, BLOCK)
    scale = np.abs(blocks).max(-1, keepdims=True) / 127
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    codes = np.rint(blocks * inverse).astype(np.int8)
    out = np.empty((len(blocks), 34), np.uint8)
    out[:, :2] = scale.astype(np.float16).view(np.uint8)
    out[:, 2:] = codes.view(np.uint8)
    return out.tobytes()


def decode_q8_0(data):
    """Values of Q8_0 blocks, flat."""
    blocks = np.frombuffer(data, np.uint8).reshape(-1, 34)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    return (blocks[:, 2:].copy().view(np.int8) * scale).reshape(-1)
