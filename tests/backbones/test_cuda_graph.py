"""Captured forwards, with a graph that runs on any device in the place of CUDA's."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.checkpoints import like_the_toy
from uncode.backbones.guidance import Guided
from uncode.backbones.transformer import cuda_graph, session, session_memory
from uncode.backbones.transformer.cuda_graph import (
    MAX_TOKENS,
    CapturedForward,
    Forward,
    ForwardInputs,
    GraphCache,
    fits,
)
from uncode.backbones.transformer.kv_cache import KVCache
from uncode.backbones.transformer.linear import Matrix
from uncode.core.canvas import Canvas
from uncode.core.pieces.cache import BlockCache
from uncode.core.pieces.stop import AfterEos
from uncode.core.stepper.advance import advance
from uncode.core.stepper.state import State
from uncode.generation.decoding import decode
from uncode.samplers import presets

MASK = 0


class Again(CapturedForward):
    """Runs the forward again on the inputs that a graph would read: what it reads and writes stays where it was."""

    made: ClassVar[list[Again]] = []

    def capture(self, forward: Forward, pool: Any) -> None:
        self.forward, self.runs = forward, 0
        self.logits = forward(self.inputs).clone()
        self.places = self._stored()
        Again.made.append(self)

    def replay(self) -> None:
        assert self.places == self._stored(), "what was stored has moved"
        self.runs += 1
        self.logits.copy_(self.forward(self.inputs))

    def _stored(self) -> list[int]:
        if not isinstance(self.forward, partial):
            return []
        *_, cache = self.forward.args
        return [t.data_ptr() for pair in cache.buffers for t in pair]


@pytest.fixture(autouse=True)
def _none_made() -> None:
    Again.made.clear()


def captured(model: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    opens = model.open

    def opened(rows: int, length: int) -> Any:
        session = opens(rows, length)
        session.graphs, session.in_parts = GraphCache(Again), False
        return session

    monkeypatch.setattr(model, "open", opened)
    return model


@pytest.mark.parametrize(
    ("dialect", "cache"),
    [*product(("llada", "dream"), ("none", "prefix", "dual")), *product(("sdar", "fast_dllm_v2"), ("blocks", "dual"))],
)
@pytest.mark.parametrize("stops", [False, True])
def test_captured_forwards_decode_the_same_tokens(
    dialect: str, cache: str, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = like_the_toy(dialect, 3)
    canvas = Canvas.after_prompt([[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]], length=[12, 9, 12, 6], mask_id=model.mask_id)
    if model.block_length is None:
        sampler = presets.semi_ar(blocks=3, cache=cache)  # type: ignore[arg-type]
    else:
        sampler = presets.confidence(block_length=4, cache="dual")
        sampler = sampler.caching(BlockCache()) if cache == "blocks" else sampler
    sampler = sampler.stopping(AfterEos()) if stops else sampler
    plain = decode(model, canvas, sampler)
    replayed = decode(captured(model, monkeypatch), canvas, sampler)
    assert torch.equal(plain.tokens, replayed.tokens)
    assert sum(graph.runs for graph in Again.made) > 0


def test_a_forward_is_captured_at_its_second_use_and_serves_fewer_rows() -> None:
    calls: list[int] = []

    def forward(inputs: ForwardInputs) -> Tensor:
        calls.append(len(inputs.tokens))
        return inputs.tokens[..., None].float()

    def inputs(rows: int, length: int = 8) -> ForwardInputs:
        angle = torch.zeros(1, 1, length, 2)
        tokens = torch.arange(rows * length).view(rows, length)
        return ForwardInputs(tokens, angle, angle, None, None, torch.arange(length)[None])

    pool = GraphCache(Again)
    for rows in (8, 8, 8, 7, 5, 4, 4):
        found = pool(forward, inputs(rows))
        assert torch.equal(found, inputs(rows).tokens[..., None].float())
    assert calls == [8, 8, 8, 8, 8, 8, 4, 4, 4]  # captured and run; five rows in a graph of eight; four get their own
    assert [len(graph.inputs.tokens) for graph in pool.graphs] == [8, 4]
    large = inputs(2, MAX_TOKENS)
    pool(forward, large), pool(forward, large)
    assert len(pool.graphs) == 2
    pool.shrink(3)
    assert [len(graph.inputs.tokens) for graph in pool.graphs] == [4]
    pool.shrink(2)
    assert pool.graphs == [] and pool.pool is None
    pool.forget()
    assert pool.seen == set()


def test_inputs_fit_fewer_rows_of_the_same_kind_only() -> None:
    angle = torch.zeros(1, 1, 4, 2)

    def inputs(rows: int, places: Tensor | None = None, by_row: int = 1) -> ForwardInputs:
        return ForwardInputs(torch.zeros(rows, 4), angle, angle, None, places, torch.zeros(by_row, 2))

    assert fits(inputs(4), inputs(3)) and not fits(inputs(3), inputs(4))
    assert not fits(inputs(4), inputs(3, torch.arange(4)))
    assert fits(inputs(4, torch.arange(4)), inputs(3, torch.arange(4)))
    assert not fits(inputs(4, torch.arange(4)), inputs(3, torch.zeros(3, 4)))
    assert fits(inputs(4, by_row=4), inputs(3, by_row=3)) and not fits(inputs(4), inputs(3, by_row=3))


@pytest.mark.parametrize("dialect", ["llada", "sdar", "fast_dllm_v2"])
def test_rows_that_join_and_leave_find_what_is_stored(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph does not outlive the memory it knows, and rows that join take the room of those that left."""
    model = like_the_toy(dialect, 3)
    semi_ar, blocks = presets.semi_ar(blocks=3, cache="dual"), presets.confidence(block_length=4).caching(BlockCache())
    sampler = semi_ar if model.block_length is None else blocks

    def decoded() -> list[Tensor]:
        state, found = State(model), dict[int, Tensor]()
        joins = {0: ([1, 2], 12), 1: ([3, 4], 12), 4: ([5, 6], 3), 14: ([7, 8], 9), 16: ([7, 8, 9, 10], 15)}
        for step in range(50):
            if step in joins:
                prompt, length = joins[step]
                state.add(Canvas.after_prompt([prompt], length=length, mask_id=model.mask_id), sampler)
            if not state.all_finished:
                advance(state)
                found |= {int(i): t for i, t in zip(state.rows.ids, state.batch.tokens.clone(), strict=True)}
                if state.any_finished:
                    state.keep(np.flatnonzero(~state.rows.finished))
        return [found[row] for row in sorted(found)]

    plain = decoded()
    captured(model, monkeypatch)
    again = decoded()
    assert len(plain) == 5
    for wanted, row in zip(plain, again, strict=True):
        assert torch.equal(wanted, row)
    assert sum(graph.runs for graph in Again.made) > 8 and len(Again.made) > 2


def test_a_row_that_joins_for_one_that_left_finds_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy engine replaces rows between two forwards, so the number of rows in a forward does not change."""
    monkeypatch.setattr(cuda_graph, "MAX_PADDED_TOKENS", 0)
    model = captured(like_the_toy("llada", 3), monkeypatch)
    sampler = presets.semi_ar(blocks=2, cache="dual")

    def canvas(rows: int, length: int = 12) -> Canvas:
        return Canvas.after_prompt([[1, 2]] * rows, length=length, mask_id=model.mask_id)

    state = State(model)
    state.add(canvas(3), sampler)
    for _ in range(4):
        advance(state)
    before = list(Again.made)
    state.keep(np.array([0, 2]))
    state.add(canvas(1), sampler)
    advance(state)  # the new row refreshes, in its own forward
    assert before and all(graph in state.session.graphs.graphs for graph in before)
    state.keep(np.array([0, 2]))
    advance(state)
    assert not any(graph in state.session.graphs.graphs for graph in before)


@pytest.mark.parametrize("rows", [[0, 3, 2], [0, 1], [1, 2, 3], [3, 2, 1, 0], []])
def test_rows_of_a_kv_cache_move_to_the_front(rows: list[int]) -> None:
    cache = KVCache(layers=2, key_heads=1, head_width=2, rows=4, length=3)
    cache.allocate(torch.zeros(1))
    for buffers in cache.buffers:
        for buffer in buffers:
            buffer.add_(torch.arange(4.0)[:, None, None, None])
    places = [buffer.data_ptr() for buffers in cache.buffers for buffer in buffers]
    cache.keep(torch.tensor(rows, dtype=torch.int64))
    assert cache.rows == len(rows)
    assert all(buffer[: len(rows), 0, 0, 0].tolist() == rows for buffers in cache.buffers for buffer in buffers)
    assert places == [buffer.data_ptr() for buffers in cache.buffers for buffer in buffers]


def test_a_kv_cache_without_content_seldom_moves_as_it_grows() -> None:
    cache = KVCache(layers=1, key_heads=1, head_width=2, rows=0, length=3)
    moved = [cache.reserve(rows, most=6) for rows in (1, 2, 3, 4, 1, 5, 6)]
    assert moved == [True, True, True, False, False, True, False]
    cache.resize(5)
    assert not cache.reserve(3, most=6) and cache.layers(torch.zeros(1))[0].shape[0] == 6


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model whose sessions compute as on a GPU, with graphs that run on any device."""
    monkeypatch.setattr(session, "_has_graphs", lambda device: True)
    monkeypatch.setattr(session, "GraphCache", partial(GraphCache, Again))
    model = like_the_toy("llada", 3)
    opens = model.open

    def opened(rows: int, length: int) -> Any:
        found = opens(rows, length)
        found.in_parts = False
        return found

    monkeypatch.setattr(model, "open", opened)
    return model


@pytest.mark.parametrize("cache", ["none", "prefix", "dual", "window"])
def test_a_second_answer_of_the_same_size_captures_nothing(cache: str, handed_over: Any) -> None:
    plain = like_the_toy("llada", 3)
    sampler = presets.confidence(cache=cache) if cache == "window" else presets.semi_ar(blocks=3, cache=cache)

    def tokens(model: Any, prompt: list[int], length: int = 12) -> Tensor:
        return decode(model, Canvas.after_prompt([prompt], length=length, mask_id=model.mask_id), sampler).tokens

    first = tokens(handed_over, [1, 2, 3])
    made = len(Again.made)
    assert made and torch.equal(first, tokens(plain, [1, 2, 3]))
    assert torch.equal(tokens(handed_over, [3, 2, 4]), tokens(plain, [3, 2, 4]))
    if cache != "window":  # its widths depend on the tokens
        assert len(Again.made) == made
    assert torch.equal(tokens(handed_over, [1, 2, 3, 4]), tokens(plain, [1, 2, 3, 4]))
    assert len(Again.made) > made  # of another size


def test_what_graphs_depend_on_is_not_handed_over_once_it_has_changed(handed_over: Any) -> None:
    canvas = Canvas.after_prompt([[1, 2, 3]], length=12, mask_id=handed_over.mask_id)
    sampler = presets.semi_ar(blocks=3, cache="dual")
    network = handed_over.network

    def captures() -> int:
        before = len(Again.made)
        decode(handed_over, canvas, sampler)
        return len(Again.made) - before

    assert captures() > 0 and captures() == 0
    network.store_as(Matrix)  # the products are others
    assert captures() > 0 and captures() == 0
    network.head.weight = torch.nn.Parameter(network.head.weight.clone(), requires_grad=False)
    assert captures() > 0 and captures() == 0
    running = State(handed_over)
    running.add(canvas, sampler)  # takes what was left
    advance(running)
    assert captures() > 0  # beside it, nothing is left to take
    with patch.object(session_memory, "MAX_IDLE_BYTES", 0):
        captures()
    assert captures() > 0 and captures() == 0
    canvas = Canvas.after_prompt([[1, 2, 3]] * 2, length=12, mask_id=handed_over.mask_id)
    assert captures() > 0 and captures() > 0  # several rows hand nothing over


def test_guided_decodes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = like_the_toy("llada", 3)
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=12, mask_id=model.mask_id)
    plain = decode(Guided(model, 1.5), canvas, presets.semi_ar(blocks=3, cache="dual"))
    replayed = decode(Guided(captured(model, monkeypatch), 1.5), canvas, presets.semi_ar(blocks=3, cache="dual"))
    assert torch.equal(plain.tokens, replayed.tokens) and Again.made


def test_without_memory_for_a_capture_forwards_stay_plain() -> None:
    class Full(Again):
        def capture(self, forward: Forward, pool: Any) -> None:
            raise torch.OutOfMemoryError

    angle = torch.zeros(1, 1, 4, 2)
    pool, inputs = GraphCache(Full), ForwardInputs(torch.ones(2, 4), angle, angle, None, None, torch.zeros(1, 4))
    for _ in range(3):
        assert torch.equal(pool(lambda given: given.tokens, inputs), inputs.tokens)
    assert not pool.is_on and not pool.graphs
