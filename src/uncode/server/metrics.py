"""What Prometheus reads at /metrics. Each server has its own registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
FORWARD_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters of requests, rows, tokens and forwards."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "uncode_requests", "HTTP requests that were answered.", ("endpoint", "status"), registry=self.registry
        )
        self.request_seconds = Histogram(
            "uncode_request_seconds",
            "From arrival to the last byte.",
            ("endpoint",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.first_text_seconds = Histogram(
            "uncode_first_text_seconds",
            "From arrival to the first settled text.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.queue_seconds = Histogram(
            "uncode_queue_seconds",
            "Of a row, from arrival to its first forward.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.rows_running = Gauge("uncode_rows_running", "Rows in the batch.", registry=self.registry)
        self.rows_waiting = Gauge("uncode_rows_waiting", "Rows in the queue.", registry=self.registry)
        self.rows_dropped = Counter(
            "uncode_rows_dropped", "Rows whose client had left, or whose time was up.", registry=self.registry
        )
        self.batch_rows = Histogram(
            "uncode_batch_rows",
            "Rows of each forward; sum / count is the mean batch.",
            buckets=ROWS,
            registry=self.registry,
        )
        self.forward_seconds = Histogram(
            "uncode_forward_seconds",
            "Of a forward and all that follows from it.",
            buckets=FORWARD_SECONDS,
            registry=self.registry,
        )
        self.failed_forwards = Counter("uncode_failed_forwards", "Forwards that failed.", registry=self.registry)
        self.prompt_tokens = Counter("uncode_prompt_tokens", "Tokens of prompts.", registry=self.registry)
        self.completion_tokens = Counter("uncode_completion_tokens", "Tokens of answers.", registry=self.registry)

    def step(self, rows: int, seconds: float, forwards: int) -> None:
        """Count the forwards of a step; with probes there are several."""
        for _ in range(forwards):
            self.batch_rows.observe(rows)
            self.forward_seconds.observe(seconds / forwards)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)


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
