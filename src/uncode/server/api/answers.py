"""The shapes of answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(protected_namespaces=())


class ErrorDetail(Shape):
    """What was wrong, and what to do."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(Shape):
    """An error."""

    error: ErrorDetail


class UsageDetails(Shape):
    """Forwards that the rows took part in."""

    forwards: int


class Usage(Shape):
    """Tokens and forwards."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: UsageDetails


class Head(Shape):
    """What all answers have. `seed`, `sampler` and `sampler_options`, which stand at the top level of a body, make the
    answer again."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    seed: int
    sampler: str | dict[str, Any]
    sampler_options: dict[str, Any]
    usage: Usage


class Choice(Shape):
    """What all choices have."""

    index: int
    finish_reason: Literal["stop", "length"]
    logprobs: dict[str, Any] | None
    trace: dict[str, Any] | None = None


class TextChoice(Choice):
    """A choice of a text."""

    text: str


class TextAnswer(Head):
    """The answer of /v1/completions and /v1/fim/completions."""

    object: Literal["text_completion"]
    choices: list[TextChoice]


class ChatMessage(Shape):
    """The message of the model."""

    role: Literal["assistant"]
    content: str
    refusal: None


class ChatChoice(Choice):
    """A choice of a chat."""

    message: ChatMessage


class ChatAnswer(Head):
    """The answer of /v1/chat/completions."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class ModelAnswer(Shape):
    """A model."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Shape):
    """All models."""

    object: Literal["list"]
    data: list[ModelAnswer]


Responses = dict[int | str, dict[str, Any]]
STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


def errors(*statuses: int) -> Responses:
    """The errors of an endpoint."""
    return {status: {"model": ErrorAnswer} for status in statuses}


def decoded(answer: type[Shape]) -> Responses:
    """The answers of an endpoint that decodes."""
    found: Responses = {200: {"model": answer, "content": STREAM, "description": "The answer, whole or streamed."}}
    return found | errors(400, 401, 403, 404, 408, 413, 429, 500, 503)
