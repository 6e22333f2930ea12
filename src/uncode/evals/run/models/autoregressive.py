"""Autoregressive models of transformers under evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ....backbones.loading.checkpoint import read_headers, usual_dtype
from ....backbones.loading.device import parse_device, parse_dtype
from ....backbones.loading.memory import WORTH_A_LINE, ModelSize, announce
from ....backbones.loading.pretrained import quiet_transformers, read_pretrained
from ....backbones.loading.tokenizer import check_vocab
from ....core.errors import UncodeError
from ....core.noise import Draw, PhiloxNoise
from ....frequency.fingerprint import fingerprint
from ...stop_strings import StopStrings
from .causal import CausalModel, LeftToRight, context_of, eos_ids_of
from .causal_checkpoint import CausalCheckpoint, find_checkpoint
from .model import PreparedSampler, Question, weights_fingerprint

TAIL_TOKENS = 8
"""Tokens that are decoded before a stop string, because some tokenizers drop a space at the beginning."""


class AutoregressiveModel(CausalModel):
    """A causal language model of transformers, decoded by its `generate` in batches with padding on the left.

    Its generation config gives the EOS ids and nothing else: a repetition penalty, top-k or top-p in it is not applied
    (vLLM applies none either), so that the sampler of the table says all that decides an answer.
    """

    def __init__(self, name: str, model: Any, tokenizer: Any, about: dict[str, Any] | None = None) -> None:
        from transformers import GenerationConfig

        self.name, self.model, self.tokenizer = name, model.eval(), tokenizer
        self.eos_ids = eos_ids_of(model.generation_config, model.config, tokenizer)
        self.context = context_of(model.config)
        check_vocab(tokenizer, model.get_input_embeddings().num_embeddings, name)
        pad = getattr(tokenizer, "pad_token_id", None)
        self.pad_id = pad if pad is not None else self.eos_ids[0] if self.eos_ids else 0
        model.generation_config = GenerationConfig()  # else `generate` takes what we leave open from there
        facts = (about or {}) | {"tokenizer": fingerprint(tokenizer), "eos_ids": self.eos_ids, "dtype": model.dtype}
        self.fingerprint = weights_fingerprint(model.named_parameters(), facts)

    @classmethod
    def load(
        cls, name: str, *, device: str | None = None, dtype: str | None = None, revision: str | None = None
    ) -> AutoregressiveModel:
        """Load a local folder, a GGUF file or a hub id. `device` and `dtype` are chosen as `uncode.load` does."""
        chosen, kind = parse_device(device), parse_dtype(dtype)
        checkpoint = find_checkpoint(name, revision)
        model = _read(checkpoint, chosen, kind)
        return cls(name, model, checkpoint.tokenizer(), dict(checkpoint.about))

    def with_stop_strings(self, sampler: PreparedSampler, stops: StopStrings) -> PreparedSampler:
        """`stop_at_eos = false` asks for the whole length, so then no stop string ends a row either."""
        how: LeftToRight = sampler.sampler
        if not (how.stop_at_eos and stops.can_end_decoding):
            return sampler
        how = replace(how, stops=stops)
        return replace(sampler, sampler=how, definition=dict(sampler.definition) | how.as_data())

    @torch.inference_mode()
    def generate(self, questions: Sequence[Question], how: LeftToRight) -> list[list[int]]:
        from transformers import GenerationConfig, StoppingCriteriaList

        width = max(len(one.prompt_ids) for one in questions)
        device = self.model.device
        pads = [width - len(one.prompt_ids) for one in questions]
        rows = [[self.pad_id] * pad + list(one.prompt_ids) for pad, one in zip(pads, questions, strict=True)]
        ids = torch.tensor(rows, device=device)
        mask = torch.arange(width, device=device) >= torch.tensor(pads, device=device)[:, None]
        length = max(one.length for one in questions)
        config = GenerationConfig(
            max_new_tokens=length,
            do_sample=False,
            eos_token_id=list(self.eos_ids) if how.stop_at_eos and self.eos_ids else None,
            pad_token_id=self.pad_id,
        )
        drawing = [_Drawing([one.seed for one in questions], width, how.temperature)] if how.temperature > 0 else []
        ending = [_EndAtStopStrings(self, questions, width, how.stops)] if how.stops.can_end_decoding else []
        try:
            with quiet_transformers(bars=False):
                found = self.model.generate(
                    ids,
                    attention_mask=mask.long(),
                    generation_config=config,
                    logits_processor=drawing,
                    stopping_criteria=StoppingCriteriaList(ending),
                )
        except torch.OutOfMemoryError as error:
            what = f"{len(rows)} rows of {width + length} tokens do not fit into the memory of {device}"
            raise UncodeError(f"{what}: choose a smaller batch.") from error
        generated: list[list[int]] = found[:, width:].tolist()
        return [row[:end] for row, end in zip(generated, ending[0].ends, strict=True)] if ending else generated


class _Drawing:
    """A logits processor that draws a token for each row, and leaves only that one possible.

    The noise is a hash of the row's seed and of the row's own step. So a row's draws do not depend on the other rows
    of its batch, as those of transformers' own sampling do.
    """

    def __init__(self, seeds: Sequence[int], width: int, temperature: float) -> None:
        self.seeds, self.width, self.temperature = torch.tensor(seeds)[:, None], width, temperature

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        seeds = self.seeds.to(scores.device)
        step = torch.full_like(seeds, ids.shape[1] - self.width)
        drawn = Draw(self.temperature, PhiloxNoise(seeds, step), step)(scores[:, None])
        return torch.full_like(scores, float("-inf")).scatter(1, drawn, 0.0)


class _EndAtStopStrings:
    """A stopping criterion of transformers: a row ends once no further text can change what is graded.

    The text of a whole row, prompt included, at every step would take time that is quadratic in the length. So the last
    tokens are decoded first, and the row only if these hold a stop string. If this misses a stop string, the row takes
    more forwards, and its graded text is the same.
    """

    def __init__(self, model: AutoregressiveModel, questions: Sequence[Question], width: int, stops: StopStrings):
        self.model, self.questions, self.width, self.stops = model, questions, width, stops
        self.strings = {*stops.ours, *stops.released}
        self.tail = max(len(stop.encode()) for stop in self.strings) + TAIL_TOKENS
        """A token has one byte at least."""
        self.ends: list[int | None] = [None] * len(questions)
        """The generated tokens of each row that has ended."""

    def __call__(self, ids: Tensor, scores: Tensor, **options: Any) -> Tensor:
        tails = ids[:, max(self.width, ids.shape[1] - self.tail) :].tolist()
        for row, tail in enumerate(tails):
            if self.ends[row] is None and self._has_ended(row, tail, ids):
                self.ends[row] = ids.shape[1] - self.width
        return torch.tensor([end is not None for end in self.ends], device=ids.device)

    def _has_ended(self, row: int, tail: list[int], ids: Tensor) -> bool:
        shown = self.model.tokenizer.decode(tail, skip_special_tokens=True)
        if not any(stop in shown for stop in self.strings):
            return False
        return self.stops.are_settled(self.model.text(self.questions[row], ids[row, self.width :].tolist()))


def _read(checkpoint: CausalCheckpoint, device: torch.device, dtype: torch.dtype | None) -> Any:
    """The weights on a device. Quantised numbers of a GGUF file become `dtype`, by default float32."""
    from transformers import AutoModelForCausalLM

    if checkpoint.gguf is None:
        entries = read_headers(checkpoint.folder)
        dtype = dtype or usual_dtype(entries, device)
        parameters = sum(entry.count for entry in entries.values() if entry.is_float)
        announce(checkpoint.name, ModelSize.plain(parameters, dtype), device)
        is_large = parameters * dtype.itemsize >= WORTH_A_LINE
    else:
        dtype, is_large = dtype or torch.float32, False
    what = "causal language model"
    auto: Any = AutoModelForCausalLM
    return read_pretrained(auto, checkpoint.folder, what, dtype, bars=is_large, **checkpoint.options).to(device)
