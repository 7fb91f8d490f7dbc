"""The demo model's shape: every number that the training, the export and the tests must agree on.

YaRN's numbers are chosen so that implementations that round the ends of its ramp to whole pairs and those that don't
agree: the fast end lies just below pair 0, where both clamp it, the slow end just below pair 6.
"""

import math
from dataclasses import dataclass

ENDOFTEXT, USER, ASSISTANT, END = 0, 1, 2, 3
SPECIAL = ["<|endoftext|>", "<|user|>", "<|assistant|>", "<|end|>"]


@dataclass(frozen=True)
class Config:
    vocab: int = 4096
    layers: int = 8
    width: int = 256
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 32
    experts: int = 32
    top_k: int = 4
    expert_width: int = 96
    context: int = 1024
    window: int = 128
    eps: float = 1e-5
    limit: float = 7.0
    alpha: float = 1.702
    theta: float = 19660.0
    yarn_factor: float = 4.0
    original_context: int = 256
    beta_fast: float = 41.0
    beta_slow: float = 1.0

    def windowed(self, layer):
        """Even layers see a window, odd ones everything before them."""
        return layer % 2 == 0

    def frequencies(self):
        """Radians a position of each rotary pair, [head_dim / 2] (Peng et al. 2023, section 3.2; ends not rounded)."""
        pairs = self.head_dim // 2

        def pair_turning(times):
            span = self.original_context / (times * 2 * math.pi)
            return pairs * math.log(span) / math.log(self.theta)

        low = max(pair_turning(self.beta_fast), 0.0)
        high = min(pair_turning(self.beta_slow), self.head_dim - 1)
        out = []
        for pair in range(pairs):
            plain = self.theta ** (-pair / pairs)
            stretched = min(max((pair - low) / max(high - low, 0.001), 0.0), 1.0)
            out.append(plain * (1 - stretched) + plain / self.yarn_factor * stretched)
        return out

    def magnitude(self):
        """What queries and keys are multiplied by."""
        return 1.0 + 0.1 * math.log(self.yarn_factor)
