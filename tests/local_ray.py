"""A Ray cluster on this machine, whose workers import this checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def local_ray(workers: int) -> Iterator[None]:
    import ray

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"}
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(p).resolve()) for p in ("src", ".")] + ([path] if path else [])
    )
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        object_store_memory=1 << 27,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()
    os.environ.pop("PYTHONPATH") if path is None else os.environ.update(PYTHONPATH=path)
