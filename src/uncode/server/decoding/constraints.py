"""The constraints of requests: compiled in processes of their own, a few at a time, and kept for later requests."""

from __future__ import annotations

import asyncio
import hashlib
import json
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ...constraints.completions import Automaton
from ...constraints.token_dfa import TokenDfa
from ...constraints.vocabulary import Vocabulary, vocabulary_of
from ...constraints.worker import answered, command, question
from ...core.constraint import Constraint
from ...core.denoiser import Denoiser, Facts
from ...core.errors import UncodeError, require
from ...core.support.reprs import counted
from ..errors import ApiError
from ..logs import Log
from ..settings import ServerLimits


@dataclass(frozen=True, eq=False)
class Compiled(Constraint):
    """A constraint whose automaton is made before the engine has its row."""

    source: Mapping[str, Any]
    automaton: Automaton

    def bind(self, facts: Facts, banned: tuple[int, ...] = ()) -> Automaton:
        return self.automaton

    def to_dict(self) -> dict[str, Any]:
        return dict(self.source)


class Constraints:
    """Compiles constraints for one model within the limits of a server. All methods are the event loop's."""

    def __init__(self, denoiser: Denoiser, limits: ServerLimits, log: Log) -> None:
        self._facts, self._limits, self._log = Facts.of(denoiser), limits, log
        self._slots = asyncio.Semaphore(limits.constraint_workers)
        self._waited_for = WeakValueDictionary[str, asyncio.Lock]()
        """Of the constraints that are being compiled or wait for it: one lock each, so that each is compiled once."""
        self._kept = dict[str, Compiled]()
        """The one that was used last is the last."""

    async def compiled(
        self, source: Mapping[str, Any], ban: tuple[int | str, ...], continues: bool, spans: set[int]
    ) -> Compiled:
        """The constraint made of `source`, for a sampler that bans these tokens and rows with so many masks, whose
        answers continue a text or do not. Where the client leaves, the process that compiles ends."""
        banned = self._facts.resolve(ban)
        key = self._key(source, banned, continues)
        found = self._kept.pop(key, None) or await self._compiled_once(key, source, banned, continues)
        self._kept[key] = found
        self._forget()
        await asyncio.to_thread(self._check, found.automaton, spans)
        return found

    def _forget(self) -> None:
        """Keep as many, and as much, as the limits allow."""
        left = self._limits.constraint_kept_bytes - sum(one.automaton.size for one in self._kept.values())
        while len(self._kept) > self._limits.constraints or (left < 0 and self._kept):
            left += self._kept.pop(next(iter(self._kept))).automaton.size

    async def _compiled_once(
        self, key: str, source: Mapping[str, Any], banned: tuple[int, ...], continues: bool
    ) -> Compiled:
        """A constraint that is not kept. The requests that want it wait for the first of them."""
        lock = self._waited_for.get(key)
        if lock is None:
            if len(self._waited_for) >= self._limits.constraints:
                message = f"{counted(self._limits.constraints, 'constraint')} wait to be compiled: try again later."
                raise ApiError(429, message, code="queue_full", retry_after=1)
            self._waited_for[key] = lock = asyncio.Lock()
        async with lock:
            if key not in self._kept:
                async with self._slots:
                    self._kept[key] = await self._compile(source, banned, continues)
            return self._kept[key]

    def _key(self, source: Mapping[str, Any], banned: tuple[int, ...], continues: bool) -> str:
        try:
            words = json.dumps([source, banned, continues], allow_nan=False)
        except ValueError:
            raise UncodeError("a JSON schema has neither NaN nor Infinity: write a number.") from None
        except RecursionError:
            raise UncodeError("the JSON schema is nested too deeply: nest fewer schemas.") from None
        most = self._limits.constraint_characters
        require(len(words) <= most, f"the constraint has more than {most:,} characters of JSON: write a shorter one.")
        return hashlib.sha256(words.encode()).hexdigest()

    async def _compile(self, source: Mapping[str, Any], banned: tuple[int, ...], continues: bool) -> Compiled:
        vocabulary = await asyncio.to_thread(self._vocabulary, continues)
        answer = await self._run(await asyncio.to_thread(question, source, vocabulary))
        dfa = await asyncio.to_thread(answered, answer, vocabulary)
        if dfa is None:
            seconds, memory = self._limits.constraint_seconds, self._limits.constraint_bytes >> 20
            raise UncodeError(
                f"the constraint cannot be compiled within {seconds:g} s and {memory:,} MiB: repeat less, nest less, "
                "or bound texts more tightly."
            )
        return Compiled(source, await asyncio.to_thread(self._automaton, dfa, banned))

    def _vocabulary(self, continues: bool) -> Vocabulary:
        found = vocabulary_of(self._facts)
        return found.continued if continues else found

    def _automaton(self, dfa: TokenDfa, banned: tuple[int, ...]) -> Automaton:
        return Automaton(dfa, self._facts.mask_id, banned, self._facts.device)

    async def _run(self, asked: bytes) -> bytes:
        """What the process answers; nothing where its time is over or a limit has ended it."""
        words, environment = command(self._limits.constraint_seconds, self._limits.constraint_bytes)
        process = await asyncio.create_subprocess_exec(  # a Ctrl-C for the server is not one for it
            *words, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
        )
        try:
            async with asyncio.timeout(self._limits.constraint_seconds):
                return (await process.communicate(asked))[0]
        except TimeoutError:
            return b""
        finally:
            if process.returncode is None:
                process.kill()
            if await process.wait():
                self._log.write("constraint_ended", returncode=process.returncode)

    def _check(self, automaton: Automaton, spans: set[int]) -> None:
        """Raise where no text fits into so many masks, or where steps would take too long. What is looked up here is
        remembered for the engine's thread."""
        for masks in spans:
            tokens = counted(masks, "token")
            if automaton.cost * masks > self._limits.constraint_step_seconds * 1e9:
                message = f"the constraint is too large for {tokens}: ask for fewer, or bound its texts more tightly."
                raise ApiError(400, message, param="max_tokens", code="constraint_too_large")
            row = automaton.open(np.full(masks, self._facts.mask_id))
            if row.exist:
                row.allowed(0, masks)
                continue
            shortest = automaton.shortest()
            require(shortest is not None, "the constraint accepts no text that this model can write: change it.")
            least = f": it takes at least {shortest}" if shortest and shortest > masks else ""
            message = f"no text that the constraint accepts fits into {tokens}{least}."
            raise ApiError(400, message, param="max_tokens", code="constraint_too_long")
