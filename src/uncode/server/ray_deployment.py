"""The application as a Ray Serve deployment: replicas on one machine or on many, each with a model and a batch."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI

from ..core.errors import UncodeError
from ..engine.recovery import first_line
from ..util.extras import needed
from ..util.ray_cluster import connected
from .app import create_app
from .logs import Log
from .metrics import merge
from .run import listen, url, warn_if_open
from .service import Service
from .settings import Replicas, ServerSettings

APPLICATION = "uncode"
EXTRA, PURPOSE = "serve-ray", "a server on a cluster"
STATUS_REQUESTS = 16
"""Requests to /health, /metrics and other checks that a full replica still takes."""
UPSCALE_SECONDS, DOWNSCALE_SECONDS = 5.0, 120.0
"""How long the load must be high before a replica is added, or low before one is removed: loading takes long too."""
METRICS_SECONDS = 5.0
START_ATTEMPTS = 2
"""A replica that cannot start fails the deployment after so many attempts."""

Build = Callable[[], Service]
"""Makes the service of a replica, in the replica's process. It must be picklable."""


class Replica:
    """One replica: the same service and the same application as without Ray."""

    def __init__(self, build: Build) -> None:
        self._service = build()
        self._service.read_metrics, self._service.names_requests = self._all_metrics, False
        self._name: str = needed("ray.serve", EXTRA, PURPOSE).get_replica_context().replica_id.unique_id

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_app(self._service)

    def check_health(self) -> None:
        """Ray asks regularly. It replaces a replica that raises."""
        if not self._service.thread.is_healthy:
            raise RuntimeError("forwards fail")

    def own_metrics(self) -> tuple[str, bytes]:
        """The replica's name and its metrics."""
        return self._name, self._service.metrics.text()

    async def _all_metrics(self) -> bytes:
        """The metrics of all replicas that answer in time."""
        handle = needed("ray.serve", EXTRA, PURPOSE).get_deployment_handle(APPLICATION, APPLICATION)
        found = await handle.broadcast("own_metrics").results_async(timeout_s=METRICS_SECONDS, return_exceptions=True)
        return merge(dict(one for one in found if not isinstance(one, BaseException)))


def application(build: Build, settings: ServerSettings, replicas: Replicas) -> Any:
    """The Ray Serve application.

    A replica takes as many requests as its batch and its queue hold, and answers the next with 429 itself. The
    autoscaler aims at full batches.
    """
    serve, limits = needed("ray.serve", EXTRA, PURPOSE), settings.limits
    has_gpus = needed("ray", EXTRA, PURPOSE).cluster_resources().get("GPU", 0) > 0
    scaling = {
        "min_replicas": replicas.least,
        "initial_replicas": replicas.least,
        "max_replicas": replicas.most,
        "target_ongoing_requests": limits.rows,
        "upscale_delay_s": UPSCALE_SECONDS,
        "downscale_delay_s": DOWNSCALE_SECONDS,
    }
    deployment = serve.deployment(
        serve.ingress()(Replica),
        name=APPLICATION,
        ray_actor_options={"num_gpus": int(has_gpus and not replicas.on_cpu)},
        max_ongoing_requests=limits.rows + limits.queue + STATUS_REQUESTS,
        autoscaling_config=scaling,
        graceful_shutdown_timeout_s=settings.grace_seconds,
        max_constructor_retry_count=START_ATTEMPTS,
    )
    return deployment.bind(build)


@contextmanager
def deployed(build: Build, settings: ServerSettings, replicas: Replicas) -> Iterator[None]:
    """The application on the cluster that this process is connected to, until the end of the block.

    Requests come in through a proxy on each node. At the end running rows finish within the grace.
    """
    serve = needed("ray.serve", EXTRA, PURPOSE)
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    if not serve.status().proxies:  # otherwise Serve runs already, and has the port
        listen(settings.host, settings.port).close()
    serve.start(proxy_location="EveryNode", http_options={"host": settings.host, "port": settings.port})
    try:
        serve.run(application(build, settings, replicas), name=APPLICATION, route_prefix="/")
    except RuntimeError as error:
        raise UncodeError(f"the replicas did not start: {first_line(error)}") from error
    try:
        yield
    finally:
        serve.delete(APPLICATION)


def serve_on_ray(
    build: Build, settings: ServerSettings, replicas: Replicas, address: str, announce: Callable[[str], None]
) -> None:
    """Serve on the cluster at an address until a signal ends it; an empty address starts a cluster on this machine."""
    ended = threading.Event()
    warn_if_open(settings, Log())
    with connected(address, EXTRA, PURPOSE), deployed(build, settings, replicas):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        announce(url(settings.host, settings.port))
        ended.wait()
