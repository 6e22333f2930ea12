"""Samplers by name and from sampler files: what a caller may pass where a sampler is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.denoiser import Denoiser, Facts
from ..core.errors import require
from ..core.pieces.policy import Sampler
from ..frequency import as_table
from .catalog import catalog, find
from .legacy import QUIRKS
from .presets import PRESETS
from .registry import Frequency

SamplerLike = Sampler | str | Path
"""A sampler, the name of a preset or of one of the model's own sampler files, or the path of a sampler file."""
SamplersLike = SamplerLike | Sequence[SamplerLike]
"""One for all rows, or one for each."""


def named(name: str, **options: Any) -> Sampler:
    """The preset of that name with these options; a wrong name or option is an error with the near one."""
    entry = find(name)
    for key in options:
        entry.option(key)
    preset: Callable[..., Sampler] = (PRESETS | QUIRKS)[name]
    return preset(**options)


def load(source: str | Path, *, frequency: Frequency | None = None, **options: Any) -> Sampler:
    """A sampler from the path of a sampler file (.toml) or the name of a preset; `frequency` is its table."""
    if not is_file(source):
        return named(str(source), **options, **({} if frequency is None else {"frequency": frequency}))
    require(not options, f"'{source}' is complete: change a copy of the file instead of passing options.")
    return Sampler.load(source, frequency=None if frequency is None else as_table(frequency))


def is_file(source: str | Path) -> bool:
    """Whether this is the path of a sampler file, and not the name of a preset."""
    return isinstance(source, Path) or source.endswith(".toml")


def takes_table(name: str, options: dict[str, Any]) -> bool:
    """Whether a preset, with these options, uses a frequency table."""
    takes = any(option.name == "frequency" for option in find(name).options)
    return takes and options.get("informativeness", True) is True


def resolve(sampler: SamplersLike, denoiser: Denoiser) -> Sampler | list[Sampler]:
    """The samplers that a caller means: the model's own sampler files go by name too, and a preset that needs a
    frequency table gets the model's own."""
    if isinstance(sampler, Sequence) and not isinstance(sampler, str):
        return [_one(each, denoiser) for each in sampler]
    return _one(sampler, denoiser)


def _one(sampler: SamplerLike, denoiser: Denoiser) -> Sampler:
    if not isinstance(sampler, str | Path):
        return sampler  # anything else is refused by the stepper
    Facts.of(denoiser)  # an error that names what is no model
    table, own = denoiser.frequency, denoiser.samplers
    if is_file(sampler):
        return load(sampler, frequency=table)
    if str(sampler) in own and str(sampler) not in catalog():
        return load(own[str(sampler)], frequency=table)
    find(str(sampler), own)
    needed = takes_table(str(sampler), {})
    require(
        not needed or table is not None,
        f"the sampler '{sampler}' needs a frequency table, and this model has none of its own: pass "
        f"presets.{sampler}(frequency=TABLE).",
    )
    return load(sampler, frequency=table if needed else None)
