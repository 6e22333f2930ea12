"""A mixture of experts: a router chooses a few of a layer's MLPs (experts) for each token.

With few tokens the products are limited by reading the weights of the experts that were chosen. So the kernels of
:mod:`.kernels.experts_triton` read those alone, and the host never learns which they are: a forward can be captured as
a CUDA graph. The plain code asks the host, expert by expert.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.support.triton_support import use_triton
from .linear import Linear
from .mixture import TINY, Mixture
from .pointwise import at_least_float32, silu_mul


class Experts(nn.Module):
    """The experts of one layer and their router. The shared expert is three linear maps, as in a layer without
    experts; the layer multiplies with them."""

    def __init__(self, width: int, mixture: Mixture) -> None:
        super().__init__()
        self.mixture, count, hidden = mixture, mixture.experts, mixture.hidden
        self.router = Linear(width, count, bias=False)
        self.bias = nn.Parameter(torch.empty(count)) if mixture.has_bias else None
        self.gate_ups = nn.Parameter(torch.empty(count, 2 * hidden, width))
        """Each expert's gate projection, and its up projection below it."""
        self.downs = nn.Parameter(torch.empty(count, width, hidden))
        if mixture.shared:
            self.gate: nn.Linear = Linear(width, mixture.shared, bias=False)
            self.up: nn.Linear = Linear(width, mixture.shared, bias=False)
            self.down: nn.Linear = Linear(mixture.shared, width, bias=False)

    def forward(self, h: Tensor, beside: Tensor | None = None) -> Tensor:
        """What the chosen experts make of `h` `[*, width]`, weighted and added up, and `beside` added to it: the
        output of the shared expert. The router computes in float32 or wider."""
        rows, wide = h.flatten(0, -2), at_least_float32(h.dtype)
        logits = functional.linear(rows.to(wide), self.router.weight.to(wide))
        bias = None if self.bias is None else self.bias.to(wide)
        if use_triton(h):
            from .kernels import experts_triton

            found = experts_triton.mix(rows, logits, bias, self.mixture, self.gate_ups, self.downs, beside)
            return found.view_as(h)
        mixed = mix(rows, *choose(logits, bias, self.mixture), self.gate_ups, self.downs).view_as(h)
        return mixed if beside is None else mixed + beside


def choose(logits: Tensor, bias: Tensor | None, mixture: Mixture) -> tuple[Tensor, Tensor]:
    """Each token's experts `[T, active]`, the best first, and their weights. Of equals the one with the lowest number
    is taken."""
    scores = logits.sigmoid() if mixture.score == "sigmoid" else logits.softmax(-1)
    ranked = scores if bias is None else scores + bias
    known = ranked if mixture.weighs_bias else scores
    if mixture.groups > 1:
        grouped = ranked.view(len(ranked), mixture.groups, -1)
        both = grouped.topk(2).values.sum(-1)
        closed = both.sort(descending=True, stable=True).indices[:, mixture.open_groups :]
        barred = torch.zeros_like(both, dtype=torch.bool).scatter_(-1, closed, True)
        ranked = grouped.masked_fill(barred[..., None], -torch.inf).flatten(1)
    chosen = ranked.sort(descending=True, stable=True).indices[:, : mixture.active]
    weights = known.gather(-1, chosen)
    if mixture.normed:
        weights = weights / (weights.sum(-1, keepdim=True) + TINY)
    return chosen, weights * mixture.scale


def mix(h: Tensor, chosen: Tensor, weights: Tensor, gate_ups: Tensor, downs: Tensor) -> Tensor:
    """For each expert the rows of `h` `[T, width]` that chose it, then each row's weighted sum, in float32 or wider."""
    active, picks = chosen.shape[1], chosen.flatten()
    counts = torch.bincount(picks, minlength=len(downs)).tolist()
    order = picks.argsort(stable=True)
    found = h.new_empty(len(picks), h.shape[1])
    for expert, own in enumerate(torch.split(order, counts)):
        if len(own):
            inner = silu_mul(functional.linear(h[own // active], gate_ups[expert]))
            found[own] = functional.linear(inner, downs[expert])
    return (found.view(*chosen.shape, -1) * weights[..., None]).sum(1).to(h.dtype)
