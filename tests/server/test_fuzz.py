"""Malformed bodies, by the thousand with a fixed seed, and schemathesis over the OpenAPI document: never a 500."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.server.running import SETTINGS, QuickModel, Running, running
from uncode.server.api.bodies import ChatBody, CompletionBody, FimBody
from uncode.server.app import create_app
from uncode.server.decoding.samplers import Samplers
from uncode.server.service import Service

PATHS = {"/v1/completions": CompletionBody, "/v1/chat/completions": ChatBody, "/v1/fim/completions": FimBody}
GOOD: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "1 + 1 =", "max_tokens": 3},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "1 + 1 ="}], "max_tokens": 3},
    "/v1/fim/completions": {"prompt": "a", "suffix": "b", "max_tokens": 3},
}
STRANGE = (
    None, True, False, 0, 1, -1, 2, 2**31, -(2**63), 2**63, 2**70, 10**400, 0.5, -0.0, 1e308, 1e-320, float("nan"),
    float("inf"), "", "x", "tiny", "none", "\ud800", "\x00", "\ufffd" * 9, "a" * 3000, "<mask:3>", "<|mask|>", "x.toml",
    [], [[]], [0], [1, "a"], ["a", 1], [None], [-1], [2**40], [0.5], [[1], [2]], ["a"] * 40, {}, {"a": {}},
    {"piece": "TopK"}, {"policy": None}, {"policy": {"score": {"piece": "Confidence"}}}, {"role": "user"},
    {"type": "json_object"}, {"include_usage": 1}, [{"role": "user", "content": None}], [{"role": "x", "content": "y"}],
)  # fmt: skip


def malformed(chance: random.Random) -> tuple[str, bytes]:
    """A path, and a body with a few fields of strange values, a few unknown fields, or bytes that are no JSON."""
    path = chance.choice(list(PATHS))
    body: dict[str, Any] = dict(GOOD[path])
    names = list(PATHS[path].model_fields)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        name = (
            chance.choice(names) if chance.random() < 0.85 else chance.choice(("promt", "", "\ud83d", "stream ", "🎉"))
        )
        body[name] = chance.choice(STRANGE)
        if chance.random() < 0.1:
            del body[name]
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    kind = chance.random()
    if kind < 0.06:
        content = content[: chance.randrange(len(content) + 1)]
    elif kind < 0.1:
        at = chance.randrange(len(content))
        content = content[:at] + chance.randbytes(chance.randrange(1, 5)) + content[at + 1 :]
    elif kind < 0.12:
        content = b"[" * chance.choice((1, 500, 100_000))
    elif kind < 0.14:
        depth = chance.choice((50, 900, 5000))
        content = b'{"prompt":"x","max_tokens":2,"sampler":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    return path, content


def check(response: httpx.Response) -> int:
    """An answer or an error in the API's shape; the status."""
    status = response.status_code
    assert status in (200, 400, 404, 408, 413, 429), (status, response.text[:300])
    if status != 200:
        error = response.json()["error"]
        assert set(error) == {"message", "type", "param", "code"} and error["message"]
        assert "Traceback" not in response.text and len(response.text) < 4000
    return status


def send_malformed(server: Running, count: int, seed: int) -> Counter[int]:
    chance, statuses = random.Random(seed), Counter[int]()
    with server.http() as client:
        for _ in range(count):
            path, content = malformed(chance)
            kind = chance.choice(("application/json",) * 9 + ("text/plain", "application/x-www-form-urlencoded", ""))
            headers = {"content-type": kind} if kind else {}
            statuses[check(client.post(path, content=content, headers=headers))] += 1
    server.wait_until_idle()
    assert server.metric("uncode_failed_forwards_total") == 0
    return statuses


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(max_tokens=40) as found:
        yield found


def test_malformed_bodies(server: Running) -> None:
    statuses = send_malformed(server, 150, seed=7)
    assert statuses[400] > 90 and statuses[200] > 3


@pytest.mark.slow
def test_two_thousand_malformed_bodies(server: Running) -> None:
    statuses = send_malformed(server, 2000, seed=24)
    assert statuses[400] > 1200 and statuses[200] > 50


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the body is no JSON object"),
        (b"[]", "the body is no JSON object"),
        (b"nonsense", "the body is no JSON object"),
        (b'{"prompt": "\xff"}', "the body is no JSON object"),
        (b'{"prompt": "\\ud800", "max_tokens": 2}', "prompt"),
        (b'{"prompt": "x", "temperature": NaN}', "temperature is wrong"),
        (b'{"prompt": "x", "rate": Infinity}', "rate"),
        (b'{"prompt": "x", "max_tokens": 1e999}', "max_tokens"),
        (b'{"prompt": "x", "max_tokens": true}', "max_tokens is wrong"),
        (b'{"prompt": "x", "stream": "yes"}', "stream is wrong"),
        (b'{"prompt": "x", "max_tokens": "3"}', "max_tokens is wrong"),
    ],
)
def test_bodies_that_are_wrong_in_small_ways(server: Running, content: bytes, sentence: str) -> None:
    with server.http() as client:
        response = client.post("/v1/completions", content=content, headers={"content-type": "application/json"})
    assert check(response) == 400 and sentence in response.json()["error"]["message"], response.text


LEAVES = st.sampled_from(STRANGE) | st.integers(0, 800) | st.text(max_size=5)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner))
ARRAYS = st.builds(lambda first, item, count, last: [*first, *[item] * count, *last], *(
    st.lists(VALUES, max_size=2), VALUES, st.integers(0, 300), st.lists(VALUES, max_size=2)
))  # fmt: skip


@pytest.mark.parametrize("examples", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", PATHS)
def test_arrays_of_every_shape_in_every_field(server: Running, path: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(name=st.sampled_from(sorted(PATHS[path].model_fields)), array=ARRAYS)
    def check_array(name: str, array: list[Any]) -> None:
        content = json.dumps(GOOD[path] | {name: array}).encode("utf-8", "surrogatepass")
        check(client.post(path, content=content, headers={"content-type": "application/json"}))

    with server.http() as client:
        check_array()
    server.wait_until_idle()


@pytest.mark.parametrize("path", PATHS)
def test_null_is_the_default_of_every_field(server: Running, path: str) -> None:
    """Clients in typed languages send all fields."""
    required = {name for name, field in PATHS[path].model_fields.items() if field.is_required()}
    flags = {name for name, field in PATHS[path].model_fields.items() if field.annotation is bool}
    nulls = dict.fromkeys(set(PATHS[path].model_fields) - required - flags - set(GOOD[path]))
    assert server.post(path, **GOOD[path], **nulls).status_code == 200
    for name in PATHS[path].model_fields:
        with contextlib.suppress(ValidationError):
            PATHS[path].model_validate(GOOD[path] | {name: None})


def test_paths_and_methods_that_are_not_there(server: Running) -> None:
    with server.http() as client:
        for method, path in (("GET", "/v1/completions"), ("DELETE", "/metrics"), ("POST", "/v1/embeddings")):
            response = client.request(method, path)
            assert response.status_code in (404, 405) and response.json()["error"]["message"]
        assert client.get("/v1/models/%00%ff").status_code == 404


def _document() -> dict[str, Any]:
    model = QuickModel()
    return create_app(Service(model, SETTINGS, Samplers(model, "uncode", {}))).openapi()


DOCUMENT = _document()
CASES = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)


@pytest.mark.parametrize("examples", [6, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("path", "method"), [(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods]
)
def test_answers_are_as_the_document_says(server: Running, path: str, method: str, examples: int) -> None:
    """For bodies that fit the schema, and for bodies that do not. A stream is read as text."""
    import schemathesis  # for two seconds
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    conformance = (checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance)
    operation = schemathesis.openapi.from_dict(DOCUMENT)[path][method]
    modes = schemathesis.GenerationMode
    kinds = list(modes) if method == "POST" else [modes.POSITIVE]
    for kind in kinds:

        @settings(CASES, max_examples=examples)
        @given(case=operation.as_strategy(generation_mode=kind))
        def check_case(case: Any) -> None:
            response = case.call(base_url=server.address, timeout=60)
            case.validate_response(response, checks=[not_a_server_error, *conformance])

        check_case()
