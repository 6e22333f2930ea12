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
from ..core.pieces.tables import OWN, OWN_OR_NONE, UnnamedTable
from ..core.support.arguments import checks_arguments
from ..frequency import as_table
from .catalog import RANGES as RANGES  # noqa: PLC0414
from .catalog import range_of

Cache = Literal["auto", "none", "prefix", "dual"]
Proxy = Literal["confidence", "entropy", "margin"]
Special = Literal["unseen", "neutral", "counted"]
Delimiter = Literal["newline", "period", "comma"]
Frequency = Table | Tensor | str | Path | None
"""What a `frequency` option takes; None is the model's own table."""

P = ParamSpec("P")

_CACHES: dict[str, CachePolicy] = {
    "auto": PrefixCache(optional=True),
    "none": NoCache(),
    "prefix": PrefixCache(),
    "dual": DualCache(),
}
_PROXIES: dict[str, Score] = {"confidence": Confidence(), "entropy": NegEntropy(), "margin": Margin()}


class Calibration(TypedDict, total=False):
    """The settings every Uncode preset takes; their defaults are those of :func:`uncode`."""

    frequency: Frequency
    rate: float
    clip: float | None
    proxy: Proxy
    informativeness: bool
    special: Special


def calibrated(
    frequency: Frequency = None,
    rate: float = 0.25,
    clip: float | None = 10.0,
    proxy: Proxy = "confidence",
    informativeness: bool = True,
    special: Special = "unseen",
    *,
    origin: Literal["span", "block"] = "span",
    needs_table: bool = True,
) -> Score:
    """The calibrated score: proxy, informativeness and position, added up. Without a `frequency`, the model's own table
    is used. Unless `needs_table`, informativeness is off for a model that has none."""
    score = _PROXIES[proxy]
    if informativeness:
        score = score + Informativeness(table_or_own(frequency, needs_table), clip, special)
    elif frequency is not None:
        raise UncodeError("a frequency table was given but informativeness is off: leave one of the two out.")
    return score + ExponentialPosition(rate, origin)


def table_or_own(frequency: Frequency, needs_table: bool = True) -> Table:
    """The table of a `frequency` option; a placeholder for the model's own where there is none."""
    return UnnamedTable(OWN if needs_table else OWN_OR_NONE) if frequency is None else as_table(frequency)


def checks_options(what: str) -> Callable[[Callable[P, Sampler]], Callable[P, Sampler]]:
    """A decorator for a function that makes a sampler: its options are checked before any piece is made, so that an
    error names the option and not the piece's setting. `what` names the function."""
    shared = [p for p in signature(calibrated).parameters.values() if p.kind is not p.KEYWORD_ONLY]

    def decorate(function: Callable[P, Sampler]) -> Callable[P, Sampler]:
        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> Sampler:
            hints = _hints(function)
            values = {
                name: value if name == "frequency" else _read_option(name, value, hints[name], what, function.__name__)
                for name, value in options.items()
            }
            return function(**values)  # type: ignore[arg-type, call-arg]  # all go by name

        return checks_arguments(what, shared)(checked)

    return decorate


@cache
def _hints(function: Callable[..., Sampler]) -> dict[str, Any]:
    """The types of all options."""
    return get_type_hints(Calibration) | get_type_hints(function)


def _read_option(name: str, value: Any, hint: Any, what: str, sampler: str) -> Any:
    where = f"the option {name} of {what}"
    found = read_value(value, hint, where)
    if (known := range_of(name, sampler)) is not None and found is not None:
        fits, words = known
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
    """The cache policy of that name: none, prefix, dual, or auto, which is prefix where the model has a KV cache."""
    return _CACHES[name]
