"""What the server refuses, and how it goes on: limits, keys, bad connections, failed forwards, its own end."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
import torch

from tests.server.running import SETTINGS, STORY, QuickModel, running
from tests.server.test_fuzz import PATHS
from uncode import UncodeError
from uncode.engine.row_step import RowStep
from uncode.generation.prompt import Prompt
from uncode.server.api.read_body import _parsed
from uncode.server.connections import connection_class
from uncode.server.decoding.prompts import PreparedPrompt
from uncode.server.decoding.reader import RowReader, Wanted
from uncode.server.decoding.samplers import Samplers
from uncode.server.decoding.served_request import ServedRequest
from uncode.server.errors import ApiError
from uncode.server.logs import Log
from uncode.server.run import listen, serve
from uncode.server.service import Service
from uncode.server.settings import ServerLimits, ServerSettings


def error_of(response: httpx.Response) -> dict[str, Any]:
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return dict(error)


def test_a_full_queue_is_429_and_says_when_to_come_back() -> None:
    with running(QuickModel(seconds=0.02), rows=1, queue=1) as server, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(server.post, "/v1/completions", prompt="1 + 1 =", max_tokens=30) for _ in range(2)]
        server.wait(lambda: server.service.thread.outstanding == 2)
        refused = server.post("/v1/completions", prompt=STORY, max_tokens=4)
        assert refused.status_code == 429 and error_of(refused)["type"] == "rate_limit_error"
        assert error_of(refused)["message"] == "the queue is full (1 waiting row): try again later."
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert [one.result().status_code for one in waiting] == [200, 200]
        assert server.post("/v1/completions", prompt=STORY, max_tokens=4).status_code == 200


def test_a_short_request_overtakes_long_ones() -> None:
    with running(QuickModel(seconds=0.005), rows=2, queue=16) as server, ThreadPoolExecutor(6) as pool:
        done: list[str] = []

        def ask(name: str, tokens: int) -> None:
            assert (
                server.post("/v1/completions", prompt="1 + 1 =", max_tokens=tokens, stop_at_eos=False).status_code
                == 200
            )
            done.append(name)

        long = [pool.submit(ask, f"long {number}", 48) for number in range(4)]
        server.wait(lambda: server.service.engine.running == 2 and server.service.engine.waiting == 2)
        pool.submit(ask, "short", 8).result()
        assert done == ["short"]
        for one in long:
            one.result()


def test_time_is_up() -> None:
    with running(QuickModel(seconds=0.05), seconds=1.5) as server:
        late = server.post("/v1/completions", prompt=STORY, max_tokens=100)
        assert late.status_code == 408 and "within 1.5 s" in error_of(late)["message"]
        with server.openai() as client, pytest.raises(openai.APIError, match=r"within 1\.5 s"):
            list(client.completions.create(model="tiny", prompt=STORY, max_tokens=100, stream=True))
        server.wait_until_idle()
        assert server.ended("timeout") == 2
        assert server.post("/v1/completions", prompt=STORY, max_tokens=3).status_code == 200


def test_a_body_that_is_too_large() -> None:
    with running(body_bytes=1000) as server, server.http() as client:
        large = server.post("/v1/completions", prompt="x" * 2000)
        assert large.status_code == 413 and "at most 1000 bytes" in error_of(large)["message"]
        parts = (b"x" * 300 for _ in range(9))  # without a length
        headers = {"content-type": "application/json"}
        assert client.post("/v1/completions", content=parts, headers=headers).status_code == 413
        assert server.post("/v1/completions", prompt="x", max_tokens=2).status_code == 200


def test_a_prompt_that_is_too_long() -> None:
    with running(prompt_tokens=10) as server:
        long = server.post("/v1/completions", prompt=STORY)
        assert long.status_code == 400 and error_of(long)["code"] == "context_length_exceeded"


# -- keys and names --------------------------------------------------------------------------------


def test_a_key_is_needed() -> None:
    with running(settings=replace(SETTINGS, api_key="schlüssel")) as server, server.http() as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "schlüssel".encode()}):
            for path in ("/v1/models", "/metrics"):
                refused = client.get(path, headers=headers)
                assert refused.status_code == 401 and error_of(refused)["code"] == "invalid_api_key"
        assert client.get("/v1/models", headers={"authorization": "Bearer schlüssel".encode()}).status_code == 200
        assert client.get("/health").status_code == client.get("/docs").status_code == 200
        with server.openai(api_key="wrong") as wrong, pytest.raises(openai.AuthenticationError):
            wrong.models.list()


def test_other_host_names_are_refused_without_a_key() -> None:
    """So that no web page reaches the server under a name that its owner points to this machine."""
    with running(settings=replace(SETTINGS, hosts=("Proxy.example",))) as server, server.http() as client:
        strange = ("[::1]evil.example", "localhost@evil.example", "localhost:80evil", "evil.example:localhost", "[::1")
        for name in ("evil.example", "evil.example:80", "[::2]:80", *strange):
            refused = client.get("/v1/models", headers={"host": name})
            assert refused.status_code == 403 and "--allow-host" in error_of(refused)["message"]
        for name in ("localhost:1", "LOCALHOST", "[::1]:8000", "proxy.example"):
            assert client.get("/v1/models", headers={"host": name}).status_code == 200


def test_loopback_addresses() -> None:
    local = {
        host: ServerSettings("x", host=host).is_loopback for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9")
    }
    assert all(local.values())
    assert not any(
        ServerSettings("x", host=host).is_loopback for host in ("0.0.0.0", "::", "192.168.1.4", "example.com")
    )


# -- connections -----------------------------------------------------------------------------------


def reply(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status", "reason"),
    [
        (b"nonsense\r\n\r\n", 400, "illegal request line"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Missing mandatory Host"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "multiple Host"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000, 431, "too long"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nnone\r\n", 400, "chunk"),
        (HEAD + b"Content-Length: many\r\n\r\n", 400, "Content-Length"),
    ],
)
def test_bytes_that_are_no_http_get_an_error_of_the_api(request_bytes: bytes, status: int, reason: str) -> None:
    with running() as server, server.connect() as connection:
        connection.sendall(request_bytes)
        head, _, body = reply(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) and b"Content-Type: application/json" in head
    error = json.loads(body)["error"]
    assert error["code"] == "invalid_http" and reason in error["message"]


def test_head_is_get_without_its_body() -> None:
    with running() as server, server.http() as client:
        for path in ("/", "/health", "/ready", "/docs", "/v1/models"):
            found, whole = client.head(path), client.get(path)
            assert found.status_code == 200 and found.content == b""
            assert found.headers["content-length"] == str(len(whole.content))
        assert client.head("/v1/completions").status_code == 405
    assert [line["method"] for line in server.log if line.get("endpoint") == "/docs"] == ["HEAD", "GET"]


def test_a_slash_too_many_is_no_redirect() -> None:
    """A redirect would lead to whatever host the client names."""
    with running(settings=replace(SETTINGS, api_key="x")) as server, server.http() as client:
        headers = {"host": "evil.example", "authorization": "Bearer x"}
        found = client.get("/health/", headers=headers)
        assert found.status_code == 404 and "location" not in found.headers
        found = client.post("/v1/completions/", headers=headers)
        assert found.status_code == 404 and "location" not in found.headers


def test_slow_and_silent_clients_are_sent_away() -> None:
    with running(read_seconds=0.3) as server:
        silent, headers, body, second = (server.connect() for _ in range(4))
        with silent, headers, body, second:
            headers.sendall(HEAD)
            body.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
            second.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in second.recv(4096)
            second.sendall(b"GET /health HT")
            assert reply(silent) == b""
            assert b"408 Request Timeout" in reply(headers)
            assert b"408 Request Timeout" in reply(body)
            assert b"408 Request Timeout" in reply(second)
        server.wait(lambda: not server.server.server_state.connections)
        assert server.post("/v1/completions", prompt="x", max_tokens=2).status_code == 200


def test_cut_connections_leave_nothing_behind() -> None:
    body = json.dumps({"prompt": STORY, "max_tokens": 100, "stream": True}).encode()
    whole = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with running(QuickModel(seconds=0.005)) as server:
        for cut in (1, 30, len(HEAD), len(HEAD) + 30, len(whole) - 1, len(whole)):
            with server.connect() as connection:
                connection.sendall(whole[:cut])
                if cut == len(whole):
                    assert b"200 OK" in connection.recv(4096)
        server.wait(lambda: not server.server.server_state.connections)
        server.wait_until_idle()
        assert server.post("/v1/completions", prompt="x", max_tokens=2).status_code == 200
        assert not [line for line in server.log if line.get("status") == 500]


def test_too_many_connections() -> None:
    with running(connections=3) as server:
        idle = [server.connect() for _ in range(3)]
        server.wait(lambda: len(server.server.server_state.connections) == 3)
        with server.connect() as refused:
            answer = reply(refused)
        assert b"429 Too Many Requests" in answer and b"Retry-After" in answer and b"3 connections" in answer
        for one in idle:
            one.close()
        server.wait(lambda: not server.server.server_state.connections)
        assert server.post("/v1/completions", prompt="x", max_tokens=2).status_code == 200


def test_a_client_that_does_not_read_is_cut_off() -> None:
    """In its own loop, because the buffers of a real connection are large."""
    aborted = threading.Event()

    async def stall() -> None:
        connection = object.__new__(connection_class(ServerLimits(read_seconds=0.05)))
        connection.loop = asyncio.get_running_loop()
        connection.flow = type("Flow", (), {"pause_writing": lambda _: None, "resume_writing": lambda _: None})()
        connection.transport = type("Transport", (), {"abort": lambda _: aborted.set()})()
        connection.pause_writing()
        connection.resume_writing()
        await asyncio.sleep(0.1)
        assert not aborted.is_set()
        connection.pause_writing()
        await asyncio.sleep(0.1)

    asyncio.run(stall())
    assert aborted.is_set()


def test_a_port_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(UncodeError, match="choose another --host or --port"):
            listen("127.0.0.1", port)


# -- failures --------------------------------------------------------------------------------------


def test_a_failed_forward_is_500_and_the_server_goes_on() -> None:
    model = QuickModel(seconds=0.01)
    with running(model, rows=4) as server, ThreadPoolExecutor(5) as pool:
        rows = [pool.submit(server.post, "/v1/completions", prompt=STORY, max_tokens=60) for _ in range(4)]
        server.wait(lambda: server.service.engine.running == 4)
        behind = pool.submit(server.post, "/v1/completions", prompt=STORY, max_tokens=40)
        server.wait(lambda: server.service.engine.waiting == 1)
        model.failure.append(RuntimeError("CUDA error: an illegal access\nand a page of advice"))
        for row in rows:
            failed = row.result()
            assert failed.status_code == 500 and error_of(failed)["type"] == "server_error"
            assert error_of(failed)["message"].startswith("the forward failed (RuntimeError: CUDA error: an illegal")
        assert behind.result().status_code == 200
        (line,) = [line for line in server.log if line["event"] == "forward_failed"]
        assert line["rows"] == 4 and "an illegal access" in line["traceback"]
        assert server.metric("uncode_failed_forwards_total") == 1 and server.service.engine.limit_rows == 2
        assert server.get("/health").status_code == 200


def test_a_server_whose_forwards_all_fail_is_not_healthy() -> None:
    model = QuickModel()
    with running(model) as server, server.http() as client:
        for _ in range(3):
            model.failure.append(RuntimeError("CUDA error"))
            assert server.post("/v1/completions", prompt=STORY, max_tokens=3, stream=True).status_code == 500
        assert client.get("/health").status_code == client.get("/ready").status_code == 503
        assert server.post("/v1/completions", prompt=STORY, max_tokens=3).status_code == 200
        assert client.get("/health").status_code == client.get("/ready").status_code == 200


def test_a_thread_that_dies_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the engine: requests get an error at once, and the server says that it is not healthy."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with running(QuickModel(seconds=0.01)) as server, ThreadPoolExecutor(1) as pool:
        row = pool.submit(server.post, "/v1/completions", prompt=STORY, max_tokens=60)
        server.wait(lambda: server.service.engine.running == 1)
        monkeypatch.setattr(server.service.thread, "_obey", lambda: 1 / 0)
        assert row.result().status_code == 503
        assert server.post("/v1/completions", prompt=STORY, max_tokens=2).status_code == 503
        assert server.get("/health").status_code == 503


def test_memory_that_runs_out_costs_no_answer() -> None:
    model = QuickModel(seconds=0.01)
    with running(model, rows=4) as server, ThreadPoolExecutor(3) as pool:
        asked = {"prompt": "1 + 1 =", "max_tokens": 20, "seed": 1, "temperature": 1.0}
        quiet = server.post("/v1/completions", **asked).json()["choices"][0]["text"]
        rows = [pool.submit(server.post, "/v1/completions", **asked) for _ in range(3)]
        server.wait(lambda: server.service.engine.running == 3)
        model.failure.append(torch.OutOfMemoryError("no memory"))
        assert [row.result().json()["choices"][0]["text"] for row in rows] == [quiet] * 3


def test_a_row_that_comes_out_differently_is_an_error() -> None:
    """After a restart in half precision: what was streamed cannot be taken back."""
    model = QuickModel()
    reader = RowReader(model, Prompt([5, 0, 0], [(1, 3)]), Wanted(stream=True))
    assert reader.update(RowStep(0, [20, 0], 1, [])).text
    assert reader.update(RowStep(0, [20, 0], 1, [])).is_empty
    with pytest.raises(UncodeError, match="came out differently"):
        reader.update(RowStep(0, [21, 0], 1, []))


def test_a_row_that_stalls_is_400() -> None:
    with running() as server:
        sampler = {"policy": {"score": {"piece": "Confidence"}}, "limit": 2, "name": "hasty"}
        stalled = server.post("/v1/completions", prompt=STORY, max_tokens=9, sampler=sampler)
        assert stalled.status_code == 400 and "the limit of sampler 'hasty'" in error_of(stalled)["message"]


# -- its end, its logs -----------------------------------------------------------------------------


def test_running_rows_finish_before_the_server_ends() -> None:
    with running(QuickModel(seconds=0.03)) as server, ThreadPoolExecutor(1) as pool, server.http() as kept:
        assert kept.get("/ready").status_code == 200
        row = pool.submit(server.post, "/v1/completions", prompt=STORY, max_tokens=60)
        server.wait(lambda: server.service.engine.running == 1)
        server.server.handle_exit(15, None)
        time.sleep(0.2)  # uvicorn looks every 0.1 s
        draining = server.get("/ready")  # on a new connection
        assert draining.status_code == 503 and error_of(draining)["code"] == "not_ready"
        assert server.post("/v1/completions", prompt="1 + 1 =").status_code == 503
        assert server.get("/health").status_code == 200 and not row.done()
        assert row.result().status_code == 200
    assert [line["event"] for line in server.log if line["event"] != "request"] == ["stopping", "stopped"]


def test_rows_that_take_too_long_get_an_error_at_the_end() -> None:
    slow = replace(SETTINGS, grace_seconds=0.2)
    with running(QuickModel(seconds=0.05), slow, rows=1) as server, ThreadPoolExecutor(2) as pool:
        rows = [pool.submit(server.post, "/v1/completions", prompt=STORY, max_tokens=100) for _ in range(2)]
        server.wait(lambda: server.service.thread.outstanding == 2)
        began = time.monotonic()
        server.server.handle_exit(15, None)
        for row in rows:
            assert row.result().status_code == 503 and error_of(row.result())["code"] == "shutting_down"
            assert row.result().headers["retry-after"]
        assert time.monotonic() - began < 5


def test_a_request_whose_prompt_is_read_while_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken, but its rows come after the last look of the engine's thread."""
    with running(seconds=5) as server:
        read = server.service.prompts.answer

        def slow(*args: Any) -> PreparedPrompt:
            server.service.thread.stop()
            return read(*args)

        monkeypatch.setattr(server.service.prompts, "answer", slow)
        late = server.post("/v1/completions", prompt=STORY)
        assert late.status_code == 503 and error_of(late)["code"] == "shutting_down"
        assert server.service.thread.outstanding == 0


def test_a_row_that_the_engine_finds_late_is_a_timeout() -> None:
    """The loop or the engine's thread may see it first."""

    async def outcome(error: ApiError) -> str:
        served = ServedRequest(asyncio.get_running_loop(), 60, {"sampler": "uncode"}, lambda rows: None, [object()])
        served.push(0, error)
        with pytest.raises(ApiError):
            await anext(served.events())
        return served.cancelled_as

    assert asyncio.run(outcome(ApiError(408, "late", code="timeout"))) == "timeout"
    assert asyncio.run(outcome(ApiError(500, "failed", code="forward_failed"))) == "failed"


def test_no_request_is_taken_while_it_ends() -> None:
    with running() as server:
        server.service.is_stopping = True
        assert server.post("/v1/completions", prompt=STORY).status_code == 503
        assert server.get("/ready").status_code == 503
        assert server.get("/health").status_code == 200


def test_logs_are_json_without_prompts() -> None:
    with running() as server:
        found = server.post("/v1/completions", prompt=STORY, max_tokens=5)
        text = found.json()["choices"][0]["text"]
    (line,) = [line for line in server.log if line["event"] == "request"]
    assert line["id"] == found.headers["x-request-id"] and line["status"] == 200
    assert (line["completion_tokens"], line["forwards"], line["endpoint"]) == (5, 5, "/v1/completions")
    assert "Ada" not in server.lines.getvalue() and json.dumps(text) not in server.lines.getvalue()
    with running(settings=replace(SETTINGS, log_prompts=True)) as server:
        server.post("/v1/completions", prompt=STORY, max_tokens=5)
    (line,) = [line for line in server.log if line["event"] == "request"]
    assert line["prompt"]["prompt"] == STORY and line["answers"] == [text]


def test_an_answer_has_one_id() -> None:
    """That of the server, or that of a proxy which writes it into the answer."""
    given = {"x-request-id": "of-the-client" * 20}
    with running() as server:
        own = httpx.get(f"{server.address}/v1/models", headers=given).headers.get_list("x-request-id")
        server.service.names_requests = False
        assert "x-request-id" not in httpx.get(f"{server.address}/v1/models", headers=given).headers
    lines = [line["id"] for line in server.log if line["event"] == "request"]
    assert own == lines[:1] and len(own[0]) == 16 and lines[1] == given["x-request-id"][:64]


def test_an_address_that_others_reach_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said in the log; uvicorn's own warnings are lines of the same log."""

    def warn(*_: Any, **__: Any) -> None:
        logging.getLogger("uvicorn.error").warning("a warning of uvicorn")

    monkeypatch.setattr("uncode.server.run.Server.run", warn)
    events = {}
    for key in (None, "secret"):
        lines, model, announced = io.StringIO(), QuickModel(), list[str]()
        settings = ServerSettings("x", host="0.0.0.0", port=0, api_key=key)
        serve(Service(model, settings, Samplers(model, "uncode", {}), Log(lines)), announced.append)
        found = [json.loads(line) for line in lines.getvalue().splitlines()]
        events[key] = [(line["event"], line.get("message", "")) for line in found]
        assert announced[0].startswith("http://0.0.0.0:")
    assert events["secret"] == [("started", ""), ("warning", "a warning of uvicorn")]
    assert events[None][0][0] == "warning" and "give it a key" in events[None][0][1] and len(events[None]) == 3


def test_metrics_are_prometheus_text() -> None:
    with running() as server, server.http() as client:
        server.post("/v1/completions", prompt=STORY, max_tokens=5)
        server.post("/v1/nowhere/at/all", prompt=STORY)
        text = client.get("/metrics").text
    assert 'uncode_requests_total{endpoint="/v1/completions",status="200"} 1.0' in text
    assert 'uncode_requests_total{endpoint="other",status="404"} 1.0' in text
    assert "uncode_batch_rows_count 5.0" in text and 'completion_tokens_total{sampler="uncode"} 5.0' in text


def test_the_docs_load_nothing() -> None:
    with running() as server, server.http() as client:
        page, document = client.get("/docs"), client.get("/openapi.json").json()
    assert "src=" not in page.text and "http" not in page.text.replace("https://", "http://").split("<style>")[0]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path, methods in document["paths"].items():
        assert path in page.text
        assert all("422" not in operation["responses"] for operation in methods.values())
    assert "<code>block_length</code>" in page.text
    assert "<code>stop</code><td>string or list of string<td>" in page.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "lookum", "candidates": 1_000_000}, "must be from 2 to 64, not 1000000"),
        ({"sampler": "prophet", "early": 1e300}, "must be a number from -3e\\+38 to 3e\\+38, not 1e\\+300"),
        ({"sampler": "legacy.uncode_release", "clip": 1e300}, "must be a number from -3e\\+38 to 3e\\+38"),
    ],
)
def test_an_option_that_no_forward_can_take_is_refused(options: dict[str, Any], message: str) -> None:
    """Each once stalled or failed the whole batch."""
    with running() as server:
        refused = server.post("/v1/completions", prompt="1 + 1 =", max_tokens=4, **options)
    assert refused.status_code == 400 and re.search(message, error_of(refused)["message"])


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "messages is empty: send at least one."),
        (
            [{"role": "user", "content": [{"type": "text", "text": "x", "image_url": "y"}]}],
            "unknown field 'image_url' in messages[0].content[0].",
        ),
        (
            [*[{"role": "user", "content": "x"}] * 3, {"role": "user", "content": None}],
            "messages[3].content is wrong: input should be a valid string, not None.",
        ),
        ([{"role": "user", "content": "x"}, {"role": "user"}], "messages[1].content is missing."),
        (
            [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": 5}]}],
            "messages[0].content[1].text is wrong: input should be a valid string, not 5.",
        ),
    ],
)
def test_messages_that_cannot_be_read_are_named(messages: list[dict[str, Any]], message: str) -> None:
    with running() as server:
        refused = server.post("/v1/chat/completions", messages=messages, max_tokens=4)
    assert refused.status_code == 400 and error_of(refused)["message"] == message


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/v1/completions", {"prompt": {"a": 1}}, "prompt"),
        ("/v1/completions", {"prompt": {"text": 1}}, "prompt"),
        ("/v1/completions", {"prompt": [["a"]]}, "prompt[0][0]"),
        ("/v1/completions", {"prompt": "x", "stop": {"text": "y"}}, "stop"),
        ("/v1/completions", {"prompt": "x", "stop": ["y", {"list": 1}]}, "stop[1]"),
        ("/v1/completions", {"infill": ["x", {"str": 1}]}, "infill[1]"),
        ("/v1/completions", {"prompt": "x", "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ("/v1/completions", {"prompt": "x", "cache": {"a": 1}}, "cache"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": {"text": 5}}]}, "messages[0].content"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
         "messages[0].content[0].text"),
        ("/v1/chat/completions", {"messages": {"role": "user"}}, "messages"),
        ("/v1/chat/completions", {}, "messages"),
    ],
)  # fmt: skip
def test_an_error_names_a_field_that_exists(path: str, body: dict[str, Any], place: str) -> None:
    with pytest.raises(ApiError) as refused:
        _parsed(json.dumps(body).encode(), PATHS[path])
    assert refused.value.param == place and refused.value.message.startswith(f"{place} is ")
