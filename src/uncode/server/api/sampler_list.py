"""The samplers of a server as data: names, options, and the usual range of each, so that a form can be made of it."""

from __future__ import annotations

from typing import Any

from ...samplers import lookup
from ...samplers.catalog import CatalogEntry, Option, catalog
from ..decoding.samplers import Samplers

KINDS = {"int": "int", "float": "float", "bool": "bool"}
LENGTH = None
"""As the end of a slider: the number of tokens to generate."""
SLIDERS: dict[str, tuple[float, float | None, float]] = {
    "alg_temp": (0, 2, 0.05),
    "anchor": (0.05, 1, 0.05),
    "answer_length": (1, 64, 1),
    "answer_start": (0, LENGTH, 1),
    "block_length": (1, LENGTH, 1),
    "blocks": (1, LENGTH, 1),
    "boost": (0, 1, 0.05),
    "budget": (0, 10, 0.1),
    "candidates": (2, 32, 1),
    "clip": (0.5, 20, 0.5),
    "count": (1, LENGTH, 1),
    "decay": (0.05, 1, 0.05),
    "delimiter_threshold": (0.05, 1, 0.05),
    "drift": (0.001, 0.1, 0.001),
    "early": (0, 20, 0.5),
    "edit_threshold": (0, 0.95, 0.05),
    "eps": (0.001, 0.1, 0.001),
    "factor": (0.1, 4, 0.1),
    "gamma": (0, 1, 0.01),
    "history": (1, 10, 1),
    "late": (0, 20, 0.5),
    "loops": (0, 64, 1),
    "low": (0, 0.95, 0.05),
    "middle": (0, 20, 0.5),
    "neighbour": (0.05, 1, 0.05),
    "position_temperature": (0.05, 2, 0.05),
    "radius": (1, 32, 1),
    "rate": (0, 1, 0.01),
    "ratio": (0.025, 1, 0.025),
    "rounds": (1, 64, 1),
    "sigma": (0.5, 50, 0.5),
    "start": (0.025, 0.975, 0.025),
    "steps": (1, LENGTH, 1),
    "strength": (0, 2, 0.05),
    "tau": (1, LENGTH, 1),
    "temperature": (0, 2, 0.05),
    "threshold": (0.05, 1, 0.05),
    "top_k": (1, 100, 1),
    "top_p": (0.05, 1, 0.05),
}
"""First value, last value and step of a slider. A test holds that no option is missing; other values can be typed."""


def sampler_list(samplers: Samplers) -> list[dict[str, Any]]:
    """All samplers that a request may name."""
    return [_sampler(name) for name in samplers.names]


def _sampler(name: str) -> dict[str, Any]:
    entry = catalog().get(name)
    if entry is None:
        entry = CatalogEntry(name, (), "A sampler file of the model: it has its own settings.", "", "", "")
    takes = name in catalog() and lookup.takes_table(name, {})
    return {
        "id": name,
        "object": "sampler",
        "summary": entry.summary,
        "source": entry.source,
        "options": [_option(one) for one in entry.options if one.name != "frequency"],
        "takes_table": takes,
        "needs_table": takes and _needs(entry),
    }


def _needs(entry: CatalogEntry) -> bool:
    """Whether a sampler that takes a table cannot do without."""
    return all(option.name != "informativeness" for option in entry.options)


def _option(option: Option) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": option.name,
        "kind": "choice" if option.choices else KINDS[option.annotation.partition(" ")[0]],
        "default": _value(option),
        "meaning": option.meaning,
    }
    if option.choices:
        return found | {"choices": list(option.choices)}
    if found["kind"] == "bool":
        return found
    first, last, step = SLIDERS[option.name]
    return found | {"slider": {"min": first, "max": last, "step": step}}


def _value(option: Option) -> Any:
    """The default as JSON has it; None where the option is off."""
    if option.default == "none" and not option.choices:
        return None
    if option.annotation == "bool":
        return option.default == "true"
    if option.choices:
        return option.default
    return int(option.default) if option.annotation.startswith("int") else float(option.default)
