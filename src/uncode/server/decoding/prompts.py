"""From the prompts of a body to rows of token ids. Gaps are made of ids and sizes, never of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.denoiser import Denoiser
from ...core.errors import UncodeError
from ...engine.recovery import first_line
from ...generation.prompt import Messages, Prompt, encode, with_pieces
from ..errors import ApiError
from ..settings import ServerLimits
from .reader import GapsReader, IdsReader, RowReader, Wanted

EMPTY_SUFFIX = "<|endoftext|>"
"""What editors send where nothing follows the cursor."""
CHARACTERS_PER_TOKEN = 16
"""A text with more characters for each token that a prompt may have is refused before it is encoded."""


@dataclass(frozen=True, eq=False)
class PreparedPrompt:
    """One row to decode, before its sampler and seed are known."""

    prompt: Prompt
    tokens: int
    """Tokens that were given."""
    kind: type[RowReader] = RowReader
    context: Sequence[int] = ()
    """Tokens that the answer continues in the same word or line: those before a gap."""
    lead: str = ""
    """Text that is shown before the answer."""

    @property
    def is_answer(self) -> bool:
        """Whether the text may end at an EOS token. Gaps in a text are always filled completely."""
        return self.kind is RowReader

    def reader(self, denoiser: Denoiser, wanted: Wanted) -> RowReader:
        ends = "stop" if wanted.stops else "stop_token_ids" if wanted.stop_ids else None
        unfit = ends or ("logprobs" if wanted.logprobs else None)
        if unfit is not None and not self.is_answer:
            raise ApiError(400, f"a prompt with gaps takes no {unfit}: leave it out.", param=unfit)
        reader = self.kind(denoiser, self.prompt, wanted, self.context)
        reader.lead = self.lead or reader.lead
        return reader


class Prompts:
    """Reads prompts for one model, within the limits of a server."""

    def __init__(self, denoiser: Denoiser, limits: ServerLimits, length: int) -> None:
        self._denoiser, self._limits, self._length = denoiser, limits, length
        self.context = limits.context or denoiser.context
        """Tokens of a prompt and its answer together; None where there is no limit."""
        self.has_chat_template = bool(getattr(denoiser.tokenizer, "chat_template", None))

    def answer(self, text: str, length: int | None, suffix: str | None = None) -> PreparedPrompt:
        """A text and masks after it; with a suffix, the masks are a gap before the suffix."""
        suffix = None if suffix == EMPTY_SUFFIX else suffix
        if not text and not suffix:
            raise ApiError(400, "the prompt is empty: send a text.", param="prompt")
        self._check_texts([text, suffix or ""], "prompt" if text else "suffix")
        before, after = self._denoiser.frame
        head, tail = self._encode(text, "prompt"), self._encode(suffix or "", "suffix")
        return self._masks_between([*before, *head], length, [*tail, *after], head if suffix else ())

    def chat(self, messages: list[dict[str, str]], length: int | None) -> PreparedPrompt:
        """Messages through the model's chat template. A model without one gets their texts, a blank line between."""
        before, after = self._denoiser.frame
        return self._masks_between([*before, *self._chat_ids(messages)], length, after)

    def tokens(self, asked: str | list[dict[str, str]], with_frame: bool) -> list[int]:
        """The token ids of a text or of messages, with those that stand before every prompt or without."""
        if isinstance(asked, str):
            self._check_texts([asked], "prompt")
        ids = self._encode(asked, "prompt") if isinstance(asked, str) else self._chat_ids(asked)
        return [*(self._denoiser.frame[0] if with_frame else ()), *ids]

    def text(self, ids: list[int]) -> str:
        """The text of token ids."""
        self._check_prompt(len(ids), 0)
        self._check_ids(ids, "tokens")
        return str(self._denoiser.tokenizer.decode(ids))

    def _chat_ids(self, messages: list[dict[str, str]]) -> list[int]:
        self._check_texts([one["content"] for one in messages], "messages")
        prompt: str | Messages = messages
        if not self.has_chat_template:
            prompt = "\n\n".join(one["content"] for one in messages)
        if isinstance(prompt, str) and not prompt.strip():
            raise ApiError(400, "the messages are empty: send a text.", param="messages")
        return self._encode(prompt, "messages")

    def ids(self, ids: list[int], length: int | None) -> PreparedPrompt:
        """Token ids as they are. Mask ids among them are gaps; without any, the answer follows."""
        mask = self._denoiser.mask_id
        masks = ids.count(mask)
        self._check_length(masks, "prompt")
        self._check_prompt(len(ids) - masks, masks)
        self._check_ids(ids, "prompt")
        if not ids:
            raise ApiError(400, "the prompt is empty: send token ids.", param="prompt")
        if not masks:
            return self._masks_between(ids, length, ())
        if length is not None:
            raise ApiError(400, "a prompt with gaps has no answer length: leave max_tokens out.", param="max_tokens")
        return self._with_gaps(Prompt(ids, _runs(ids, mask)), IdsReader)

    def infill(self, parts: Sequence[str | int], length: int | None) -> PreparedPrompt:
        """Texts and sizes of the gaps between them."""
        if length is not None:
            raise ApiError(400, "the gaps of infill have their sizes: leave max_tokens out.", param="max_tokens")
        self._check_texts([part for part in parts if isinstance(part, str)], "infill")
        texts, sizes = [list[str]()], list[int]()
        for part in (part for part in parts if part != ""):
            if isinstance(part, str):
                texts[-1].append(part)
            elif part < 1:
                raise ApiError(400, f"a gap of infill must have at least 1 token, not {part}.", param="infill")
            elif sizes and not texts[-1]:
                sizes[-1] += part  # adjacent gaps are one gap
            else:
                sizes.append(part)
                texts.append([])
        if not sizes:
            raise ApiError(400, "infill has no gap: put a number of tokens among its texts.", param="infill")
        self._check_length(sum(sizes), "infill")
        try:
            prompt = with_pieces(self._denoiser, ["".join(one) for one in texts], sizes)
        except UncodeError as error:
            raise ApiError(400, str(error), param="infill") from None
        masks = prompt.ids.count(self._denoiser.mask_id)
        if masks != sum(sizes):
            raise ApiError(400, "a text of infill contains the mask token: give gaps as numbers.", param="infill")
        return self._with_gaps(prompt, GapsReader)

    def echoed(self, prompt: PreparedPrompt) -> PreparedPrompt:
        """The prompt with its own text before the answer. A prompt with gaps is shown in any case."""
        if not prompt.is_answer:
            return prompt
        before, ids = len(self._denoiser.frame[0]), prompt.prompt.ids[: prompt.prompt.gaps[0][0]]
        return replace(prompt, lead=self._denoiser.tokenizer.decode(ids[before:], skip_special_tokens=True))

    def _encode(self, prompt: str | Messages, param: str) -> list[int]:
        try:
            ids = encode(self._denoiser, prompt) if prompt else []
        except UncodeError as error:
            raise ApiError(400, str(error), param=param) from None
        except Exception as error:  # the chat template refuses these messages
            reason = f"{type(error).__name__}: {first_line(error)[:200]}"
            raise ApiError(400, f"the chat template refuses the messages ({reason}).", param=param) from None
        if self._denoiser.mask_id in ids:
            raise ApiError(
                400, f"the {param} contains the mask token: give gaps as token ids or with infill.", param=param
            )
        return ids

    def _masks_between(
        self, head: Sequence[int], length: int | None, tail: Sequence[int], context: Sequence[int] = ()
    ) -> PreparedPrompt:
        given = len(head) + len(tail)
        room = None if self.context is None else self.context - given
        if length is None:
            length = self._length if room is None else min(self._length, max(room, 1))
        self._check_length(length, "max_tokens")
        self._check_prompt(given, length)
        ids = [*head, *[self._denoiser.mask_id] * length, *tail]
        return PreparedPrompt(Prompt(ids, [(len(head), len(head) + length)]), given, context=context)

    def _with_gaps(self, prompt: Prompt, kind: type[RowReader]) -> PreparedPrompt:
        masks = sum(stop - start for start, stop in prompt.gaps)
        self._check_length(masks, "prompt")
        self._check_prompt(len(prompt.ids) - masks, masks)
        return PreparedPrompt(prompt, len(prompt.ids) - masks, kind)

    def _check_length(self, length: int, param: str) -> None:
        most = self._limits.max_tokens
        if length > most:
            raise ApiError(400, f"{length} tokens are too many: this server generates at most {most}.", param=param)

    def _check_ids(self, ids: Sequence[int], param: str) -> None:
        size = self._denoiser.vocab_size
        strange = next((one for one in ids if not 0 <= one < size), None)
        if strange is not None:
            limit = f"the vocabulary has ids from 0 to {size - 1}"
            raise ApiError(400, f"token id {strange} is not the model's: {limit}.", param=param)

    def _check_texts(self, texts: Sequence[str], param: str) -> None:
        characters, most = sum(map(len, texts)), CHARACTERS_PER_TOKEN * self._limits.prompt_tokens
        if characters > most:
            message = f"{characters} characters of the {param} are too many: this server takes at most {most}."
            raise _too_long(message, param)

    def _check_prompt(self, given: int, length: int) -> None:
        most = self._limits.prompt_tokens
        if given > most:
            raise _too_long(f"the prompt has {given} tokens: this server takes at most {most}.", "prompt")
        if self.context is not None and given + length > self.context:
            raise _too_long(
                f"{given} tokens of the prompt and {length} to generate exceed the context of {self.context}: "
                "shorten the prompt, or lower max_tokens.",
                "max_tokens",
            )


def _too_long(message: str, param: str) -> ApiError:
    return ApiError(400, message, param=param, code="context_length_exceeded")


def _runs(ids: Sequence[int], mask: int) -> list[tuple[int, int]]:
    """The runs of masks, first and one past the last."""
    edges = [
        at for at in range(len(ids) + 1) if (at < len(ids) and ids[at] == mask) != (at > 0 and ids[at - 1] == mask)
    ]
    return list(zip(edges[::2], edges[1::2], strict=True))
