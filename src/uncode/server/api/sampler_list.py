"""The samplers of a server as data: names, options, and the usual range of each, so that a form can be made of it."""

from __future__ import annotations

from typing import Any

from ...samplers.catalog import catalog, takes_table
from ...samplers.options import Option
from ..decoding.samplers import Samplers


def sampler_list(samplers: Samplers) -> list[dict[str, Any]]:
    """All samplers that a request may name."""
    return [_sampler(name) for name in samplers.names]


def _sampler(name: str) -> dict[str, Any]:
    entry = catalog().get(name)
    options = {} if entry is None else {option.name: option for option in entry.options}
    takes = entry is not None and takes_table(name, {})
    return {
        "id": name,
        "object": "sampler",
        "summary": "A sampler file of the model: it has its own settings." if entry is None else entry.summary,
        "source": "" if entry is None else entry.source,
        "options": [_option(one) for one in options.values() if one.type is not None],
        "takes_table": takes,
        "needs_table": takes and "informativeness" not in options,
    }


def _option(option: Option) -> dict[str, Any]:
    kind = "choice" if option.choices else option.type.__name__
    found: dict[str, Any] = {"name": option.name, "kind": kind, "default": option.default, "meaning": option.meaning}
    if option.choices:
        return found | {"choices": list(option.choices)}
    if option.slider is None:
        return found
    first, last, step = option.slider
    return found | {"slider": {"min": first, "max": last, "step": step}}
