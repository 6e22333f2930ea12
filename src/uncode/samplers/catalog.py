"""All presets and quirks by name. This module imports no torch: the command line lists them, completes their names and
refuses a misspelt one at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import OptionError, UncodeError, suggest
from . import legacy as legacy  # noqa: PLC0414
from . import presets as presets  # noqa: PLC0414
from .options import OPTIONS, SHARED
from .preset import PRESETS, Preset


def catalog() -> dict[str, Preset]:
    """Every sampler by the name the command line knows it by, in the order of the files."""
    return dict(sorted(PRESETS.items(), key=lambda pair: pair[0].startswith("legacy.")))


def find(name: str, own: Iterable[str] = (), model: str = "this model") -> Preset:
    """The sampler of that name, or an error with the near one; `own` are the names of a model's own sampler files."""
    if name not in PRESETS:
        files = f", and no sampler file of {model}," if own else ""
        raise UncodeError(f"no sampler{files} is named '{name}': {suggest(name, [*catalog(), *own])}")
    return PRESETS[name]


def is_file(source: object) -> bool:
    """Whether this is the path of a sampler file, and not the name of a preset."""
    return isinstance(source, Path) or (isinstance(source, str) and source.endswith(".toml"))


def read_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a preset or of a sampler file, as values. A wrong option or value is an error that names it
    and the sampler."""
    if is_file(name):
        return read_shared(Path(name).name, options)
    preset = find(name)
    return {key: preset.option(key).read(value, _where(key, name)) for key, value in options.items()}


def read_shared(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a sampler that is complete: it takes the shared options alone."""
    wrong = next((key for key in options if key not in SHARED), None)
    if wrong is not None:
        known = f"{', '.join(SHARED[:-1])} and {SHARED[-1]}"
        raise OptionError(
            f"the sampler '{name}' is complete and takes {known} alone: leave {wrong} out, or change it in a copy.",
            wrong,
        )
    return {key: OPTIONS[key].read(value, _where(key, name)) for key, value in options.items()}


def _where(option: str, sampler: str) -> str:
    return f"the option {option} of the sampler '{sampler}'"


def takes_table(name: str, options: Mapping[str, Any]) -> bool:
    """Whether a preset, with these options, uses a frequency table."""
    takes = any(option.name == "frequency" for option in find(name).options)
    return takes and options.get("informativeness", True) is True
