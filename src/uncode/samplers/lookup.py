"""Samplers by name and from sampler files: what a caller may pass where a sampler is wanted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from ..core.denoiser import Denoiser, Facts
from ..core.errors import Advice, require
from ..core.pieces.blocks import Blocks
from ..core.pieces.cache import DualCache, NoCache, PrefixCache
from ..core.pieces.policy import Sampler
from ..core.pieces.score import Informativeness
from ..core.pieces.tables import OWN, Table, UnnamedTable
from ..frequency import as_table
from .catalog import catalog, find
from .catalog import takes_table as takes_table  # noqa: PLC0414
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


def load(source: str | Path, *, frequency: Frequency = None, **options: Any) -> Sampler:
    """A sampler from the path of a sampler file (.toml) or the name of a preset; `frequency` is its table."""
    if not is_file(source):
        return named(str(source), **options, **({} if frequency is None else {"frequency": frequency}))
    require(not options, f"'{source}' is complete: change a copy of the file instead of passing options.")
    return Sampler.load(source, frequency=None if frequency is None else as_table(frequency))


def is_file(source: str | Path) -> bool:
    """Whether this is the path of a sampler file, and not the name of a preset."""
    return isinstance(source, Path) or source.endswith(".toml")


def resolve(sampler: SamplersLike, denoiser: Denoiser) -> Sampler | list[Sampler]:
    """The samplers that a caller means, for a model: its own sampler files go by name too; see :func:`for_model`."""
    if isinstance(sampler, Sequence) and not isinstance(sampler, str):
        return [_one(each, denoiser) for each in sampler]
    return _one(sampler, denoiser)


def _one(sampler: SamplerLike, denoiser: Denoiser) -> Sampler:
    Facts.of(denoiser)  # an error that names what is no model
    if isinstance(sampler, str | Path):
        own = denoiser.samplers
        if str(sampler) in own and str(sampler) not in catalog():
            sampler = own[str(sampler)]
        if not is_file(sampler):
            find(str(sampler), own)
        sampler = load(sampler, frequency=denoiser.frequency if is_file(sampler) else None)
    return for_model(sampler, denoiser) if isinstance(sampler, Sampler) else sampler  # the stepper refuses the rest


def advise(sentence: str) -> None:
    """Warn with :class:`Advice`."""
    warnings.warn(sentence, Advice, stacklevel=2)


def for_model(
    sampler: Sampler,
    denoiser: Denoiser,
    frequency: Table | None = None,
    on_advice: Callable[[str], None] = advise,
) -> Sampler:
    """The sampler as a model can run it. The model's own table, or `frequency`, replaces the placeholder for one.

    Informativeness is left out if the sampler can do without a table and there is none, and an optional KV cache if the
    model has none; `on_advice` gets a sentence for each. An error says what is missing.
    """
    sampler = _with_table(sampler, denoiser, denoiser.frequency if frequency is None else frequency, on_advice)
    cache, blocks = sampler.cache, sampler.policy.blocks
    if isinstance(cache, PrefixCache | DualCache) and cache.optional:
        cache = replace(cache, optional=None) if denoiser.has_kv_cache else NoCache()
        if not denoiser.has_kv_cache:
            on_advice(f"this model has no KV cache: '{sampler.name}' decodes without one.")
        sampler = sampler.caching(cache)
    if isinstance(cache, DualCache) and cache.needs_kv_cache and blocks in (Blocks(), Blocks(count=1)):
        on_advice(
            "a dual cache without blocks keeps stale keys and values for the whole answer, which costs accuracy: give "
            "the sampler blocks, or take the prefix cache."
        )
    return sampler


def needs_table(sampler: Sampler) -> bool:
    """Whether the sampler needs the model's own frequency table."""
    return any(table.name == OWN for table in _placeholders(sampler))


def require_table(sampler: Sampler, released: str) -> None:
    """Raise if the sampler needs a table of a model that has none; `released` is the paper's table for that model."""
    how = f"`uncode table get {released}` fetches the paper's" if released else "`uncode count` makes one"
    without = "set informativeness to false for the positional prior alone, " if has_informativeness(sampler) else ""
    require(
        not needs_table(sampler),
        f"the sampler '{sampler.name}' needs a frequency table, and this model has none: pass `frequency=TABLE` "
        f"({how}), {without}or choose another sampler.",
    )


def has_informativeness(sampler: Sampler) -> bool:
    """Whether the score has the informativeness prior as a term, which the option of that name leaves out."""
    return any(isinstance(term, Informativeness) for term in sampler.policy.score.terms)


def _with_table(sampler: Sampler, denoiser: Denoiser, table: Table | None, on_advice: Callable[[str], None]) -> Sampler:
    if not _placeholders(sampler):
        return sampler
    if table is not None:
        return sampler.with_table(table)
    require_table(sampler, denoiser.released_table)
    released = denoiser.released_table
    how = f"`uncode table get {released}` fetches its table" if released else "`uncode count` makes one"
    on_advice(f"this model has no frequency table: '{sampler.name}' orders by confidence and position alone; {how}.")
    terms = [term for term in sampler.policy.score.terms if not isinstance(term, Informativeness)]
    return replace(sampler, policy=replace(sampler.policy, score=reduce(add, terms)))


def _placeholders(sampler: Sampler) -> list[UnnamedTable]:
    tables = (getattr(piece, "table", None) for piece in sampler.pieces())
    return [table for table in tables if isinstance(table, UnnamedTable)]
