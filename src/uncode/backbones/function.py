"""A function as a model: for tests, examples and models without a KV cache."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.denoiser import Denoiser, Layout
from ..core.errors import UncodeError, require, shown
from ..core.pieces.cache import Plan
from ..core.pieces.piece import Table
from ..core.support.arguments import checks_arguments, whole_number
from .columns import Pick, columns, wanted_logits
from .loading.device import parse_device


class FunctionDenoiser(Denoiser):
    """`fn(tokens [B, L]) -> logits [B, L, V]` as a denoiser, without a KV cache.

    `padding=True`: the function is called as `fn(tokens, valid)`, where `valid` `[B, L]` is False at padding, and rows
    may differ in length. It must hide padding and count positions from a row's first valid column. Without it, rows
    must be equally long. `shifted=True`: the function's output at a position predicts the next one, as that of a
    model trained from left to right (Dream).

    The function's result is never changed in place, so it may return the same tensor again and again. It is called once
    a step; on a GPU once more where a forward that was launched early is discarded: a stop rule has ended the only
    row, or a constraint has refused what a step wrote.
    """

    @checks_arguments()
    def __init__(
        self,
        fn: Callable[..., Tensor],
        mask_id: int,
        vocab_size: int,
        *,
        padding: bool = False,
        shifted: bool = False,
        eos_ids: tuple[int, ...] = (),
        tokenizer: Any = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        frequency: Table | None = None,
        name: str = "function",
    ) -> None:
        require(callable(fn), f"fn must be a function of tokens [B, L] to logits [B, L, V], not {shown(fn)}.")
        mask_id, vocab_size = whole_number(mask_id, "mask_id"), whole_number(vocab_size, "vocab_size", 1)
        require(mask_id < vocab_size, f"the mask id {mask_id} is outside the vocabulary of {vocab_size}.")
        fits = isinstance(eos_ids, Sequence) and not isinstance(eos_ids, str)
        require(fits, f"eos_ids must be a list of token ids, not {shown(eos_ids)}.")
        known_eos = tuple(whole_number(i, "an id of eos_ids") for i in eos_ids)
        require(
            all(i < vocab_size for i in known_eos), f"eos_ids {known_eos} are outside the vocabulary of {vocab_size}."
        )
        require(isinstance(dtype, torch.dtype), f"dtype must be a torch dtype, torch.float32 say, not {shown(dtype)}.")
        for name_of, value in (("padding", padding), ("shifted", shifted)):
            require(isinstance(value, bool), f"{name_of} must be True or False, not {shown(value)}.")
        _check_arguments(fn, padding)
        self.sees_padding, self.shifted = padding, shifted
        self.fn, self.mask_id, self.vocab_size = fn, mask_id, vocab_size
        self.eos_ids, self.tokenizer, self.frequency = known_eos, tokenizer, frequency
        self.device, self.dtype = parse_device(device), dtype
        self.about = {"model": name}

    def __repr__(self) -> str:
        facts = f"{self.vocab_size} tokens, mask_id={self.mask_id}, {self.dtype}, {self.device}"
        return f"FunctionDenoiser({self.about['model']}, {facts})"

    def open(self, rows: int, length: int) -> FunctionSession:
        return FunctionSession(self)


def _check_arguments(fn: Callable[..., Tensor], padding: bool) -> None:
    """Raise if `fn` cannot be called as `padding` says, but could be without it or with it.

    A function whose signature is unknown, or that takes any arguments (modules, wrappers), is not checked.
    """
    try:
        signature = inspect.signature(fn, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    takes_tokens, takes_valid = (_can_bind(signature, count) for count in (1, 2))
    arguments = ", ".join(signature.parameters)
    require(
        padding or takes_tokens or not takes_valid,
        f"fn takes ({arguments}), and without padding it is called with the tokens alone: pass `padding=True`.",
    )
    require(
        not padding or takes_valid or not takes_tokens,
        f"fn takes ({arguments}), and with padding it is called as fn(tokens, valid): give it the second argument, or "
        "leave `padding=True` out.",
    )


def _can_bind(signature: inspect.Signature, count: int) -> bool:
    """Whether a function can be called with that many positional arguments."""
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


class FunctionSession:
    """Calls the function on the whole canvas at every step; it stores nothing."""

    def __init__(self, denoiser: FunctionDenoiser) -> None:
        self.denoiser = denoiser
        self.bar = torch.zeros(denoiser.vocab_size, device=denoiser.device)
        self.bar[denoiser.mask_id] = float("-inf")
        self.version: int | None = None
        self.plan: Plan | None = None

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        if self.version != layout.version:
            self._lay_out(layout.valid)
            self.version = layout.version
        logits = self._run(tokens, layout.valid)
        if not self.denoiser.shifted:
            return wanted_logits(logits, plan) + self.bar
        if self.plan is not plan:
            before = np.maximum(columns(plan.wanted) - 1, self.first[:, None])  # a row's first token predicts itself
            self.source, self.plan = Pick(before, tokens.shape[1], tokens.device), plan
        return self.source(logits) + self.bar

    def _lay_out(self, valid: Tensor) -> None:
        lengths = sorted(set(valid.sum(-1).tolist()))
        require(
            self.denoiser.sees_padding or bool(valid.all()),
            "a FunctionDenoiser without padding=True cannot see padding: give it rows of equal length, not of "
            f"{' and '.join(map(str, lengths))} tokens.",
        )
        self.first = valid.long().argmax(-1).cpu().numpy()

    def _run(self, tokens: Tensor, valid: Tensor) -> Tensor:
        """What the function returns for the whole canvas."""
        logits = self.denoiser.fn(tokens, valid) if self.denoiser.sees_padding else self.denoiser.fn(tokens)
        if not isinstance(logits, Tensor):
            raise UncodeError(f"the function must return a tensor of logits, not {shown(logits)}.")
        expected = (*tokens.shape, self.denoiser.vocab_size)
        if logits.shape != expected:
            raise UncodeError(f"the function returned logits of shape {tuple(logits.shape)}, expected {expected}.")
        return logits

    def add(self, rows: int, left: int, right: int) -> None:
        """Nothing is stored, so nothing moves."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is stored, so nothing moves."""
