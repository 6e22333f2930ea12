"""Runs the application with uvicorn, until a signal ends it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType

import uvicorn

from ..core.errors import UncodeError, require
from .app import create_app
from .connections import connection_class
from .logs import Log
from .service import Service
from .settings import ServerSettings

AFTER_GRACE_SECONDS = 5
"""For the last answers to be written, after the rows that were left have been given up."""
POLL_SECONDS = 0.01
BACKLOG = 2048
"""Connections that the system keeps until the server accepts them."""


class Server(uvicorn.Server):
    """Ends in three steps: no new requests; running rows finish within the grace; unfinished rows get an error."""

    def __init__(self, service: Service) -> None:
        self._service = service
        settings = service.settings
        config = uvicorn.Config(
            create_app(service),
            http=connection_class(settings.limits),
            ws="none",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=int(settings.limits.read_seconds) or 1,
        )
        super().__init__(config)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends the server in order, the second at once. Either way the process exits with 0."""
        self._service.is_stopping = True
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        service = self._service
        service.is_stopping = True
        grace, began = service.settings.grace_seconds, time.monotonic()
        service.log.write("stopping", rows=service.thread.outstanding, grace_seconds=grace)
        timer = asyncio.get_running_loop().call_later(grace, service.give_up)
        while service.thread.outstanding and service.thread.is_alive and not self.force_exit:
            await asyncio.sleep(POLL_SECONDS)  # the socket stays open: /ready answers 503
        left = max(grace - (time.monotonic() - began), 0)
        self.config.timeout_graceful_shutdown = int(left) + AFTER_GRACE_SECONDS
        await super().shutdown(sockets)
        timer.cancel()
        service.log.write("stopped")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, or one sentence on why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(BACKLOG)  # clients may connect as soon as the address is announced
        except OSError:
            found.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UncodeError(
            f"cannot listen on {host}, port {port} ({reason}): choose another --host or --port."
        ) from None
    return found


class BackgroundServer:
    """A server in a thread of this process, for notebooks and tests. Use it in a `with` block, or call `stop`."""

    def __init__(self, service: Service) -> None:
        settings = service.settings
        self.service, self.server = service, Server(service)
        self._socket = listen(settings.host, settings.port)
        self.port: int = self._socket.getsockname()[1]
        self.address = url(settings.host, self.port)
        run = partial(self.server.run, sockets=[self._socket])
        self._thread = threading.Thread(target=run, name="uncode-server", daemon=True)
        self._thread.start()
        while not self.server.started and self._thread.is_alive():
            time.sleep(POLL_SECONDS)
        require(self.server.started, f"the server at {self.address} did not start: see its log.")

    def stop(self) -> None:
        """End it: running rows finish within the grace."""
        self.server.should_exit = True
        self._thread.join()
        self._socket.close()

    def __enter__(self) -> BackgroundServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def url(host: str, port: int) -> str:
    """The address of a server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def warn_if_open(settings: ServerSettings, log: Log) -> None:
    """Log a warning where other machines can use the server without a key."""
    if not settings.is_loopback and settings.api_key is None:
        log.write("warning", message="anyone who reaches this address can use the server: give it a key")


def serve(service: Service, announce: Callable[[str], None]) -> None:
    """Serve until a signal ends it. `announce` gets the address when the socket is bound."""
    settings = service.settings
    with listen(settings.host, settings.port) as bound, service.log.taking("uvicorn.error"):
        port = bound.getsockname()[1]
        warn_if_open(settings, service.log)
        service.log.write("started", model=settings.name, host=settings.host, port=port)
        announce(url(settings.host, port))
        Server(service).run(sockets=[bound])
