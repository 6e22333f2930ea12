"""Runs the application with uvicorn."""

from __future__ import annotations

import uvicorn

from .app import create_app
from .service import Service


def serve(service: Service) -> None:
    """Serve until a signal ends it."""
    settings = service.settings
    config = uvicorn.Config(
        create_app(service), host=settings.host, port=settings.port, log_config=None, access_log=False, http="h11"
    )
    uvicorn.Server(config).run()
