"""From the fields of a body to a sampler. Clients name no files: neither sampler files nor tables."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...core.denoiser import Denoiser, Facts
from ...core.errors import OptionError, UncodeError, require, suggest
from ...core.pieces.piece import Table
from ...core.pieces.policy import Sampler
from ...core.pieces.stop import AfterEos
from ...samplers.catalog import catalog
from ...samplers.resolve import for_model, require_table, resolve

CACHED_SAMPLERS = 256
CACHED_CHARACTERS = 8192
"""Samplers with more data than this are built for each request, so that clients cannot fill the memory."""
MAX_CHARACTERS = 65_536
"""Of a sampler and its options as JSON."""
MAX_PIECES = 64
"""Of a sampler as data. Each costs all rows of the batch time, in every forward."""


@dataclass(frozen=True)
class Choice:
    """The sampler that a request asks for."""

    sampler: str | dict[str, Any] | None
    options: dict[str, Any]
    stop_at_eos: bool = False
    bias: dict[str, float] = field(default_factory=dict)
    """By token id, what is added to its logits."""


class Samplers:
    """Builds the samplers of requests, and keeps those that were asked for last."""

    def __init__(
        self, denoiser: Denoiser, default: str, options: dict[str, Any], frequency: Table | None = None
    ) -> None:
        """`default` is the name of a preset, or a sampler file; `options` are its own."""
        self._denoiser, self._default, self._options = denoiser, default, options
        self._table = denoiser.frequency if frequency is None else frequency
        self._build = lru_cache(CACHED_SAMPLERS)(self._build_from)
        own = Choice(None, {})
        self.build(own)  # a wrong default is reported before the server listens
        for_model(self._made(own), denoiser, self._table)  # so is what it leaves out

    @property
    def default(self) -> str:
        """The name of the sampler that requests get who name none."""
        return _shown(self._default)

    @property
    def default_options(self) -> dict[str, Any]:
        """The options of the default sampler that differ from its own defaults."""
        return self._options

    @property
    def has_table(self) -> bool:
        """Whether samplers that need a frequency table can be used."""
        return self._table is not None

    @property
    def names(self) -> list[str]:
        """What `sampler` may be: presets, and the model's own sampler files."""
        return [*catalog(), *(name for name in self._denoiser.samplers if name not in catalog())]

    def build(self, choice: Choice) -> Sampler:
        """The sampler of a request; equal requests share one."""
        try:
            key = json.dumps(vars(choice), sort_keys=True, allow_nan=False)
        except ValueError:  # Python reads them, but no answer could say them
            floats = {name: value for name, value in choice.options.items() if isinstance(value, float)}
            wrong = next((name for name, value in floats.items() if not math.isfinite(value)), "")
            sentence = f"{wrong or 'the sampler'} holds an infinite number or none: send a finite one."
            raise OptionError(sentence, wrong) from None
        require(len(key) <= MAX_CHARACTERS, f"a sampler as data may have at most {MAX_CHARACTERS} characters of JSON.")
        return self._build(key) if len(key) <= CACHED_CHARACTERS else self._build_from(key)

    def repeated(self, choice: Choice) -> dict[str, Any]:
        """What an answer says of its sampler. A request with this `sampler`, and with the options beside it, gets it
        again."""
        name = self.default if choice.sampler is None else choice.sampler
        options = self._options | choice.options if name == self.default else choice.options
        options |= {"logit_bias": choice.bias} if choice.bias else {}
        return {"sampler": name, "sampler_options": {key: one for key, one in options.items() if one is not None}}

    def _build_from(self, key: str) -> Sampler:
        wanted = Choice(**json.loads(key))
        sampler = self._made(wanted)
        if wanted.bias:
            sampler = self._biased(sampler, {int(token): bias for token, bias in wanted.bias.items()})
        require_table(sampler, None)
        sampler = for_model(sampler, self._denoiser, self._table, on_advice=lambda _: None)
        stops = wanted.stop_at_eos and len(self._denoiser.eos_ids) > 0
        return sampler.stopping(AfterEos()) if stops else sampler

    def _biased(self, sampler: Sampler, bias: dict[int, float]) -> Sampler:
        made = sampler.biasing(bias)
        try:
            made.adjust.check_ids(Facts.of(self._denoiser))
        except UncodeError as error:
            raise OptionError(str(error), "logit_bias") from None
        return made

    def _made(self, wanted: Choice) -> Sampler:
        """The sampler as it was asked for, before it meets the model."""
        spec, options = wanted.sampler, wanted.options
        if spec is None or spec == self.default:
            spec, options = self._default, self._options | options
        elif isinstance(spec, str) and spec not in self.names:
            raise UncodeError(f"no sampler is named '{spec[:60]}': {suggest(spec, self.names)}")
        sampler = resolve(spec, None, self._table, options, files=self._denoiser.samplers)
        count = sum(1 for _ in sampler.pieces())
        fits = count <= MAX_PIECES or not isinstance(spec, dict)
        require(fits, f"a sampler as data may have at most {MAX_PIECES} pieces, not {count}.")
        return sampler


def _shown(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
