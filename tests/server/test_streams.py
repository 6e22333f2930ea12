"""Streams of diffusion: settled prefixes, raw commits, snapshots; and texts with gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from torch import Tensor

import uncode
from tests.covering import one_in
from tests.server.running import STORY, QuickModel, QuickSession, Running, running
from tests.small_tokenizers import gpt2, unigram, wordpiece
from uncode.core.denoiser import Layout
from uncode.core.pieces.cache import Plan
from uncode.core.trace.texts import SettledText
from uncode.server.api.replies import TextReply
from uncode.server.decoding.reader import MASK_SIGN
from uncode.server.decoding.samplers import Samplers
from uncode.server.decoding.stop_cut import StopCut
from uncode.testing.hash_model import HashSession


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def events(server: Running, path: str = "/v1/completions", **body: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, which ends with [DONE]."""
    with server.http() as client, client.stream("POST", path, json={"stream": True} | body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def trace_of(prompt: str, length: int, sampler: uncode.Sampler, seed: int = 0) -> uncode.Trace:
    model = QuickModel()
    ids = model.tokenizer.encode(prompt, add_special_tokens=False)
    return uncode.decode(model, uncode.Canvas.after_prompt([ids], length, model.mask_id), sampler, seed)


def test_commits_are_those_of_the_trace(server: Running) -> None:
    chunks = events(server, prompt=STORY, max_tokens=20, sampler="confidence", commits=True)
    trace = trace_of(STORY, 20, uncode.presets.confidence())
    commits = [commit for chunk in chunks for commit in chunk["choices"][0].get("commits", [])]
    found = {commit["offset"]: commit for commit in commits}
    assert len(commits) == len(found) == 20
    for offset in range(20):
        assert found[offset]["token"] == int(trace.generated[0, offset])
        assert found[offset]["step"] == int(trace.commit_step[0, offset])
        assert found[offset]["logp"] == pytest.approx(float(trace.logp[0, offset]))
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert text == QuickModel().tokenizer.decode(trace.generated[0])


def test_appended_text_is_settled(server: Running) -> None:
    """Each chunk comes with the forward after which no mask is left before it."""
    chunks = events(server, prompt=STORY, max_tokens=20, sampler="confidence", commits=True)
    steps = trace_of(STORY, 20, uncode.presets.confidence()).commit_step[0].tolist()
    decode, ids = QuickModel().tokenizer.decode, trace_of(STORY, 20, uncode.presets.confidence()).generated[0].tolist()
    text = ""
    for number, chunk in enumerate(chunks[:-1]):
        text += chunk["choices"][0]["text"]
        settled = next((at for at, step in enumerate(steps) if step > number), 20)
        assert decode(ids[:settled]).startswith(text)


def test_a_remasker_shows_what_it_takes_back(server: Running) -> None:
    """The text is settled when its block is; commits show every write and erasure."""
    options = {"sampler": "remdm", "block_length": 8, "temperature": 0.5, "seed": 4}
    chunks = events(server, prompt=STORY, max_tokens=16, commits=True, **options)
    trace = trace_of(STORY, 16, uncode.presets.remdm(block_length=8, temperature=0.5), 4)
    commits = [commit for chunk in chunks for commit in chunk["choices"][0].get("commits", [])]
    events_of_trace = [(step, offset, token if token >= 0 else None) for step, offset, token in trace.events[0]]
    assert [(one["step"], one["offset"], one["token"]) for one in commits] == events_of_trace
    assert any(one["token"] is None for one in commits)
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == QuickModel().tokenizer.decode(trace.generated[0])


def test_snapshots_replace_each_other(server: Running) -> None:
    """The shape of Mercury's stream."""
    messages = [{"role": "user", "content": STORY}]
    asked = {"messages": messages, "max_tokens": 12, "sampler": "confidence"}
    chunks = events(server, "/v1/chat/completions", diffusing=True, **asked)
    bodies = [chunk for chunk in chunks if "diffusion_meta" in chunk]
    shown = [chunk["choices"][0]["delta"]["content"] for chunk in bodies]
    progress = [chunk["diffusion_meta"]["diffusion_progress"] for chunk in bodies]
    assert all(chunk["diffusion_meta"]["diffusion_content"] is True for chunk in bodies)
    assert progress == sorted(progress) and progress[-1] == 1.0
    assert MASK_SIGN * 3 in shown[0] and MASK_SIGN not in shown[-1]
    assert shown[-1] == server.post("/v1/chat/completions", **asked).json()["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "length", "logprobs": None}


def test_a_step_map_comes_on_request(server: Running) -> None:
    asked = {"prompt": STORY, "max_tokens": 9, "sampler": "confidence", "steps": 4, "seed": 3, "step_map": True}
    trace = trace_of(STORY, 9, uncode.presets.confidence(steps=4), 3)
    for choice in (
        server.post("/v1/completions", **asked).json()["choices"][0],
        events(server, **asked)[-1]["choices"][0],
    ):
        assert choice["token_ids"] == trace.generated[0].tolist() and "trace" not in choice
        assert choice["step_map"] == trace.commit_step[0].tolist() and max(choice["step_map"]) == 3
    assert "step_map" not in server.post("/v1/completions", **asked | {"step_map": False}).json()["choices"][0]


def test_a_trace_comes_on_request(server: Running) -> None:
    asked = {"prompt": STORY, "max_tokens": 9, "sampler": "confidence", "seed": 3, "trace": True}
    whole = server.post("/v1/completions", **asked).json()["choices"][0]["trace"]
    streamed = events(server, **asked)[-1]["choices"][0]["trace"]
    assert whole == streamed
    trace = uncode.Trace.from_json(json.dumps(whole) + "\n")
    assert trace.commit_step.tolist() == trace_of(STORY, 9, uncode.presets.confidence(), 3).commit_step.tolist()


class EosModel(QuickModel):
    """Wants EOS at every third position, so that samplers which keep EOS back commit it at log probability -inf."""

    def open(self, rows: int, length: int) -> HashSession:
        return EosSession(self)


class EosSession(QuickSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        found = super().logits(tokens, layout, plan)
        found[:, ::3, self.denoiser.eos_ids[0]] += 20
        return found


@pytest.fixture(scope="module")
def eos_server() -> Iterator[Running]:
    with running(EosModel()) as found:
        yield found


@pytest.mark.parametrize("sampler", one_in(3, Samplers(QuickModel(), "uncode", {}).names))
def test_every_sampler_streams_what_it_answers(eos_server: Running, sampler: str) -> None:
    """As text, as commits and as snapshots; JSON has no infinity, and every stream ends.

    Every third sampler, and all under `make verify`.
    """
    asked = {"prompt": STORY, "max_tokens": 20, "sampler": sampler, "seed": 5, "stop_at_eos": False}
    whole = eos_server.post("/v1/completions", **asked, logprobs=0).json()["choices"][0]
    streams = [
        events(eos_server, **asked, **options)
        for options in ({}, {"commits": True, "logprobs": 0}, {"diffusing": True})
    ]
    texts = [[chunk["choices"][0]["text"] for chunk in chunks] for chunks in streams]
    assert "".join(texts[0]) == "".join(texts[1]) == texts[2][-2] == whole["text"]
    choices = [chunk["choices"][0] for chunk in streams[1]]
    commits = [commit for choice in choices for commit in choice.get("commits", [])]
    assert {commit["offset"] for commit in commits} <= set(range(20)) and commits
    assert json.dumps(streams, allow_nan=False)
    logprobs = [logp for choice in choices if choice["logprobs"] for logp in choice["logprobs"]["token_logprobs"]]
    assert logprobs == pytest.approx((whole["logprobs"] or {"token_logprobs": []})["token_logprobs"])


def test_an_impossible_token_has_no_log_probability(eos_server: Running) -> None:
    """`legacy.llada_eos` commits EOS last, and believes it impossible."""
    asked = {"prompt": STORY, "max_tokens": 20, "sampler": "legacy.llada_eos", "stop_at_eos": False, "trace": True}
    chunks = events(eos_server, **asked, commits=True)
    commits = [commit for chunk in chunks for commit in chunk["choices"][0].get("commits", [])]
    impossible = {commit["offset"] for commit in commits if commit["logp"] is None}
    trace = chunks[-1]["choices"][0]["trace"]
    assert impossible == {offset for offset, logp in enumerate(trace["logp"]) if logp is None} and impossible


def test_any_failure_in_a_stream_is_an_event(server: Running) -> None:
    """The connection is kept: the client has read all that was sent."""
    asked = {"prompt": STORY, "max_tokens": 4, "stream": True, "sampler": "confidence"}
    with server.http() as client:
        with patch.object(TextReply, "last_chunk", side_effect=ZeroDivisionError("by design")):
            lines = client.post("/v1/completions", json=asked).text.splitlines()
        assert client.get("/health").status_code == 200
    error = json.loads([line for line in lines if line][-1].removeprefix("data: "))["error"]
    assert error == {
        "message": "an unexpected ZeroDivisionError: this is a bug in uncode.",
        "type": "server_error",
        "param": None,
        "code": "bug",
    }
    (line,) = [line for line in server.log if line["event"] == "stream_failed"]
    assert "by design" in line["traceback"]


# -- gaps ------------------------------------------------------------------------------------------


def test_a_suffix_is_kept(server: Running) -> None:
    model = QuickModel()
    head, tail = (
        model.tokenizer.encode(text, add_special_tokens=False) for text in ("def f(x):\n", "\n    return y\n")
    )
    canvas = uncode.Canvas.infill([[*head, *[model.mask_id] * 7, *tail]], mask_id=model.mask_id)
    trace = uncode.decode(model, canvas, uncode.presets.confidence(), 0)
    fill = trace.tokens[0, len(head) : len(head) + 7].tolist()
    wanted = model.tokenizer.decode([*head, *fill])[len("def f(x):\n") :]
    asked = {"prompt": "def f(x):\n", "suffix": "\n    return y\n", "max_tokens": 7, "sampler": "confidence"}
    for path in ("/v1/completions", "/v1/fim/completions"):
        assert server.post(path, **asked).json()["choices"][0]["text"] == wanted
        assert "".join(chunk["choices"][0]["text"] for chunk in events(server, path, **asked)) == wanted


def test_an_empty_suffix_is_none(server: Running) -> None:
    asked = {"prompt": "def f(x):", "max_tokens": 5, "sampler": "confidence"}
    plain = server.post("/v1/completions", **asked).json()["choices"][0]["text"]
    for suffix in ("", "<|endoftext|>"):
        assert server.post("/v1/completions", suffix=suffix, **asked).json()["choices"][0]["text"] == plain


def test_gaps_as_texts_and_sizes(server: Running) -> None:
    text = "Paris is the <mask:2> of France, and <mask:3> is big."
    wanted = uncode.generate(QuickModel(), text, sampler="confidence")
    parts = ["Paris is the ", 2, " of France, and ", 1, 2, " is big."]
    asked = {"prompt": "", "infill": parts, "sampler": "confidence"}
    found = server.post("/v1/completions", **asked).json()
    assert found["choices"][0]["text"] == wanted and found["usage"]["completion_tokens"] == 5
    chunks = events(server, **asked)
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == wanted
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    shown = events(server, diffusing=True, **asked)
    assert MASK_SIGN in shown[0]["choices"][0]["text"] and shown[-2]["choices"][0]["text"] == wanted


def test_gaps_as_mask_ids(server: Running) -> None:
    model = QuickModel()
    before, after = (model.tokenizer.encode(text, add_special_tokens=False) for text in ("Ada has", " coins."))
    ids = [*before, model.mask_id, model.mask_id, *after, model.mask_id]
    trace = uncode.decode(model, uncode.Canvas.infill([ids], model.mask_id), uncode.presets.confidence(), 0)
    wanted = model.tokenizer.decode(trace.tokens[0], skip_special_tokens=True)
    asked = {"prompt": ids, "sampler": "confidence"}
    found = server.post("/v1/completions", **asked).json()
    assert found["choices"][0]["text"] == wanted and found["usage"]["completion_tokens"] == 3
    assert "".join(chunk["choices"][0]["text"] for chunk in events(server, **asked)) == wanted


def test_a_marker_in_a_text_is_text(server: Running) -> None:
    """Wherever it comes: a gap is made of ids and sizes alone."""
    marked = "Fill <mask:3> here."
    found = server.post("/v1/completions", prompt=marked, max_tokens=4, sampler="confidence").json()
    model = QuickModel()
    trace = trace_of(marked, 4, uncode.presets.confidence())
    assert found["choices"][0]["text"] == model.tokenizer.decode(trace.generated[0])
    assert found["usage"]["completion_tokens"] == 4
    pieces = server.post("/v1/completions", infill=["<mask:2>", 1, "!"], sampler="confidence").json()
    assert pieces["choices"][0]["text"].startswith("<mask:2>") and pieces["usage"]["completion_tokens"] == 1
    messages = [{"role": "user", "content": marked}]
    assert (
        server.post("/v1/chat/completions", messages=messages, max_tokens=3).json()["usage"]["completion_tokens"] == 3
    )
    for body in ({"infill": ["a <|mask|> b", 2]}, {"prompt": "a <|mask|> b"}, {"prompt": "a", "suffix": "<|mask|>"}):
        refused = server.post("/v1/completions", **body)
        assert refused.status_code == 400 and "contains the mask token" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"infill": ["a", 0]}, "at least 1 token"),
        ({"infill": ["a"]}, "has no gap"),
        ({"infill": ["a", 2], "prompt": "b"}, "leave those out"),
        ({"infill": ["a", 2], "max_tokens": 3}, "leave max_tokens out"),
        ({"infill": ["a", 2], "stop": "x"}, "takes no stop"),
        ({"infill": ["a", 2], "logprobs": 0}, "takes no logprobs"),
        ({"infill": ["a", 4000]}, "exceed the context"),
        ({"prompt": [5, 0, 7], "max_tokens": 3}, "has no answer length"),
        ({"prompt": ["a", "b"], "suffix": "c"}, "belongs to one prompt"),
        ({}, "the prompt is missing"),
    ],
)
def test_gaps_that_make_no_sense(server: Running, body: dict[str, Any], sentence: str) -> None:
    refused = server.post("/v1/completions", **body)
    assert refused.status_code == 400 and sentence in refused.json()["error"]["message"]


# -- text ------------------------------------------------------------------------------------------

TEXTS = ["Grüße, 世界! 🎉🎉 naïve", " leading and  double  spaces\n\ttabs", "👩‍👩‍👧 family", "a\ufffdb", ""]


@pytest.mark.parametrize("make", [gpt2, wordpiece, unigram, lambda: QuickModel().tokenizer])
@pytest.mark.parametrize("text", TEXTS)
def test_text_by_token_adds_up(make: Any, text: str) -> None:
    tokenizer = make()
    ids = tokenizer.encode(text, add_special_tokens=False)
    settled = SettledText(lambda part: str(tokenizer.decode(part, skip_special_tokens=True)))
    parts = [settled.push(token) for token in ids]
    assert "".join(parts) + settled.flush() == tokenizer.decode(ids, skip_special_tokens=True)
    if "\ufffd" not in text:
        assert not any("\ufffd" in part for part in parts)


def test_half_of_a_character_is_held() -> None:
    tokenizer = gpt2()
    ids = tokenizer.encode("🎉", add_special_tokens=False)
    assert len(ids) == 3
    settled = SettledText(tokenizer.decode)
    assert [settled.push(token) for token in ids] == ["", "", "🎉"]
    cut = SettledText(tokenizer.decode)
    assert [cut.push(token) for token in ids[:2]] == ["", ""] and set(cut.flush()) == {"\ufffd"}


def test_half_of_a_stop_string_is_held() -> None:
    cut = StopCut(["\n\n", "END"])
    assert [cut.push(part) for part in ("a\n", "b", "E", "Nd", "\n", "\nrest")] == ["a", "\nb", "", "ENd", "", ""]
    assert cut.found and cut.push("more") == "" and cut.flush() == ""
    open_end = StopCut(["END"])
    assert open_end.push("xEN") == "x" and open_end.flush() == "EN" and not open_end.found
