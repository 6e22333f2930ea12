"""A block-causal model behind the server: streams, and requests that share its forwards but not their answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import pytest
from torch import Tensor

import uncode
from tests.checkpoints import DIALECTS, Published
from tests.server.running import STORY, TINY, Running, running
from uncode.backbones.transformer.session import TransformerSession
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.pieces.cache import BlockCache, Plan
from uncode.samplers.resolve import resolve

REQUESTS: list[dict[str, Any]] = [
    {"prompt": STORY, "max_tokens": 22, "sampler": "confidence"},
    {"prompt": "Question: 2 + 3 =", "max_tokens": 9, "sampler": "fast_dllm", "threshold": 0.2, "block_length": 4},
    {"prompt": "Mia", "max_tokens": 17, "sampler": "dynamic", "temperature": 0.9, "seed": 5},
    {"prompt": STORY[:40], "max_tokens": 12, "sampler": "uncode", "rate": 0.1},
]


@pytest.fixture(scope="module", params=["sdar", "fast_dllm_v2"])
def model(request: pytest.FixtureRequest) -> Denoiser:
    """Random weights, blocks of four, and the tokenizer, the table and the special ids of tiny."""
    config, weights = DIALECTS[request.param]
    tiny: Any = TINY()
    ids = {"vocab_size": tiny.vocab_size, "mask_token_id": tiny.mask_id, "eos_token_id": list(tiny.eos_ids)}
    made = config(0) | ids
    found = uncode.wrap(Published(made, {name: t.double() for name, t in weights(made, 7).items()}), tiny.tokenizer)
    found.frequency = tiny.frequency
    return found


@pytest.fixture(scope="module")
def server(model: Denoiser) -> Iterator[Running]:
    with running(model) as found:
        yield found


def alone(model: Any, body: dict[str, Any]) -> uncode.Trace:
    options = {key: value for key, value in body.items() if key not in ("prompt", "max_tokens", "sampler", "seed")}
    sampler = resolve(body["sampler"], model, None, options)
    assert sampler.cache == BlockCache() and model.block_length == 4
    ids = model.tokenizer.encode(body["prompt"], add_special_tokens=False)
    canvas = uncode.Canvas.after_prompt([ids], body["max_tokens"], model.mask_id)
    return uncode.decode(model, canvas, sampler, body.get("seed", 0))


def answer(server: Running, body: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The streamed text of a request, and what it committed."""
    with (
        server.http() as client,
        client.stream("POST", "/v1/completions", json=body | {"stream": True, "commits": True}) as response,
    ):
        assert response.status_code == 200, response.read()
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    choices = [json.loads(line)["choices"][0] for line in lines[:-1]]
    return "".join(c["text"] for c in choices), [commit for c in choices for commit in c.get("commits", [])]


def check(model: Any, body: dict[str, Any], text: str, commits: list[dict[str, Any]]) -> None:
    trace = alone(model, body)
    steps, tokens = trace.commit_step[0].tolist(), trace.generated[0].tolist()
    written = {at: (tokens[at], step) for at, step in enumerate(steps) if step >= 0}
    assert {c["offset"]: (c["token"], c["step"]) for c in commits if c["step"] is not None} == written
    ended = next((at for at, token in enumerate(tokens) if token in model.eos_ids), len(tokens))
    assert text == model.tokenizer.decode(tokens[:ended])


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_a_stream_is_the_decode(model: Denoiser, server: Running, number: int) -> None:
    check(model, REQUESTS[number], *answer(server, REQUESTS[number]))


def test_requests_at_once_are_those_alone(model: Denoiser, server: Running) -> None:
    """They join and leave a batch that runs: each sends its prompt when another has begun."""
    most, forward = [0], TransformerSession.logits

    def counted(self: TransformerSession, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        most[0] = max(most[0], len(tokens))
        time.sleep(0.01)
        return forward(self, tokens, layout, plan)

    bodies = REQUESTS * 2
    with patch.object(TransformerSession, "logits", counted), ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda body: answer(server, body), bodies))
    assert most[0] > 1
    for body, found in zip(bodies, answers, strict=True):
        check(model, body, *found)
