"""From the steps of a row to its text: the text that can no longer change, as it grows, and the answer at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

from ...core.denoiser import Denoiser
from ...core.stepper.record import Alternatives
from ...core.trace.texts import SettledText, token_texts
from ...engine.recovery import ForwardFailed
from ...engine.request import FinishedRow
from ...engine.row_step import Change, RowStep
from ...generation.prompt import Prompt
from ..errors import Json
from .stop_cut import StopCut

MASK_SIGN = "░"
"""How a snapshot shows a token that is still masked."""
UNLIKELY_LOGPROB = -9999.0
"""What the OpenAI API says of a token whose log probability is no number: `logprobs` has no null."""
CONTEXT = 64
"""Tokens before a gap that are decoded with it. With all of them, many gaps would cost quadratic work."""
FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class TokenLog:
    """A token of the answer, and its log probability when it was committed."""

    token: int
    text: str
    logp: float
    alternatives: tuple[TokenLog, ...] = ()
    """The most probable tokens there, the first one first."""


@dataclass
class Update:
    """What one forward added to the answer."""

    text: str = ""
    logs: list[TokenLog] = field(default_factory=list)
    commits: list[Json] = field(default_factory=list)
    """The changes of the forward, as the API shows them."""
    mean_entropy: float | None = None
    snapshot: str | None = None
    progress: float = 0.0

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.logs or self.commits) and self.snapshot is None


@dataclass(frozen=True)
class CompletionOutput:
    """The answer of a row that has ended."""

    text: str
    finish_reason: FinishReason
    tokens: int
    """Tokens of the text; of a text with gaps, the tokens that were filled."""
    forwards: int
    logs: list[TokenLog]
    last: Update
    """What was not in an update yet."""
    on_request: Json = field(default_factory=dict)
    """What the client asked for besides: the trace, the tokens and their step map."""


@dataclass(frozen=True)
class Wanted:
    """What a client wants to know of a row."""

    stops: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    """Tokens before which the text ends, beside EOS."""
    ignores_eos: bool = False
    is_constrained: bool = False
    """Whether the text is whole where its masks are filled: it never ends because they are too few."""
    stream: bool = False
    commits: bool = False
    diffusing: bool = False
    logprobs: bool = False
    alternatives: int = 0
    """Of each token, so many of the most probable ones."""
    trace: bool = False
    step_map: bool = False

    @property
    def listens(self) -> bool:
        """Whether each forward has to be looked at."""
        return self.stream or bool(self.stops or self.stop_ids)


class RowReader:
    """Reads a row while it is decoded. Its text is a function of its tokens, however many settle at a time."""

    reason_at_end: ClassVar[FinishReason] = "length"
    """Of a row whose masks are all filled."""

    def __init__(self, denoiser: Denoiser, prompt: Prompt, wanted: Wanted, context: Sequence[int] = ()) -> None:
        """`context` are tokens that the answer continues in the same word or line: those before a gap."""
        self._denoiser, self._prompt, self.wanted = denoiser, prompt, wanted
        self._decode = partial(denoiser.tokenizer.decode, skip_special_tokens=True)
        self._first, self.lead = prompt.gaps[0][0], ""
        """`lead` is shown before the answer."""
        self._eos = wanted.stop_ids if wanted.ignores_eos else wanted.stop_ids.union(denoiser.eos_ids)
        self._masks = sum(stop - start for start, stop in prompt.gaps)
        self._length = prompt.gaps[0][1] - self._first
        self._text, self._cut = SettledText(self._decode, context), StopCut(wanted.stops)
        self._read: list[int] = []
        """Tokens that were turned into text."""
        self._shown: list[str] = []
        self._logp: dict[int, float] = {}
        self._alternatives: dict[int, Alternatives] = {}
        self._logs: list[TokenLog] = []
        self._finish: FinishReason | None = None
        self._has_stop_id = False
        self._last_step = -1

    def update(self, step: RowStep) -> Update:
        """What a forward added. A row that the engine starts again adds nothing until it is as far as it was."""
        found = Update()
        if self.wanted.logprobs:
            self._logp |= {change.offset: change.logp for change in step.changes if change.logp is not None}
            self._alternatives |= {change.offset: change.alternatives for change in step.changes}
        if step.index > self._last_step and self.wanted.commits:
            found.commits = [self._commit(step.index, change) for change in step.changes]
            found.mean_entropy = step.mean_entropy
        elif step.index <= self._last_step:
            self._check_restart(step)
        self._last_step = max(self._last_step, step.index)
        self._advance(step.tokens, step.settled, found)
        if self.wanted.diffusing:
            left = step.tokens.count(self._denoiser.mask_id)
            found.snapshot, found.progress = self._snapshot(step.tokens), 1 - left / max(self._masks, 1)
        return found

    def _check_restart(self, step: RowStep) -> None:
        """In half precision a row that is started again in another batch may come out differently. What a client has
        read cannot be taken back then."""
        same = min(step.settled, len(self._read))
        if step.tokens[:same] != self._read[:same]:
            raise ForwardFailed(
                "memory ran out, and the row came out differently when it was started again: try again."
            )

    def opening(self) -> Json | None:
        """The span before its first forward, for clients who draw the commits: its length, and what stands already."""
        if not self.wanted.commits:
            return None
        ids, mask = self._prompt.ids[self._first :], self._denoiser.mask_id
        texts = zip(ids, token_texts(self._denoiser.tokenizer, ids), strict=True)
        given = [{"offset": at, "token": one, "text": text} for at, (one, text) in enumerate(texts) if one != mask]
        return {"length": len(ids), "given": given, "eos_ids": sorted(self._denoiser.eos_ids)}

    @property
    def is_stopped(self) -> bool:
        """Whether a stop string or token has come, so that the row can end."""
        return self._cut.found or self._has_stop_id

    def finish(self, row: FinishedRow) -> CompletionOutput:
        """The answer of a row that has ended."""
        trace = row.trace() if self.wanted.trace or (self.wanted.logprobs and not self.wanted.listens) else None
        if trace is not None and self.wanted.logprobs:
            self._logp = {at: logp for at, logp in enumerate(trace.logp[0].tolist()) if math.isfinite(logp)}
            self._alternatives = dict(enumerate(row.alternatives))
        on_request: Json = {}
        if self.wanted.step_map:
            on_request = {"token_ids": row.generated.tolist(), "step_map": row.commit_step.tolist()}
        if trace is not None and self.wanted.trace:
            on_request["trace"] = trace.row(0, self._denoiser.tokenizer)
        last = Update()
        self._advance(row.generated.tolist(), row.canvas.span, last)
        self._end(last)
        text = "".join(self._shown)
        if self.wanted.diffusing:
            last.snapshot, last.progress = text, 1.0
        return CompletionOutput(
            text=text,
            finish_reason=self._finish or ("stop" if self.wanted.is_constrained else self.reason_at_end),
            tokens=self._count(),
            forwards=row.forwards,
            logs=self._logs,
            last=last,
            on_request=on_request,
        )

    def _count(self) -> int:
        return len(self._read)

    def _advance(self, tokens: list[int], settled: int, found: Update) -> None:
        lead, self.lead = self.lead, ""
        self._show(lead, found)
        for offset in range(len(self._read), min(settled, self._length)):
            if self._finish is not None:
                return
            token = tokens[offset]
            if token in self._eos:
                self._finish, self._has_stop_id = "stop", token in self.wanted.stop_ids
                return
            self._read.append(token)
            text = self._text.push(token)
            if self.wanted.logprobs:
                self._log(self._log_of(offset, token, text), found)
            self._show(self._cut.push(text), found)
            if self._cut.found:
                self._finish = "stop"

    def _log_of(self, offset: int, token: int, text: str) -> TokenLog:
        """What is known of a token, and of the most probable ones in its place. These have the text that they have
        alone."""
        found = self._alternatives.get(offset, ())
        likely = tuple(TokenLog(one, self._decode_one(one), logp) for one, logp in found)
        return TokenLog(token, text, self._logp.get(offset, UNLIKELY_LOGPROB), likely)

    def _decode_one(self, token: int) -> str:
        return str(self._denoiser.tokenizer.decode([token]))

    def _end(self, found: Update) -> None:
        if not self._cut.found:
            rest = self._text.flush()
            if rest and self._logs:  # the texts of the logs add up to the answer
                self._logs[-1] = replace(self._logs[-1], text=self._logs[-1].text + rest)
            self._show(self._cut.push(rest) + self._cut.flush(), found)

    def _show(self, text: str, found: Update) -> None:
        if text:
            self._shown.append(text)
            found.text += text

    def _log(self, log: TokenLog, found: Update) -> None:
        self._logs.append(log)
        found.logs.append(log)

    def _commit(self, step: int, change: Change) -> Json:
        text = "" if change.token is None else self._decode_one(change.token)
        return {
            "step": step,
            "offset": change.offset,
            "token": change.token,
            "text": text,
            "logp": change.logp,
            "entropy": change.entropy,
        }

    def _snapshot(self, tokens: list[int]) -> str:
        """The text with signs for masks, up to an EOS token that is settled."""
        if self._finish is not None:
            return "".join(self._shown)
        return self._render(tokens[: self._length])

    def _render(self, tokens: list[int]) -> str:
        text, run = "", list[int]()
        for token in [*tokens, self._denoiser.mask_id]:
            if token != self._denoiser.mask_id:
                run.append(token)
                continue
            text += (self._decode(run) if run else "") + MASK_SIGN
            run = []
        return text[: -len(MASK_SIGN)]


class GappedReader(RowReader):
    """Reads a prompt with gaps, which are all filled: the text of the whole row."""

    reason_at_end = "stop"

    def _count(self) -> int:
        return self._masks

    def _snapshot(self, tokens: list[int]) -> str:
        return self._render(self._prompt.ids[: self._first] + tokens)


class IdsReader(GappedReader):
    """Reads token ids with gaps."""

    def __init__(self, denoiser: Denoiser, prompt: Prompt, wanted: Wanted, context: Sequence[int] = ()) -> None:
        super().__init__(denoiser, prompt, wanted, context)
        self._eos, self._length = frozenset(), len(prompt.ids) - self._first
        self.lead = "".join(map(self._text.push, prompt.ids[: self._first]))


class GapsReader(GappedReader):
    """Reads pieces of text with gaps: a piece and the gap after it are shown when the gap is filled."""

    def _advance(self, tokens: list[int], settled: int, found: Update) -> None:
        prompt, pieces = self._prompt, self._prompt.pieces
        assert pieces is not None
        ids = prompt.ids[: self._first] + tokens
        filled = sum(stop - self._first <= settled for _, stop in prompt.gaps)
        while len(self._read) < filled:
            number = len(self._read)
            start, stop = prompt.gaps[number]
            first = max(0, start - CONTEXT)
            part = Prompt([], [(start - first, stop - first)], [pieces[number], ""])
            self._read.append(number)
            self._show(part.answer(self._denoiser, ids[first:stop]), found)
        if filled == len(prompt.gaps) and self._finish is None:
            self._finish = "stop"
            self._show(pieces[-1], found)

    def _end(self, found: Update) -> None:
        return

    def _check_restart(self, step: RowStep) -> None:
        return
