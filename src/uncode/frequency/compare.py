"""How another corpus changes S, the surprisal that Uncode's informativeness prior is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import require
from .table import FrequencyTable

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Comparison:
    """Two tables beside each other. S is -log p, cut off at the clip; "read" means: over text of the table."""

    clip: float
    divergence: tuple[float, float]
    """KL(A || B) and KL(B || A), nats."""
    seen: tuple[int, int, int]
    """Tokens seen in A, in B, in both."""
    below: tuple[int, int, int]
    """Tokens with S below the clip in A, in B, in both: only these does the prior tell apart."""
    mean: tuple[float, float]
    """Mean S where A is read, by A and by B."""
    change: tuple[float, float]
    """Mean |S_B - S_A| where A is read, where B is read."""
    correlation: float
    """Of the ranks of -log p (Spearman), over tokens seen in both."""
    surprisal: tuple[Tensor, Tensor]
    """S of every token in A and in B."""
    weight: Tensor
    """How often a token is read, in the mean of A and B."""

    def moved(self, k: int) -> list[int]:
        """The `k` tokens that move the prior most: by |S_B - S_A| times how often they are read."""
        a, b = self.surprisal
        moved = (b - a).abs() * self.weight
        order = moved.argsort(descending=True, stable=True)[:k]
        return order[moved[order] > 0].tolist()


def compare(a: FrequencyTable, b: FrequencyTable, clip: float = 10.0) -> Comparison:
    """Compare two tables of one tokenizer."""
    import torch

    require(clip > 0, f"clip must be a number above 0, not {clip}.")
    divergence = a.divergence(b), b.divergence(a)
    size = max(len(a), len(b))
    whole = [table.surprisal(size) for table in (a, b)]
    s_a, s_b = (s.clamp(max=clip) for s in whole)
    read_a, read_b = (torch.softmax(-s, 0) for s in whole)
    seen_a, seen_b = (torch.nn.functional.pad(table.counts, (0, size - len(table))) > 0 for table in (a, b))
    below_a, below_b = s_a < clip, s_b < clip
    change = (s_b - s_a).abs()
    both = seen_a & seen_b
    return Comparison(
        clip,
        divergence,
        (int(seen_a.sum()), int(seen_b.sum()), int(both.sum())),
        (int(below_a.sum()), int(below_b.sum()), int((below_a & below_b).sum())),
        (float((read_a * s_a).sum()), float((read_a * s_b).sum())),
        (float((read_a * change).sum()), float((read_b * change).sum())),
        _rank_correlation(whole[0][both], whole[1][both]),
        (s_a, s_b),
        (read_a + read_b) / 2,
    )


def _rank_correlation(x: Tensor, y: Tensor) -> float:
    """Spearman's rank correlation; equal values share their mean rank. NaN where all are equal."""
    import torch

    if len(x) < 2:
        return float("nan")
    ranks = torch.stack([_ranks(x), _ranks(y)])
    return float(torch.corrcoef(ranks)[0, 1])


def _ranks(values: Tensor) -> Tensor:
    _, group, sizes = values.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
    middle: Tensor = sizes.cumsum(0).double() - (sizes - 1) / 2
    return middle[group]
