"""A function as a model: the fake that every test, example and policy author can use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..core.denoiser import Denoiser, Layout
from ..core.errors import UncodeError, require, shown
from ..core.pieces.cache import Plan
from ..core.pieces.piece import Table
from ..core.support.arguments import checks_arguments, whole_number
from .columns import rows_of
from .loading.device import parse_device


class FunctionDenoiser(Denoiser):
    """`fn(tokens [B, L]) -> logits [B, L, V]` as a denoiser; rows of equal length only, no cache.

    The function sees the canvas without a padding mask, which is why rows must be equally long. Its
    result is never changed in place, so it may return the same tensor again and again. It is called once a step; on
    a GPU, for a single row with a stop rule, once more than that where the rule ends it.
    """

    sees_padding = False

    @checks_arguments()
    def __init__(
        self,
        fn: Callable[[Tensor], Tensor],
        mask_id: int,
        vocab_size: int,
        *,
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
        ends = tuple(whole_number(i, "an id of eos_ids") for i in eos_ids)
        require(all(i < vocab_size for i in ends), f"eos_ids {ends} are outside the vocabulary of {vocab_size}.")
        require(isinstance(dtype, torch.dtype), f"dtype must be a torch dtype, torch.float32 say, not {shown(dtype)}.")
        self.fn, self.mask_id, self.vocab_size = fn, mask_id, vocab_size
        self.eos_ids, self.tokenizer, self.frequency = ends, tokenizer, frequency
        self.device, self.dtype = parse_device(device), dtype
        self.about = {"model": name}

    def __repr__(self) -> str:
        facts = f"{self.vocab_size} tokens, mask_id={self.mask_id}, {self.dtype}, {self.device}"
        return f"FunctionDenoiser({self.about['model']}, {facts})"

    def open(self, rows: int, length: int) -> FunctionSession:
        return FunctionSession(self)


class FunctionSession:
    """Calls the function on the whole canvas at every step; it stores nothing."""

    def __init__(self, denoiser: FunctionDenoiser) -> None:
        self.denoiser = denoiser
        self.bar = torch.zeros(denoiser.vocab_size, device=denoiser.device)
        self.bar[denoiser.mask_id] = float("-inf")
        self.version: int | None = None

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        if self.version != layout.version:
            lengths = sorted(set(layout.valid.sum(-1).tolist()))
            lengths_given = f"not of {' and '.join(map(str, lengths))} tokens"
            require(
                bool(layout.valid.all()),
                f"a FunctionDenoiser cannot see padding: give it rows of equal length, {lengths_given}.",
            )
            self.version = layout.version
        if plan.window.width != tokens.shape[1]:
            raise UncodeError("a FunctionDenoiser keeps no keys: use a sampler without a cache.")
        logits = self.denoiser.fn(tokens)
        if not isinstance(logits, Tensor):
            raise UncodeError(f"the function must return a tensor of logits, not {shown(logits)}.")
        expected = (*tokens.shape, self.denoiser.vocab_size)
        if logits.shape != expected:
            raise UncodeError(f"the function returned logits of shape {tuple(logits.shape)}, expected {expected}.")
        return rows_of(logits, plan) + self.bar

    def add(self, rows: int, left: int, right: int) -> None:
        """Nothing is stored, so nothing moves."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is stored, so nothing moves."""
