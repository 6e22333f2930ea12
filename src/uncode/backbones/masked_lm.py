"""Any masked language model of transformers (BERT, RoBERTa, ALBERT, ModernBERT, ESM, ...) as a denoiser."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.denoiser import Denoiser, Layout
from ..core.errors import require
from ..core.pieces.cache import Plan
from .columns import Pick, columns
from .loading.checkpoint import read_headers, usual_dtype
from .loading.folder import read_json
from .loading.memory import WORTH_A_LINE, ModelSize, announce
from .loading.pretrained import read_pretrained
from .loading.tokenizer import check_vocab

_NO_MASK = "neither tokenizer nor configuration names a mask token: add a tokenizer, or give wrap a mask_id."


class MaskedLMDenoiser(Denoiser):
    """A model that maps `input_ids` and `attention_mask` to `logits`; it has no caches."""

    is_bounded = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        mask_id: int | None = None,
        about: dict[str, Any],
    ) -> None:
        self.model, self.tokenizer, self.about = model.eval(), tokenizer, about
        embedding = getattr(model.get_input_embeddings(), "weight", None)
        require(embedding is not None, f"{type(model).__name__} has no word embeddings: uncode cannot run it.")
        assert embedding is not None
        self.vocab_size = len(embedding)
        found = mask_id if mask_id is not None else _first(tokenizer, model.config, "mask_token_id")
        require(found is not None, _NO_MASK)
        self.mask_id = int(found)  # type: ignore[arg-type]
        end = _first(tokenizer, None, "eos_token_id", "sep_token_id")
        self.eos_ids = () if end is None else (end,)
        pad = _first(tokenizer, model.config, "pad_token_id")
        self.pad_id = 0 if pad is None else pad
        self.frame = _frame(tokenizer)
        self.context = _context(model)
        barred = {self.mask_id} | ({pad} if pad is not None and pad not in self.eos_ids else set())
        require(
            all(0 <= i < self.vocab_size for i in barred),
            f"special ids {sorted(barred)} do not lie inside the vocabulary of {self.vocab_size}.",
        )
        self.barred = torch.tensor(sorted(barred), device=self.device)

    def weights(self) -> Iterable[tuple[str, Tensor]]:
        found: Iterable[tuple[str, Tensor]] = self.model.named_parameters()
        return found

    def __repr__(self) -> str:
        return f"MaskedLMDenoiser({self.about['model']}, {self.dtype}, {self.device})"

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device(self.model.device)

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]
        dtype: torch.dtype = self.model.dtype
        return dtype

    @cached_property
    def pads(self) -> bool:
        """Whether padding leaves the logits alone, as it should; some architectures mix it in."""
        ids = torch.tensor([[*self.frame[0], self.mask_id, *self.frame[1]]], device=self.device)
        padded = torch.nn.functional.pad(ids, (0, 3), value=self.pad_id)
        attention = torch.arange(padded.shape[1], device=self.device)[None] < ids.shape[1]
        alone, beside = self.run(ids, torch.ones_like(ids)), self.run(padded, attention.long())[:, : ids.shape[1]]
        rounding = 1e-2 if self.dtype.itemsize == 2 else 1e-4
        return bool((alone - beside).abs().max() <= rounding * alone.abs().max())

    @property
    def sees_what_follows(self) -> bool:
        """Whether another token at the end of a text changes the logits at its start."""
        ids = torch.full((2, 4), self.mask_id, device=self.device)
        ids[1, -1] = (self.mask_id + 1) % self.vocab_size
        first, other = self.run(ids, torch.ones_like(ids))[:, 0]
        return bool((first != other).any())

    def run(self, ids: Tensor, attention: Tensor) -> Tensor:
        logits: Tensor = self.model(input_ids=ids, attention_mask=attention).logits
        return logits

    def open(self, rows: int, length: int) -> MaskedLMSession:
        return MaskedLMSession(self)


class MaskedLMSession:
    """Runs the whole canvas at every step.

    Rows are moved to the left edge and padded on the right, which is the layout such models are trained in,
    whatever they do with positions; the logits are taken from where the rows then stand.
    """

    def __init__(self, denoiser: MaskedLMDenoiser) -> None:
        self.denoiser = denoiser
        self.version: int | None = None
        self.plan: Plan | None = None

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        den = self.denoiser
        if self.version != layout.version:
            self._lay_out(layout.valid)
            self.version = layout.version
        if self.plan is not plan:
            self._follow(plan)
        ids = torch.where(self.attention, self.moved(tokens), den.pad_id)
        picked = self.rows(self._run(ids))
        # the mask and padding are never written; ids past the embeddings, where a head is wider, do not exist
        return picked[..., : den.vocab_size].index_fill(-1, den.barred, float("-inf"))

    def _run(self, ids: Tensor) -> Tensor:
        """Logits of rows that begin at the left edge; rows of one length at a time where padding would matter."""
        if len(self.groups) == 1 or self.denoiser.pads:
            return self.denoiser.run(ids, self.attention.long())
        parts = {n: self.denoiser.run(ids[r, :n], self.attention[r, :n].long()) for n, r in self.groups.items()}
        longest = parts[self.width]
        logits = longest.new_zeros(*ids.shape, longest.shape[-1])
        for length, rows in self.groups.items():
            logits[rows, :length] = parts[length]
        return logits

    def _lay_out(self, valid: Tensor) -> None:
        seen = valid.cpu().numpy()
        self.first, longest = np.argmax(seen, 1), int(seen.sum(1).max())
        limit = self.denoiser.context
        require(
            limit is None or longest <= limit,
            f"prompt and answer have {longest} tokens, and this model sees {limit} at most: shorten one of them.",
        )
        self.width = longest
        lengths = seen.sum(1)
        self.groups = {int(n): torch.from_numpy(np.flatnonzero(lengths == n)) for n in np.unique(lengths)}
        self.moved = Pick(self.first[:, None] + np.arange(longest), seen.shape[1], valid.device)
        self.attention = torch.arange(longest, device=valid.device) < valid.sum(-1, keepdim=True)
        self.plan = None

    def _follow(self, plan: Plan) -> None:
        self.rows = Pick(columns(plan.wanted) - self.first[:, None], self.width, self.denoiser.device)
        self.plan = plan

    def add(self, rows: int, left: int, right: int) -> None:
        """Nothing is stored, so nothing moves."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is stored, so nothing moves."""


def read(
    folder: Path, tokenizer: Any, device: torch.device, dtype: torch.dtype | None, about: dict[str, Any]
) -> MaskedLMDenoiser:
    """A masked LM from a folder; a head that the folder does not hold is an error, never random numbers."""
    entries = read_headers(folder)
    dtype = dtype or usual_dtype(entries, device)
    parameters = sum(e.count for e in entries.values() if e.is_float)
    announce(about["model"], ModelSize.plain(parameters, dtype), device)
    size = parameters * dtype.itemsize
    from transformers import AutoModelForMaskedLM

    bars = size >= WORTH_A_LINE
    model = read_pretrained(AutoModelForMaskedLM, folder, "masked language model", dtype, bars=bars)
    if tokenizer is not None:
        check_vocab(tokenizer, int(read_json(folder / "config.json").get("vocab_size", 1 << 40)), folder)
    return MaskedLMDenoiser(model.to(device), tokenizer, about=about)


def _first(tokenizer: Any, config: Any, *names: str) -> int | None:
    """The first of these attributes that has a value."""
    for owner in (tokenizer, config):
        for name in names:
            value = getattr(owner, name, None)
            if isinstance(value, int):
                return value
    return None


def _frame(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that stand before and after every text, [CLS] and [SEP] say: what the tokenizer puts around a word."""
    if tokenizer is None:
        return (), ()
    for probe in ("a", "A", "L", "0"):  # tokenizers of proteins know capitals only
        bare, framed = tokenizer.encode(probe, add_special_tokens=False), tokenizer.encode(probe)
        for start in range(len(framed) - len(bare) + 1):
            if bare and framed[start : start + len(bare)] == bare:
                return tuple(framed[:start]), tuple(framed[start + len(bare) :])
    return (), ()


def _context(model: Any) -> int | None:
    """Tokens the model has learned positions for, or None where positions are not learned one by one."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) and name.endswith(("position_embeddings", "embed_positions")):
            padding = (
                0 if module.padding_idx is None else module.padding_idx + 1
            )  # RoBERTa and its descendants count from there
            return module.num_embeddings - int(getattr(module, "offset", padding))
    return None
