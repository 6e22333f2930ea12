"""The routes that decode: texts, chats and texts with a gap."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from ..decoding.job import Job
from ..decoding.prompts import PreparedPrompt
from ..decoding.reader import Answer, Update
from ..errors import CLIENT_GONE, ApiError, json_response, unexpected
from ..service import Service
from .answers import ChatAnswer, TextAnswer, decoded
from .bodies import ChatBody, CompletionBody, FimBody
from .fields import DecodeFields
from .read_body import BodyRoute, near_or_off_the_loop
from .replies import ChatReply, Reply, TextReply, server_sent

T = TypeVar("T")
Found = tuple[int, Update | Answer]
Prepare = Callable[[int | None], Sequence[PreparedPrompt]]


def decode_routes(service: Service) -> APIRouter:
    """The routes, over one service."""
    routes, prompts = APIRouter(route_class=BodyRoute), service.prompts

    @routes.post("/v1/completions", summary="Continue a prompt, or fill its gaps.", responses=decoded(TextAnswer))
    async def completions(body: CompletionBody, request: Request) -> Response:
        def prepare(length: int | None) -> Sequence[PreparedPrompt]:
            return _completion_prompts(service, body, length)

        return await _answer(service, request, body, prepare, TextReply, body.logprobs)

    @routes.post("/v1/fim/completions", summary="Fill a gap before a suffix.", responses=decoded(TextAnswer))
    async def fim(body: FimBody, request: Request) -> Response:
        if body.random_seed is not None:
            if body.seed is not None:
                raise ApiError(400, "seed and random_seed are one: send one of them.", param="random_seed")
            body.seed = body.random_seed

        def prepare(length: int | None) -> Sequence[PreparedPrompt]:
            return [prompts.answer(body.prompt, length, body.suffix)]

        return await _answer(service, request, body, prepare, TextReply, None)

    @routes.post("/v1/chat/completions", summary="Answer a chat.", responses=decoded(ChatAnswer))
    async def chat(body: ChatBody, request: Request) -> Response:
        if body.top_logprobs is not None and not body.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs=true.", param="top_logprobs")
        messages = [message.plain() for message in body.messages]

        def prepare(length: int | None) -> Sequence[PreparedPrompt]:
            return [prompts.chat(messages, length)]

        return await _answer(
            service, request, body, prepare, ChatReply, body.top_logprobs or 0 if body.logprobs else None
        )

    return routes


def _completion_prompts(service: Service, body: CompletionBody, length: int | None) -> list[PreparedPrompt]:
    read, prompt = service.prompts, body.prompt
    if body.infill is not None:
        if prompt or body.suffix is not None:
            raise ApiError(400, "infill stands instead of prompt and suffix: leave those out.", param="infill")
        return [read.infill(body.infill, length)]
    if prompt is None:
        raise ApiError(400, "the prompt is missing: send a text or token ids.", param="prompt")
    if isinstance(prompt, str):
        return [read.answer(prompt, length, body.suffix)]
    if body.suffix is not None:
        raise ApiError(400, "a suffix belongs to one prompt that is a text.", param="suffix")
    if not prompt:
        raise ApiError(400, "the prompt is empty: send a text or token ids.", param="prompt")
    if isinstance(prompt[0], int):
        return [read.ids([one for one in prompt if isinstance(one, int)], length)]
    return [read.answer(one, length) if isinstance(one, str) else read.ids(list(one), length) for one in prompt]


def _length(body: DecodeFields) -> int | None:
    older, newer = body.max_tokens, body.max_completion_tokens
    if older is not None and newer is not None and older != newer:
        message = f"max_tokens is {older} and max_completion_tokens {newer}: send one of them."
        raise ApiError(400, message, param="max_completion_tokens")
    return older if newer is None else newer


async def _answer(
    service: Service,
    request: Request,
    body: DecodeFields,
    prepare: Prepare,
    kind: type[Reply],
    logprobs: int | None,
) -> Response:
    service.check(body)
    length = _length(body)
    prompts = await near_or_off_the_loop(request, lambda: prepare(length))
    job = service.start(body, prompts, logprobs)
    reply = kind(
        model=service.settings.name,
        fingerprint=service.fingerprint,
        recipe=job.recipe,
        prompt_tokens=sum(prompt.tokens for prompt in prompts),
        alternatives=logprobs,
    )
    facts = request.scope["uncode"]
    facts |= {"sampler": job.sampler, "seed": job.recipe["seed"], "choices": len(job.rows), "stream": bool(body.stream)}
    if service.settings.log_prompts:
        facts["prompt"] = body.model_dump(include={"prompt", "suffix", "infill", "messages"}, exclude_none=True)
    if not body.stream:
        answers = await _unless_gone(request, job, _collect(job))
        facts |= service.count(job, reply.usage(answers), answers)
        return json_response(reply.answer(answers))
    usage = body.stream_options is not None and body.stream_options.include_usage
    events = job.events()
    first = await _unless_gone(request, job, anext(events))  # an error before the first forward has its own status
    chunks = _stream(service, job, reply, usage, facts, _chained(first, events))
    return StreamingResponse(chunks, media_type="text/event-stream", headers=NO_BUFFER)


NO_BUFFER = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Proxies hand on a stream as it comes."""


async def _unless_gone(request: Request, job: Job, found: Awaitable[T]) -> T:
    """What a job finds. If the client leaves, or on an error, its rows are dropped."""
    work = asyncio.ensure_future(found)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ApiError(CLIENT_GONE, "the client has closed the connection.")
        return work.result()
    except BaseException:
        job.cancel()
        raise
    finally:
        for task in (work, gone):
            task.cancel()


async def _collect(job: Job) -> list[Answer]:
    answers: dict[int, Answer] = {}
    async for number, event in job.events():
        if isinstance(event, Answer):
            answers[number] = event
    return [answers[number] for number in sorted(answers)]


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _chained(first: Found, rest: AsyncIterator[Found]) -> AsyncIterator[Found]:
    yield first
    async for one in rest:
        yield one


async def _chunks(
    job: Job, reply: Reply, events: AsyncIterator[Found], answers: dict[int, Answer]
) -> AsyncIterator[dict[str, Any]]:
    """The chunks of all choices. Those that have ended are put into `answers`."""
    for opening in reply.first_chunks(len(job.rows)):
        yield opening
    for number, row in enumerate(job.rows):
        if (canvas := row.opening) is not None:
            yield reply.opening_chunk(number, canvas)
    characters = [0] * len(job.rows)
    async for number, event in events:
        update = event.last if isinstance(event, Answer) else event
        if not update.is_empty:
            yield reply.chunk(number, update, characters[number])
        characters[number] += len(update.text)
        if isinstance(event, Answer):
            answers[number] = event
            yield reply.last_chunk(number, event)


async def _stream(
    service: Service, job: Job, reply: Reply, usage: bool, facts: dict[str, Any], events: AsyncIterator[Found]
) -> AsyncIterator[str]:
    """Chunks as server-sent events. An error after the first chunk is an event too."""
    answers, recipe = dict[int, Answer](), reply.recipe
    try:
        async for chunk in _chunks(job, reply, events, answers):
            yield server_sent(chunk | recipe)
            recipe = {}
        found = [answers[number] for number in sorted(answers)]
        facts |= service.count(job, reply.usage(found), found)
        if usage:
            yield server_sent(reply.usage_chunk(found))
        yield server_sent("[DONE]")
    except Exception as error:
        if not isinstance(error, ApiError):  # without an event the client could not tell it from a lost connection
            job.cancelled_as = "failed"
            service.log.write("stream_failed", traceback=traceback.format_exc())
            error = unexpected(error)
        facts |= {"failed_with": error.status, "message": error.message}
        yield server_sent(error.body)
    finally:
        job.cancel()
