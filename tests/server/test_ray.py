"""The server on a local Ray cluster with two replicas, one of which is killed under load."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import openai
import psutil
import pytest

import uncode
from tests.server.running import SETTINGS, QuickModel
from uncode.server.decoding.samplers import Samplers
from uncode.server.service import Service
from uncode.server.settings import Replicas, ServerSettings

ray = pytest.importorskip("ray", reason="ray is not installed")
serve = pytest.importorskip("ray.serve", reason="ray[serve] is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RETRIED = (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError)
"""What the client retries by itself, unless a stream has begun: broken connections, 500 and above, 429."""
LENGTH, PROMPT = 12, "2 + 3 ="


def build(settings: ServerSettings) -> Service:
    """The service of a replica: a forward takes 20 ms."""
    model = QuickModel(0.02)
    return Service(model, settings, Samplers(model, "confidence", {}))


@dataclass
class Deployment:
    port: int

    def client(self, **options: Any) -> openai.OpenAI:
        settings = {"api_key": "none", "max_retries": 0, "timeout": 120.0} | options
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", **settings)

    def replicas(self) -> list[int]:
        """The process ids of the replicas."""
        found = []
        for process in psutil.process_iter(["cmdline", "username"]):
            title = " ".join(process.info["cmdline"] or [])
            if title.startswith("ray::ServeReplica:uncode") and _is_ours(process):
                found.append(process.pid)
        return found

    def wait_for_replicas(self, number: int) -> None:
        deadline = time.monotonic() + 180
        while True:
            states = serve.status().applications["uncode"].deployments["uncode"].replica_states
            if states == {"RUNNING": number} and len(self.replicas()) == number:
                return
            assert time.monotonic() < deadline, states
            time.sleep(0.5)


def _is_ours(process: psutil.Process) -> bool:
    """Whether it is of the cluster that this process has started."""
    try:
        return os.getpid() in [parent.pid for parent in process.parents()]
    except psutil.NoSuchProcess:
        return False


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_the_command(tmp_path: Path) -> None:
    """`uncode serve --ray` announces its address, answers, and ends with a signal.

    It is the first test, so that its cluster is gone before that of the others starts.
    """
    port = free_port()
    command = [sys.executable, "-m", "uncode", "serve", "--ray", "--port", str(port), "--device", "cpu"]
    environment = os.environ | {"PYTHONPATH": str(Path("src").resolve())}
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(f"tiny at http://127.0.0.1:{port}/v1")
            body = {"prompt": PROMPT, "max_tokens": 4}
            answer = httpx.post(f"http://127.0.0.1:{port}/v1/completions", json=body, timeout=120)
            assert answer.json()["usage"]["completion_tokens"] >= 0
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0, (tmp_path / "log").read_text()


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServerSettings]:
    """A cluster with two processors. Ray Serve keeps its port, so all deployments share the settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(str(Path(part).resolve()) for part in ("src", ".")))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", object_store_memory=1 << 27
        )
        try:
            yield replace(SETTINGS, port=free_port())
            serve.shutdown()
        finally:
            ray.shutdown()


@contextmanager
def deploying(settings: ServerSettings, replicas: Replicas) -> Iterator[Deployment]:
    from uncode.server.ray_deployment import deployed

    with deployed(partial(build, settings), settings, replicas):
        yield Deployment(settings.port)


def test_a_replica_is_added_under_load(cluster: ServerSettings) -> None:
    settings = replace(cluster, limits=replace(cluster.limits, rows=2, queue=64))
    ended = Event()
    with deploying(settings, Replicas(1, 2)) as deployment, ThreadPoolExecutor(12) as pool:
        deployment.wait_for_replicas(1)

        def ask_until_ended(seed: int) -> None:
            while not ended.is_set():
                ask(deployment.client(max_retries=8), seed)

        clients = [pool.submit(ask_until_ended, seed) for seed in range(12)]
        try:
            deployment.wait_for_replicas(2)
        finally:
            ended.set()
        for client in clients:
            client.result()


@pytest.fixture(scope="module")
def deployment(cluster: ServerSettings) -> Iterator[Deployment]:
    with deploying(cluster, Replicas(2, 2)) as made:
        yield made


def ask(client: openai.OpenAI, seed: int) -> str:
    """One answer; every second one is streamed."""
    stream = bool(seed % 2)
    answer = client.completions.create(
        model="tiny", prompt=PROMPT, max_tokens=LENGTH, seed=seed, temperature=0.9, stream=stream
    )
    if not stream:
        return str(answer.choices[0].text)
    text, reason = "", None
    for chunk in answer:
        text += chunk.choices[0].text
        reason = chunk.choices[0].finish_reason or reason
    assert reason is not None, "the stream ended before the answer, without an error"
    return text


@pytest.fixture(scope="module")
def alone() -> Any:
    """The answer of a request decoded alone."""
    model = QuickModel()
    sampler = uncode.presets.confidence(temperature=0.9)
    return lambda seed: uncode.generate(model, PROMPT, sampler=sampler, length=LENGTH, seed=seed)


def test_the_same_application(deployment: Deployment, alone: Any) -> None:
    client = deployment.client()
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert [ask(client, seed) for seed in range(4)] == [alone(seed) for seed in range(4)]
    assert len(client.models.with_raw_response.list().headers.get_list("x-request-id")) == 1
    with pytest.raises(openai.BadRequestError, match="temprature"):
        client.completions.create(model="tiny", prompt=PROMPT, extra_body={"temprature": 1})
    with pytest.raises(openai.NotFoundError, match="tyni"):
        client.completions.create(model="tyni", prompt=PROMPT)


def test_no_request_is_lost_when_a_replica_is_killed(deployment: Deployment, alone: Any) -> None:
    client, numbers = deployment.client(), count(1)
    killed: list[int] = []

    def one(seed: int) -> str | Exception:
        if next(numbers) == 60:
            killed.append(deployment.replicas()[0])
            os.kill(killed[0], signal.SIGKILL)
        try:
            return ask(client, seed)
        except RETRIED as error:
            return error

    deployment.wait_for_replicas(2)
    seeds = range(200)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(one, seeds))
    assert killed
    failed = [seed for seed, answer in zip(seeds, found, strict=True) if isinstance(answer, Exception)]
    print(Counter(type(found[seed]).__name__ for seed in failed))
    assert 0 < len(failed) <= 48  # the rows of one replica, and those that were on their way to it
    retrying = deployment.client(max_retries=8)
    answers = [ask(retrying, seed) if seed in failed else found[seed] for seed in seeds]
    assert answers == [alone(seed) for seed in seeds]


def test_the_client_retries_by_itself(deployment: Deployment, alone: Any) -> None:
    client, numbers = deployment.client(max_retries=8), count(1)

    def one(seed: int) -> str:
        if next(numbers) == 30:
            os.kill(deployment.replicas()[0], signal.SIGKILL)
        return ask(client, seed)

    deployment.wait_for_replicas(2)  # Ray has replaced the one that was killed
    seeds = range(0, 120, 2)  # not streamed
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, seeds)) == [alone(seed) for seed in seeds]
    deployment.wait_for_replicas(2)


def test_rows_of_clients_that_leave_are_dropped(deployment: Deployment) -> None:
    body = {"prompt": PROMPT, "max_tokens": 150, "stream": True}
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{deployment.port}", timeout=60) as client,
        client.stream("POST", "/v1/completions", json=body) as response,
    ):
        assert next(response.iter_lines()).startswith("data: ")
    deadline = time.monotonic() + 30
    while sum(metric(deployment, "uncode_queue_seconds_count", 'outcome="client_gone",')) == 0:
        assert time.monotonic() < deadline


def metric(deployment: Deployment, name: str, labels: str = "") -> list[float]:
    """The values of a metric, one per replica."""
    text = httpx.get(f"http://127.0.0.1:{deployment.port}/metrics", timeout=60).text
    return [float(value) for value in re.findall(rf'^{name}{{{labels}replica="\w+"}} (\S+)$', text, re.M)]


def test_metrics_are_those_of_all_replicas(deployment: Deployment) -> None:
    client, before = deployment.client(), metric(deployment, "uncode_prompt_tokens_total")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: ask(client, 2 * seed), range(40)))
    after = metric(deployment, "uncode_prompt_tokens_total")
    assert len(before) == len(after) == 2 and all(new > old for new, old in zip(after, before, strict=True))
