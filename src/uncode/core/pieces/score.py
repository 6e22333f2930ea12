"""Scores: *where first*. A number per position. The highest is committed first, -inf never.

Scores are logarithms, so priors add: ``Confidence() + Informativeness(table) + ExponentialPosition(0.25)``
is the paper's product P * S * F, without its underflow and without the sign trap of negative entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from ..denoiser import Facts
from ..errors import check_probability, require
from ..noise import Purpose, gumbel
from ..support.transfer import number
from ..view import View
from .piece import Piece, Table, brief

_MIN_LOG_MARGIN = math.log(1e-30)
_MIN_SURPRISAL = 1e-6


@dataclass(frozen=True)
class Score(Piece):
    """A function of a view to `[B, W]`. Add two to combine them."""

    kind: ClassVar[bool] = True

    reads_committed: ClassVar[bool] = False
    """Whether it reads beliefs at committed positions of the open block, which not every cache policy computes."""

    def __call__(self, view: View) -> Tensor:
        raise NotImplementedError

    def __add__(self, other: Score) -> Sum:
        return Sum((*self.terms, *other.terms))

    @property
    def terms(self) -> tuple[Score, ...]:
        """The addends, each recorded in the trace under its name."""
        return (self,)

    @property
    def term_names(self) -> list[str]:
        """The names of the terms in a trace; the second of a kind is called `Name 2`."""
        names = [type(term).__name__ for term in self.terms]
        return [f"{name} {names[:at].count(name) + 1}" if name in names[:at] else name for at, name in enumerate(names)]


@dataclass(frozen=True)
class Sum(Score):
    """The sum of its terms."""

    parts: tuple[Score, ...]

    def __repr__(self) -> str:
        return brief(self)

    def check(self) -> None:
        require(len(self.parts) > 0, "a sum of scores needs at least one term.")

    @property
    def terms(self) -> tuple[Score, ...]:
        return tuple(term for part in self.parts for term in part.terms)

    def __call__(self, view: View) -> Tensor:
        terms = [term(view).double() for term in self.terms]
        return torch.stack([term.expand_as(view.eligible) for term in terms]).sum(0)


@dataclass(frozen=True)
class Confidence(Score):
    """Log probability of the proposed token."""

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp


@dataclass(frozen=True)
class NegEntropy(Score):
    """Minus the entropy, which is already a logarithm: of one over the perplexity."""

    def __call__(self, view: View) -> Tensor:
        return -view.belief.entropy


@dataclass(frozen=True)
class Margin(Score):
    """Log of the gap between the two most likely tokens."""

    def __call__(self, view: View) -> Tensor:
        return view.belief.log_margin.clamp(min=_MIN_LOG_MARGIN)


@dataclass(frozen=True)
class Uniform(Score):
    """A random order, drawn again at every step."""

    @property
    def draws(self) -> bool:
        return True

    def __call__(self, view: View) -> Tensor:
        return view.noise.positions(Purpose.UNIFORM, view.offsets)


@dataclass(frozen=True)
class Gumbel(Score):
    """Gumbel noise of a temperature: added to a score it draws positions instead of taking the best."""

    temperature: float

    def check(self) -> None:
        require(self.temperature > 0, f"the Gumbel temperature must be above 0, not {self.temperature}.")

    @property
    def draws(self) -> bool:
        return True

    def __call__(self, view: View) -> Tensor:
        return self.temperature * gumbel(view.noise.positions(Purpose.GUMBEL, view.offsets))


@dataclass(frozen=True)
class Exp(Score):
    """The exponential of another score: a probability instead of its logarithm."""

    of: Score

    def __call__(self, view: View) -> Tensor:
        return self.of(view).double().exp()


@dataclass(frozen=True)
class ExponentialPosition(Score):
    """The positional prior, log of exp(-rate * offset): earlier is sooner. A prior: it ignores the model.

    Offsets count from the start of the generated span, or of the open block with `origin="block"`. For a
    ranking the origin does not matter; for a threshold on the score it does.
    """

    rate: float
    origin: Literal["span", "block"] = "span"

    def check(self) -> None:
        require(self.rate >= 0 and math.isfinite(self.rate), f"rate must be a number of at least 0, not {self.rate}.")

    def __call__(self, view: View) -> Tensor:
        offsets = view.places if self.origin == "span" else view.places - view.block_start
        return offsets * -self.rate


@dataclass(frozen=True)
class Informativeness(Score):
    """The semantic prior, log of min(S, clip) with S = -log p(token) in a corpus. A prior: it ignores the model.

    `special` says what S is for EOS tokens and the table's special tokens: "unseen" gives them the
    clip (what a corpus without them does), "neutral" the table's mean S, "counted" believes the table.
    """

    _weights: ClassVar[Tensor]

    table: Table
    clip: float | None = 10.0
    special: Literal["unseen", "neutral", "counted"] = "unseen"

    def check(self) -> None:
        fits = self.clip is None or (self.clip > 0 and math.isfinite(self.clip))
        require(fits, f"clip must be a number above 0, not {self.clip}.")

    def bind(self, facts: Facts) -> Self:
        surprisal = facts.surprisal(self.table)
        return self.holding(_weights=self._log_weights(surprisal, facts.eos_ids).to(facts.device))

    def _log_weights(self, surprisal: Tensor, eos_ids: tuple[int, ...]) -> Tensor:
        clip = float(surprisal.max()) if self.clip is None else self.clip
        clipped = surprisal.clamp(min=_MIN_SURPRISAL, max=clip)
        if self.special != "counted":
            share = (-surprisal).exp()
            mean = float((share * clipped).sum() / share.sum())
            clipped[list({*eos_ids, *self.table.special_ids})] = clip if self.special == "unseen" else mean
        return clipped.log()

    def __call__(self, view: View) -> Tensor:
        return self._weights.take(view.belief.token)


@dataclass(frozen=True)
class Defer(Score):
    """Positions whose proposal is one of `tokens` come after all others, and keep their order among themselves."""

    _ids: ClassVar[Tensor]

    tokens: tuple[int | str, ...]
    by: float = 1e6

    def check(self) -> None:
        require(self.by > 0, f"the deferral must be above 0, not {self.by}.")

    def bind(self, facts: Facts) -> Self:
        return self.holding(_ids=torch.tensor(facts.resolve(self.tokens), device=facts.device))

    def __call__(self, view: View) -> Tensor:
        return torch.isin(view.belief.token, self._ids) * -self.by


@dataclass(frozen=True)
class EarlyDiscount(Score):
    """The log of a factor on proposals of `tokens`: `factor` at a block's first step, 1 at its last, linear between."""

    needs_schedule: ClassVar[bool] = True
    _ids: ClassVar[Tensor]

    tokens: tuple[int | str, ...] = ("eos",)
    factor: float = 0.4

    def check(self) -> None:
        require(0 < self.factor <= 1, f"the factor must be above 0 and at most 1, not {self.factor}.")

    def bind(self, facts: Facts) -> Self:
        return self.holding(_ids=torch.tensor(facts.resolve(self.tokens), device=facts.device))

    def __call__(self, view: View) -> Tensor:
        step, steps = (
            n.double() if isinstance(n, Tensor) else number(n, view.tokens, torch.float64)
            for n in (view.block_step, view.block_steps)
        )
        part = torch.where(steps > 1, step / (steps - 1), 1.0).clamp(max=1.0)
        discount = (self.factor + (1.0 - self.factor) * part).log()
        return torch.where(torch.isin(view.belief.token, self._ids), discount, 0.0)


@dataclass(frozen=True)
class EndsInTurn(Score):
    """-inf where the proposal is an EOS token and an open position before it proposes something else.

    Such an end would fix the length of the answer before its text is written. The leftmost open position is always a
    candidate. With a threshold, proposals of at least that probability are certain, and a certain end does not wait for
    certain words: a selector that commits at the same threshold writes both in this step, and saves a forward. Use the
    selector's threshold. If the selector's is higher, or if it has a quota, an end may be written before its text.
    """

    threshold: float | None = None
    _ids: ClassVar[Tensor]

    def check(self) -> None:
        if self.threshold is not None:
            check_probability(self.threshold, "threshold")

    def bind(self, facts: Facts) -> Self:
        return self.holding(_ids=torch.tensor(facts.eos_ids, dtype=torch.long, device=facts.device))

    def __call__(self, view: View) -> Tensor:
        ends = torch.isin(view.belief.token, self._ids)
        words = view.eligible & ~ends
        waits = _any_before(words)
        if self.threshold is not None:
            certain = view.belief.logp >= math.log(self.threshold)
            waits = torch.where(certain, _any_before(words & ~certain), waits)
        return torch.where(ends & waits, -torch.inf, 0.0)


def _any_before(marks: Tensor) -> Tensor:
    """Where an earlier position of the row is marked, `[B, W]`."""
    counts = marks.long()
    return counts.cumsum(-1) > counts


@dataclass(frozen=True)
class EntropyGate(Score):
    """-inf where the summed entropy of the masks before a position, in nats, exceeds the budget; else 0.

    The leftmost open position is always a candidate. With blocks the sum starts at the open one: those before are full.
    """

    budget: float = 1.0

    def check(self) -> None:
        require(self.budget >= 0, f"the budget must be 0 or more, not {self.budget}.")

    def __call__(self, view: View) -> Tensor:
        entropy = torch.where(view.eligible, view.belief.entropy.double(), 0.0)
        before = torch.nn.functional.pad(entropy, (1, -1)).cumsum(-1)
        return torch.where(before <= self.budget, 0.0, -torch.inf)


@dataclass(frozen=True)
class CertaintyDensity(Score):
    """The log of the share of known tokens around a position, weighted by a Gaussian of `sigma` tokens. A prior.

    Before the span everything counts as known; behind it, if the last token is. Both sides are as long as the span.
    """

    _mask_id: ClassVar[Tensor]

    sigma: float = 10.0

    def check(self) -> None:
        require(self.sigma > 0, f"sigma must be above 0, not {self.sigma}.")

    def bind(self, facts: Facts) -> Self:
        return self.holding(_mask_id=torch.tensor(facts.mask_id, device=facts.device))

    def __call__(self, view: View) -> Tensor:
        span, length, at = view.span, view.span_length, view.offsets
        columns = torch.arange(3 * span.shape[-1] + 1, device=span.device)
        kernel = (-0.5 * (columns / self.sigma).double().square()).exp()
        upto = kernel.cumsum(-1)  # the weights of the distances from 0 to the index
        inside = columns[: span.shape[-1]]
        known = ((span != self._mask_id) & (inside < length)).double()
        last = known.gather(-1, torch.as_tensor(length - 1, device=span.device).expand(len(span), 1))
        around = (kernel[(at[..., None] - inside).abs()] @ known[..., None])[..., 0]
        before = upto[at + length] - upto[at]
        behind = upto[(2 * length - 1 - at).clamp(min=0)] - upto[(length - 1 - at).clamp(min=0)]
        everything = upto[3 * length - 1] + upto[3 * length] - 1.0
        share = (around + before + last * behind) / everything
        return share.clamp(min=1e-300).log().float()  # so that sums of another width round to the same number
