"""The routes that decode: texts, chats and texts with a gap."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from ..decoding.prompts import PreparedPrompt
from ..decoding.reader import CompletionOutput
from ..decoding.served_request import RowEvent, ServedRequest
from ..errors import CLIENT_GONE, ApiError, Json, json_response, unexpected
from ..service import Service
from .bodies import ChatBody, CompletionBody, FimBody
from .constraint_fields import Asked
from .fields import DecodeFields
from .read_body import BodyRoute, near_or_off_the_loop
from .replies import ChatAnswer, ChatReply, Reply, TextAnswer, TextReply, decoded, server_sent
from .responses import ResponsesAnswer, ResponsesBody, ResponsesReply

T = TypeVar("T")
AnyBody = CompletionBody | FimBody | ChatBody | ResponsesBody
PROMPT_FIELDS = {"prompt", "suffix", "infill", "messages", "instructions", "input"}
"""What a log shows of a body, where it shows prompts."""


def decode_routes(service: Service) -> APIRouter:
    """The routes, over one service."""
    routes = APIRouter(route_class=BodyRoute)

    @routes.post("/v1/completions", summary="Continue a prompt, or fill its gaps.", responses=decoded(TextAnswer))
    async def completions(body: CompletionBody, request: Request) -> Response:
        return await _answer(service, request, body, TextReply, body.logprobs)

    @routes.post("/v1/fim/completions", summary="Fill a gap before a suffix.", responses=decoded(TextAnswer))
    async def fim(body: FimBody, request: Request) -> Response:
        if body.random_seed is not None:
            if body.seed is not None:
                raise ApiError(400, "seed and random_seed are one: send one of them.", param="random_seed")
            body.seed = body.random_seed
        return await _answer(service, request, body, TextReply, None)

    @routes.post("/v1/chat/completions", summary="Answer a chat.", responses=decoded(ChatAnswer))
    async def chat(body: ChatBody, request: Request) -> Response:
        if body.top_logprobs is not None and not body.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs=true.", param="top_logprobs")
        return await _answer(service, request, body, ChatReply, body.top_logprobs or 0 if body.logprobs else None)

    @routes.post("/v1/responses", summary="Answer a text or a chat.", responses=decoded(ResponsesAnswer))
    async def responses(body: ResponsesBody, request: Request) -> Response:
        body.max_tokens = body.max_tokens if body.max_output_tokens is None else body.max_output_tokens
        return await _answer(service, request, body, ResponsesReply, None)

    return routes


def _length(body: DecodeFields) -> int | None:
    older, newer = body.max_tokens, body.max_completion_tokens
    if older is not None and newer is not None and older != newer:
        message = f"max_tokens is {older} and max_completion_tokens {newer}: send one of them."
        raise ApiError(400, message, param="max_completion_tokens")
    return older if newer is None else newer


async def _answer(
    service: Service,
    request: Request,
    body: AnyBody,
    kind: type[Reply],
    logprobs: int | None,
) -> Response:
    service.check(body)
    length = _length(body)
    began = time.monotonic()
    read = partial(_prepared, service, body, length)
    prompts, asked = await near_or_off_the_loop(request, read)
    constraint = None if asked is None else await _unless_gone(request, service.compile(body, prompts, *asked))
    served = service.start(body, prompts, logprobs, constraint, began)
    reply = kind(
        model=service.settings.name,
        fingerprint=service.fingerprint,
        recipe=served.recipe,
        prompt_tokens=sum(prompt.tokens for prompt in prompts),
        alternatives=logprobs,
    )
    facts: Json = request.scope["uncode"]
    facts |= {"sampler": served.sampler, "seed": served.recipe["seed"]}
    facts |= {"choices": len(served.rows), "stream": bool(body.stream)}
    if service.settings.log_prompts:
        facts["prompt"] = body.model_dump(include=PROMPT_FIELDS, exclude_none=True)
    if not body.stream:
        await _unless_gone(request, _ended(served), served)
        facts |= service.count(served, reply.prompt_tokens)
        return json_response(reply.answer(served.outputs))
    usage = body.stream_options is not None and body.stream_options.include_usage
    events = served.events()
    first = await _unless_gone(request, anext(events), served)  # an error before the first forward has its own status
    chunks = _stream(service, served, reply, usage, facts, _chained(first, events))
    return StreamingResponse(chunks, media_type="text/event-stream", headers=NO_BUFFER)


NO_BUFFER = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Proxies hand on a stream as it comes."""


def _prepared(service: Service, body: AnyBody, length: int | None) -> tuple[list[PreparedPrompt], Asked | None]:
    """The prompts of a body, and its constraint."""
    return body.prepare(service.prompts, length), body.asked_constraint()


async def _unless_gone(request: Request, found: Awaitable[T], served: ServedRequest | None = None) -> T:
    """What a request finds. If the client leaves, or on an error, its rows are dropped."""
    work = asyncio.ensure_future(found)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ApiError(CLIENT_GONE, "the client has closed the connection.")
        return work.result()
    except BaseException:
        if served is not None:
            served.cancel()
        raise
    finally:
        for task in (work, gone):
            task.cancel()


async def _ended(served: ServedRequest) -> None:
    async for _ in served.events():
        pass


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _chained(first: RowEvent, rest: AsyncIterator[RowEvent]) -> AsyncIterator[RowEvent]:
    yield first
    async for one in rest:
        yield one


async def _chunks(served: ServedRequest, reply: Reply, events: AsyncIterator[RowEvent]) -> AsyncIterator[Json]:
    """The chunks of all choices."""
    for opening in reply.first_chunks(len(served.rows)):
        yield opening
    for number, row in enumerate(served.rows):
        if (canvas := row.reader.opening()) is not None:
            yield reply.opening_chunk(number, canvas)
    characters = [0] * len(served.rows)
    async for number, event in events:
        update = event.last if isinstance(event, CompletionOutput) else event
        if not update.is_empty:
            yield reply.chunk(number, update, characters[number])
        characters[number] += len(update.text)
        if isinstance(event, CompletionOutput):
            yield reply.last_chunk(number, event)


async def _stream(
    service: Service, served: ServedRequest, reply: Reply, usage: bool, facts: Json, events: AsyncIterator[RowEvent]
) -> AsyncIterator[str]:
    """Chunks as server-sent events. An error after the first chunk is an event too."""
    recipe = reply.recipe
    try:
        async for chunk in _chunks(served, reply, events):
            yield server_sent(chunk | recipe)
            recipe = {}
        facts |= service.count(served, reply.prompt_tokens)
        for ending in reply.ending_chunks(served.outputs, usage):
            yield server_sent(ending)
        yield server_sent("[DONE]")
    except Exception as error:
        if not isinstance(error, ApiError):  # without an event the client could not tell it from a lost connection
            served.cancelled_as = "failed"
            service.log.write("stream_failed", traceback=traceback.format_exc())
            error = unexpected(error)
        facts |= {"failed_with": error.status, "message": error.message}
        yield server_sent(error.body)
    finally:
        served.cancel()
