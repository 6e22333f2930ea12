"""The application: routes, errors and guards around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from ..version import __version__
from .api.decode import decode_routes
from .api.explain import explain
from .api.status import status_routes
from .errors import ApiError
from .service import Service

ABOUT = """Decoding of masked diffusion language models, with the interface of the OpenAI API.

Options of the sampler stand at the top level of a body: that is where `extra_body` of the openai client puts them.
A field that is unknown, or that cannot be honoured, is refused."""


def create_app(service: Service) -> FastAPI:
    """The application over a service. It starts the engine's thread, and ends it when it shuts down."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.thread.start()
        yield
        service.thread.stop()

    app = FastAPI(
        title="uncode", version=__version__, description=ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.service = service
    app.include_router(decode_routes(service))
    app.include_router(status_routes(service))
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)
    return app


async def _api_error(request: Request, error: Any) -> Response:
    found: ApiError = error
    return found.response()


async def _invalid(request: Request, error: Any) -> Response:
    return explain(error).response()


async def _http_error(request: Request, error: Any) -> Response:
    message = {404: f"there is no {request.url.path} here: see /docs.", 405: f"{request.method} is not allowed here."}
    return ApiError(error.status_code, message.get(error.status_code, str(error.detail))).response()


async def _unexpected(request: Request, error: Any) -> Response:
    return ApiError(500, f"an unexpected {type(error).__name__}: this is a bug in uncode.", code="bug").response()
