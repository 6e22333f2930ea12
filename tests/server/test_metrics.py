"""Metrics of several replicas as one text."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from uncode.server.metrics import Metrics, merge


def test_samples_get_the_name_of_their_replica() -> None:
    one, other = Metrics(), Metrics()
    one.forward(4, 0.02)
    for _ in range(2):
        other.forward(8, 0.01)
    other.requests.labels("/v1/completions", "200").inc()
    text = merge({"a": one.text(), "b": other.text()}).decode()
    assert 'uncode_batch_rows_sum{replica="a"} 4.0' in text
    assert 'uncode_batch_rows_sum{replica="b"} 16.0' in text
    assert 'uncode_requests_total{endpoint="/v1/completions",replica="b",status="200"} 1.0' in text
    names = [family.name for family in text_string_to_metric_families(text)]
    assert len(names) == len(set(names)) and "uncode_batch_rows" in names
