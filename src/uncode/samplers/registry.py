"""What the presets are made of: the registry, the calibrated score, and options that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Literal, ParamSpec, TypedDict

from torch import Tensor

from ..core.arguments import checks_arguments
from ..core.cache import CachePolicy, DualCache, NoCache, PrefixCache
from ..core.errors import UncodeError, require_known
from ..core.piece import Table
from ..core.policy import Sampler
from ..core.propose import Greedy, Proposal, Sample
from ..core.score import Confidence, ExponentialPosition, Informativeness, Margin, NegEntropy, Score
from ..frequency import as_table

Cache = Literal["none", "prefix", "dual"]
Proxy = Literal["confidence", "entropy", "margin"]
Special = Literal["unseen", "neutral", "counted"]
Frequency = Table | Tensor | str | Path

P = ParamSpec("P")

_CACHES: dict[str, CachePolicy] = {"none": NoCache(), "prefix": PrefixCache(), "dual": DualCache()}
_PROXIES: dict[str, Score] = {"confidence": Confidence(), "entropy": NegEntropy(), "margin": Margin()}


class Calibration(TypedDict, total=False):
    """The settings every Uncode preset takes; their defaults are those of :func:`uncode`."""

    frequency: Frequency | None
    rate: float
    clip: float
    proxy: Proxy
    informativeness: bool
    special: Special


def calibrated(
    frequency: Frequency | None = None,
    rate: float = 0.25,
    clip: float = 10.0,
    proxy: Proxy = "confidence",
    informativeness: bool = True,
    special: Special = "unseen",
    *,
    origin: Literal["span", "block"] = "span",
) -> Score:
    """The calibrated score: proxy, informativeness and position, added up."""
    require_known(proxy, _PROXIES, "there is no proxy")
    score = _PROXIES[proxy]
    if informativeness:
        if frequency is None:
            raise UncodeError(
                "Uncode's informativeness prior needs a frequency table: pass frequency=TABLE (a table, its path or "
                "probabilities), or informativeness=False for the positional prior alone."
            )
        score = score + Informativeness(as_table(frequency), clip, special)
    elif frequency is not None:
        raise UncodeError("a frequency table was given but informativeness=False: leave one of the two out.")
    return score + ExponentialPosition(rate, origin)


def preset(function: Callable[P, Sampler]) -> Callable[P, Sampler]:
    """Enter a preset into :data:`PRESETS`; a misspelt option becomes an error with the near name."""
    shared = [p for p in signature(calibrated).parameters.values() if p.name != "origin"]
    checks = checks_arguments(f"the sampler '{function.__name__}'", shared, plain=True)
    PRESETS[function.__name__] = checked = checks(function)
    return checked


PRESETS: dict[str, Callable[..., Sampler]] = {}
"""Every preset by its name, in the order of this file."""


def drawn(temperature: float, ban: tuple[int | str, ...] = ()) -> Proposal:
    """Greedy at temperature 0, else a draw."""
    return Greedy(ban) if temperature == 0 else Sample(ban, temperature)


def cache_named(name: str) -> CachePolicy:
    """The cache policy of that name: none, prefix or dual."""
    require_known(name, _CACHES, "there is no cache")
    return _CACHES[name]
