"""Constraints of requests: the words of OpenAI, of vLLM and our own, their errors, and where they are compiled."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

import uncode
from tests.server.running import SETTINGS, STORY, TINY, QuickModel, Running, running
from uncode.constraints.compiled import cached, expression_from, keep
from uncode.constraints.constraint import TextConstraint
from uncode.constraints.vocabulary import Vocabulary
from uncode.constraints.worker import answered
from uncode.core.denoiser import Facts
from uncode.util.fetch import cache_folder

TEXT, CHAT, RESPONSES, FIM = "/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/fim/completions"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
NAMED = {"name": "person", "schema": SCHEMA, "strict": True}
NUMBER = "[0-9]{2,4} shells"
PROMPTS: dict[str, dict[str, Any]] = {
    TEXT: {"prompt": STORY},
    CHAT: {"messages": [{"role": "user", "content": STORY}]},
    RESPONSES: {"input": STORY},
    FIM: {"prompt": STORY, "suffix": "\n"},
}
SAID: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": NAMED}}, {"json_schema": SCHEMA}),
    (TEXT, {"response_format": {"type": "json_object"}}, {"json_schema": {"type": "object"}}),
    (RESPONSES, {"text": {"format": {"type": "json_schema", **NAMED}}}, {"json_schema": SCHEMA}),
    (CHAT, {"structured_outputs": {"regex": NUMBER}}, {"regex": NUMBER}),
    (TEXT, {"structured_outputs": {"choice": ["yes", "no"]}}, {"choices": ["yes", "no"]}),
    (TEXT, {"structured_outputs": {"json": json.dumps(SCHEMA)}}, {"json_schema": SCHEMA}),
    (TEXT, {"constraint": {"regex": NUMBER}}, {"regex": NUMBER}),
    (FIM, {"constraint": {"choices": ["yes", "no"]}}, {"choices": ["yes", "no"]}),
    (RESPONSES, {"constraint": "json"}, {"json": 3}),
]
"""Where, what is sent, and what the constraint is made of."""
LENGTH = 24


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(constraint_seconds=30) as found:
        yield found


def text_of(path: str, answer: dict[str, Any]) -> tuple[str, str]:
    """The text of an answer, and why it ended."""
    if path == RESPONSES:
        return answer["output"][0]["content"][0]["text"], answer["status"]
    (choice,) = answer["choices"]
    return choice["message"]["content"] if path == CHAT else choice["text"], choice["finish_reason"]


@pytest.mark.parametrize(("path", "said", "source"), SAID)
def test_every_word_for_a_constraint(server: Running, path: str, said: dict[str, Any], source: dict[str, Any]) -> None:
    """The answer is that of the library, whole, and a stream adds up to it."""
    name = "max_output_tokens" if path == RESPONSES else "max_tokens"
    body = PROMPTS[path] | said | {name: LENGTH, "seed": 3}
    answer = server.post(path, **body)
    assert answer.status_code == 200, answer.text
    text, ending = text_of(path, answer.json())
    rule = TextConstraint(expression_from(source), source)
    assert re.fullmatch(rule.expression, text) and ending in ("stop", "completed")
    if path != FIM:
        assert text == uncode.generate(QuickModel(), STORY, sampler="uncode", length=LENGTH, seed=3, constraint=rule)
    with server.http() as client, client.stream("POST", path, json=body | {"stream": True}) as stream:
        events = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {")]
    parts = [one["delta"] for one in events if "delta" in one]
    for one in (choice for event in events for choice in event.get("choices", ())):
        parts.append(one["text"] if path in (TEXT, FIM) else one["delta"].get("content") or "")
    assert "".join(parts) == text


def test_text_is_no_constraint(server: Running) -> None:
    free = server.post(CHAT, **PROMPTS[CHAT], seed=3, max_tokens=LENGTH).json()["choices"]
    for said in ({"response_format": {"type": "text"}}, {"response_format": None}, {"constraint": None}):
        assert server.post(CHAT, **PROMPTS[CHAT], **said, seed=3, max_tokens=LENGTH).json()["choices"] == free


def test_a_trace_keeps_the_constraint(server: Running) -> None:
    answer = server.post(TEXT, prompt=STORY, constraint={"regex": NUMBER}, trace=True, n=2, max_tokens=9).json()
    assert all(choice["trace"]["constraint"] == {"regex": NUMBER} for choice in answer["choices"])
    assert all(re.fullmatch(NUMBER, choice["text"]) for choice in answer["choices"])


REFUSED: list[tuple[dict[str, Any], str, str | None, str]] = [
    ({"constraint": {"regex": "a{2,1}"}}, "constraint", "invalid_constraint", "cannot be read: min repeat"),
    ({"constraint": {"regex": "(?=a)"}}, "constraint", "invalid_constraint", "has look-ahead"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "array", "contains": {}}}}},
        "response_format", "invalid_constraint", "cannot have 'contains' of a JSON schema",
    ),
    ({"constraint": {"json_schema": False}}, "constraint", "invalid_constraint", "no JSON text"),
    ({"constraint": {"regex": "[a-z]{900}"}}, "max_tokens", "constraint_too_long", "fits into 12 tokens: it takes"),
    ({"constraint": {"regex": "日a"}, "max_tokens": 1}, "max_tokens", "constraint_too_long", "fits into 1 token"),
    ({"constraint": {"regex": "x" * 300_000}}, "constraint", "invalid_constraint", "more than 262,144 characters"),
    ({"constraint": {}}, "constraint", None, "one of regex, choices and json_schema"),
    ({"constraint": {"regex": "a", "choices": ["a"]}}, "constraint", None, "one of regex, choices and json_schema"),
    ({"constraint": "xml"}, "constraint", None, "constraint is wrong"),
    ({"constraint": {"regexp": "a"}}, "constraint.regexp", "unknown_field", "unknown field 'regexp'"),
    ({"constraint": {"choices": []}}, "constraint.choices", None, "is empty"),
    ({"structured_outputs": {"grammar": "s ::= a"}}, "structured_outputs.grammar", "unsupported", "grammars are not"),
    ({"structured_outputs": {"json": "[1]"}}, "structured_outputs", "invalid_constraint", "a JSON schema is an object"),
    ({"structured_outputs": {"json": '{"const": NaN}'}}, "structured_outputs", "invalid_constraint", "neither NaN nor"),
    ({"constraint": 5}, "constraint", None, "input should be an object, not 5."),
    ({"structured_outputs": {"json": "no"}}, "structured_outputs", None, "is no JSON schema"),
    ({"structured_outputs": {}}, "structured_outputs", None, "one of json, regex, choice and json_object"),
    ({"response_format": {"type": "json_schema"}}, "response_format", None, "json_schema goes with the type"),
    ({"response_format": {"type": "xml"}}, "response_format.type", None, "response_format.type is wrong"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        "response_format.json_schema.schema", None, "schema is missing",
    ),
    (
        {"response_format": {"type": "json_object"}, "constraint": "json"},
        "constraint", None, "response_format and constraint are both constraints",
    ),
    ({"prompt": None, "infill": ["a", 2, "b"], "constraint": "json"}, "constraint", None, "gaps takes no constraint"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "param", "code", "sentence"), REFUSED)
def test_what_is_refused(server: Running, said: dict[str, Any], param: str, code: str | None, sentence: str) -> None:
    answer = server.post(TEXT, **{"prompt": STORY, **said})
    error = answer.json()["error"]
    assert answer.status_code == 400 and sentence in error["message"], error
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)


def test_a_text_before_a_suffix_continues_its_prompt(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tokenizers drop the space of the first token of all, and that is none."""
    compiler, asked = server.service.constraints, list[bool]()
    vocabulary = compiler._vocabulary
    monkeypatch.setattr(compiler, "_vocabulary", lambda continues: (asked.append(continues), vocabulary(continues))[1])
    for said in ({}, {"suffix": "\n"}, {"prompt": "", "suffix": "\n"}):
        assert server.post(TEXT, **{"prompt": STORY, "constraint": {"regex": "a{4}"}} | said).status_code == 200
    assert asked == [False, True], "the last is kept from the first"


def test_the_documents_show_the_fields(server: Running) -> None:
    schemas = server.get("/openapi.json").json()["components"]["schemas"]
    assert {"regex", "choices", "json_schema"} == set(schemas["ConstraintWords"]["properties"])
    assert {"json", "regex", "choice"} < set(schemas["StructuredOutputs"]["properties"])
    assert "schema" in schemas["NamedSchema"]["properties"] and "schema" in schemas["TextFormat"]["properties"]
    assert server.get("/docs").text.count("<code>constraint</code>") == 4


# -- compiling -------------------------------------------------------------------------------------


def children() -> list[int]:
    """The processes that this one has started."""
    return [int(n) for file in Path("/proc/self/task").glob("*/children") for n in file.read_text().split()]


def test_limits_end_compiling() -> None:
    for limit, code in (
        ({"constraint_seconds": 0.01}, "invalid_constraint"),
        ({"constraint_bytes": 1 << 20}, "invalid_constraint"),
        ({"constraint_step_seconds": 1e-6}, "constraint_too_large"),
    ):
        with running(**limit) as server:
            error = server.post(TEXT, prompt=STORY, constraint="json").json()["error"]
            sentence = "cannot be compiled within" if code == "invalid_constraint" else "too large for 12 tokens"
            assert sentence in error["message"] and error["code"] == code
            assert server.post(TEXT, prompt=STORY).status_code == 200


def test_a_client_that_leaves_ends_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is killed, and the next request gets its place."""
    before = children()
    with running(constraint_workers=1) as server:
        compiler = server.service.constraints
        with monkeypatch.context() as patch:
            patch.setattr("uncode.server.decoding.constraints.command", lambda *_: (["sleep", "60"], dict(os.environ)))
            body = json.dumps({"prompt": STORY, "constraint": "json"}).encode()
            head = f"POST {TEXT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            with server.connect() as client:
                client.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
                server.wait(lambda: len(children()) > len(before))
                (child,) = set(children()) - set(before)
                server.wait(lambda: os.getsid(child) == child)  # a Ctrl-C for the server does not reach it
            server.wait(lambda: len(children()) == len(before))
        assert server.post(TEXT, prompt=STORY, constraint={"regex": NUMBER}).status_code == 200
        assert len(compiler._kept) == 1


def test_a_server_that_stops_ends_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the grace, with the error that unfinished rows get."""
    before = children()
    monkeypatch.setattr("uncode.server.decoding.constraints.command", lambda *_: (["sleep", "60"], dict(os.environ)))
    with ThreadPoolExecutor(1) as pool:
        with running(settings=replace(SETTINGS, grace_seconds=0.2)) as server:
            asked = pool.submit(server.post, TEXT, prompt=STORY, constraint="json")
            server.wait(lambda: len(children()) > len(before))
        answer = asked.result()
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "shutting_down"
    assert len(children()) == len(before)


def test_an_automaton_and_those_that_are_kept_are_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(constraint_kept_bytes=0) as server:
        for expression in "ab":
            assert server.post(TEXT, prompt=STORY, constraint={"regex": expression}).status_code == 200
            assert not server.service.constraints._kept
        monkeypatch.setattr("uncode.constraints.completions.MAX_LABELS", 1)
        error = server.post(TEXT, prompt=STORY, constraint={"regex": "c"}).json()["error"]
        assert "pairs of states" in error["message"] and error["code"] == "invalid_constraint"


def test_constraints_that_are_kept_and_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(constraints=1, constraint_workers=1) as server:
        compiler, runs = server.service.constraints, list[bytes]()
        run = compiler._run

        async def slow(asked: bytes) -> bytes:
            runs.append(asked)
            await asyncio.sleep(0.3)
            return await run(asked)

        monkeypatch.setattr(compiler, "_run", slow)
        with ThreadPoolExecutor(3) as pool:
            first = [pool.submit(server.post, TEXT, prompt=STORY, constraint={"regex": "a"}) for _ in range(2)]
            server.wait(lambda: len(runs) == 1)
            other = server.post(TEXT, prompt=STORY, constraint={"regex": "b"})
            assert other.status_code == 429 and other.json()["error"]["code"] == "queue_full"
            assert [one.result().status_code for one in first] == [200, 200] and len(runs) == 1
        for expression, count in (("b", 2), ("b", 2), ("a", 3)):
            assert server.post(TEXT, prompt=STORY, constraint={"regex": expression}).status_code == 200
            assert len(runs) == count and len(compiler._kept) == 1


def test_an_answer_that_is_no_automaton_is_not_read() -> None:
    vocabulary = Vocabulary.of(Facts.of(QuickModel()))
    assert Vocabulary.read(vocabulary.content).fingerprint == vocabulary.fingerprint
    for answer in (b"", b"\x00\n", b'{"keep": "../../x"}\n', b'{"keep": ""}\nPK', b"Traceback"):
        assert answered(answer, vocabulary) is None


def test_where_there_are_no_limits_and_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without constraints starts on Windows, and a user without a home folder has no files."""
    code = "import sys; sys.modules['resource'] = None; import uncode.constraints.worker"
    subprocess.run([sys.executable, "-c", code], check=True)

    def home() -> Path:
        raise RuntimeError("no home")

    for name in ("UNCODE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(uncode.UncodeError, match="set UNCODE_CACHE"):
        cache_folder()
    monkeypatch.setattr("uncode.constraints.compiled.LARGE", 0)
    name, found = cached("a", Vocabulary.of(Facts.of(QuickModel())))
    assert name and found is None
    keep(name, b"")


# -- the official client ---------------------------------------------------------------------------


@pytest.mark.slow
def test_64_requests_half_of_them_constrained() -> None:
    """Through the official client, all at a time: each is itself alone. Each of sixteen is asked for four times."""
    sums = r"(?:[0-9]{1,3} [+*-] [0-9]{1,3} = [0-9]{1,4}\. )+#### [0-9]{1,4}"
    sources = [{"json_schema": SCHEMA}, {"regex": sums}, {"regex": NUMBER}, {"choices": ["36", "40", "no"]}]
    rules = [TextConstraint(expression_from(one), one) for one in sources * 2] + [None] * 8
    prompts = [f"Question: Mia has {at} shells and finds 7. How many?\nAnswer:" for at in range(16)]

    def said(rule: TextConstraint | None) -> dict[str, Any]:
        if rule is None or "json_schema" not in rule.source:
            return {} if rule is None else {"extra_body": {"constraint": rule.source}}
        return {"response_format": {"type": "json_schema", "json_schema": NAMED}}

    with running(TINY(), rows=32, queue=64) as server, server.openai(timeout=600) as client:

        def ask(at: int) -> tuple[str, str]:
            messages: Any = [{"role": "user", "content": prompts[at]}]
            found = client.chat.completions.create(
                model="tiny", messages=messages, max_tokens=24, seed=at, **said(rules[at])
            )
            return found.choices[0].message.content or "", str(found.choices[0].finish_reason)

        with ThreadPoolExecutor(64) as pool:
            answers = list(pool.map(ask, [*range(16)] * 4))
    for at, (prompt, rule) in enumerate(zip(prompts, rules, strict=True)):
        alone = uncode.generate(TINY(), prompt, sampler="uncode", length=24, seed=at, constraint=rule)
        assert {text for text, _ in answers[at::16]} == {alone}, at
        assert rule is None or re.fullmatch(rule.expression, alone)
        assert rule is None or {ending for _, ending in answers[at::16]} == {"stop"}


def test_the_client_parses_what_it_asked_for(server: Running) -> None:
    class Person(__import__("pydantic").BaseModel):  # type: ignore[misc]
        name: str
        age: int

    with server.openai() as client:
        found = client.chat.completions.parse(
            model="tiny", messages=[{"role": "user", "content": STORY}], response_format=Person, max_tokens=60
        )
    assert isinstance(found.choices[0].message.parsed, Person)
    with server.openai() as client, pytest.raises(openai.BadRequestError, match="'uniqueItems'"):
        client.completions.create(
            model="tiny",
            prompt=STORY,
            extra_body={"constraint": {"json_schema": {"type": "array", "uniqueItems": True}}},
        )
