"""`generate`: from prompts to answers in one call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, overload

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.errors import require, shown
from ..core.pieces.policy import Sampler
from ..core.pieces.stop import AfterEos
from ..core.stepper.decode import Steps
from ..core.stepper.requests import Samplers, Seeds, each_sampler
from ..core.support.arguments import checks_arguments
from ..samplers.options import DEFAULT_SAMPLER
from ..samplers.resolve import SamplersLike, resolve_each
from .gap_constraints import PromptConstraints, constraints_of
from .prompt import Length, Messages, Prompt, answer_texts, blank_gaps, canvas_of, is_one_prompt, is_whole, read_prompts


class GenerateOptions(TypedDict, total=False):
    """The keyword arguments of :func:`generate`."""

    sampler: SamplersLike
    length: Length
    seed: Seeds
    stop_at_eos: bool
    constraint: PromptConstraints


@overload
def generate(  # type: ignore[overload-overlap]  # a str is a sequence of str too; this overload takes it
    denoiser: Denoiser, prompt: str, **options: Unpack[GenerateOptions]
) -> str: ...
@overload
def generate(
    denoiser: Denoiser, prompt: Sequence[str] | Sequence[Messages], **options: Unpack[GenerateOptions]
) -> list[str]: ...
@overload
def generate(denoiser: Denoiser, prompt: Messages, **options: Unpack[GenerateOptions]) -> str: ...
@checks_arguments()
def generate(
    denoiser: Denoiser,
    prompt: str | Sequence[Any],
    *,
    sampler: SamplersLike = DEFAULT_SAMPLER,
    length: Length = None,
    seed: Seeds = 0,
    stop_at_eos: bool = True,
    constraint: PromptConstraints = None,
) -> str | list[str]:
    """The model's answer to a raw prompt, to messages (through the chat template), or to a list of either.

    `sampler` is a Sampler, the name of a preset ("confidence") or of one of the model's own sampler files ("story" of
    tiny), or the path of a sampler file. Without a `length`, an answer has 96 tokens, or as many as the model has room
    for. A text with gaps, `"Paris is the <mask:2> of France."`, is returned with its gaps filled and takes no `length`;
    of `<mask:?>` the model chooses the size. The answer to a prompt fulfils the `constraint` that
    :func:`uncode.constraint` made, and so does the text of every gap; a list has one for each gap, None where none is.
    For a list of prompts, `length`, `sampler`, `seed` and `constraint` may be one per prompt.
    Decoding of an answer stops once no mask is left before an EOS token; with `stop_at_eos=False` the model fills every
    mask.
    """
    one = is_one_prompt(prompt)
    require(
        not one or length is None or is_whole(length),
        f"the length of one answer must be a whole number, not {shown(length)}.",
    )
    require(isinstance(stop_at_eos, bool), f"stop_at_eos must be True or False, not {shown(stop_at_eos)}.")
    prompts = read_prompts(denoiser, [prompt] if one else list(prompt), length)
    if one and isinstance(constraint, Sequence) and not prompts[0].is_continued:
        constraint = [constraint]  # type: ignore[list-item]  # one for each gap
    trace = start_decode(denoiser, prompts, resolve_each(sampler, denoiser), seed, stop_at_eos, constraint).trace()
    texts = answer_texts(denoiser, prompts, trace)
    if blank := blank_gaps(denoiser, prompts, trace):
        warnings.warn(blank[0], stacklevel=3)
    return texts[0] if one else texts


@checks_arguments()
def canvas_from_texts(denoiser: Denoiser, texts: str | Sequence[Any], *, length: Length = None) -> Canvas:
    """The canvas of raw prompts, messages or texts with gaps, read as :func:`generate` reads them, for :func:`decode`.

    `length` is the length of the answers, one for all or one per text. A text with gaps has none.
    """
    return canvas_of(denoiser, read_prompts(denoiser, [texts] if isinstance(texts, str) else texts, length))


def start_decode(
    denoiser: Denoiser,
    prompts: list[Prompt],
    sampler: Samplers,
    seed: Seeds,
    stop_at_eos: bool,
    constraint: PromptConstraints = None,
) -> Steps:
    """The decode of the prompts, before its first step. Gaps in a text are always filled completely."""
    constraints = constraints_of(denoiser, prompts, constraint)
    each = each_sampler(sampler, len(prompts))
    samplers = [sampler_for(denoiser, p, s, stop_at_eos) for s, p in zip(each, prompts, strict=True)]
    return Steps(denoiser, canvas_of(denoiser, prompts), samplers, seed, constraints)


def sampler_for(denoiser: Denoiser, prompt: Prompt, sampler: Sampler, stop_at_eos: bool) -> Sampler:
    """The sampler with the stop rule of a prompt: an answer may end at an EOS token, gaps are filled completely."""
    stops = stop_at_eos and len(denoiser.eos_ids) > 0 and prompt.is_continued
    return sampler.stopping(AfterEos()) if stops else sampler
