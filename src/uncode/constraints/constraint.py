"""`uncode.constraint`: a rule for the text of an answer, as data, compiled for a model when a row has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ..core import constraint as core
from ..core.denoiser import Facts
from ..core.errors import UncodeError, require, shown
from ..core.support.arguments import checks_arguments
from .compiled import byte_dfa, compiled, expression_from
from .completions import Automaton
from .expression import LEAD
from .json_schema import ANY_JSON_DEPTH
from .vocabulary import Vocabulary, vocabulary_of

MAX_KEPT = 64
"""Automata that a process keeps; those that were used last stay."""
JSON = "json"


@dataclass(frozen=True, eq=False)
class TextConstraint(core.Constraint):
    """The text of an answer is accepted by a regular expression, as `re.fullmatch` has it."""

    expression: str
    source: Mapping[str, Any]
    """What it was made of, as data: {"regex": ...}, {"choices": [...]}, {"json_schema": ...}, or {"json": depth}."""
    continues: bool = False
    """Whether a text comes before it: some tokenizers drop the space of the first token of all."""

    def __post_init__(self) -> None:
        dfa = byte_dfa(self.expression)  # an error comes at once
        if not dfa.accepts.any():
            raise UncodeError(f"{self!r} accepts no text at all: change it.")

    def __hash__(self) -> int:
        return hash(self.expression)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextConstraint):
            return False
        return (self.expression, self.continues) == (other.expression, other.continues)

    def __repr__(self) -> str:
        return f"constraint({', '.join(f'{name}={shown(value)}' for name, value in self.to_dict().items())})"

    def to_dict(self) -> dict[str, Any]:
        return dict(self.source)

    @classmethod
    def from_dict(cls, data: object) -> TextConstraint:
        """The constraint of the data that :meth:`to_dict` returns, or of the word "json"."""
        if data in (JSON, {JSON: ANY_JSON_DEPTH}):
            return constraint(JSON)
        fits = isinstance(data, Mapping) and len(data) == 1 and set(data) <= {"regex", "choices", "json_schema"}
        require(fits, f'a constraint is one of regex, choices and json_schema, or "json", not {shown(data)}.')
        return constraint(**data)  # type: ignore[arg-type]

    def accepts(self, text: str) -> bool:
        """Whether a text is accepted."""
        require(isinstance(text, str), f"a constraint accepts texts, not {shown(text)}.")
        return byte_dfa(self.expression).matches(text.encode(errors="surrogatepass"))

    def bind(self, facts: Facts, banned: tuple[int, ...] = ()) -> Automaton:
        vocabulary = vocabulary_of(facts)
        vocabulary = vocabulary.continued if self.continues else vocabulary
        return _automaton(self.expression, vocabulary, facts.mask_id, banned, facts.device)

    def in_gap(self, begins: bool, after_space: bool) -> TextConstraint:
        flags = found[0] if (found := re.match(r"(?:\(\?[asux]+\))+", self.expression)) else ""
        rest = self.expression.removeprefix(flags) + "\n" * ("x" in flags)  # it may end in a comment
        expression = f"{flags}(?P<{LEAD}>[ ])(?:{rest})" if after_space else self.expression
        return TextConstraint(expression, self.source, continues=not begins)


@checks_arguments()
def constraint(
    kind: str | None = None,
    *,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
    json_schema: Mapping[str, Any] | bool | None = None,
) -> TextConstraint:
    """A rule that the text of an answer fulfils, whatever the order in which its tokens are written.

    Give one of these: `regex`, an expression in Python's syntax that the whole text matches; `choices`, the texts that
    are allowed; `json_schema`, a schema that the text, which is JSON, is valid under; or the word "json", for any JSON
    value.
    """
    given = {"regex": regex, "choices": choices, "json_schema": json_schema}
    named = [name for name, value in given.items() if value is not None] + ([JSON] if kind is not None else [])
    require(len(named) == 1, f'a constraint is one of regex=, choices=, json_schema= and "json", not {_listed(named)}.')
    if regex is not None:
        require(isinstance(regex, str), f"regex must be a text, not {shown(regex)}.")
        return _made_of({"regex": regex})
    if choices is not None:
        fits = isinstance(choices, Sequence) and not isinstance(choices, str) and len(choices) > 0
        require(
            fits and all(isinstance(c, str) for c in choices), f"choices are texts in a list, not {shown(choices)}."
        )
        return _made_of({"choices": list(choices)})
    if json_schema is not None:
        return _made_of({"json_schema": _as_data(json_schema)})
    require(kind == JSON, f'the constraint without a keyword is "json", not {shown(kind)}.')
    return _made_of({"json": ANY_JSON_DEPTH})


def _made_of(source: Mapping[str, Any]) -> TextConstraint:
    return TextConstraint(expression_from(source), source)


def _as_data(schema: object) -> Any:
    """A copy of a schema, as it is read from a file."""
    try:
        return json.loads(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UncodeError(f"a JSON schema is made of what json.loads returns: {error}.") from None
    except RecursionError:
        raise UncodeError("the JSON schema is nested too deeply: nest fewer schemas.") from None


def _listed(names: list[str]) -> str:
    return " and ".join(names) or "none of them"


@lru_cache(maxsize=MAX_KEPT)
def _automaton(
    expression: str, vocabulary: Vocabulary, mask_id: int, banned: tuple[int, ...], device: torch.device
) -> Automaton:
    return Automaton(compiled(expression, vocabulary), mask_id, banned, device)
