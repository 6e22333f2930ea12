"""What a mixture of experts is: how many, how wide, and how a token chooses among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...core.errors import require

TINY = 1e-20
"""Added to a sum of weights before it divides them, as in LLaDA2's modelling code."""


@dataclass(frozen=True)
class Mixture:
    """The experts of a model, and how a token chooses among them."""

    experts: int
    active: int
    """Experts of a token."""
    hidden: int
    """The width inside an expert."""
    shared: int = 0
    """The width inside the shared expert, through which every token goes; 0 where there is none."""
    dense: tuple[int, ...] = ()
    """Layers that have one MLP in place of experts."""
    score: Literal["softmax", "sigmoid"] = "softmax"
    """From the router's logits to scores."""
    has_bias: bool = False
    """Whether a bias is added to the scores before the best are chosen."""
    weighs_bias: bool = False
    """Whether that bias is also part of the weights of the chosen (LLaDA-MoE)."""
    groups: int = 1
    open_groups: int = 1
    """A token chooses from so many groups of neighbouring experts: those whose two best scores have the largest sum."""
    normed: bool = False
    """Whether the weights of the chosen are divided by their sum."""
    scale: float = 1.0
    """What the weights are multiplied by."""

    def __post_init__(self) -> None:
        size = self.experts // self.groups
        fits = self.groups * size == self.experts and 1 <= self.open_groups <= self.groups
        require(
            fits and self.active <= self.open_groups * size and (self.groups == 1 or size > 1),
            f"{self.active} of {self.experts} experts cannot be chosen from {self.open_groups} of {self.groups} groups "
            "of equal size: mend config.json.",
        )

    def parameters(self, width: int, experts: float | None = None) -> float:
        """Numbers of a layer's experts and router; of so many experts, where they are given."""
        router = self.experts * (width + self.has_bias)
        return router + 3 * width * ((self.experts if experts is None else experts) * self.hidden + self.shared)
