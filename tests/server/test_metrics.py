"""What Prometheus reads: every row once, the state of the engine, and the metrics of several replicas as one text."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

import uncode
from tests.server.running import STORY, QuickModel, Running, running
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


def families(server: Running) -> dict[str, Metric]:
    """What /metrics says, by the names that a query has; without the times at which counters began."""
    text = server.get("/metrics").text
    return {
        family.name + ("_total" if family.type == "counter" and family.name.startswith("uncode") else ""): family
        for family in text_string_to_metric_families(text)
        if not family.name.endswith("_created")
    }


def test_the_page_lists_every_metric() -> None:
    table = (Path(__file__).parents[2] / "docs" / "server.md").read_text().partition("## Metrics\n")[2]
    listed = {
        name: set(re.findall(r"`(\w+)`", labels)) for name, labels in re.findall(r"\n\| `(\S+)` \|(.*?)\|", table)
    }
    with running() as server:
        server.post("/v1/completions", prompt=STORY, max_tokens=3)
        server.wait_until_idle()
        found = families(server)
    own = {name: family for name, family in found.items() if not name.startswith("process_")}
    assert {*own, "process_*"} == set(listed) and len(own) < len(found)
    for name, family in own.items():
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert labels <= listed[name] and (labels or not family.samples or not listed[name]), name


def test_rows_that_gave_up_are_counted() -> None:
    """With the time that they waited, whatever ended them."""

    def waited(server: Running, outcome: str) -> tuple[float, float]:
        value = server.service.metrics.registry.get_sample_value
        return tuple(value(f"uncode_queue_seconds_{one}", {"outcome": outcome}) or 0.0 for one in ("count", "sum"))  # type: ignore[return-value]

    model, asked = QuickModel(0.05), {"prompt": STORY, "sampler": "confidence", "stop_at_eos": False}
    with running(model, rows=1, queue=1, seconds=1.5) as server, ThreadPoolExecutor(4) as pool:
        slow = pool.submit(server.post, "/v1/completions", **asked, max_tokens=100)
        server.wait(lambda: server.service.engine.running == 1)
        connection = server.connect()
        body = json.dumps(asked | {"max_tokens": 100})  # a short one could join the full batch
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n{body}".encode())
        server.wait(lambda: server.service.thread.outstanding == 2)
        assert server.post("/v1/completions", **asked, max_tokens=4).status_code == 429
        assert waited(server, "refused") == (1, 0)
        time.sleep(0.2)
        connection.close()
        server.wait(lambda: waited(server, "client_gone")[0] == 1)
        assert 0.1 <= waited(server, "client_gone")[1] < 1.5  # the engine takes it after a forward
        assert slow.result().status_code == 408
        server.wait(lambda: waited(server, "timeout")[0] == 1)
        assert waited(server, "timeout")[1] < 1, "it waited for the batch, and not for its answer"
        assert server.metric("uncode_step_age_seconds") < 5
        model.failure.append(ValueError("by design"))
        assert server.post("/v1/completions", **asked, max_tokens=4).status_code == 500
        server.wait_until_idle()
        assert waited(server, "failed")[0] == 1 and server.metric("uncode_step_age_seconds") == 0
        model.seconds = 0.0
        assert server.post("/v1/completions", **asked, max_tokens=4).status_code == 200
        server.wait(lambda: waited(server, "finished")[0] == 1)
        model.seconds = 0.5
        last = pool.submit(server.post, "/v1/completions", **asked, max_tokens=100)
        server.wait(lambda: server.service.engine.running == 1)
        server.service.thread.give_up()
        assert last.result().status_code == 503
        assert waited(server, "shutdown")[0] == 1


def test_the_state_of_the_engine_is_read_now() -> None:
    model = QuickModel(0.3)
    with running(model, rows=4) as server, ThreadPoolExecutor(1) as pool:
        budget = server.service.engine.budget.limit
        assert server.metric("uncode_rows_limit") == 4 and server.metric("uncode_memory_budget_bytes") == budget
        assert server.metric("uncode_step_age_seconds") == server.metric("uncode_rows_running") == 0
        answer = pool.submit(server.post, "/v1/completions", prompt=STORY, max_tokens=4, sampler="confidence")
        server.wait(lambda: 0.05 < server.metric("uncode_step_age_seconds") < 1)
        assert server.metric("uncode_rows_running") == 1
        model.seconds = 0.0
        assert answer.result().status_code == 200


def test_the_label_of_a_sampler_is_a_known_name() -> None:
    """A client cannot add labels: neither by names in data, nor by wrong names."""
    data = replace(uncode.presets.confidence(), name="x" * 50).to_dict()
    with running() as server:
        for sampler in (None, "fast_dllm", "legacy.llada_eos", "story", data, "no such sampler", "fast_dllm"):
            server.post("/v1/completions", prompt=STORY, max_tokens=4, sampler=sampler)
        server.wait_until_idle()
        found = families(server)
    tokens, known = (
        found["uncode_completion_tokens_total"],
        {"uncode", "fast_dllm", "legacy.llada_eos", "story", "data"},
    )
    assert {sample.labels["sampler"] for sample in tokens.samples} == known
    counts = {one.labels["sampler"]: one.value for one in found["uncode_token_seconds"].samples if "_count" in one.name}
    assert counts == dict.fromkeys(known, 1) | {"fast_dllm": 2}
    (build,) = found["uncode_build_info"].samples
    assert build.labels["version"] == uncode.__version__ and build.value == 1
