"""What the generated text of a row must be, as the stepper sees it. What a constraint is made of lives above core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .denoiser import Facts
from .errors import UncodeError
from .support.arrays import Ints


class Constraint(ABC):
    """A rule for the text of a row. It is plain data until a row of a model has it."""

    @abstractmethod
    def bind(self, facts: Facts, banned: tuple[int, ...] = ()) -> Automaton:
        """The rule over the tokens of a model. Tokens that are `banned` are never written, and so complete nothing."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data, which a trace keeps."""

    def in_gap(self, begins: bool, after_space: bool) -> Constraint:
        """The rule for the tokens of a gap in a text. `begins` says whether the text begins with the gap. The tokens
        bring the space `after_space`, which is not part of what the rule is about."""
        raise UncodeError(f"{type(self).__name__} is no constraint of a gap: give one of uncode.constraint(...).")


class Automaton(ABC):
    """A constraint over the tokens of a model. Tokens that lead to the same place from everywhere form a class."""

    classes: Tensor
    """The class of each token, `[V]`, on the model's device."""
    count: int
    """How many classes there are."""

    @abstractmethod
    def open(self, tokens: Ints) -> Completions:
        """The completions of a row whose constrained columns hold these tokens, `[n]`; masks are the mask id."""

    @abstractmethod
    def shortest(self) -> int | None:
        """The fewest tokens of an accepted text; None where there is none."""


class Completions(ABC):
    """The accepted completions of one row: what its masks may become, so that the whole is accepted."""

    automaton: Automaton

    @abstractmethod
    def read(self, tokens: Ints) -> None:
        """The row's constrained columns hold these tokens now, `[n]`."""

    @property
    @abstractmethod
    def exist(self) -> bool:
        """Whether there is any."""

    @abstractmethod
    def allowed(self, first: int, stop: int) -> NDArray[np.bool_]:
        """Of the offsets `[first, stop)`: the classes of the tokens that stand there in one of them, `[W, count]`."""

    @abstractmethod
    def write(self, offset: int, token: int) -> bool:
        """Write a token, if a completion is left then. Returns whether it was written."""
