"""A real server for the tests: uvicorn on a loopback port, in a thread; and a model that costs nothing."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import httpx
import openai
from torch import Tensor

import uncode
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.pieces.cache import Plan
from uncode.engine import Engine
from uncode.server.decoding.samplers import Samplers
from uncode.server.logs import Log
from uncode.server.run import BackgroundServer, Server
from uncode.server.service import Service
from uncode.server.settings import ServerLimits, ServerSettings
from uncode.testing.hash_model import HashDenoiser, HashSession

STORY = (
    "Question: Mia has 3 shells. Cleo has 6 more shells than Mia. Mia is 32 years old. "
    "Ian has 16 more shells than Cleo. Gus has twice as many shells as Ian. "
    "Ben has 14 fewer shells than Gus. How many shells does Ben have?\nAnswer:"
)
TINY = cache(lambda: uncode.load("tiny"))
SETTINGS = ServerSettings(
    name="tiny", port=0, length=12, grace_seconds=10, limits=ServerLimits(rows=8, queue=16, read_seconds=5)
)


class QuickModel(HashDenoiser):
    """Texts of random tokens, in microseconds: a hash with the tokenizer, the table and the special ids of tiny.

    A forward takes `seconds` more, and raises `failure` once it is set.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        tiny = TINY()
        super().__init__(tiny.vocab_size, str(tiny.about["tokenizer"]))
        self.mask_id, self.eos_ids, self.context = tiny.mask_id, tiny.eos_ids, tiny.context
        self.tokenizer, self.frequency, self.samplers = tiny.tokenizer, tiny.frequency, tiny.samplers
        self.seconds, self.failure = seconds, list[Exception]()

    def open(self, rows: int, length: int) -> HashSession:
        return QuickSession(self)


class QuickSession(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        assert isinstance(self.denoiser, QuickModel)
        if self.denoiser.seconds:
            time.sleep(self.denoiser.seconds)
        if self.denoiser.failure:
            raise self.denoiser.failure.pop()
        return super().logits(tokens, layout, plan)


@dataclass
class Running:
    """A server that runs, and its clients."""

    service: Service
    server: Server
    port: int
    lines: io.StringIO

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def openai(self, **options: Any) -> openai.OpenAI:
        settings = {"api_key": "none", "max_retries": 0, "timeout": 60.0} | options
        return openai.OpenAI(base_url=f"{self.address}/v1", **settings)

    def http(self, **options: Any) -> httpx.Client:
        return httpx.Client(
            base_url=self.address, timeout=60.0, verify=False, **options
        )  # certificates take long to read

    def post(self, path: str, **body: Any) -> httpx.Response:
        with self.http() as client:
            return client.post(path, json=body)

    def get(self, path: str) -> httpx.Response:
        with self.http() as client:
            return client.get(path)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]

    def metric(self, name: str, **labels: str) -> float:
        found = self.service.metrics.registry.get_sample_value(name, labels)
        assert found is not None, name
        return found

    def ended(self, outcome: str) -> float:
        """Rows that have ended so."""
        return self.metric("uncode_queue_seconds_count", outcome=outcome)

    def wait_until_idle(self, seconds: float = 30) -> None:
        self.wait(lambda: self.service.thread.outstanding == 0 and self.service.engine.is_idle, seconds)

    @staticmethod
    def wait(condition: Any, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.005)


@contextmanager
def running(
    denoiser: Denoiser | None = None,
    settings: ServerSettings = SETTINGS,
    sampler: str = "uncode",
    engine: Engine | None = None,
    options: dict[str, Any] | None = None,
    **limits: Any,
) -> Iterator[Running]:
    """A server until the end of the block. `options` are those of its default sampler."""
    model = QuickModel() if denoiser is None else denoiser
    settings = replace(settings, limits=replace(settings.limits, **limits))
    lines = io.StringIO()
    service = Service(model, settings, Samplers(model, sampler, options or {}), Log(lines), engine)
    with BackgroundServer(service) as server:
        yield Running(service, server.server, server.port, lines)
