"""From what a caller calls a sampler to a Sampler. Every door asks here: Python, the command line, HTTP, the evaluation
and lm-eval.

It alone knows names, sampler files, options, frequency tables, and what to say where a table is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from ..core.denoiser import Denoiser, Facts
from ..core.errors import Advice, UncodeError
from ..core.pieces.blocks import Blocks
from ..core.pieces.cache import BlockCache, DualCache, NoCache, PrefixCache
from ..core.pieces.policy import Sampler
from ..core.pieces.score import Informativeness
from ..core.pieces.tables import OWN, Table, UnnamedTable
from ..frequency import as_table
from . import legacy_pieces as legacy_pieces  # noqa: PLC0414  # sampler files name them
from .calibration import Frequency
from .catalog import catalog, find, is_file, read_options, read_shared
from .preset import with_shared

SamplerLike = Sampler | str | Path
"""A sampler, the name of a preset or of one of the model's own sampler files, or the path of a sampler file."""
SamplersLike = SamplerLike | Sequence[SamplerLike]
"""One for all rows, or one for each."""


def resolve(
    spec: SamplerLike | Mapping[str, Any],
    model: Denoiser | None = None,
    table: Frequency = None,
    options: Mapping[str, Any] | None = None,
    *,
    own: Table | None = None,
    files: Mapping[str, Path] | None = None,
    allows_fallback: bool = True,
    on_advice: Callable[[str], None] | None = None,
) -> Sampler:
    """The sampler that a caller means; `spec` may be its data too. With a model, it is as that model can run it.

    `options` are those of a preset. A complete sampler (a Sampler, a file, data) takes the shared ones alone. `table`,
    or else the option `frequency`, or else the model's own table, is for samplers that name none, and the one that a
    file may name. `own` and `files` are the model's table and sampler files, where the model is not loaded yet. The
    rest is as in :func:`for_model`.
    """
    if model is not None:
        Facts.of(model)  # an error that names what is no model
        own, files = model.frequency, model.samplers
    files, options = files or {}, dict(options or {})
    source = files[spec] if isinstance(spec, str) and spec in files and spec not in catalog() else spec
    preset = find(source, files) if isinstance(source, str) and not is_file(source) else None
    if (named := options.pop("frequency", None)) is not None:
        table = named if table is None else table
        if preset is not None:
            preset.option("frequency")  # an error if it takes no table
    found = own if table is None else as_table(table)
    if preset is not None:
        made = preset.make(**read_options(preset.name, options))
    else:
        if isinstance(source, Sampler):
            made = source
        elif isinstance(source, Mapping):
            made = Sampler.from_dict(dict(source), frequency=found)
        else:
            made = Sampler.load(source, frequency=found)
        name = Path(spec).name if isinstance(spec, str | Path) else made.name
        made = with_shared(made, read_shared(name, options)) if options else made
    if model is not None:
        return for_model(made, model, found, on_advice, allows_fallback)
    return made.with_table(found) if found is not None and _placeholders(made) else made


def resolve_each(
    samplers: SamplersLike | Mapping[str, Any], model: Denoiser, table: Frequency = None
) -> Sampler | list[Sampler]:
    """The sampler of all rows, or that of each, for a model. The stepper refuses what is none."""
    if isinstance(samplers, Sequence) and not isinstance(samplers, str):
        return [_one(each, model, table) for each in samplers]
    return _one(samplers, model, table)


def _one(sampler: SamplerLike | Mapping[str, Any], model: Denoiser, table: Frequency) -> Sampler:
    Facts.of(model)
    return resolve(sampler, model, table) if isinstance(sampler, SamplerLike | Mapping) else sampler


def for_model(
    sampler: Sampler,
    model: Denoiser,
    table: Table | None = None,
    on_advice: Callable[[str], None] | None = None,
    allows_fallback: bool = True,
) -> Sampler:
    """The sampler as a model can run it. The model's own table, or `table`, replaces the placeholder for one.

    Informativeness is left out if the sampler can do without a table and there is none, and an optional KV cache if the
    model has none; `on_advice` gets a sentence for each, which is a warning otherwise. An error says what is missing,
    and unless `allows_fallback` also which table could be done without.
    """
    advise = on_advice or _warn
    table = model.frequency if table is None else table
    if table is not None and _placeholders(sampler):
        sampler = sampler.with_table(table)
    elif _placeholders(sampler):
        require_table(sampler, model.released_table, allows_fallback)
        released = model.released_table
        how = f"`uncode table get {released}` fetches its table" if released else "`uncode count` makes one"
        advise(f"this model has no frequency table: '{sampler.name}' orders by confidence and position alone; {how}.")
        terms = [term for term in sampler.policy.score.terms if not isinstance(term, Informativeness)]
        sampler = replace(sampler, policy=replace(sampler.policy, score=reduce(add, terms)))
    sampler = _in_blocks_of(model.block_length, sampler) if model.block_length else sampler
    cache, blocks = sampler.cache, sampler.policy.blocks
    if isinstance(cache, PrefixCache | DualCache) and cache.optional:
        cache = replace(cache, optional=None) if model.has_kv_cache else NoCache()
        if not model.has_kv_cache:
            advise(f"this model has no KV cache: '{sampler.name}' decodes without one.")
        sampler = sampler.caching(cache)
    if isinstance(cache, DualCache) and cache.needs_kv_cache and blocks in (Blocks(), Blocks(count=1)):
        advise(
            "a dual cache without blocks saves the keys and values of the prompt alone, which grow stale and cost "
            "accuracy: set block_length, or take no cache."
        )
    return sampler


def _in_blocks_of(length: int, sampler: Sampler) -> Sampler:
    """The sampler as a block-causal model can run it: if it sets no blocks it fills the model's, and if it
    asks for no cache, or for any, it has the exact one."""
    policy, cache = sampler.policy, sampler.cache
    if policy.blocks in (Blocks(), Blocks(count=1)):
        sampler = replace(sampler, policy=replace(policy, blocks=Blocks(length=length)))
    sees_all = policy.stop.sees_beliefs or policy.stop.reads_committed
    is_free = isinstance(cache, NoCache) or (isinstance(cache, PrefixCache | DualCache) and bool(cache.optional))
    return sampler.caching(BlockCache()) if is_free and not sees_all else sampler


def require_table(sampler: Sampler, released: str | None, allows_fallback: bool = True) -> None:
    """Raise if the sampler needs a table of a model that has none; unless `allows_fallback`, also if it can do without.

    `released` is the paper's table for that model. It is None for the client of a server, who passes no tables.
    """
    if not any(table.name == OWN or not allows_fallback for table in _placeholders(sampler)):
        return
    has_switch = any(isinstance(term, Informativeness) for term in sampler.policy.score.terms)
    needs = f"the sampler '{sampler.name}' needs a frequency table, and this"
    if released is None:
        without = ", or send informativeness=false" if has_switch else ""
        raise UncodeError(f"{needs} server has none: choose another sampler{without}.")
    how = f"`uncode table get {released}` fetches the paper's" if released else "`uncode count` makes one"
    without = "set informativeness to false for the positional prior alone, " if has_switch else ""
    raise UncodeError(f"{needs} model has none: pass `frequency=TABLE` ({how}), {without}or choose another sampler.")


def _placeholders(sampler: Sampler) -> list[UnnamedTable]:
    tables = (getattr(piece, "table", None) for piece in sampler.pieces())
    return [table for table in tables if isinstance(table, UnnamedTable)]


def _warn(sentence: str) -> None:
    warnings.warn(sentence, Advice, stacklevel=2)
