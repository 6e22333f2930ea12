"""Metrics of several replicas as one text."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from uncode.server.metrics import Metrics, merge


def test_samples_get_the_name_of_their_replica() -> None:
    one, other = Metrics(), Metrics()
    one.step(4, 0.02, 1)
    other.step(8, 0.02, 2)  # a step with a probe
    other.requests.labels("/v1/completions", "200").inc()
    text = merge({"a": one.text(), "b": other.text()}).decode()
    assert 'uncode_batch_rows_sum{replica="a"} 4.0' in text
    assert 'uncode_batch_rows_sum{replica="b"} 16.0' in text
    assert 'uncode_forward_seconds_count{replica="b"} 2.0' in text and 'seconds_sum{replica="b"} 0.02' in text
    assert 'uncode_requests_total{endpoint="/v1/completions",replica="b",status="200"} 1.0' in text
    names = [family.name for family in text_string_to_metric_families(text)]
    assert len(names) == len(set(names)) and "uncode_batch_rows" in names
