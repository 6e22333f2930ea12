"""What Prometheus reads at /metrics. Each server has its own registry."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ..engine import Engine
from ..version import __version__
from .decoding.served_request import Outcome, ServedRow

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
FORWARD_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters of requests, rows, tokens and forwards, and the state of the engine and of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        seconds, short = partial(histogram, buckets=SECONDS), partial(histogram, buckets=FORWARD_SECONDS)
        self.requests = counter("uncode_requests", "HTTP requests that were answered.", ("endpoint", "status"))
        self.request_seconds = seconds("uncode_request_seconds", "From arrival to the last byte.", ("endpoint",))
        self.first_text_seconds = seconds(
            "uncode_first_text_seconds", "From arrival to the first settled text.", ("sampler",)
        )
        self.queue_seconds = seconds(
            "uncode_queue_seconds", "Of a row, from arrival to its first forward or to its end.", ("outcome",)
        )
        self.token_seconds = short(
            "uncode_token_seconds", "Of a row in the batch, per token of its answer.", ("sampler",)
        )
        self.rows_running = gauge("uncode_rows_running", "Rows in the batch.")
        self.rows_waiting = gauge("uncode_rows_waiting", "Rows in the queue.")
        self.rows_limit = gauge("uncode_rows_limit", "Rows that the batch may have now.")
        self.memory_budget = gauge("uncode_memory_budget_bytes", "Memory that forwards may take.")
        self.step_age = gauge("uncode_step_age_seconds", "Since the step that runs began; 0 between steps.")
        self.batch_rows = histogram(
            "uncode_batch_rows", "Rows of each forward; sum / count is the mean batch.", buckets=ROWS
        )
        self.forward_seconds = short("uncode_forward_seconds", "Of a forward and all that follows from it.")
        self.failed_forwards = counter("uncode_failed_forwards", "Forwards that failed.")
        self.prompt_tokens = counter("uncode_prompt_tokens", "Tokens of prompts.")
        self.completion_tokens = counter("uncode_completion_tokens", "Tokens of answers.", ("sampler",))
        Info("uncode_build", "The versions that run.", registry=self.registry).info(
            {"version": __version__, "torch": torch.__version__, "python": platform.python_version()}
        )
        ProcessCollector(registry=self.registry)

    def show_engine(self, engine: Engine[ServedRow], step_age: Callable[[], float]) -> None:
        """Read the state of an engine whenever the metrics are read."""
        self.rows_running.set_function(lambda: engine.running)
        self.rows_waiting.set_function(lambda: engine.waiting)
        self.rows_limit.set_function(lambda: engine.limit_rows)
        self.memory_budget.set_function(lambda: math.nan if engine.budget.limit is None else engine.budget.limit)
        self.step_age.set_function(step_age)

    def row_left(self, waited: float, outcome: Outcome) -> None:
        """Count the time in the queue of a row that has ended, however it did."""
        self.queue_seconds.labels(outcome).observe(waited)

    def step(self, rows: int, seconds: float, forwards: int) -> None:
        """Count the forwards of a step; with probes there are several."""
        for _ in range(forwards):
            self.batch_rows.observe(rows)
            self.forward_seconds.observe(seconds / forwards)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)

    async def read(self) -> bytes:
        """What a server alone says at /metrics."""
        return self.text()


class _Families(Collector):
    def __init__(self, families: Mapping[str, Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families.values()


def merge(texts: Mapping[str, bytes]) -> bytes:
    """The metrics of several replicas as one text. Each sample gets the name of its replica as a label."""
    families: dict[str, Metric] = {}
    for replica, text in texts.items():
        for family in text_string_to_metric_families(text.decode()):
            found = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            found.samples += [one._replace(labels=one.labels | {"replica": replica}) for one in family.samples]
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry)
