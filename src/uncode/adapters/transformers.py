"""`model.generate(custom_generate=...)` of transformers: our decoder behind its door."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import EosTokenCriteria, GenerationConfig, MaxLengthCriteria

from ..backbones.loading.load import wrap
from ..core.canvas import Canvas
from ..core.errors import require
from ..core.pieces.stop import AfterEos
from ..generation.decoding import steps
from ..samplers.calibration import Frequency
from ..samplers.options import DEFAULT_SAMPLER
from ..samplers.resolve import SamplerLike, resolve

FOLDER = str(Path(__file__).parent / "transformers_hub")
"""What `custom_generate` takes as a folder, with `trust_remote_code=True`; upload it to the hub as it is."""
UNSUPPORTED = {"do_sample": False, "num_beams": 1, "num_return_sequences": 1, "return_dict_in_generate": False}
"""Settings of a generation config that must have these values."""


def generate(
    model: Any,
    input_ids: Tensor,
    generation_config: GenerationConfig,
    logits_processor: Any = (),
    stopping_criteria: Any = (),
    sampler: SamplerLike | Mapping[str, Any] = DEFAULT_SAMPLER,
    seed: int = 0,
    frequency: Frequency = None,
    mask_id: int | None = None,
    stream_to: Any = None,
    **inputs: Any,
) -> Tensor:
    """Fill `max_new_tokens` masks after each prompt: the tokens of :func:`uncode.decode`, and padding behind an EOS.

    Pass it as `model.generate(ids, attention_mask=..., custom_generate=generate, sampler=..., max_new_tokens=...)`.
    transformers keeps `streamer` to itself, so a streamer is passed as `stream_to`. It gets the tokens that can no
    longer change, from left to right; `frequency` is a table for samplers that need one.
    """
    _check(generation_config, logits_processor, stopping_criteria)
    require(stream_to is None or len(input_ids) == 1, "a streamer takes one prompt: leave it out, or pass one.")
    denoiser, ends = wrap(model, mask_id=mask_id), generation_config.eos_token_id
    if ends is not None:
        denoiser.eos_ids = (ends,) if isinstance(ends, int) else tuple(ends)
    chosen = resolve(sampler, denoiser, frequency)
    chosen = chosen.stopping(AfterEos()) if denoiser.eos_ids else chosen
    seen = torch.ones_like(input_ids) if inputs.get("attention_mask") is None else inputs["attention_mask"]
    prompts = [row[keep.bool()].cpu() for row, keep in zip(input_ids, seen, strict=True)]
    length = int(generation_config.max_length) - input_ids.shape[1]
    canvas = Canvas.after_prompt(prompts, length, denoiser.mask_id)
    run, ends = steps(denoiser, canvas, chosen, seed), torch.tensor(denoiser.eos_ids, device=denoiser.device)
    sent = 0
    if stream_to is not None:
        stream_to.put(input_ids.cpu())
    for step in run:
        if stream_to is not None and not step.decision.revised:
            answer = step.tokens[0, canvas.start :]
            filled = int((answer != denoiser.mask_id).long().cumprod(0).sum())
            sent = _send(stream_to, answer[: _lengths(answer[None, :filled], ends)[0]], sent)
    answers = run.trace().generated.to(input_ids.device)
    lengths = _lengths(answers, ends.to(answers.device))
    if stream_to is not None:
        _send(stream_to, answers[0, : lengths[0]], sent)
        stream_to.end()
    pad, columns = generation_config.pad_token_id, torch.arange(int(lengths.max()), device=answers.device)
    pad = pad if pad is not None else denoiser.eos_ids[0] if denoiser.eos_ids else 0
    answers = answers[:, : len(columns)].masked_fill(columns >= lengths[:, None], pad)
    return torch.cat((input_ids, answers), 1)


def _check(config: GenerationConfig, processors: Any, criteria: Any) -> None:
    """Raise where a setting asks for what a sampler does not do."""
    for name, only in UNSUPPORTED.items():
        value = getattr(config, name, None)
        require(value in (None, only), f"the sampler decides, so {name} must be {only}, not {value}: see `sampler=`.")
    own = (MaxLengthCriteria, EosTokenCriteria)
    others = [type(each).__name__ for each in (*processors, *criteria) if not isinstance(each, own)]
    require(not others, f"{', '.join(others)} cannot change what a sampler writes: leave it out.")


def _lengths(answers: Tensor, ends: Tensor) -> Tensor:
    """The tokens of each answer up to its first EOS, `[B]`."""
    before = (~torch.isin(answers, ends)).long().cumprod(1).sum(1)
    return (before + 1).clamp(max=answers.shape[1])


def _send(streamer: Any, answer: Tensor, sent: int) -> int:
    """Send a streamer the tokens it does not have yet. Returns how many it has then."""
    if len(answer) > sent:
        streamer.put(answer[sent:].cpu())
    return len(answer)
