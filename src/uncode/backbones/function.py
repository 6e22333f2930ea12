"""A function as a model: the fake that every test, example and policy author can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..core.cache import Plan
from ..core.errors import UncodeError, require
from ..core.piece import Table
from .columns import rows_of


class FunctionDenoiser:
    """`fn(tokens [B, L]) -> logits [B, L, V]` as a denoiser; rows of equal length only, no cache.

    The function sees the canvas without a padding mask, which is why rows must be equally long. Its
    result is never changed in place, so it may return the same tensor again and again. It is called once a step; on
    a GPU, for a single row with a stop rule, once more than that where the rule ends it.
    """

    sees_padding = False

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
        require(0 <= mask_id < vocab_size, f"the mask id {mask_id} is outside the vocabulary of {vocab_size}.")
        self.fn, self.mask_id, self.vocab_size = fn, mask_id, vocab_size
        self.eos_ids, self.tokenizer, self.frequency = eos_ids, tokenizer, frequency
        self.device, self.dtype = torch.device(device), dtype
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
        self.checked: Tensor | None = None

    def logits(self, tokens: Tensor, valid: Tensor, plan: Plan) -> Tensor:
        if self.checked is not valid:  # rows came or went
            require(bool(valid.all()), "a FunctionDenoiser cannot see padding: give it rows of equal length.")
            self.checked = valid
        if plan.window.width != tokens.shape[1]:
            raise UncodeError("a FunctionDenoiser keeps no keys: use cache='none' with it.")
        logits = self.denoiser.fn(tokens)
        expected = (*tokens.shape, self.denoiser.vocab_size)
        if logits.shape != expected:
            raise UncodeError(f"the function returned logits of shape {tuple(logits.shape)}, expected {expected}.")
        return rows_of(logits, plan) + self.bar

    def add(self, rows: int, left: int, right: int) -> None:
        """Nothing is stored, so nothing moves."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is stored, so nothing moves."""
