"""lm-eval's requests: how long an answer may be, where it is cut, and with which seed it is decoded."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import UncodeError, require, shown

DEFAULT_LENGTH = 256
"""Tokens to generate where neither the model arguments nor the task say how many; lm-eval's default too."""
MAX_TOKENS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""The names under which tasks limit an answer, the first one first."""
REPEAT_STRIDE = 1 << 32
"""Repeats of a request have seeds this far apart, so that they never share one with another example."""
NO_CACHE = (
    "--use_cache is refused: lm-eval finds its cached responses by the request alone, so they may be of another "
    "sampler, seed or checkpoint; use --model_args journal=DIR instead."
)
"""Why lm-eval's response cache cannot be used."""
_logger = logging.getLogger(__name__)
_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Log a warning, the first time only: a run has thousands of similar requests."""
    if message not in _warned:
        _warned.add(message)
        _logger.warning(message)


@dataclass(frozen=True)
class Generation:
    """What a `generate_until` request asks for."""

    id: str
    """The task and the number of the example, for errors and journals."""
    context: str
    length: int
    stops: tuple[str, ...]
    seed: int

    def cut(self, text: str) -> str:
        """The text before the first stop string."""
        return text[: min((at for stop in self.stops if (at := text.find(stop)) >= 0), default=len(text))]


def read_generations(requests: Iterable[Any], length: int | None, seed: int) -> Iterator[Generation]:
    """Read requests. Example n has the seed plus n, as in `uncode eval`."""
    repeats = Counter[int]()
    for position, request in enumerate(requests):
        context, kwargs = request.args
        number = position if request.doc_id is None else request.doc_id
        # a data parallel run fills its shares with copies of the last request: these are no repeats
        repeat, name = repeats[id(request)] % (request.repeats or 1), f"{request.task_name or 'request'}/{number}"
        repeats[id(request)] += 1
        tokens, stops = _read_kwargs(kwargs, length, name)
        yield Generation(name, context, tokens, stops, seed + number + repeat * REPEAT_STRIDE)


def _read_kwargs(kwargs: Mapping[str, Any], length: int | None, name: str) -> tuple[int, tuple[str, ...]]:
    """The number of tokens to generate, and the stop strings."""
    given = [kwargs[key] for key in MAX_TOKENS if kwargs.get(key) is not None]
    try:
        most = int(given[0]) if given else None
    except (TypeError, ValueError):
        raise UncodeError(f"{MAX_TOKENS[0]} of {name} must be a whole number, not {shown(given[0])}.") from None
    require(most is None or most > 0, f"{MAX_TOKENS[0]} of {name} must be at least 1, not {most}.")
    until = kwargs.get("until") or []
    stops: Sequence[str] = [until] if isinstance(until, str) else until
    require(all(isinstance(stop, str) for stop in stops), f"until of {name} must be strings, not {shown(until)}.")
    _warn_about_ignored(kwargs)
    return min(length or most or DEFAULT_LENGTH, most or length or DEFAULT_LENGTH), tuple(filter(None, stops))


def _warn_about_ignored(kwargs: Mapping[str, object]) -> None:
    """Warn if a task asks for sampling: the sampler alone decides how tokens are drawn."""
    wanted = {key: value for key, value in kwargs.items() if key not in (*MAX_TOKENS, "until")}
    harmless = {"do_sample": (False, None), "temperature": (0, None)}
    ignored = {key: value for key, value in wanted.items() if value not in harmless.get(key, ())}
    if ignored:
        listed = ", ".join(f"{key}={value}" for key, value in ignored.items())
        warn_once(f"{listed} has no effect: the sampler in --model_args decides how tokens are drawn.")
