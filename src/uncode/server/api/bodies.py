"""The bodies of requests.

A list is read up to its first wrong item, and a field that may be several things is read as the one that its first item
says: a body that is refused costs one error, however long it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag, model_validator
from pydantic.json_schema import SkipJsonSchema

from ..decoding.prompts import PreparedPrompt, Prompts
from ..errors import ApiError
from .constraint_fields import ConstrainedFields
from .fields import TEXT_OR_LIST, UNSUPPORTED, Body, Identifier, NeverSet, Whole, _only

MAX_MESSAGES = 2048
"""Messages of a chat, and parts of a message."""
MAX_ALTERNATIVES = 20
MAX_PARTS = 8192
"""Texts and gaps of `infill`."""


def _first_item(value: object) -> str:
    """Which of the things that a field may be is meant: a text, a list, or a list of lists."""
    if not isinstance(value, list):
        return "text"
    first = value[0] if value else None
    return "texts" if isinstance(first, str) else "lists" if isinstance(first, list) else "list"


Ids = Annotated[list[StrictInt], Field(fail_fast=True)]
PromptField = Annotated[
    Annotated[StrictStr, Tag("text")]
    | Annotated[list[StrictStr], Field(fail_fast=True), Tag("texts")]
    | Annotated[Ids, Tag("list")]
    | Annotated[list[Ids], Field(fail_fast=True), Tag("lists")],
    Discriminator(_first_item),
]


class CompletionBody(ConstrainedFields):
    """The body of /v1/completions."""

    prompt: PromptField | None = Field(
        None,
        description="A text, token ids, or several of either. Mask ids among token ids are gaps to fill; a marker in a "
        "text is ordinary text.",
    )
    suffix: StrictStr | None = Field(None, description="Text after the answer: the answer fills the gap.")
    infill: Annotated[list[StrictStr | Whole], Field(fail_fast=True, max_length=MAX_PARTS)] | None = Field(
        None,
        description='Texts and gaps, instead of a prompt: ["Paris is the ", 2, " of France."] has a gap of 2 tokens.',
        examples=[["Paris is the ", 2, " of France."]],
    )
    logprobs: Annotated[Whole, Field(ge=0, le=MAX_ALTERNATIVES)] | None = Field(
        None,
        description="Log probabilities of the tokens when they were committed, and of the so many most probable ones.",
    )
    echo: StrictBool | None = Field(None, description="Show the prompt before the answer.")
    best_of: StrictInt | None = Field(None, description="The same as n, or nothing: answers are not ranked.")

    @property
    def prompt_count(self) -> int:
        prompt = self.prompt
        return len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1

    def prepare(self, read: Prompts, length: int | None) -> list[PreparedPrompt]:
        if self.best_of not in (None, self.n or 1):
            raise ApiError(400, f"best_of {UNSUPPORTED}: leave it out, or send n.", param="best_of", code="unsupported")
        found = self._prepare(read, length)
        if not self.echo:
            return found
        given = {"infill": self.infill, "logprobs": self.logprobs, "diffusing": self.diffusing or None}
        unfit = [name for name, value in given.items() if value is not None]
        if unfit:
            raise ApiError(400, f"echo goes with a plain answer: leave out {unfit[0]}.", param="echo")
        return [read.echoed(one) for one in found]

    def _prepare(self, read: Prompts, length: int | None) -> list[PreparedPrompt]:
        prompt = self.prompt
        if self.infill is not None:
            if prompt or self.suffix is not None:
                raise ApiError(400, "infill stands instead of prompt and suffix: leave those out.", param="infill")
            return [read.infill(self.infill, length)]
        if prompt is None:
            raise ApiError(400, "the prompt is missing: send a text or token ids.", param="prompt")
        if isinstance(prompt, str):
            return [read.answer(prompt, length, self.suffix)]
        if self.suffix is not None:
            raise ApiError(400, "a suffix belongs to one prompt that is a text.", param="suffix")
        if not prompt:
            raise ApiError(400, "the prompt is empty: send a text or token ids.", param="prompt")
        if isinstance(prompt[0], int):
            return [read.ids([one for one in prompt if isinstance(one, int)], length)]
        return [read.answer(one, length) if isinstance(one, str) else read.ids(list(one), length) for one in prompt]


class FimBody(ConstrainedFields):
    """The body of /v1/fim/completions: the text between a prompt and a suffix."""

    prompt: StrictStr
    suffix: StrictStr | None = None
    random_seed: Whole | None = Field(None, description="Another name of seed.")

    def prepare(self, read: Prompts, length: int | None) -> list[PreparedPrompt]:
        return [read.answer(self.prompt, length, self.suffix)]


MEDIA = {"image": "images", "input_image": "images", "image_url": "images", "input_audio": "sounds", "audio": "sounds"}
MEDIA |= {"video_url": "videos", "file": "files", "input_file": "files"}
"""Parts of a message that are no text."""


class TextPart(Body):
    """A part of a message that is text."""

    type: Literal["text", "input_text", "output_text"]
    text: StrictStr
    annotations: Annotated[list[object] | None, _only([])] = None
    logprobs: Annotated[list[object] | None, _only([])] = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_media(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(kind := data.get("type"), str) and kind in MEDIA:
            raise ValueError(f"{UNSUPPORTED}: {MEDIA[kind]} are not supported; send text")
        return data


class Message(Body):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[
        Annotated[StrictStr, Tag("text")]
        | Annotated[list[TextPart], Field(fail_fast=True, max_length=MAX_MESSAGES), Tag("list")],
        TEXT_OR_LIST,
    ]
    name: Identifier = None
    refusal: NeverSet = None
    annotations: Annotated[list[object] | None, _only([])] = None
    audio: NeverSet = None
    tool_calls: Annotated[list[object] | None, _only([], why="tools")] = None
    function_call: Annotated[SkipJsonSchema[Any], _only(why="tools")] = None

    @model_validator(mode="before")
    @classmethod
    def _read_turns_of_tools(cls, data: Any) -> Any:
        """An assistant that called a tool said nothing."""
        if not isinstance(data, dict):
            return data
        if data.get("role") in ("tool", "function"):
            raise ValueError(f"{UNSUPPORTED}: tools are not supported; leave their messages out")
        is_silent = data.get("role") == "assistant" and "content" in data and data["content"] is None
        return data | {"content": ""} if is_silent else data

    def plain(self) -> dict[str, str]:
        """Role and text, as chat templates read them."""
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class ChatBody(ConstrainedFields):
    """The body of /v1/chat/completions."""

    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)
    logprobs: StrictBool | None = None
    top_logprobs: Annotated[Whole, Field(ge=0, le=MAX_ALTERNATIVES)] | None = Field(
        None, description="Show so many of the most probable tokens too."
    )
    modalities: Annotated[Annotated[list[StrictStr], Field(fail_fast=True)] | None, _only(["text"])] = None
    tools: Annotated[list[object] | None, _only([], why="tools")] = None
    functions: Annotated[list[object] | None, _only([], why="tools")] = None
    tool_choice: Annotated[Any, _only("none", "auto", why="tools")] = None
    function_call: Annotated[Any, _only("none", "auto", why="tools")] = None
    parallel_tool_calls: StrictBool | None = None
    prediction: NeverSet = None
    audio: NeverSet = None
    reasoning_effort: Annotated[StrictStr | None, _only("none")] = None
    verbosity: Annotated[StrictStr | None, _only("medium")] = None
    web_search_options: NeverSet = None

    def prepare(self, read: Prompts, length: int | None) -> list[PreparedPrompt]:
        return [read.chat([message.plain() for message in self.messages], length)]
