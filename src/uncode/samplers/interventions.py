"""Controlled changes for experiments (Uncode, Section 3): reject trivial tokens, insert anchors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from ..core.canvas import Canvas
from ..core.errors import NoSuchName, require
from ..core.pieces.policy import Sampler
from ..core.pieces.select import RejectTrivial
from ..core.trace.texts import is_trivial

__all__ = ["insert_anchor", "reject_trivial", "trivial_ids"]


def __dir__() -> list[str]:
    """The edits alone, for completion."""
    return __all__


def trivial_ids(tokenizer: Any) -> tuple[int, ...]:
    """The ids of any tokenizer that read as one of the paper's trivial tokens, with or without a space before."""
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    special = set(tokenizer.all_special_ids)
    return tuple(i for i, text in enumerate(texts) if i not in special and is_trivial(text))


def reject_trivial(sampler: Sampler, tokens: tuple[int, ...], probability: float) -> Sampler:
    """The same sampler, with trivial proposals rejected with `probability`."""
    policy = sampler.policy
    select = RejectTrivial(policy.select, tokens, probability)
    return replace(sampler, policy=replace(policy, select=select), name=f"{sampler.name}+reject_trivial")


def insert_anchor(canvas: Canvas, at: float, token: int) -> Canvas:
    """The same canvas with one token given at a relative position of the span: 0.25 or 0.75 in the paper."""
    require(0 <= at < 1, f"an anchor's relative position must be in [0, 1), not {at}.")
    return canvas.with_anchors([{int(at * length): token} for length in canvas.lengths.tolist()])


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName("uncode.interventions", name, ("insert_anchor", "reject_trivial", "trivial_ids"))
