"""Any masked language model of transformers (BERT, RoBERTa, ALBERT, ModernBERT, ESM, ...) as a denoiser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.cache import Plan
from ..core.errors import UncodeError, require
from .checkpoint import read_json, survey, usual_dtype
from .columns import Pick, columns
from .memory import announce
from .tokenizer import fits

_ERRORS_ALONE = 40


class MaskedLMDenoiser:
    """A model that maps `input_ids` and `attention_mask` to `logits`; it has no caches."""

    def __init__(self, model: Any, tokenizer: Any, *, mask_id: int | None = None, about: dict[str, Any]) -> None:
        self.model, self.tokenizer, self.about = model.eval(), tokenizer, about
        self.vocab_size = int(model.get_input_embeddings().weight.shape[0])
        found = mask_id if mask_id is not None else _first(tokenizer, model.config, "mask_token_id")
        require(found is not None, "neither the tokenizer nor the configuration names a mask token: pass mask_id.")
        self.mask_id = int(found)  # type: ignore[arg-type]
        end = _first(tokenizer, None, "eos_token_id", "sep_token_id")
        self.eos_ids = () if end is None else (end,)
        pad = _first(tokenizer, model.config, "pad_token_id")
        self.pad_id = 0 if pad is None else pad
        self.frame = _frame(tokenizer)
        self.context = _context(model.config, self.pad_id)
        barred = {self.mask_id} | ({pad} if pad is not None and pad not in self.eos_ids else set())
        require(
            all(0 <= i < self.vocab_size for i in barred),
            f"special ids {sorted(barred)} do not lie inside the vocabulary of {self.vocab_size}.",
        )
        self.barred = torch.tensor(sorted(barred), device=self.device)

    @property
    def device(self) -> torch.device:
        return torch.device(self.model.device)

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.model.dtype
        return dtype

    def open(self, rows: int, length: int) -> MaskedLMSession:
        return MaskedLMSession(self)


class MaskedLMSession:
    """Runs the whole canvas at every step.

    Rows are moved to the left edge and padded on the right, which is the layout such models are trained in,
    whatever they do with positions; the logits are taken from where the rows then stand.
    """

    def __init__(self, denoiser: MaskedLMDenoiser) -> None:
        self.denoiser = denoiser
        self.valid: Tensor | None = None
        self.plan: Plan | None = None

    def logits(self, tokens: Tensor, valid: Tensor, plan: Plan) -> Tensor:
        den = self.denoiser
        if self.valid is not valid:  # rows came or went
            self._lay_out(valid)
        if self.plan is not plan:
            self._follow(plan, tokens.shape[1])
        ids = torch.where(self.attention, self.moved(tokens), den.pad_id)
        logits = den.model(input_ids=ids, attention_mask=self.attention.long()).logits
        picked: Tensor = self.rows(logits)
        # the mask and padding are never written; ids past the embeddings, where a head is wider, do not exist
        return picked[..., : den.vocab_size].index_fill(-1, den.barred, float("-inf"))

    def _lay_out(self, valid: Tensor) -> None:
        seen = valid.cpu().numpy()
        self.first, longest = np.argmax(seen, 1), int(seen.sum(1).max())
        limit = self.denoiser.context
        require(
            limit is None or longest <= limit,
            f"this model sees {limit} tokens at most, not {longest}: shorten the prompt or the length.",
        )
        self.width = longest
        self.moved = Pick(self.first[:, None] + np.arange(longest), seen.shape[1], valid.device)
        self.attention = torch.arange(longest, device=valid.device) < valid.sum(-1, keepdim=True)
        self.valid, self.plan = valid, None

    def _follow(self, plan: Plan, length: int) -> None:
        if not plan.window.mask(length).all():
            raise UncodeError(f"{type(self.denoiser.model).__name__} keeps no keys: use cache='none' with it.")
        self.rows = Pick(columns(plan.rows) - self.first[:, None], self.width, self.denoiser.device)
        self.plan = plan

    def add(self, rows: int, left: int, right: int) -> None:
        """Nothing is stored, so nothing moves."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is stored, so nothing moves."""


def read(
    folder: Path, tokenizer: Any, device: torch.device, dtype: torch.dtype | None, about: dict[str, Any]
) -> MaskedLMDenoiser:
    """A masked LM from a folder; a head that the folder does not hold is an error, never random numbers."""
    entries = survey(folder)
    dtype = dtype or usual_dtype(entries, device)
    announce(about["model"], sum(e.bytes // e.dtype.itemsize for e in entries.values()), dtype, device)
    from transformers import AutoModelForMaskedLM
    from transformers.utils import logging

    loudness = logging.get_verbosity()
    logging.set_verbosity(_ERRORS_ALONE)
    try:
        model, report = AutoModelForMaskedLM.from_pretrained(
            str(folder), dtype=dtype, use_safetensors=True, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # transformers raises many kinds
        first = (str(error).strip().splitlines() or [repr(error)])[0]
        raise UncodeError(f"'{folder}' cannot be loaded as a masked language model: {first}") from error
    finally:
        logging.set_verbosity(loudness)
    absent = sorted(str(key) for key in report["missing_keys"])
    wrong = sorted(str(key) for key in report["mismatched_keys"])
    require(
        not absent and not wrong,
        f"the weights in '{folder}' do not make a masked language model; missing: {', '.join(absent) or 'none'}; "
        f"of another shape: {', '.join(wrong) or 'none'}.",
    )
    if tokenizer is not None:
        fits(tokenizer, int(read_json(folder / "config.json").get("vocab_size", 1 << 40)), folder)
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


def _context(config: Any, pad_id: int) -> int | None:
    """Tokens the model has positions for, or None where it does not say."""
    limit = getattr(config, "max_position_embeddings", None)
    if not isinstance(limit, int):
        return None
    # RoBERTa's family counts positions from the padding id on
    offset = (
        pad_id + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert", "esm", "mpnet", "longformer") else 0
    )
    return limit - offset
