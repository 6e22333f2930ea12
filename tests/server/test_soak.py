"""Thousands of requests of all kinds: memory stays flat, and no row, thread, file descriptor or object is left behind.

For memory the server runs in its own process, so that what is measured is not the client's.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import itertools
import multiprocessing
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import httpx
import psutil
import pytest

from tests.server.running import QuickModel, Running, running

CONCURRENCY = 16
MAX_GROWTH = {"memory": 2 * 1024 * 1024, "objects": 500}
"""Between the least of the first and of the last rounds: bytes of resident memory, and objects of Python."""
COMPLETION: dict[str, Any] = {"prompt": "2 + 3 =", "max_tokens": 8}
KINDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "text": ("/v1/completions", COMPLETION, 200),
    "stream": ("/v1/completions", COMPLETION | {"stream": True, "commits": True}, 200),
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "1 + 1 ="}], "max_tokens": 6}, 200),
    "several": ("/v1/completions", COMPLETION | {"n": 3, "temperature": 0.8, "logprobs": 0}, 200),
    "stop": ("/v1/completions", COMPLETION | {"stop": ["a", "e"], "max_tokens": 24}, 200),
    "cache": ("/v1/completions", COMPLETION | {"sampler": "fast_dllm", "cache": "dual", "block_length": 4}, 200),
    "gap": ("/v1/completions", {"infill": ["1 + ", 2, " = 3"]}, 200),
    "trace": ("/v1/completions", COMPLETION | {"trace": True}, 200),
    "cancelled": ("/v1/completions", COMPLETION | {"stream": True, "max_tokens": 100}, 200),
    "unknown field": ("/v1/completions", COMPLETION | {"temprature": 1}, 400),
    "unknown sampler": ("/v1/completions", COMPLETION | {"sampler": "nobody"}, 400),
    "unknown model": ("/v1/completions", COMPLETION | {"model": "nothing"}, 404),
    "unknown path": ("/v1/nothing", {}, 404),
}


@dataclass(frozen=True)
class Footprint:
    """What the server holds while it has nothing to do."""

    rows: int
    threads: int
    files: int
    memory: int
    objects: int


def measure(server: Running) -> Footprint:
    """The footprint of this process."""
    server.wait_until_idle()
    server.lines.truncate(0)
    server.lines.seek(0)
    for _ in range(2):
        gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    process, service = psutil.Process(), server.service
    rows = service.thread.outstanding + service.engine.running + service.engine.waiting
    return Footprint(
        rows, threading.active_count(), process.num_fds(), process.memory_info().rss, len(gc.get_objects())
    )


def serve_until_told(pipe: Connection) -> None:
    """In the server's process: a server, and its footprint whenever it is asked for."""
    with running(QuickModel()) as server:
        pipe.send(server.port)
        while pipe.recv() == "measure":
            pipe.send(asdict(measure(server)))


@contextmanager
def serving() -> Iterator[tuple[int, Callable[[], Footprint]]]:
    """A server in its own process. Yields its port, and a function that measures it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve_until_told, args=(theirs,), daemon=True)
    process.start()
    theirs.close()

    def measured() -> Footprint:
        ours.send("measure")
        assert ours.poll(60), "the server did not become idle"
        return Footprint(**ours.recv())

    try:
        assert ours.poll(120)
        yield ours.recv(), measured
        ours.send("end")
        process.join(60)
        assert process.exitcode == 0
    finally:
        process.kill()


async def ask(client: httpx.AsyncClient, kind: str) -> str | None:
    """Send one request. Returns what was wrong with the answer."""
    path, body, status = KINDS[kind]
    async with client.stream("POST", path, json=body) as response:
        if kind == "cancelled":
            async for _ in response.aiter_lines():
                break
        else:
            await response.aread()
    return None if response.status_code == status else f"{kind}: {response.status_code}"


async def send(port: int, kinds: list[str]) -> None:
    """Send requests of these kinds, some at a time. The connections are closed at the end."""
    waiting, wrong = iter(kinds), list[str | None]()

    async def answers() -> AsyncIterator[str | None]:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            for kind in waiting:
                yield await ask(client, kind)

    async def worker() -> None:
        wrong.extend([answer async for answer in answers() if answer is not None])

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    assert not wrong, Counter(wrong)


def soak(port: int, measured: Callable[[], Footprint], rounds: int, requests: int) -> list[Footprint]:
    """The footprints after each round of requests."""
    found = []
    for _ in range(rounds):
        asyncio.run(send(port, list(itertools.islice(itertools.cycle(KINDS), requests))))
        found.append(measured())
    return found


def check_nothing_leaks(found: list[Footprint]) -> None:
    assert all(one.rows == 0 for one in found), found
    assert len({one.threads for one in found}) == 1, found
    assert len({one.files for one in found}) == 1, found


@pytest.mark.slow
def test_nothing_is_left_behind() -> None:
    with running(QuickModel()) as server:
        check_nothing_leaks(soak(server.port, partial(measure, server), rounds=3, requests=len(KINDS))[1:])


@pytest.mark.slow
def test_thousands_of_requests_leave_memory_flat() -> None:
    with serving() as (port, measured):
        found = soak(port, measured, rounds=16, requests=260)[4:]
    check_nothing_leaks(found)
    third = len(found) // 3
    for name, limit in MAX_GROWTH.items():
        values = [getattr(one, name) for one in found]
        growth = min(values[-third:]) - min(values[:third])
        print(f"{name}: {values}")
        assert growth <= limit, values
