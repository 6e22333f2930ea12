"""`/v1/responses`, for texts: its body, its answer and the events of its stream."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, Tag, model_validator
from pydantic.json_schema import SkipJsonSchema

from ..decoding.prompts import PreparedPrompt, Prompts
from ..decoding.reader import CompletionOutput, Update
from ..errors import Json
from .bodies import MAX_MESSAGES, Message
from .constraint_fields import ConstrainedFields, Format, Schema, Source, source_of
from .fields import TEXT_OR_LIST, AtLeastOne, Body, Identifier, NeverSet, _only
from .replies import AnswerPart, Reply


class InputMessage(Message):
    """A message of the input; those that an earlier answer held are taken as they were."""

    type: Annotated[StrictStr | None, _only("message")] = None
    id: Identifier = None
    status: Identifier = None
    phase: NeverSet = None


class TextFormat(Body):
    """The format of the answer, as `response_format` of the other endpoints has it."""

    type: Format
    name: Identifier = None
    description: StrictStr | None = None
    schema_: Schema | None = Field(None, alias="schema")
    strict: StrictBool | None = None

    @model_validator(mode="after")
    def _check_schema(self) -> TextFormat:
        if (self.schema_ is not None) != (self.type == "json_schema"):
            raise ValueError('schema goes with the type "json_schema"')
        return self


class TextOptions(Body):
    """How the text is written."""

    format: TextFormat | None = None
    verbosity: Annotated[StrictStr | None, _only("medium")] = None


class ResponsesBody(ConstrainedFields):
    """The body of /v1/responses."""

    input: Annotated[
        Annotated[StrictStr, Tag("text")]
        | Annotated[list[InputMessage], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES), Tag("list")],
        TEXT_OR_LIST,
    ]
    instructions: StrictStr | None = Field(None, description="A system message before the input.")
    max_output_tokens: AtLeastOne | None = Field(None, description="Tokens to generate: the masks of the canvas.")
    text: TextOptions | None = Field(None, description="`text.format` is what `response_format` is elsewhere.")
    response_format: NeverSet = None
    tools: Annotated[list[object] | None, _only([], why="tools")] = None
    tool_choice: Annotated[Any, _only("none", "auto", why="tools")] = None
    parallel_tool_calls: StrictBool | None = None
    truncation: Annotated[StrictStr | None, _only("disabled")] = None
    background: Annotated[StrictBool | None, _only(False)] = None
    include: Annotated[list[object] | None, _only([])] = None
    previous_response_id: Annotated[SkipJsonSchema[Any], _only(why="stored answers")] = None
    conversation: Annotated[SkipJsonSchema[Any], _only(why="stored answers")] = None
    reasoning: NeverSet = None
    n: Annotated[AtLeastOne | None, _only(1)] = None
    commits: Annotated[StrictBool, _only(False)] = False
    diffusing: Annotated[StrictBool, _only(False)] = False
    trace: Annotated[StrictBool, _only(False)] = False

    def prepare(self, read: Prompts, length: int | None) -> list[PreparedPrompt]:
        first = [] if self.instructions is None else [{"role": "system", "content": self.instructions}]
        if isinstance(self.input, str):
            return [read.chat([*first, {"role": "user", "content": self.input}], length)]
        return [read.chat([*first, *(message.plain() for message in self.input)], length)]

    def _sources(self) -> dict[str, Source | None]:
        given = None if self.text is None else self.text.format
        own = None if given is None else source_of(given.type, given.schema_)
        return super()._sources() | {"text.format": own}


class ResponsesAnswer(AnswerPart):
    """The answer of /v1/responses. `seed`, `sampler` and `sampler_options` make it again."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed", "incomplete"]
    incomplete_details: Json | None
    error: None
    model: str
    system_fingerprint: str
    output: list[Json]
    usage: Json | None
    seed: int
    sampler: str | Json
    sampler_options: Json


@dataclass
class ResponsesReply(Reply):
    """Of /v1/responses. Its stream is a sequence of events with numbers."""

    prefix, whole, part = "resp", "response", "response"

    def __post_init__(self) -> None:
        self._numbers = count()

    def answer(self, outputs: list[CompletionOutput]) -> Json:
        return self._response(outputs) | self.recipe

    def first_chunks(self, choices: int) -> list[Json]:
        begun: Json = {"response": self._response([])}
        return [
            self._event("created", begun),
            self._event("in_progress", begun),
            self._event("output_item.added", {"output_index": 0, "item": self._message(None)}),
            self._event("content_part.added", self._at({"part": _part("")})),
        ]

    def chunk(self, index: int, update: Update, offset: int = 0) -> Json:
        return self._event("output_text.delta", self._at({"delta": update.text, "logprobs": []}))

    def last_chunk(self, index: int, output: CompletionOutput) -> Json:
        return self._event("output_text.done", self._at({"text": output.text, "logprobs": []}))

    def ending_chunks(self, outputs: list[CompletionOutput], usage: bool) -> list[Json]:
        whole = self._response(outputs)
        return [
            self._event("content_part.done", self._at({"part": _part(outputs[0].text)})),
            self._event("output_item.done", {"output_index": 0, "item": self._message(outputs[0])}),
            self._event(str(whole["status"]), {"response": whole}),
        ]

    def _event(self, kind: str, facts: Json) -> Json:
        return {"type": f"response.{kind}", "sequence_number": next(self._numbers)} | facts

    def _at(self, facts: Json) -> Json:
        return {"item_id": f"msg_{self.id}", "output_index": 0, "content_index": 0} | facts

    def _response(self, outputs: list[CompletionOutput]) -> Json:
        """The answer; without an output it is in progress."""
        is_cut = bool(outputs) and outputs[0].finish_reason == "length"
        return {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.created,
            "status": "incomplete" if is_cut else "completed" if outputs else "in_progress",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "error": None,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "output": [self._message(one) for one in outputs],
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "usage": self._counts(outputs) if outputs else None,
        }

    def _message(self, output: CompletionOutput | None) -> Json:
        status = "in_progress" if output is None else "completed" if output.finish_reason == "stop" else "incomplete"
        content = [] if output is None else [_part(output.text)]
        return {"id": f"msg_{self.id}", "type": "message", "role": "assistant", "status": status, "content": content}

    def _counts(self, outputs: list[CompletionOutput]) -> Json:
        """The usage, by the names of this API."""
        tokens, forwards = outputs[0].tokens, outputs[0].forwards
        return {
            "input_tokens": self.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 0, "forwards": forwards},
            "total_tokens": self.prompt_tokens + tokens,
        }


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}
