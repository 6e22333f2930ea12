"""What the presets are made of: the registry, the calibrated score, and options that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, get_type_hints

from torch import Tensor

from ..core.errors import UncodeError, require, shown
from ..core.pieces.cache import CachePolicy, DualCache, NoCache, PrefixCache
from ..core.pieces.piece import Table, read_value
from ..core.pieces.policy import Sampler
from ..core.pieces.propose import Greedy, Proposal, Sample
from ..core.pieces.score import Confidence, ExponentialPosition, Informativeness, Margin, NegEntropy, Score
from ..core.pieces.select import MAX_CANDIDATES
from ..core.support.arguments import checks_arguments
from ..frequency import as_table

Cache = Literal["none", "prefix", "dual"]
Proxy = Literal["confidence", "entropy", "margin"]
Special = Literal["unseen", "neutral", "counted"]
Delimiter = Literal["newline", "period", "comma"]
Frequency = Table | Tensor | str | Path

P = ParamSpec("P")

_CACHES: dict[str, CachePolicy] = {"none": NoCache(), "prefix": PrefixCache(), "dual": DualCache()}
_PROXIES: dict[str, Score] = {"confidence": Confidence(), "entropy": NegEntropy(), "margin": Margin()}


Range = tuple[Callable[[float], bool], str]
_AT_LEAST_0: Range = (lambda value: value >= 0, "at least 0")
_AT_LEAST_1: Range = (lambda value: value >= 1, "at least 1")
_CANDIDATES: Range = (lambda value: 2 <= value <= MAX_CANDIDATES, f"from 2 to {MAX_CANDIDATES}")
_ABOVE_0: Range = (lambda value: value > 0, "above 0")
_INSIDE: Range = (lambda value: 0 < value < 1, "above 0 and below 1")
_BELOW_1: Range = (lambda value: 0 <= value < 1, "at least 0 and below 1")
_UP_TO_1: Range = (lambda value: 0 < value <= 1, "above 0 and at most 1")
RANGES: dict[str, Range] = {
    "alg_temp": _AT_LEAST_0,
    "anchor": _UP_TO_1,
    "answer_length": _AT_LEAST_1,
    "answer_start": _AT_LEAST_0,
    "block_length": _AT_LEAST_1,
    "blocks": _AT_LEAST_1,
    "boost": _AT_LEAST_0,
    "budget": _AT_LEAST_0,
    "candidates": _CANDIDATES,
    "clip": _ABOVE_0,
    "count": _AT_LEAST_1,
    "decay": _UP_TO_1,
    "delimiter_threshold": _UP_TO_1,
    "drift": _ABOVE_0,
    "early": _AT_LEAST_0,
    "edit_threshold": _BELOW_1,
    "eps": _INSIDE,
    "factor": _ABOVE_0,
    "gamma": _AT_LEAST_0,
    "history": _AT_LEAST_1,
    "late": _AT_LEAST_0,
    "loops": _AT_LEAST_0,
    "low": _BELOW_1,
    "middle": _AT_LEAST_0,
    "neighbour": _UP_TO_1,
    "position_temperature": _ABOVE_0,
    "radius": _AT_LEAST_1,
    "rate": _AT_LEAST_0,
    "ratio": _UP_TO_1,
    "rounds": _AT_LEAST_0,
    "sigma": _ABOVE_0,
    "start": _INSIDE,
    "steps": _AT_LEAST_1,
    "strength": _AT_LEAST_0,
    "tau": _AT_LEAST_1,
    "temperature": _AT_LEAST_0,
    "threshold": _ABOVE_0,
    "top_k": _AT_LEAST_1,
    "top_p": _UP_TO_1,
}
"""What every option that is a number may be. A test holds that none is missing."""


class Calibration(TypedDict, total=False):
    """The settings every Uncode preset takes; their defaults are those of :func:`uncode`."""

    frequency: Frequency | None
    rate: float
    clip: float | None
    proxy: Proxy
    informativeness: bool
    special: Special


def calibrated(
    frequency: Frequency | None = None,
    rate: float = 0.25,
    clip: float | None = 10.0,
    proxy: Proxy = "confidence",
    informativeness: bool = True,
    special: Special = "unseen",
    *,
    origin: Literal["span", "block"] = "span",
) -> Score:
    """The calibrated score: proxy, informativeness and position, added up."""
    score = _PROXIES[proxy]
    if informativeness:
        if frequency is None:
            raise UncodeError(
                "Uncode's informativeness prior needs a frequency table: pass frequency=TABLE (a table, its path or "
                "probabilities), or informativeness=False for the positional prior alone."
            )
        score = score + Informativeness(as_table(frequency), clip, special)
    elif frequency is not None:
        raise UncodeError("a frequency table was given but informativeness is off: leave one of the two out.")
    return score + ExponentialPosition(rate, origin)


def checks_options(what: str) -> Callable[[Callable[P, Sampler]], Callable[P, Sampler]]:
    """A decorator for a function that makes a sampler: its options are checked before any piece is made, so that an
    error names the option and not the piece's setting. `what` names the function."""
    shared = [p for p in signature(calibrated).parameters.values() if p.name != "origin"]

    def decorate(function: Callable[P, Sampler]) -> Callable[P, Sampler]:
        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> Sampler:
            hints = _hints(function)
            values = {
                name: value if name == "frequency" else _read_option(name, value, hints[name], what)
                for name, value in options.items()
            }
            return function(**values)  # type: ignore[arg-type, call-arg]  # all go by name

        return checks_arguments(what, shared)(checked)

    return decorate


@cache
def _hints(function: Callable[..., Sampler]) -> dict[str, Any]:
    """The types of all options."""
    return get_type_hints(Calibration) | get_type_hints(function)


def _read_option(name: str, value: Any, hint: Any, what: str) -> Any:
    where = f"the option {name} of {what}"
    found = read_value(value, hint, where)
    if name in RANGES and found is not None:
        fits, words = RANGES[name]
        require(fits(found), f"{where} must be {words}, not {shown(found)}.")
    return found


def preset(function: Callable[P, Sampler]) -> Callable[P, Sampler]:
    """Enter a preset into :data:`PRESETS`; its options are checked."""
    PRESETS[function.__name__] = checked = checks_options(f"the sampler '{function.__name__}'")(function)
    return checked


PRESETS: dict[str, Callable[..., Sampler]] = {}
"""Every preset by its name, in the order of the files in `presets/`."""


def drawn(temperature: float, ban: tuple[int | str, ...] = ()) -> Proposal:
    """Greedy at temperature 0, else a draw."""
    return Greedy(ban) if temperature == 0 else Sample(ban, temperature)


def cache_named(name: Cache) -> CachePolicy:
    """The cache policy of that name: none, prefix or dual."""
    return _CACHES[name]
