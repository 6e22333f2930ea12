"""Muon: momentum whose matrices are made orthogonal before they are applied (Jordan et al., 2024).

torch has one too, which goes from matrix to matrix: a thousand small kernels a step, more than a small
network's forward and backward together. Here all matrices of one shape are orthogonalised at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

ROUNDS = 5
"""Of Newton and Schulz's iteration, with the quintic's published coefficients."""
_A, _B, _C = 3.4445, -4.7750, 2.0315
LIKE_ADAM = 0.2
"""The size of an entry of the update, which is about AdamW's: one learning rate serves both."""


class Muon(torch.optim.Optimizer):
    """For the matrices inside a network; embeddings, heads and norms are AdamW's."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, decay: float, momentum: float = 0.95) -> None:
        super().__init__(list(matrices), {"lr": lr, "decay": decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                shapes[tuple(sorted(parameter.shape))].append(parameter)
            for matrices in shapes.values():
                self._update(matrices, group)

    def _update(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        beta, rate = group["momentum"], group["lr"]
        moments = [self.state[p].setdefault("moment", torch.zeros_like(p)) for p in matrices]
        grads = [p.grad for p in matrices if p.grad is not None]
        torch._foreach_lerp_(moments, grads, 1 - beta)
        ahead = torch._foreach_lerp(grads, moments, beta)  # Nesterov's look ahead
        wide = torch.stack([t if t.shape[0] <= t.shape[1] else t.T for t in ahead])
        size = LIKE_ADAM * max(wide.shape[1:]) ** 0.5
        updates = [u.to(p.dtype) for p, u in zip(matrices, orthogonal(wide).unbind(), strict=True)]
        updates = [u if p.shape == u.shape else u.T for p, u in zip(matrices, updates, strict=True)]
        torch._foreach_mul_(matrices, 1 - rate * group["decay"])
        torch._foreach_add_(matrices, updates, alpha=-rate * size)


def orthogonal(wide: Tensor) -> Tensor:
    """Matrices `[N, r, c]`, r <= c, with their singular values brought to about 1 (0.7 to 1.2)."""
    x: Tensor = wide.bfloat16() if wide.is_cuda else wide
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x
