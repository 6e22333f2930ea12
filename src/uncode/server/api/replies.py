"""Answers and chunks in the shapes of the OpenAI API, for texts and for chats, and those shapes for its document."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from ..decoding.reader import CompletionOutput, TokenLog, Update
from ..errors import Json

# -- the shapes ------------------------------------------------------------------------------------


class AnswerPart(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(protected_namespaces=())


class ErrorDetail(AnswerPart):
    """What was wrong, and what to do."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(AnswerPart):
    """An error."""

    error: ErrorDetail


class UsageDetails(AnswerPart):
    """Forwards that the rows took part in."""

    forwards: int


class Usage(AnswerPart):
    """Tokens and forwards."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: UsageDetails


class Head(AnswerPart):
    """What all answers have. `seed`, `sampler` and `sampler_options`, which stand at the top level of a body, make the
    answer again."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    seed: int
    sampler: str | Json
    sampler_options: Json
    usage: Usage


class AnyChoice(AnswerPart):
    """What all choices have."""

    index: int
    finish_reason: Literal["stop", "length"]
    logprobs: Json | None
    trace: Json | None = None
    token_ids: list[int] | None = None
    step_map: list[int] | None = None


class TextChoice(AnyChoice):
    """A choice of a text."""

    text: str


class TextAnswer(Head):
    """The answer of /v1/completions and /v1/fim/completions."""

    object: Literal["text_completion"]
    choices: list[TextChoice]


class ChatMessage(AnswerPart):
    """The message of the model."""

    role: Literal["assistant"]
    content: str
    refusal: None


class ChatChoice(AnyChoice):
    """A choice of a chat."""

    message: ChatMessage


class ChatAnswer(Head):
    """The answer of /v1/chat/completions."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class ModelAnswer(AnswerPart):
    """A model."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(AnswerPart):
    """All models."""

    object: Literal["list"]
    data: list[ModelAnswer]


Responses = dict[int | str, dict[str, Any]]
STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


def errors(*statuses: int) -> Responses:
    """The errors of an endpoint."""
    return {status: {"model": ErrorAnswer} for status in statuses}


def decoded(answer: type[AnswerPart]) -> Responses:
    """The answers of an endpoint that decodes."""
    found: Responses = {200: {"model": answer, "content": STREAM, "description": "The answer, whole or streamed."}}
    return found | errors(400, 401, 403, 404, 408, 413, 429, 500, 503)


# -- what is sent ----------------------------------------------------------------------------------


@dataclass
class Reply:
    """What all answers of one request share."""

    prefix: ClassVar[str]
    whole: ClassVar[str]
    """`object` of an answer."""
    part: ClassVar[str]
    """`object` of a chunk."""

    model: str
    fingerprint: str
    recipe: Json
    """What makes the answer again. A stream says it in its first chunk alone: a sampler as data may be as large as a
    body."""
    prompt_tokens: int
    alternatives: int | None = None
    """Most probable tokens to list for each token; None without log probabilities."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def answer(self, outputs: list[CompletionOutput]) -> Json:
        """The answer with all choices."""
        choices = []
        for index, one in enumerate(outputs):
            choice = {"index": index} | self._choice(one.text) | {"finish_reason": one.finish_reason}
            choices.append(choice | {"logprobs": self._logprobs(one.logs, 0)} | one.on_request)
        return self._head(self.whole) | self.recipe | {"choices": choices, "usage": self.usage(outputs)}

    def first_chunks(self, choices: int) -> list[Json]:
        """What opens a stream."""
        return []

    def opening_chunk(self, index: int, canvas: Json) -> Json:
        """The chunk before the first commits: the span that they fill."""
        return self._chunk(index, self._delta(""), {"finish_reason": None, "logprobs": None, "canvas": canvas})

    def chunk(self, index: int, update: Update, offset: int = 0) -> Json:
        """A chunk with what was added; `offset` counts the characters before it."""
        rest: Json = {"finish_reason": None, "logprobs": self._logprobs(update.logs, offset)}
        if update.commits:
            rest |= {"commits": update.commits, "mean_entropy": update.mean_entropy}
        if update.snapshot is None:
            return self._chunk(index, self._delta(update.text), rest)
        progress = {"diffusion_content": True, "diffusion_progress": round(update.progress, 4)}
        return self._chunk(index, self._delta(update.snapshot), rest) | {"diffusion_meta": progress}

    def last_chunk(self, index: int, output: CompletionOutput) -> Json:
        """The chunk that ends a choice."""
        ending: Json = {"finish_reason": output.finish_reason, "logprobs": None}
        return self._chunk(index, self._delta(None), ending | output.on_request)

    def ending_chunks(self, outputs: list[CompletionOutput], usage: bool) -> list[Json]:
        """What closes a stream: the usage alone, where it was asked for."""
        return [self._head(self.part) | {"choices": [], "usage": self.usage(outputs)}] if usage else []

    def usage(self, outputs: list[CompletionOutput]) -> Json:
        """Tokens, and forwards that the rows took part in."""
        tokens, forwards = sum(one.tokens for one in outputs), sum(one.forwards for one in outputs)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
            "completion_tokens_details": {"forwards": forwards},
        }

    def _head(self, kind: str) -> Json:
        return {
            "id": f"{self.prefix}-{self.id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def _chunk(self, index: int, delta: Json, rest: Json) -> Json:
        return self._head(self.part) | {"choices": [{"index": index} | delta | rest]}

    def _logprobs(self, logs: list[TokenLog], offset: int) -> Json | None:
        return None if self.alternatives is None or not logs else self._log(logs, offset)

    def _choice(self, text: str) -> Json:
        """The text of a whole choice."""
        raise NotImplementedError

    def _delta(self, text: str | None) -> Json:
        """The text that a chunk adds; None in the last one."""
        raise NotImplementedError

    def _log(self, logs: list[TokenLog], offset: int) -> Json:
        raise NotImplementedError


class TextReply(Reply):
    """Of /v1/completions and /v1/fim/completions."""

    prefix, whole, part = "cmpl", "text_completion", "text_completion"

    def _choice(self, text: str) -> Json:
        return {"text": text}

    def _delta(self, text: str | None) -> Json:
        return {"text": text or ""}

    def _log(self, logs: list[TokenLog], offset: int) -> Json:
        offsets = [offset]
        for log in logs[:-1]:
            offsets.append(offsets[-1] + len(log.text))
        return {
            "tokens": [log.text for log in logs],
            "token_logprobs": [log.logp for log in logs],
            "top_logprobs": [self._by_text(log) for log in logs] if self.alternatives else None,
            "text_offset": offsets,
        }

    def _by_text(self, log: TokenLog) -> dict[str, float]:
        """Of tokens with one text, the most probable one; the token itself has the text that it has in its place."""
        found: dict[str, float] = {}
        for one in (*log.alternatives, log):
            found.setdefault(log.text if one.token == log.token else one.text, one.logp)
        return found


class ChatReply(Reply):
    """Of /v1/chat/completions."""

    prefix, whole, part = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def first_chunks(self, choices: int) -> list[Json]:
        delta: Json = {"delta": {"role": "assistant", "content": ""}}
        return [self._chunk(index, delta, {"finish_reason": None, "logprobs": None}) for index in range(choices)]

    def _choice(self, text: str) -> Json:
        return {"message": {"role": "assistant", "content": text, "refusal": None}}

    def _delta(self, text: str | None) -> Json:
        return {"delta": {} if text is None else {"content": text}}

    def _log(self, logs: list[TokenLog], offset: int) -> Json:
        entries = [self._entry(log) | {"top_logprobs": [*map(self._entry, log.alternatives)]} for log in logs]
        return {"content": entries, "refusal": None}

    def _entry(self, log: TokenLog) -> Json:
        return {"token": log.text, "logprob": log.logp, "bytes": list(log.text.encode())}


def server_sent(data: Json | str) -> str:
    """A server-sent event."""
    return f"data: {data if isinstance(data, str) else json.dumps(data, allow_nan=False, separators=(',', ':'))}\n\n"
