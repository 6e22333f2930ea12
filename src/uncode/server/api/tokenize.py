"""`/tokenize` and `/detokenize`: from a text to the model's token ids, and back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field, StrictBool, StrictInt, StrictStr

from ..errors import ApiError, json_response
from ..service import Service
from .bodies import MAX_MESSAGES, Message
from .fields import Body, Name, _only
from .read_body import BodyRoute, near_or_off_the_loop
from .replies import AnswerPart, Responses, errors

REFUSALS = errors(400, 401, 403, 404, 408, 413)


class TokenizeBody(Body):
    """The body of /tokenize: a prompt, or messages."""

    model: Name | None = None
    prompt: StrictStr | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)] | None = None
    add_special_tokens: StrictBool = Field(True, description="With the tokens that stand before every prompt.")
    add_generation_prompt: Annotated[StrictBool, _only(True)] = True


class DetokenizeBody(Body):
    """The body of /detokenize."""

    model: Name | None = None
    tokens: Annotated[list[StrictInt], Field(fail_fast=True)]


class TokenizeAnswer(AnswerPart):
    """Token ids."""

    count: int
    max_model_len: int | None
    tokens: list[int]


class DetokenizeAnswer(AnswerPart):
    """A text."""

    prompt: str


def tokenize_routes(service: Service) -> APIRouter:
    """The routes, over one service."""
    routes, prompts = APIRouter(route_class=BodyRoute), service.prompts
    ids: Responses = {200: {"model": TokenizeAnswer}, **REFUSALS}
    texts: Responses = {200: {"model": DetokenizeAnswer}, **REFUSALS}

    @routes.post("/tokenize", summary="Token ids of a text.", responses=ids)
    async def tokenize(body: TokenizeBody, request: Request) -> Response:
        service.check_model(body.model)
        if (body.prompt is None) == (body.messages is None):
            raise ApiError(400, "send a prompt or messages, one of them.", param="prompt")
        asked = body.prompt if body.messages is None else [message.plain() for message in body.messages]
        found = await near_or_off_the_loop(request, lambda: prompts.tokens(asked or "", body.add_special_tokens))
        return json_response({"count": len(found), "max_model_len": prompts.context, "tokens": found})

    @routes.post("/detokenize", summary="The text of token ids.", responses=texts)
    async def detokenize(body: DetokenizeBody, request: Request) -> Response:
        service.check_model(body.model)
        return json_response({"prompt": await near_or_off_the_loop(request, lambda: prompts.text(body.tokens))})

    return routes
