"""Answers and chunks in the shapes of the OpenAI API, for texts and for chats."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from ..decoding.reader import Answer, TokenLog, Update


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
    recipe: dict[str, Any]
    """What makes the answer again. A stream says it in its first chunk alone: a sampler as data may be as large as a
    body."""
    prompt_tokens: int
    alternatives: int | None = None
    """Most probable tokens to list for each token: 0 or 1; None without log probabilities."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def answer(self, answers: list[Answer]) -> dict[str, Any]:
        """The answer with all choices."""
        choices = []
        for index, one in enumerate(answers):
            choice = {"index": index} | self._choice(one) | {"finish_reason": one.finish_reason}
            choices.append(choice | self._logprobs(one.logs, 0) | ({} if one.trace is None else {"trace": one.trace}))
        return self._head(self.whole) | self.recipe | {"choices": choices, "usage": self.usage(answers)}

    def chunk(self, index: int, update: Update, offset: int = 0) -> dict[str, Any]:
        """A chunk with what was added; `offset` counts the characters before it."""
        snapshot = update.snapshot is not None
        choice = {"index": index} | self._delta(update.snapshot if snapshot else update.text)
        choice |= {"finish_reason": None} | self._logprobs(update.logs, offset)
        if update.commits:
            choice["commits"] = [asdict(commit) for commit in update.commits]
            choice["mean_entropy"] = update.mean_entropy
        head = self._head(self.part) | {"choices": [choice]}
        if snapshot:
            head["diffusion_meta"] = {"diffusion_content": True, "diffusion_progress": round(update.progress, 4)}
        return head

    def opening_chunk(self, index: int, canvas: dict[str, Any]) -> dict[str, Any]:
        """The chunk before the first commits: the span that they fill."""
        choice = {"index": index} | self._delta("") | {"finish_reason": None, "logprobs": None, "canvas": canvas}
        return self._head(self.part) | {"choices": [choice]}

    def last_chunk(self, index: int, answer: Answer) -> dict[str, Any]:
        """The chunk that ends a choice."""
        choice = {"index": index} | self._end() | {"finish_reason": answer.finish_reason}
        choice |= {"logprobs": None} | ({} if answer.trace is None else {"trace": answer.trace})
        return self._head(self.part) | {"choices": [choice]}

    def usage_chunk(self, answers: list[Answer]) -> dict[str, Any]:
        """The chunk with the usage alone."""
        return self._head(self.part) | {"choices": [], "usage": self.usage(answers)}

    def first_chunks(self, choices: int) -> list[dict[str, Any]]:
        """What opens a stream."""
        return []

    def usage(self, answers: list[Answer]) -> dict[str, Any]:
        """Tokens, and forwards that the rows took part in."""
        tokens, forwards = sum(one.tokens for one in answers), sum(one.forwards for one in answers)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
            "completion_tokens_details": {"forwards": forwards},
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"{self.prefix}-{self.id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def _logprobs(self, logs: list[TokenLog], offset: int) -> dict[str, Any]:
        if self.alternatives is None or not logs:
            return {"logprobs": None}
        return {"logprobs": self._log(logs, offset)}

    def _choice(self, answer: Answer) -> dict[str, Any]:
        raise NotImplementedError

    def _delta(self, text: str | None) -> dict[str, Any]:
        raise NotImplementedError

    def _end(self) -> dict[str, Any]:
        raise NotImplementedError

    def _log(self, logs: list[TokenLog], offset: int) -> dict[str, Any]:
        raise NotImplementedError


class TextReply(Reply):
    """Of /v1/completions and /v1/fim/completions."""

    prefix, whole, part = "cmpl", "text_completion", "text_completion"

    def _choice(self, answer: Answer) -> dict[str, Any]:
        return {"text": answer.text}

    def _delta(self, text: str | None) -> dict[str, Any]:
        return {"text": text}

    def _end(self) -> dict[str, Any]:
        return {"text": ""}

    def _log(self, logs: list[TokenLog], offset: int) -> dict[str, Any]:
        offsets = [offset]
        for log in logs[:-1]:
            offsets.append(offsets[-1] + len(log.text))
        return {
            "tokens": [log.text for log in logs],
            "token_logprobs": [log.logp for log in logs],
            "top_logprobs": [{log.text: log.logp} for log in logs] if self.alternatives else None,
            "text_offset": offsets,
        }


class ChatReply(Reply):
    """Of /v1/chat/completions."""

    prefix, whole, part = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def first_chunks(self, choices: int) -> list[dict[str, Any]]:
        opening = {"delta": {"role": "assistant", "content": ""}, "finish_reason": None, "logprobs": None}
        return [self._head(self.part) | {"choices": [{"index": index} | opening]} for index in range(choices)]

    def _choice(self, answer: Answer) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": answer.text, "refusal": None}}

    def _delta(self, text: str | None) -> dict[str, Any]:
        return {"delta": {"content": text}}

    def _end(self) -> dict[str, Any]:
        return {"delta": {}}

    def _log(self, logs: list[TokenLog], offset: int) -> dict[str, Any]:
        entries = []
        for log in logs:
            entry = {"token": log.text, "logprob": log.logp, "bytes": list(log.text.encode())}
            entries.append(entry | {"top_logprobs": [entry] if self.alternatives else []})
        return {"content": entries, "refusal": None}


def server_sent(data: dict[str, Any] | str) -> str:
    """A server-sent event."""
    return f"data: {data if isinstance(data, str) else json.dumps(data, allow_nan=False, separators=(',', ':'))}\n\n"
