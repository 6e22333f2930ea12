"""Answers to problems of the mini families, for the benchmarks of samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import uncode
from uncode.evals.suite.families.family import Family


def canvas_of(model: uncode.Denoiser, family: Family[Any], examples: Sequence[Any]) -> uncode.Canvas:
    """The prompts of some problems, each followed by masks."""
    prompts = [model.tokenizer.encode(family.prompt(example)) for example in examples]
    return uncode.Canvas.after_prompt(prompts, length=family.length, mask_id=model.mask_id)


def before_eos(model: uncode.Denoiser, ids: Sequence[int]) -> list[int]:
    """The tokens before the first EOS token."""
    end = next((n for n, token in enumerate(ids) if token in model.eos_ids), len(ids))
    return list(ids[:end])


def text_of(model: uncode.Denoiser, ids: Sequence[int]) -> str:
    """The text before the first EOS token."""
    return str(model.tokenizer.decode(before_eos(model, ids)))
