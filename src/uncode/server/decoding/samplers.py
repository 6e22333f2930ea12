"""From the fields of a body to a sampler. Clients name no files: neither sampler files nor tables."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ...core.denoiser import Denoiser
from ...core.errors import UncodeError, require, suggest
from ...core.pieces.piece import Table
from ...core.pieces.policy import Sampler
from ...core.pieces.propose import Greedy, Proposal, Sample
from ...core.pieces.stop import AfterEos
from ...samplers import lookup
from ...samplers.catalog import catalog, find
from ...samplers.registry import cache_named

OF_PROPOSAL = ("temperature", "top_p", "top_k")
"""Fields of a request that change what is proposed, whatever the sampler."""
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
    temperature: float | None
    top_p: float | None
    top_k: int | None
    stop_at_eos: bool = False

    @property
    def of_proposal(self) -> dict[str, Any]:
        """The temperature and the cuts, where they were given."""
        return {key: value for key in OF_PROPOSAL if (value := getattr(self, key)) is not None}


class Samplers:
    """Builds the samplers of requests, and keeps those that were asked for last."""

    def __init__(
        self, denoiser: Denoiser, default: str, options: dict[str, Any], frequency: Table | None = None
    ) -> None:
        """`default` is the name of a preset, or a sampler file; `options` are its own."""
        self._denoiser, self._default, self._options = denoiser, default, options
        self._table = denoiser.frequency if frequency is None else frequency
        self._build = lru_cache(CACHED_SAMPLERS)(self._build_from)
        own = Choice(None, {}, None, None, None)
        self.build(own)  # a wrong default is reported before the server listens
        lookup.for_model(self._without_stop(own), denoiser, self._table)  # so is what it leaves out

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
            wrong = next((name for name, value in floats.items() if not math.isfinite(value)), "the sampler")
            raise UncodeError(f"{wrong} holds an infinite number or none: send a finite one.") from None
        require(len(key) <= MAX_CHARACTERS, f"a sampler as data may have at most {MAX_CHARACTERS} characters of JSON.")
        return self._build(key) if len(key) <= CACHED_CHARACTERS else self._build_from(key)

    def repeated(self, choice: Choice) -> dict[str, Any]:
        """What an answer says of its sampler. A request with this `sampler`, and with the options beside it, gets it
        again."""
        name, given = self.default if choice.sampler is None else choice.sampler, choice.options | choice.of_proposal
        options = self._options | given if name == self.default else given
        return {"sampler": name, "sampler_options": {key: one for key, one in options.items() if one is not None}}

    def _build_from(self, key: str) -> Sampler:
        wanted = Choice(**json.loads(key))
        sampler = self._without_stop(wanted)
        require(
            self._table is not None or not lookup.needs_table(sampler),
            f"the sampler '{sampler.name}' needs a frequency table, and this server has none: choose another sampler"
            + (", or send informativeness=false." if lookup.has_informativeness(sampler) else "."),
        )
        sampler = lookup.for_model(sampler, self._denoiser, self._table, on_advice=lambda _: None)
        stops = wanted.stop_at_eos and len(self._denoiser.eos_ids) > 0
        return sampler.stopping(AfterEos()) if stops else sampler

    def _without_stop(self, wanted: Choice) -> Sampler:
        options = dict(wanted.options)
        cache = options.pop("cache", None)
        if isinstance(wanted.sampler, dict):
            require(not options and cache is None, "a sampler as data is complete: leave its options out.")
            sampler = Sampler.from_dict(wanted.sampler, frequency=self._table)
            count = sum(1 for _ in sampler.pieces())
            require(count <= MAX_PIECES, f"a sampler as data may have at most {MAX_PIECES} pieces, not {count}.")
            return _proposing(sampler, wanted)
        name = self._default
        if wanted.sampler in (None, self.default):
            options = self._options | options
        else:
            name = self._check(str(wanted.sampler))
        own = self._denoiser.samplers
        if lookup.is_file(name) or (name in own and name not in catalog()):
            require(not options, f"the sampler '{_shown(name)}' is complete and takes no options: leave them out.")
            sampler = lookup.load(own.get(name, name), frequency=self._table)
            return _proposing(_caching(sampler, cache), wanted)
        return self._preset(name, options, cache, wanted)

    def _preset(self, name: str, options: dict[str, Any], cache: Any, wanted: Choice) -> Sampler:
        known = {option.name for option in find(name).options}
        own = {key: value for key, value in wanted.of_proposal.items() if key in known}
        options = options | own
        if cache is not None and "cache" in known:
            options["cache"], cache = cache, None
        rest = Choice(**(vars(wanted) | dict.fromkeys(own)))
        return _proposing(_caching(lookup.named(name, **options), cache), rest)

    def _check(self, name: str) -> str:
        if name not in self.names:
            raise UncodeError(f"no sampler is named '{name[:60]}': {suggest(name, self.names)}")
        return name


def _caching(sampler: Sampler, cache: Any) -> Sampler:
    return sampler if cache is None else sampler.caching(cache_named(cache))


def _proposing(sampler: Sampler, wanted: Choice) -> Sampler:
    """The sampler with the temperature and the cuts of a request."""
    changes, propose = wanted.of_proposal, sampler.propose
    if not changes:
        return sampler
    if isinstance(propose, Greedy):
        drawn: Proposal = Sample(propose.ban, **({"temperature": 0.0} | changes))
    else:
        kind = type(propose).__name__
        require(isinstance(propose, Sample), f"the proposal {kind} of this sampler takes no {next(iter(changes))}.")
        drawn = replace(propose, **changes)
    greedy = isinstance(drawn, Sample) and drawn.temperature == 0 and drawn.ranking == "clean"
    return replace(sampler, propose=Greedy(drawn.ban) if greedy else drawn)


def _shown(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
