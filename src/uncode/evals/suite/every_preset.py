"""The mini-suite with every preset: those of the config `mini`, and a row for each of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ...core.errors import require
from ...samplers.catalog import catalog
from ...samplers.preset import Preset
from ..run.config import EvalConfig, SamplerEntry

PUBLISHED_BLOCK = 32
"""Tokens of a block in the paper, an eighth of an answer. A family's `$block_length` is an eighth of its answers."""


def with_every_preset(config: EvalConfig) -> EvalConfig:
    """The config with a row for each preset that has none."""
    known = {entry.preset for entry in config.samplers}
    others = [entry_of(one) for name, one in catalog().items() if name not in known and not name.startswith("legacy.")]
    return replace(config, samplers=(*config.samplers, *others))


def entry_of(preset: Preset) -> SamplerEntry:
    """A preset at its defaults. Where they depend on the length of an answer, they become the family's.

    A number of steps becomes one per token. A block of n times 32 tokens becomes n times the family's block; one of
    another length stays.
    """
    options = dict[str, str]()
    defaults = {option.name: option.default for option in preset.options}
    if defaults.get("steps") is not None:
        options["steps"] = "$length"
    block = defaults.get("block_length")
    if block is not None and block % PUBLISHED_BLOCK == 0:
        times = block // PUBLISHED_BLOCK
        options["block_length"] = "$block_length" if times == 1 else f"$block_length*{times}"
    return SamplerEntry(preset.name, preset.name, options)


def with_samplers(config: EvalConfig, names: Iterable[str]) -> EvalConfig:
    """Only these rows: labels of the config, or sampler files, each with its file's name as its label."""
    names = list(names)
    files = tuple(SamplerEntry(name, Path(name).stem) for name in names if name.endswith(".toml"))
    _check_labels([entry.label for entry in files], {entry.label for entry in config.samplers})
    labels = [name for name in names if not name.endswith(".toml")]
    for name in labels:
        require(not Path(name).is_file(), f"'{name}' is a file: the name of a sampler file ends in .toml.")
    rows = config.narrowed(samplers=labels).samplers if labels else ()
    return replace(config, samplers=(*rows, *files))


def _check_labels(labels: Sequence[str], known: Collection[str]) -> None:
    """Raise if a sampler file has the name of another row."""
    for at, label in enumerate(labels):
        require(label not in known, f"'{label}' is the name of a preset's row: rename the file {label}.toml.")
        require(label not in labels[:at], f"two sampler files are named '{label}': rename one.")


def entries_by_label() -> dict[str, SamplerEntry]:
    """Every row of the suite with every preset."""
    return {entry.label: entry for entry in with_every_preset(EvalConfig.load("mini")).samplers}
