"""A connection to a Ray cluster, for all that runs on one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.errors import UncodeError
from .extras import needed

MAX_RETRIES = 10
"""Retries of a task whose worker or node dies."""


@contextmanager
def connected(address: str, extra: str, purpose: str) -> Iterator[Any]:
    """Ray, connected to the cluster at an address; an empty one starts a local cluster.

    An existing connection of this process is used and left open. `extra` and `purpose` are for the error where Ray is
    not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics
    ray = needed("ray", extra, purpose)
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # each kind of address fails with its own class
            reason = " ".join(str(error).split())
            raise UncodeError(
                f"no Ray cluster answers at '{address or 'this machine'}': {reason.rstrip('.')}."
            ) from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def worker_count(ray: Any) -> int:
    """One worker for each GPU of the cluster, or for each CPU where it has none."""
    resources = ray.cluster_resources()
    return max(int(resources.get("GPU", 0)) or int(resources.get("CPU", 1)), 1)


def one_worker(ray: Any) -> dict[str, float]:
    """What a worker takes: a GPU, or a CPU where the cluster has no GPU."""
    return {"num_gpus": 1} if ray.cluster_resources().get("GPU", 0) >= 1 else {"num_cpus": 1}


@contextmanager
def one_sentence(ray: Any, work: str) -> Iterator[None]:
    """A fault of the cluster as one sentence, which says by `work` what it could not do."""
    try:
        yield
    except ray.exceptions.RayError as error:
        reason = getattr(error, "cause", None) or error
        first = str(reason).strip().partition("\n")[0].rstrip(".")
        raise UncodeError(f"the cluster could not {work} ({first}). What is finished stays.") from error
