"""The application: routes, errors and guards around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from ..version import __version__
from .api.decode import decode_routes
from .api.docs_page import OpenApi, docs_routes
from .api.status import status_routes
from .api.tokenize import tokenize_routes
from .errors import ApiError, unexpected
from .guard import Guard
from .page.route import page_routes
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
        title="uncode",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would lead to the host that the client names
    )
    app.state.service = service
    app.include_router(decode_routes(service))
    app.include_router(tokenize_routes(service))
    app.include_router(status_routes(service))
    app.include_router(docs_routes(app))
    app.include_router(page_routes())
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    app.add_middleware(Guard, service=service)

    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> Response:
        return error.response()

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        path = request.url.path[:80]
        message = {404: f"there is no {path} here: see /docs.", 405: f"{path} does not take {request.method}."}
        found = ApiError(error.status_code, message.get(error.status_code, str(error.detail))).response()
        found.headers.update(error.headers or {})
        return found

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> Response:
        return unexpected(error).response()

    return app


def _document(app: FastAPI) -> OpenApi:
    """The OpenAPI document. FastAPI adds a 422 to every body; a body that is refused is a 400 here."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for methods in found["paths"].values():
            for operation in methods.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema
