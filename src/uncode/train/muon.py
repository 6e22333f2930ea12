"""The Muon optimizer: momentum SGD with orthogonalized updates (Jordan et al., 2024).

torch.optim.Muon updates one matrix at a time. For a small network its thousand kernel launches per step take longer
than the forward and the backward together. This version orthogonalizes all matrices of one shape in one batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

NEWTON_SCHULZ_STEPS = 5
"""Iterations of the quintic, with the published coefficients below."""
_A, _B, _C = 3.4445, -4.7750, 2.0315
UPDATE_RMS = 0.2
"""The RMS of an update's entries. It is about AdamW's, so both optimizers share one learning rate."""


class Muon(torch.optim.Optimizer):
    """Updates the matrices inside the layers. AdamW updates embeddings, the head and the norms."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: Tensor, decay: float, momentum: float = 0.95) -> None:
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
        for parameter in matrices:
            if "moment" not in self.state[parameter]:
                self.state[parameter]["moment"] = torch.zeros_like(parameter)
        moments = [self.state[p]["moment"] for p in matrices]
        grads = [p.grad for p in matrices if p.grad is not None]
        torch._foreach_lerp_(moments, grads, 1 - beta)
        lookahead = torch._foreach_lerp(grads, moments, beta)  # Nesterov momentum
        wide = torch.stack([t if t.shape[0] <= t.shape[1] else t.T for t in lookahead])
        size = UPDATE_RMS * max(wide.shape[1:]) ** 0.5
        scaled = orthogonalize(wide).to(wide.dtype) * (rate * size)
        updates = [u if p.shape == u.shape else u.T for p, u in zip(matrices, scaled.unbind(), strict=True)]
        torch._foreach_mul_(matrices, 1 - rate * group["decay"])
        torch._foreach_sub_(matrices, updates)


def orthogonalize(wide: Tensor) -> Tensor:
    """Matrices `[N, r, c]`, r <= c, with singular values moved to about 1 (0.7 to 1.2)."""
    x: Tensor = wide.bfloat16() if wide.is_cuda else wide
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x
