"""Text in, text out: the short way to a decode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Required, TypedDict, Unpack, overload

from .core.canvas import Canvas
from .core.decode import decode
from .core.denoiser import Denoiser
from .core.errors import require
from .core.policy import Sampler
from .core.stop import AfterEos
from .core.trace import Trace

Messages = Sequence[dict[str, str]]


class Settings(TypedDict, total=False):
    """What :func:`generate` takes beside the model and the prompt."""

    sampler: Required[Sampler]
    length: Required[int]
    seed: int
    stop_at_eos: bool


@overload
def generate(denoiser: Denoiser, prompt: str, **settings: Unpack[Settings]) -> str: ...
@overload
def generate(denoiser: Denoiser, prompt: Sequence[Any], **settings: Unpack[Settings]) -> str | list[str]: ...
def generate(
    denoiser: Denoiser,
    prompt: str | Sequence[Any],
    *,
    sampler: Sampler,
    length: int,
    seed: int = 0,
    stop_at_eos: bool = True,
) -> str | list[str]:
    """The model's answer to a raw prompt, to messages (then the chat template applies), or to a list of either.

    Decoding ends early once no mask is left before an end token; `stop_at_eos=False` fills every mask by the model.
    """
    one = isinstance(prompt, str) or (len(prompt) > 0 and isinstance(prompt[0], dict))
    prompts = [prompt] if one else list(prompt)
    require(len(prompts) > 0, "there is no prompt to answer.")
    canvas = Canvas.after_prompt([encode(denoiser, p) for p in prompts], length=length, mask_id=denoiser.mask_id)
    if stop_at_eos and denoiser.eos_ids:
        sampler = sampler.stopping(AfterEos())
    answers = texts(denoiser, decode(denoiser, canvas, sampler, seed))
    return answers[0] if one else answers


def encode(denoiser: Denoiser, prompt: str | Messages) -> list[int]:
    """Token ids of a raw prompt, or of messages through the model's chat template."""
    tokenizer = denoiser.tokenizer
    require(tokenizer is not None, "this model has no tokenizer: build a canvas from token ids and use decode.")
    if not isinstance(prompt, str):
        require(hasattr(tokenizer, "apply_chat_template"), "this model has no chat template: give it a plain prompt.")
        prompt = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    return list(tokenizer.encode(prompt, add_special_tokens=False))


def texts(denoiser: Denoiser, trace: Trace) -> list[str]:
    """The text of each row's answer, which ends at its first end token; the raw ids stay in the trace."""
    answers = []
    for ids, length in zip(trace.generated.tolist(), trace.canvas.lengths.tolist(), strict=True):
        ends = [at for at, token in enumerate(ids[:length]) if token in denoiser.eos_ids]
        answers.append(denoiser.tokenizer.decode(ids[: ends[0] if ends else length], skip_special_tokens=True))
    return answers
