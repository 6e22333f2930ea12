"""Requests that cost the server much more than their client: others are answered meanwhile, and memory comes back."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from tests.server.running import STORY, QuickModel, Running, running
from tests.server.test_fuzz import GOOD, PATHS
from tests.server.test_soak import serving
from uncode.engine.row_step import RowStep
from uncode.generation.prompt import with_pieces
from uncode.server import engine_thread
from uncode.server.api.bodies import CompletionBody
from uncode.server.api.fields import DecodeFields
from uncode.server.api.read_body import _parsed
from uncode.server.decoding.reader import GapsReader, RowReader, Update, Wanted
from uncode.server.decoding.stop_cut import StopCut
from uncode.server.errors import ApiError

BYTES = 1_900_000
"""Just below the default --max-body."""
MAX_WAIT = 1.0
MAX_GROWTH = 100_000_000
MAX_CPU_SECONDS = 1.5
"""Of reading one body."""


def many(item: str, first: str | None = None, size: int = BYTES) -> str:
    """A JSON array of about so many bytes."""
    return "[" + ",".join(([first] if first else []) + [item] * (size // (len(item) + 1))) + "]"


def field(name: str, value: str, path: str = "/v1/completions") -> bytes:
    """A good body with one field replaced."""
    others = {key: one for key, one in GOOD[path].items() if key != name}
    return (json.dumps(others)[:-1] + f', "{name}": {value}}}').encode()


TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
CONSTRAINTS = {
    "an expression of exponentially many states": json.dumps({"regex": "(?:a|b)*a(?:a|b){100}"}),
    "a schema of 1 MB": f'{{"json_schema": {{"enum": {many(json.dumps("word"), size=1_000_000)}}}}}',
    "nested repeats": json.dumps({"regex": "(?:(?:(?:a{1,90}){1,90}){1,90}){1,90}"}),
    "a schema of keys that are optional": json.dumps(
        {"json_schema": {"type": "object", "properties": {f"k{n}": {"type": "number"} for n in range(9000)}}}
    ),
    "a deep schema": '{"json_schema": ' + '{"items":' * 900 + "{}" + "}" * 901,
    "many choices of one beginning": json.dumps({"choices": ["a" * n for n in range(700)]}),
}
"""Constraints that are refused after much work."""
WORDS = json.dumps("word " * (BYTES // 5))
ATTACKS: dict[str, tuple[str, bytes]] = {
    "a stop string of 100 kB": (TEXT, field("stop", json.dumps("x" * 100_000))),
    "four of 460 kB": (TEXT, field("stop", json.dumps(["x" * 460_000] * 4))),
    "four long ones that almost come": (TEXT, field("stop", json.dumps([" " * 4000 + str(n) for n in range(4)]))),
    "a text and a million numbers": (TEXT, field("prompt", many("5", '"a"'))),
    "a number and many texts": (TEXT, field("prompt", many('"a"', "5"))),
    "empty lists": (TEXT, field("prompt", many("[]"))),
    "150,000 prompts": (TEXT, field("prompt", many('"word word"'))),
    "a million token ids": (TEXT, field("prompt", many("5"))),
    "a long text": (TEXT, field("prompt", WORDS)),
    "a long suffix": (TEXT, field("suffix", WORDS)),
    "a long infill": (TEXT, b'{"infill": [' + WORDS.encode() + b", 3]}"),
    "many gaps between texts of many tokens": (
        TEXT,
        b'{"infill": ' + many(json.dumps("🎉" * 32, ensure_ascii=False) + ",1", size=530_000).encode() + b"}",
    ),
    "an infill of many parts": (TEXT, b'{"infill": ' + many('"a",1').encode() + b"}"),
    "empty messages": (CHAT, field("messages", many("{}"), CHAT)),
    "many messages": (CHAT, field("messages", many('{"role":"user","content":"a"}'), CHAT)),
    "unknown fields": (TEXT, b'{"prompt": "a", ' + ",".join(f'"k{n}": 1' for n in range(140_000)).encode() + b"}"),
    "a sampler's long name": (TEXT, field("sampler", json.dumps("x" * BYTES))),
    "a sampler of many pieces": (
        TEXT,
        field(
            "sampler", '{"policy":{"score":{"piece":"Sum","parts":' + many('{"piece":"Confidence"}', size=9**5) + "}}}"
        ),
    ),
    "escaped quotes without an end": (TEXT, b"[" * 32_769 + b'\\"' * 16_000),
    **{f"a constraint: {name}": (TEXT, field("constraint", one)) for name, one in CONSTRAINTS.items()},
    "a schema in a text": (TEXT, field("structured_outputs", json.dumps({"json": "[" * 900_000}))),
}  # fmt: skip


def longest_wait(port: int, ended: Callable[[], bool]) -> float:
    """Of small requests that follow each other until it ends."""
    longest, small = 0.0, {"prompt": "1 + 1 =", "max_tokens": 2}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, verify=False) as client:
        while not ended():
            for ask in (lambda: client.get("/health"), lambda: client.post(TEXT, json=small)):
                began = time.monotonic()
                assert ask().status_code == 200
                longest = max(longest, time.monotonic() - began)
    return longest


def attack(port: int, path: str, body: bytes) -> tuple[httpx.Response, float]:
    """Its answer, and the longest wait of others meanwhile."""
    found: list[httpx.Response] = []
    headers = {"content-type": "application/json"}
    attacker = threading.Thread(
        target=lambda: found.append(
            httpx.post(f"http://127.0.0.1:{port}{path}", content=body, headers=headers, timeout=120)
        )
    )
    attacker.start()
    wait = longest_wait(port, lambda: not attacker.is_alive())
    attacker.join()
    return found[0], wait


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_others_are_answered_meanwhile_and_memory_comes_back(every: int) -> None:
    """Every eighth attack, and all under `make verify`."""
    with serving() as (port, measured):
        until = time.monotonic() + 1
        quiet = longest_wait(port, lambda: time.monotonic() > until)  # on a busy machine all take longer
        before, waits = measured().memory, dict[str, float]()
        for name, (path, body) in list(ATTACKS.items())[::every]:
            answer, waits[name] = attack(port, path, body)
            assert answer.status_code == (200 if "almost" in name else 400), (name, answer.text[:300])
            assert len(answer.content) < 3000, name
        growth = measured().memory - before
    assert max(waits.values()) < MAX_WAIT + 3 * quiet, (waits, quiet)
    assert growth < MAX_GROWTH


SHAPES: dict[str, Callable[[int], str]] = {
    "numbers": lambda size: many("5", size=size),
    "fractions": lambda size: many("0.5", size=size),
    "texts": lambda size: many('"a"', size=size),
    "nulls": lambda size: many("null", size=size),
    "lists": lambda size: many("[]", size=size),
    "lists of numbers": lambda size: many("[5]", size=size),
    "objects": lambda size: many("{}", size=size),
    "a text first": lambda size: many("5", '"a"', size=size),
    "a number first": lambda size: many('"a"', "5", size=size),
    "a list first": lambda size: many("5", "[5]", size=size),
    "a text last": lambda size: many("5", size=size)[:-1] + ',"a"]',
    "one list": lambda size: "[" + many("5", size=size) + "]",
    "messages": lambda size: many('{"role":"user","content":"a"}', size=size),
    "one message of many parts": lambda size: (
        '[{"role":"user","content":' + many('{"type":"text","text":"a"}', size=size) + "}]"
    ),
    "one object": lambda size: "{" + ",".join(f'"k{n}":1' for n in range(size // 12)) + "}",
    "one object in a list": lambda size: "[{" + ",".join(f'"k{n}":1' for n in range(size // 12)) + "}]",
    "a text": lambda size: json.dumps("x" * size),
    "brackets in a text": lambda size: json.dumps("[{" * (size // 2)),
    "a deep list": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "a long number": lambda size: "9" * 4000,
}


NO_JSON: dict[str, bytes] = {
    "escaped quotes without an end": b"[" * 32_769 + b'\\"' * BYTES,
    "one open string of escaped quotes": b'["' + b"[" * 32_769 + b'\\"' * BYTES,
    "quotes": b"[" * 32_769 + b'"' * BYTES,
    "short strings": b"[" * 32_769 + b'"ab"' * BYTES,
    "backslashes": b"[" * 32_769 + b"\\" * BYTES,
    "open objects": b'{"a":' * BYTES,
    "a long fraction": b'{"temperature":0.' + b"9" * BYTES,
    "a long exponent": b'{"temperature":1e' + b"9" * BYTES,
    "bytes that are no text": b'{"prompt":"' + b"\xff" * BYTES,
}


@pytest.mark.parametrize("shape", NO_JSON)
def test_a_body_that_is_no_json_is_read_quickly(shape: str) -> None:
    began = time.thread_time()
    with pytest.raises(ApiError):
        _parsed(NO_JSON[shape][:BYTES], PATHS[TEXT])
    assert time.thread_time() - began < MAX_CPU_SECONDS


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        (r'{"prompt": "\\", "infill": ' + "[" * 32_769, True),
        (r'{"prompt": "\\\"' + "[" * 32_769 + '"}', False),
        (r'{"prompt": "\"' + "[" * 32_769 + '"}', False),
        ('{"prompt": "' + "[" * 32_769 + '"}', False),
    ],
)
def test_lists_are_counted_outside_of_texts_alone(body: str, is_refused: bool) -> None:
    if not is_refused:
        assert _parsed(body.encode(), CompletionBody).prompt == json.loads(body)["prompt"]  # type: ignore[attr-defined]
        return
    with pytest.raises(ApiError, match="too many lists"):
        _parsed(body.encode(), CompletionBody)


def test_lists_cannot_hide_in_another_encoding() -> None:
    """In UTF-16 an escaped quote is other bytes. JSON is UTF-8."""
    body = '{"prompt": "\\"", "infill": [' + "[]," * 40_000 + '[]], "user": "\\""}'
    with pytest.raises(ApiError, match="no JSON"):
        _parsed(body.encode("utf-16-le"), CompletionBody)
    assert _parsed(b"\xef\xbb\xbf" + b'{"prompt": "x"}', CompletionBody)


def different_fields(kind: type[BaseModel]) -> list[str]:
    """One field of each type."""
    return list({repr((one.annotation, one.metadata)): name for name, one in kind.model_fields.items()}.values())


@pytest.mark.parametrize("size", [20_000, pytest.param(BYTES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("path", PATHS)
def test_a_body_of_any_shape_is_read_quickly(path: str, shape: str, size: int) -> None:
    kind: type[DecodeFields] = PATHS[path]
    for name in different_fields(kind):
        body = field(name, SHAPES[shape](size), path)
        began = time.thread_time()
        with contextlib.suppress(ApiError):
            _parsed(body, kind)
        assert time.thread_time() - began < MAX_CPU_SECONDS, name


def test_a_stop_string_costs_linear_work() -> None:
    """However long it is, and however much of it has come."""
    for stop, token in (("x" * 500_000, "xxxxx"), ("a" * 500_000 + "b", "aaaaa"), ("ab" * 250_000, "aba")):
        cut, began = StopCut([stop] * 4), time.thread_time()
        shown = "".join(cut.push(token) for _ in range(4096)) + cut.flush()
        assert shown == token * 4096 and time.thread_time() - began < 1


def test_many_gaps_cost_linear_work() -> None:
    """A gap is decoded with the tokens just before it. The text is that of the library."""
    model, chance = QuickModel(), random.Random(3)
    prompt = with_pieces(
        model, [" ".join(chance.choices(("a", "two ", "3 +", "Ada", "é"), k=3)) for _ in range(801)], [2] * 800
    )
    ids = [one if one != model.mask_id else chance.randrange(5, 700) for one in prompt.ids]
    reader, first = GapsReader(model, prompt, Wanted(stream=True)), prompt.gaps[0][0]
    began = time.thread_time()
    text = reader.update(RowStep(0, ids[first:], len(ids) - first, [])).text
    assert time.thread_time() - began < 1
    assert text == prompt.answer(model, ids)


# -- text work -------------------------------------------------------------------------------------


def stream_of_eight(server: Running, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The lines of a streamed answer of eight rows. Each step of each row also does some `work`."""
    update = RowReader.update

    def working(reader: RowReader, step: RowStep) -> Update:
        work()
        return update(reader, step)

    monkeypatch.setattr(RowReader, "update", working)
    body: dict[str, Any] = {"prompt": STORY, "max_tokens": 60, "stream": True, "n": 8}
    with server.http() as client, client.stream("POST", TEXT, json=body) as response:
        yield from response.iter_lines()


def test_a_client_that_has_left_costs_no_more_text_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that runs when it leaves goes on without the work of the rows that are left."""
    worked = list[float]()

    def work() -> None:
        time.sleep(0.2)
        worked.append(time.monotonic())

    with running() as server:
        lines = stream_of_eight(server, work, monkeypatch)
        next(lines)
        lines.close()  # type: ignore[attr-defined]
        left = time.monotonic()
        server.wait_until_idle()
        assert sum(at > left for at in worked) <= 3
        assert server.ended("client_gone") == 8


def test_time_that_is_up_ends_text_work(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = list[float]()

    def work() -> None:
        time.sleep(0.1)
        worked.append(time.monotonic())

    with running(seconds=0.25) as server:
        server.post("/v1/completions", prompt="x", max_tokens=1)  # the first request of a process may take longer
        server.wait_until_idle()
        began = time.monotonic()
        text = "".join(stream_of_eight(server, work, monkeypatch))
        server.wait_until_idle()
        assert "within 0.25 s" in text and max(worked, default=began) - began < 1


def test_a_step_that_stalls_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    released, lines = threading.Event(), list[str]()
    monkeypatch.setattr(engine_thread, "MAX_STEP_SECONDS", 0.2)
    monkeypatch.setattr(engine_thread, "STALLED_STEPS", 1)
    with running(QuickModel()) as server:
        assert server.service.thread.step_age == 0
        stream = stream_of_eight(server, lambda: released.wait(30) and None, monkeypatch)
        reader = threading.Thread(target=lambda: lines.extend(stream))
        reader.start()
        server.wait(lambda: server.service.thread.has_stalled)
        for path, code in (("/health", "unhealthy"), ("/ready", "not_ready")):
            stalled = server.get(path)
            assert stalled.status_code == 503 and stalled.json()["error"]["code"] == code
        assert "the step that runs began 0 s ago" in server.get("/health").json()["error"]["message"]
        released.set()
        reader.join()
        server.wait_until_idle()
        assert server.get("/health").status_code == 200


def test_a_step_may_take_ten_times_the_longest_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large model on a CPU is slow and not stalled. The first step may take ten times the bound."""
    monkeypatch.setattr(engine_thread, "MAX_STEP_SECONDS", 0.05)
    model, ask = QuickModel(seconds=0.2), {"prompt": STORY, "max_tokens": 1}
    with running(model) as server, ThreadPoolExecutor(1) as pool:
        thread = server.service.thread
        for seconds in (0.2, 1.0):
            model.seconds = seconds
            answer = pool.submit(server.post, TEXT, **ask)
            server.wait(lambda longest=seconds: thread.step_age > longest / 2)
            assert thread.is_healthy
            assert answer.result().status_code == 200
