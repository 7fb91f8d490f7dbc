"""Muon for matrices, AdamW for the rest, and the schedule of learning rates.

Muon (Jordan et al. 2024) orthogonalises the momentum of each matrix; updates are scaled to the size of AdamW's (Liu et al.
2025), so one learning rate serves both.
"""

import torch

from model import MATRICES


def orthogonalised(m, steps=5):
    """Nearly the orthogonal factor of each matrix [n, rows, columns]: a quintic Newton-Schulz iteration."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = m.bfloat16() if m.is_cuda else m.float()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Optimizer:
    def __init__(self, model, decay=0.05, momentum=0.95):
        named = dict(model.named_parameters())
        self.matrices = {name: named[name] for name in MATRICES}
        self.momentum, self.decay = momentum, decay
        self.velocity = {name: torch.zeros_like(p) for name, p in self.matrices.items()}
        self.expert_width = model.config.expert_width
        rest = [p for name, p in named.items() if name not in self.matrices]
        self.parameters = list(named.values())
        self.adam = torch.optim.AdamW(
            rest, lr=0.0, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=self.parameters[0].is_cuda)

    @torch.no_grad()
    def step(self, rate, clip=1.0):
        """One update; returns the gradients' norm, on the device."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, clip)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        for name, p in self.matrices.items():
            velocity = self.velocity[name].lerp_(p.grad, 1 - self.momentum)
            update = p.grad.lerp(velocity, self.momentum)
            # Gate and up are two matrices in one tensor.
            rows = self.expert_width if name == "up" else p.shape[-2]
            shaped = update.reshape(-1, rows, p.shape[-1])
            turned = orthogonalised(shaped).to(p.dtype).view_as(p)
            p.mul_(1 - rate * self.decay).add_(turned, alpha=-rate * 0.2 * max(rows, p.shape[-1]) ** 0.5)
        for p in self.parameters:
            p.grad = None
        return norm

    def state(self):
        return {"velocity": self.velocity, "adam": self.adam.state_dict()}

    def load(self, state):
        for name, value in state["velocity"].items():
            self.velocity[name].copy_(value)
        self.adam.load_state_dict(state["adam"])


def rate_at(progress, step, peak, warmup=200, decay_from=0.55):
    """Warm-up in steps, a plateau, then straight to nearly nothing over the rest of the run."""
    warm = min(1.0, (step + 1) / warmup)
    fall = 1.0 if progress < decay_from else max(0.0, (1 - progress) / (1 - decay_from))
    return peak * warm * max(fall, 0.005)
