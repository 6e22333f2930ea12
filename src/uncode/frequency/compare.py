"""Comparison of two frequency tables by S = -log p, the surprisal in Uncode's informativeness prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import require
from .table import FrequencyTable

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TableComparison:
    """Two tables A and B. S is -log p, clipped. A mean "over A" weights each token by its frequency in A."""

    clip: float
    divergence: tuple[float, float]
    """KL(A || B) and KL(B || A), in nats."""
    seen: tuple[int, int, int]
    """The number of tokens seen in A, in B, and in both."""
    below: tuple[int, int, int]
    """The number of tokens with S below the clip in A, in B, and in both. The prior distinguishes only these."""
    mean: tuple[float, float]
    """The mean over A of S_A and of S_B."""
    change: tuple[float, float]
    """The mean of |S_B - S_A| over A and over B."""
    correlation: float
    """Spearman's rank correlation of -log p, for the tokens seen in both."""
    surprisal: tuple[Tensor, Tensor]
    """S of every token in A and in B."""
    weight: Tensor
    """The mean of a token's frequencies in A and in B."""

    def moved(self, k: int) -> list[int]:
        """The `k` tokens that change the prior most: those with the largest |S_B - S_A| times their frequency."""
        a, b = self.surprisal
        moved = (b - a).abs() * self.weight
        order = moved.argsort(descending=True, stable=True)[:k]
        return order[moved[order] > 0].tolist()


def compare(a: FrequencyTable, b: FrequencyTable, clip: float = 10.0) -> TableComparison:
    """Compare two tables of the same tokenizer."""
    import torch

    require(clip > 0, f"clip must be a number above 0, not {clip}.")
    divergence = a.divergence(b), b.divergence(a)
    size = max(len(a), len(b))
    surprisals = [table.surprisal(size) for table in (a, b)]
    s_a, s_b = (s.clamp(max=clip) for s in surprisals)
    share_a, share_b = (torch.softmax(-s, 0) for s in surprisals)
    seen_a, seen_b = (torch.nn.functional.pad(table.counts, (0, size - len(table))) > 0 for table in (a, b))
    below_a, below_b = s_a < clip, s_b < clip
    change = (s_b - s_a).abs()
    both = seen_a & seen_b
    return TableComparison(
        clip,
        divergence,
        (int(seen_a.sum()), int(seen_b.sum()), int(both.sum())),
        (int(below_a.sum()), int(below_b.sum()), int((below_a & below_b).sum())),
        (float((share_a * s_a).sum()), float((share_a * s_b).sum())),
        (float((share_a * change).sum()), float((share_b * change).sum())),
        _rank_correlation(surprisals[0][both], surprisals[1][both]),
        (s_a, s_b),
        (share_a + share_b) / 2,
    )


def _rank_correlation(x: Tensor, y: Tensor) -> float:
    """Spearman's rank correlation. Equal values share their mean rank. NaN if all values are equal."""
    import torch

    if len(x) < 2:
        return float("nan")
    ranks = []
    for values in (x, y):
        _, group, sizes = values.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
        ranks.append((sizes.cumsum(0).double() - (sizes - 1) / 2)[group])
    return float(torch.corrcoef(torch.stack(ranks))[0, 1])
