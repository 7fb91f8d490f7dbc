"""The corpus on the training device, and windows that start where a document does.

At inference a story starts at position 0; windows that start elsewhere would train for contexts that never come.
"""

import numpy as np
import torch

from config import ENDOFTEXT


class Corpus:
    def __init__(self, folder, device, length):
        self.folder, self.device, self.length = folder, device, length
        self.names, self.count = set(), 0
        self.tokens = torch.empty(0, dtype=torch.int16, device=device)
        self.starts = torch.empty(0, dtype=torch.int64, device=device)

    def refresh(self):
        """Takes in shards that have appeared; true if any has."""
        new = sorted(p for p in self.folder.glob("train-*.bin") if p.name not in self.names)
        if not new:
            return False
        parts = [torch.from_numpy(np.fromfile(p, np.int16)) for p in new]
        self.names.update(p.name for p in new)
        self.tokens = torch.cat([self.tokens, torch.cat(parts).to(self.device)])
        self.count = self.tokens.numel()
        starts = (self.tokens == ENDOFTEXT).nonzero().flatten()
        self.starts = starts[starts < self.count - self.length - 1]
        return True

    def batch(self, size, generator):
        """Inputs and targets [size, length]."""
        pick = torch.randint(self.starts.numel(), (size,), device=self.device, generator=generator)
        at = self.starts[pick][:, None] + torch.arange(self.length + 1, device=self.device)
        window = self.tokens[at].long()
        return window[:, :-1].contiguous(), window[:, 1:].contiguous()


def held_out(folder, device, length, batch, limit):
    """Batches of inputs and targets, all of one shape, that cover the held-out tokens once, up to about `limit`."""
    tokens = torch.from_numpy(np.fromfile(folder / "heldout.bin", np.int16)).to(device).long()
    rows = min((tokens.numel() - 1) // length, max(1, limit // length))
    assert rows >= 1, "the held-out text is shorter than one window"
    batch = min(batch, rows)
    for first in range(0, rows - rows % batch, batch):
        span = tokens[first * length : (first + batch) * length + 1]
        yield span[:-1].view(-1, length), span[1:].view(-1, length)
