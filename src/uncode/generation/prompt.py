"""Prompts, messages and texts with gaps as rows of a canvas, and decoded rows as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch

from ..core.belief import log_probabilities
from ..core.canvas import Canvas
from ..core.denoiser import Denoiser, Facts
from ..core.errors import UncodeError, require, shown
from ..core.support.memory import require_memory_for_canvas
from ..core.support.reprs import counted
from ..core.trace.trace import Trace
from ..samplers.options import DEFAULT_LENGTH
from .gaps import CHOSEN, MARKER, gap_size
from .likelihood import masked_logits

Messages = Sequence[dict[str, str]]
Length = int | Sequence[int | None] | None
MAX_CHOSEN_TOKENS = 16
"""The largest size that is tried for a gap without one."""


@dataclass(frozen=True)
class Prompt:
    """One row: its token ids, including the masks, and the positions of the masks."""

    ids: list[int]
    gaps: list[tuple[int, int]]
    pieces: list[str] | None = None
    """The text around the gaps; None if the answer follows the prompt."""

    @property
    def is_continued(self) -> bool:
        """Whether the answer follows the prompt, rather than filling gaps in it."""
        return self.pieces is None

    def answer(self, denoiser: Denoiser, ids: list[int]) -> str:
        """The text of the decoded row `ids`: the answer up to its first EOS token, or the text with its gaps filled."""
        decode = denoiser.tokenizer.decode
        if self.pieces is None:
            start, stop = self.gaps[0]
            eos_at = [at for at in range(start, stop) if ids[at] in denoiser.eos_ids]
            return str(decode(ids[start : eos_at[0] if eos_at else stop], skip_special_tokens=True))
        text = ""
        for piece, (start, stop) in zip(self.pieces, self.gaps, strict=False):
            filled = added_text(decode, ids[:start], ids[start:stop])
            has_space = piece.endswith(" ") and filled[:1].isspace()  # the filled tokens begin with a space already
            text += (piece[:-1] if has_space else piece) + filled
        return text + self.pieces[-1]


def read_prompts(denoiser: Denoiser, prompts: Sequence[str | Messages], length: Length) -> list[Prompt]:
    """Rows for raw prompts, messages (through the chat template) and texts with `<mask:12>` in them.

    `length` is the length of the answers: one for all, or one per prompt. A text with gaps has none; the default of the
    others is that of :func:`with_answer`.
    """
    Facts.of(denoiser)
    require(len(prompts) > 0, "there is no prompt to answer: give at least one.")
    require(
        denoiser.tokenizer is not None, "this model has no tokenizer: build a canvas from token ids and use decode."
    )
    for number, prompt in enumerate(prompts, 1):
        which = "the prompt" if len(prompts) == 1 else f"prompt {number}"
        require(
            isinstance(prompt, str) or _are_messages(prompt),
            f'{which} must be a text or messages ({{"role": ..., "content": ...}}), not {shown(prompt)}.',
        )
        has_text = not isinstance(prompt, str) or bool(prompt.strip())
        require(has_text, f"{which} is empty: to generate without a prompt, decode a canvas of masks alone.")
    gapped = [isinstance(p, str) and has_gaps(denoiser, p) for p in prompts]
    if length is None or is_whole(length):
        require(length is None or not all(gapped), "a text with gaps has no answer length: leave the length out.")
        length = [None if gap else length for gap in gapped]
    fits = isinstance(length, Sequence) and all(n is None or is_whole(n) for n in length)
    require(fits, f"the length must be a whole number or one per prompt, not {shown(length)}.")
    assert isinstance(length, Sequence)
    require(
        len(length) == len(prompts),
        f"{counted(len(length), 'length')} for {counted(len(prompts), 'prompt')}: give one for each.",
    )
    return [
        _with_gaps(denoiser, str(p), n) if gap else with_answer(denoiser, p, n)
        for p, gap, n in zip(prompts, gapped, length, strict=True)
    ]


def is_one_prompt(prompts: object) -> bool:
    """Whether a value is one text or the messages of one, and not a list of either. Raise if it is neither."""
    require(isinstance(prompts, Sequence), f"a prompt is a text, messages or a list of them, not {shown(prompts)}.")
    assert isinstance(prompts, Sequence)
    return isinstance(prompts, str) or (len(prompts) > 0 and isinstance(prompts[0], dict))


def is_whole(length: object) -> TypeGuard[int]:
    """Whether a value is an int and not a bool."""
    return isinstance(length, int) and not isinstance(length, bool)


def has_gaps(denoiser: Denoiser, text: str) -> bool:
    """Whether a text has gaps to fill."""
    return _gap_pattern(denoiser.tokenizer).search(text) is not None


def canvas_of(denoiser: Denoiser, prompts: Sequence[Prompt]) -> Canvas:
    return Canvas.infill([prompt.ids for prompt in prompts], mask_id=denoiser.mask_id)


def answer_texts(denoiser: Denoiser, prompts: Sequence[Prompt], trace: Trace) -> list[str]:
    """The text of each row of a finished decode."""
    return [p.answer(denoiser, row.tolist()) for p, row in zip(prompts, trace.rows, strict=True)]


def encode(denoiser: Denoiser, prompt: str | Messages) -> list[int]:
    """Token ids of a raw prompt, or of messages through the model's chat template."""
    tokenizer = denoiser.tokenizer
    if not isinstance(prompt, str):
        known = hasattr(tokenizer, "apply_chat_template") and getattr(tokenizer, "chat_template", True)
        require(bool(known), "this model has no chat template: give it a plain prompt.")
        prompt = str(tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False))
    try:
        prompt.encode()
    except UnicodeEncodeError as error:  # no encoding can write it, and no tokenizer can read it
        code = f"U+{ord(prompt[error.start]):04X}"
        raise UncodeError(
            f"the prompt has half of a surrogate pair ({code}) at character {error.start}: remove it, or decode the "
            "text with errors='replace'."
        ) from None
    return list(tokenizer.encode(prompt, add_special_tokens=False))


def _are_messages(value: object) -> bool:
    """Whether a value is a list of messages: mappings with a role. The chat template reads the other keys."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
        return False
    return all(isinstance(one, Mapping) and isinstance(one.get("role"), str) for one in value)


def _gap_pattern(tokenizer: Any) -> re.Pattern[str]:
    """The pattern of a gap: `<mask:n>`, or the tokenizer's own mask token for a gap of one token."""
    own = getattr(tokenizer, "mask_token", None)
    return re.compile(f"{MARKER}|{re.escape(own)}" if own else MARKER)


def with_answer(denoiser: Denoiser, prompt: str | Messages, length: int | None) -> Prompt:
    """A prompt and masks for its answer. `<mask:3>` in the prompt is ordinary text here.

    Without a length, the answer has DEFAULT_LENGTH tokens, or as many as the model has room for.
    """
    before, after = denoiser.frame
    ids = [*before, *encode(denoiser, prompt)]
    if length is None:
        length = DEFAULT_LENGTH
        if denoiser.is_bounded and denoiser.context is not None:
            length = max(1, min(length, denoiser.context - len(ids) - len(after)))
    require(length > 0, f"the length to generate must be at least 1, not {shown(length)}.")
    require(length < 2**31, f"the length to generate must be below 2^31, not {shown(length)}.")
    require_memory_for_canvas(length)
    require(denoiser.mask_id not in ids, "the prompt contains the mask token: mark gaps in a plain text instead.")
    return Prompt([*ids, *[denoiser.mask_id] * length, *after], [(len(ids), len(ids) + length)])


def _with_gaps(denoiser: Denoiser, text: str, length: int | None) -> Prompt:
    require(length is None, "a text with gaps has no answer length: leave the length out.")
    pieces: list[str] = []
    sizes: list[int | None] = []
    at = 0
    for found in _gap_pattern(denoiser.tokenizer).finditer(text):
        size = gap_size(found)
        if pieces and found.start() == at:  # adjacent gaps are one gap
            sizes[-1] = None if size is None or sizes[-1] is None else sizes[-1] + size
        else:
            pieces.append(text[at : found.start()])
            sizes.append(size)
        at = found.end()
    pieces.append(text[at:])
    return with_pieces(denoiser, pieces, choose_sizes(denoiser, pieces, sizes))


def choose_sizes(denoiser: Denoiser, pieces: list[str], sizes: Sequence[int | None]) -> list[int]:
    """The sizes of the gaps, with those chosen that are None: 1 to MAX_CHOSEN_TOKENS, the one that fits best.

    All of them first get one size together. Then each gets its own, from left to right, while the others stay. Of sizes
    that fit equally well the smallest is taken. The choice needs neither a sampler nor a seed.
    """
    wanted = [gap for gap, size in enumerate(sizes) if size is None]
    chosen = [size or 1 for size in sizes]
    for group in [wanted] * bool(wanted) + [[gap] for gap in wanted if len(wanted) > 1]:
        tried = [
            [n if gap in group else chosen[gap] for gap in range(len(sizes))] for n in range(1, MAX_CHOSEN_TOKENS + 1)
        ]
        fits = list[tuple[bool, float]]()
        for each in tried:
            try:
                fits.append(_fit(denoiser, with_pieces(denoiser, pieces, each), wanted))
            except UncodeError:  # longer than this model can read
                if not fits:
                    raise
                break
        chosen = tried[fits.index(max(fits))]
    return chosen


def _fit(denoiser: Denoiser, prompt: Prompt, wanted: list[int]) -> tuple[bool, float]:
    """How well the sizes of the `wanted` gaps suit the model, by one forward; larger is better.

    The mean log-probability of the model's proposals in a gap tends to be largest near the right size (CAL, arXiv
    2602.00476). It alone is fooled by a gap that ends in the middle of what the model wants to write. So the given
    token after the gap is masked too, and the log-probability of that token is added. Sizes at which the model
    proposes nothing visible, or the end of the text, come last.
    """
    start, ids = prompt.gaps[0][0], torch.tensor(prompt.ids, device=denoiser.device)
    masks = ids[None, start:] == denoiser.mask_id
    ends = [prompt.gaps[gap][1] for gap in wanted]
    masks[0, [end - start for end in ends if end < len(ids)]] = True
    logp = log_probabilities(masked_logits(denoiser, ids, start, masks))[0]
    fit, is_text = 0.0, True
    for gap in wanted:
        first, end = prompt.gaps[gap]
        best = logp[first - start : end - start].max(-1)
        proposal = best.indices.tolist()
        visible = str(denoiser.tokenizer.decode(proposal, skip_special_tokens=True)).strip()
        is_text &= bool(visible) and not set(proposal) & set(denoiser.eos_ids)
        fit += float(best.values.mean()) + (float(logp[end - start, ids[end]]) if end < len(ids) else 0.0)
    return is_text, fit


def blank_gaps(denoiser: Denoiser, prompts: Sequence[Prompt], trace: Trace) -> list[str]:
    """A sentence for each row with a gap that was filled with nothing visible. It says what to write instead."""
    found = list[str]()
    for prompt, row in zip(prompts, trace.rows, strict=True):
        ids, gaps = row.tolist(), [] if prompt.pieces is None else prompt.gaps
        texts = [added_text(denoiser.tokenizer.decode, ids[:start], ids[start:stop]) for start, stop in gaps]
        blank = next((number for number, text in enumerate(texts) if not text.strip()), None)
        if blank is None:
            continue
        size, needed = gaps[blank][1] - gaps[blank][0], len(encode(denoiser, " 1"))
        why = f"a number after a space takes at least {needed} tokens here, the space being one: " * (size < needed)
        found.append(
            f"gap {blank + 1} ({counted(size, 'token')}) was filled with nothing visible: {why}give it more tokens, "
            f"or write <mask:{CHOSEN}> to let the model choose how many."
        )
    return found


def with_pieces(denoiser: Denoiser, pieces: list[str], sizes: list[int]) -> Prompt:
    """Pieces of text with gaps of these sizes, in tokens, between them. A marker in a piece is ordinary text."""
    require_memory_for_canvas(sum(sizes))
    before, after = denoiser.frame
    ids, gaps = list(before), []
    for piece, size in zip(pieces, sizes, strict=False):
        ids += encode(denoiser, piece.removesuffix(" "))  # the tokens of the gap bring the space before it
        gaps.append((len(ids), len(ids) + size))
        ids += [denoiser.mask_id] * size
    return Prompt([*ids, *encode(denoiser, pieces[-1]), *after], gaps, pieces)


def added_text(decode: Callable[..., str], before: list[int], ids: list[int]) -> str:
    """The text that `ids` add after `before`. It depends on `before`: tokens may continue a word or bring a space."""
    context, whole = (str(decode(part, skip_special_tokens=True)) for part in (before, before + ids))
    if whole.startswith(context):
        return whole[len(context) :]
    return str(decode(ids, skip_special_tokens=True))
