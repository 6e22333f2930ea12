"""The service behind the routes: it turns bodies into rows, and hands them to the engine's thread."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.errors import OptionError, UncodeError, suggest
from ..core.pieces.policy import Sampler
from ..core.support.reprs import counted
from ..engine import Engine
from ..samplers.options import DEFAULT_SAMPLER
from ..version import __version__
from .api.fields import DecodeFields
from .decoding.constraints import Compiled, Constraints
from .decoding.prompts import PreparedPrompt, Prompts
from .decoding.reader import Wanted
from .decoding.samplers import Choice, Samplers
from .decoding.served_request import ServedRequest, ServedRow, late
from .engine_thread import EngineThread
from .errors import ApiError, Json, shutting_down
from .logs import Log
from .metrics import Metrics
from .settings import ServerSettings


class Service:
    """One model, one engine, one thread."""

    def __init__(
        self,
        denoiser: Denoiser,
        settings: ServerSettings,
        samplers: Samplers,
        log: Log | None = None,
        engine: Engine[ServedRow] | None = None,
    ) -> None:
        self.denoiser, self.settings, self.samplers = denoiser, settings, samplers
        self.log, self.metrics = log or Log(), Metrics()
        self.read_metrics: Callable[[], Awaitable[bytes]] = self.metrics.read
        """What /metrics says. A replica of several sets it, so that it speaks for all."""
        self.names_requests = True
        """Whether answers carry an id of this server. Behind a proxy of Ray they carry that of the proxy alone."""
        limits = settings.limits
        self.engine = engine or Engine(denoiser, max_rows=limits.rows, short_rows=max(1, limits.rows // 8))
        self.thread = EngineThread(self.engine, self.metrics, self.log)
        self.prompts = Prompts(denoiser, limits, settings.length)
        self.constraints = Constraints(denoiser, limits, self.log)
        self.began = int(time.time())
        self.is_stopping = False
        self._compiling = set[asyncio.Task[Any]]()
        kinds = (str(denoiser.dtype).removeprefix("torch."), denoiser.about.get("weights"))
        self.fingerprint = "-".join(("uncode", __version__, *filter(None, kinds)))

    @classmethod
    def of(cls, denoiser: Denoiser, sampler: str = DEFAULT_SAMPLER, settings: ServerSettings | None = None) -> Service:
        """A service with the model's own table, and with settings for a server on a free port of this machine."""
        chosen = settings or ServerSettings(name=str(denoiser.about.get("model") or "model"), port=0)
        return cls(denoiser, chosen, Samplers(denoiser, sampler, {}))

    @property
    def is_ready(self) -> bool:
        """Whether new requests are taken."""
        return self.thread.is_healthy and not self.is_stopping

    def check_model(self, name: str | None) -> None:
        """Raise 404 for a model that is not here."""
        here = self.settings.name
        if name is not None and name != here:
            message = f"there is no model '{name[:80]}' here: {suggest(name[:80], [here])}"
            raise ApiError(404, message, param="model", code="model_not_found")

    def check(self, body: DecodeFields) -> None:
        """Raise for what can be refused before prompts are encoded."""
        if self.is_stopping or not self.thread.is_alive:
            raise shutting_down()
        self.check_model(body.model)
        choices, most = body.prompt_count * (body.n or 1), self.settings.limits.choices
        if choices > most:
            message = f"{choices} choices are too many: this server decodes at most {most} a request."
            raise ApiError(400, message, param="prompt" if body.prompt_count > most else "n")

    async def compile(
        self, body: DecodeFields, prompts: Sequence[PreparedPrompt], param: str, source: Mapping[str, Any]
    ) -> Compiled:
        """The constraint of a body, which the field `param` asks for."""
        if not all(prompt.is_answer for prompt in prompts):
            raise ApiError(400, "a prompt with gaps takes no constraint: leave it out.", param=param)
        ban = self._sampler(self._choice(body, prompts)).propose.ban
        spans = {stop - start for prompt in prompts for start, stop in prompt.prompt.gaps}
        continues = any(prompt.context for prompt in prompts)  # a suffix belongs to one prompt
        task = asyncio.current_task()
        assert task is not None
        self._compiling.add(task)
        try:
            async with asyncio.timeout(self.settings.limits.seconds):
                return await self.constraints.compiled(source, ban, continues, spans)
        except UncodeError as error:
            raise ApiError(400, str(error), param=param, code="invalid_constraint") from None
        except TimeoutError:
            raise late(self.settings.limits.seconds) from None
        except asyncio.CancelledError:
            if self.thread.is_alive:
                raise
            raise shutting_down() from None
        finally:
            self._compiling.discard(task)

    def give_up(self) -> None:
        """End the engine's thread, and what is being compiled. Requests that are left get an error."""
        self.thread.give_up()
        for task in self._compiling:
            task.cancel()

    def start(
        self,
        body: DecodeFields,
        prompts: Sequence[PreparedPrompt],
        logprobs: int | None,
        constraint: Compiled | None = None,
        began: float | None = None,
    ) -> ServedRequest:
        """Start to decode the prompts of a body, which arrived at the time `began`."""
        wanted = self._wanted(body, logprobs, constraint)
        choice = self._choice(body, prompts)
        sampler = self._sampler(choice)
        if logprobs and sampler.draft_steps > 1:
            raise ApiError(
                400, "the most probable tokens need draft_steps=1: leave out one of the two.", param="logprobs"
            )
        seed = secrets.randbits(31) if body.seed is None else body.seed
        recipe = {"seed": seed} | self.samplers.repeated(choice)
        served = ServedRequest(asyncio.get_running_loop(), self.settings.limits.seconds, recipe, self.thread.cancel)
        served.began = served.began if began is None else began
        for number, prompt in enumerate(one for one in prompts for _ in range(body.n or 1)):
            canvas = Canvas.infill([prompt.prompt.ids], mask_id=self.denoiser.mask_id)
            reader = prompt.reader(self.denoiser, wanted)
            served.rows.append(ServedRow(served, canvas, sampler, seed + number, reader, constraint))
        limits = self.settings.limits
        if not self.thread.submit(served.rows, limits.rows + limits.queue):
            raise ApiError(
                429,
                f"the queue is full ({counted(limits.queue, 'waiting row')}): try again later.",
                code="queue_full",
                # until about a quarter of the rows in front have left, by the load of the moment
                retry_after=max(1, min(60, math.ceil(self.thread.outstanding * self.thread.seconds_per_row / 4))),
            )
        return served

    def count(self, served: ServedRequest, prompt_tokens: int) -> Json:
        """Count an answer that is complete. Returns what the log says of it."""
        metrics, sampler, outputs = self.metrics, served.sampler, served.outputs
        tokens = sum(one.tokens for one in outputs)
        metrics.prompt_tokens.inc(prompt_tokens)
        metrics.completion_tokens.labels(sampler).inc(tokens)
        first_text = time.monotonic() - served.began if served.first_text is None else served.first_text
        metrics.first_text_seconds.labels(sampler).observe(first_text)
        for row, output in zip(served.rows, outputs, strict=True):
            metrics.token_seconds.labels(sampler).observe(row.seconds / max(output.tokens, 1))
        facts = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": tokens,
            "forwards": sum(one.forwards for one in outputs),
            "queue_seconds": round(max(row.waited for row in served.rows), 4),
            "first_text_seconds": round(first_text, 4),
        }
        return facts | ({"answers": [one.text for one in outputs]} if self.settings.log_prompts else {})

    def _choice(self, body: DecodeFields, prompts: Sequence[PreparedPrompt]) -> Choice:
        stop_at_eos = body.stop_at_eos and not body.ignore_eos and all(prompt.is_answer for prompt in prompts)
        return Choice(body.sampler, body.options(), stop_at_eos, body.logit_bias or {})

    def _sampler(self, choice: Choice) -> Sampler:
        try:
            return self.samplers.build(choice)
        except (UncodeError, RecursionError, ValueError) as error:
            option = error.option if isinstance(error, OptionError) else ""
            raise ApiError(400, str(error), param=option or "sampler", code="invalid_sampler") from None

    def _wanted(self, body: DecodeFields, logprobs: int | None, constraint: Compiled | None) -> Wanted:
        stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
        wanted = Wanted(
            stops=tuple(stop for stop in stops if stop),
            stop_ids=frozenset(body.stop_token_ids or ()),
            ignores_eos=bool(body.ignore_eos),
            is_constrained=constraint is not None,
            stream=bool(body.stream),
            commits=body.commits,
            diffusing=body.diffusing,
            logprobs=logprobs is not None,
            alternatives=logprobs or 0,
            trace=body.trace,
            step_map=body.step_map,
        )
        given = {"commits": body.commits, "diffusing": body.diffusing, "stream_options": body.stream_options}
        for name, value in given.items():
            if value and not wanted.stream:
                raise ApiError(400, f"{name} needs a streamed answer: send stream=true with it.", param=name)
        if wanted.diffusing and wanted.logprobs:
            raise ApiError(400, "diffusing streams have no logprobs: leave one of them out.", param="logprobs")
        return wanted
