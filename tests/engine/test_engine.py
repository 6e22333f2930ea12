"""The engine: every row equals the row alone, none starves, rows are cancelled, failures stay with their row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event, Thread, current_thread
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests import grid
from tests.checkpoints import like_the_toy
from tests.test_invariants import canvases, samplers
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, FunctionDenoiser, Policy, Sampler, Stalled, UncodeError, decode, load, presets
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.transformer import prepared
from uncode.backbones.transformer.session import TransformerSession
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.propose import Adjust
from uncode.core.pieces.score import Confidence, Score
from uncode.core.stepper.state import State
from uncode.core.view import View
from uncode.engine import Engine, Request, Result, memory
from uncode.engine import engine as engine_module
from uncode.engine.admission import MAX_OVERTAKEN
from uncode.engine.columns import ColumnRule
from uncode.engine.recovery import ForwardFailed
from uncode.engine.row_step import RowStep
from uncode.testing.hash_model import HashDenoiser

MODELS = {"toy": ToyDenoiser, "llada": lambda seed: like_the_toy("llada", seed), "hash": lambda seed: HashDenoiser()}


@dataclass
class Arrival:
    canvas: Canvas
    sampler: Sampler
    seed: int
    at: int
    """The step before which it arrives."""
    cancelled: int | None
    """Steps after its arrival at which it is cancelled."""
    ticket: int = field(default=-1)


@st.composite
def arrivals(draw: st.DrawFn) -> Arrival:
    return Arrival(
        draw(canvases()),
        draw(samplers()),
        draw(st.integers(0, 99)),
        draw(st.integers(0, 25)),
        draw(st.sampled_from([None, None, None, 0, 3, 9])),
    )


def check_alone(model: Denoiser, result: Result) -> None:
    """The result is that of a decode of the row alone."""
    request = result.request
    alone = decode(model, request.canvas, request.sampler, [request.seed])
    assert result.trace is not None and result.error is None
    assert torch.equal(result.trace.tokens, alone.tokens)
    assert torch.equal(result.trace.commit_step, alone.commit_step)
    assert torch.equal(result.trace.window, alone.window)
    assert result.trace.events == alone.events
    torch.testing.assert_close(result.trace.logp, alone.logp, rtol=1e-9, atol=1e-9, equal_nan=True)


@given(
    st.sampled_from(sorted(MODELS)),
    st.integers(0, 7),
    st.lists(arrivals(), min_size=1, max_size=5),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([None, 0, 200]),
)
def test_every_row_equals_the_row_alone(
    kind: str, seed: int, rows: list[Arrival], most: int, graph_tokens: int | None
) -> None:
    """Whatever arrives when, with whatever sampler and length, and whichever row is cancelled. On a GPU the columns
    of a small batch are rounded up."""
    model = MODELS[kind](seed)
    engine, clock, found, dropped = Engine(model, max_rows=most), 0, list[Result](), set[int]()
    engine._admission.columns = ColumnRule(graph_tokens)
    while clock <= 40 or not engine.is_idle:
        for number, row in enumerate(rows):
            if row.at == clock:
                row.ticket = engine.submit(Request(row.canvas, row.sampler, row.seed, key=number))
            if row.cancelled is not None and row.at + row.cancelled == clock and engine.cancel(row.ticket):
                dropped.add(number)
        found += engine.step()
        assert engine.running <= most
        clock += 1
    assert sorted(result.request.key for result in found) == sorted(set(range(len(rows))) - dropped)
    for result in found:
        check_alone(model, result)


def widths(graph_tokens: int | None, rows: int, cache: Literal["none", "dual"] = "none") -> list[int]:
    """The columns of a batch, step by step: prompts of 1 to `rows` tokens, 8 masks, one row more at every step."""
    engine, found = Engine(like_the_toy("llada", 0), max_rows=rows), list[int]()
    engine._admission.columns = ColumnRule(graph_tokens)
    for number in range(rows, 0, -1):
        canvas = Canvas.after_prompt([[1] * number], length=8, mask_id=MASK)
        engine.submit(Request(canvas, presets.semi_ar(blocks=1, cache=cache)))
        engine.step()
        found.append(engine.tokens // max(engine.running, 1))
    while engine.running:
        engine.step()
        found.append(engine.tokens // max(engine.running, 1))
    return found


def test_columns_are_rounded_up_while_forwards_are_replayed() -> None:
    """A batch that is too large for CUDA graphs has the columns that its rows need. When a row leaves, so do they."""
    assert widths(None, 4)[:4] == [12] * 4
    assert widths(10_000, 4)[:4] == [128] * 4
    assert widths(0, 4)[6:] == [12, 11, 10, 9, 0]
    assert widths(2 * 128, 4)[:4] == [128, 128, 12, 12]
    assert widths(0, 4, "dual")[:4] == [128] * 4


def requests(count: int, **options: object) -> Iterator[Request]:
    for number in range(count):
        canvas = Canvas.after_prompt([[1] * (1 + number % 4)], length=3 + 5 * (number % 5), mask_id=MASK)
        yield Request(canvas, presets.semi_ar(blocks=2, cache="dual"), number, key=number)


@pytest.mark.parametrize("kind", ["llada", "dream"])
@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_rows_that_refresh_are_computed_apart(
    kind: str, cache: Literal["prefix", "dual"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU. Rows join at different steps, so that some refresh their KV cache while others compute a block."""
    monkeypatch.setattr(prepared, "MIN_WIDE_COLUMNS", 1)
    apart, real, real_open = list[int](), TransformerSession._run_apart, TransformerDenoiser.open

    def watched(self: TransformerSession, wide: prepared.WideRows, tokens: Tensor) -> Tensor:
        apart.append(len(wide.rows))
        return real(self, wide, tokens)

    def opened(self: TransformerDenoiser, rows: int, length: int) -> TransformerSession:
        session = real_open(self, rows, length)
        session.in_parts = False
        return session

    monkeypatch.setattr(TransformerSession, "_run_apart", watched)
    monkeypatch.setattr(TransformerDenoiser, "open", opened)
    model = like_the_toy(kind, 3)
    engine, found = Engine(model, max_rows=4), list[Result]()
    for number in range(9):
        canvas = Canvas.after_prompt([[1 + number] * (1 + number % 3)], length=8 + 5 * (number % 4), mask_id=MASK)
        engine.submit(Request(canvas, presets.semi_ar(blocks=3, cache=cache), number))
        found += engine.step()
    while not engine.is_idle:
        found += engine.step()
    assert len(found) == 9 and len(apart) > 5
    for result in found:
        check_alone(model, result)


@pytest.mark.parametrize("kind", ["llada", "dream"])
def test_rows_of_similar_width_are_computed_together(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, on three threads: rows of all caches join at different steps."""
    monkeypatch.setattr(prepared, "MIN_PART_TOKENS", 1)
    monkeypatch.setattr(prepared, "MAX_PART_TOKENS", 40)
    parts, real = list[tuple[str, bool]](), TransformerSession._run_part

    def watched(self: TransformerSession, part: prepared.RowPart, *args: Any, **options: Any) -> None:
        self.threads = 3
        parts.append((current_thread().name, part.prepared.inputs.cache_columns is not None))
        real(self, part, *args, **options)

    monkeypatch.setattr(TransformerSession, "_run_part", watched)
    model = like_the_toy(kind, 3)
    engine, found = Engine(model, max_rows=6), list[Result]()
    for number in range(12):
        canvas = Canvas.after_prompt([[1 + number] * (1 + number % 5)], length=8 + 5 * (number % 4), mask_id=MASK)
        cache: Any = ("none", "prefix", "dual")[number % 3]
        engine.submit(Request(canvas, presets.semi_ar(blocks=3, cache=cache), number))
        found += engine.step()
    while not engine.is_idle:
        found += engine.step()
    assert len(found) == 12 and {cached for _, cached in parts} == {False, True}
    assert sum(name.startswith("uncode-rows") for name, _ in parts) > 5
    for result in found:
        check_alone(model, result)


@given(st.lists(st.tuples(st.integers(1, 200), st.booleans()), min_size=1, max_size=40), st.integers(1, 8))
def test_parts_have_rows_of_similar_width(rows: list[tuple[int, bool]], threads: int) -> None:
    widths, cached = np.array([width for width, _ in rows]), np.array([flag for _, flag in rows])
    parts = prepared.split_rows(widths, cached, threads)
    assert sorted(row for part in parts for row in part.tolist()) == list(range(len(rows)))
    for part in parts:
        most, least = widths[part].max(), widths[part].min()
        assert least >= prepared.MIN_SHARE_OF_WIDEST * most and len(set(cached[part])) == 1
        assert widths[part].sum() <= prepared.MAX_PART_TOKENS + most


def test_run_drains_an_iterable_and_reads_it_as_it_goes() -> None:
    read = list[int]()

    def source() -> Iterator[Request]:
        for request in requests(24):
            read.append(request.key)
            yield request

    run = Engine(ToyDenoiser(1), max_rows=4).run(source())
    first = next(run)
    assert len(read) < 16
    found = [first, *run]
    assert sorted(result.request.key for result in found) == list(range(24)) == read
    for result in found:
        check_alone(ToyDenoiser(1), result)


def test_short_requests_do_not_wait_for_long_ones() -> None:
    engine = Engine(ToyDenoiser(1), max_rows=2)
    long = Canvas.after_prompt([[1]], length=60, mask_id=MASK)
    short = Canvas.after_prompt([[2]], length=4, mask_id=MASK)
    engine.submit(Request(long, presets.confidence(), key="long"))
    for number in range(5):
        engine.submit(Request(short, presets.confidence(), key=number))
    order = [result.request.key for _ in range(80) for result in engine.step()]
    assert order == [0, 1, 2, 3, 4, "long"]


def test_no_request_starves() -> None:
    """Rows of another length cannot join a model without padding; each is overtaken a bounded number of times."""
    model = load("toy")
    engine = Engine(model, max_rows=2)
    common, rare = (Canvas.after_prompt([[2, 20, 21, 22]], length=n, mask_id=model.mask_id) for n in (6, 9))
    for number in range(3):
        engine.submit(Request(common, presets.confidence(), key=number))
    engine.submit(Request(rare, presets.confidence(), key="rare"))
    order, number = [], 3
    while "rare" not in order:
        if engine.waiting < 3:
            engine.submit(Request(common, presets.confidence(), key=number))
            number += 1
        order += [result.request.key for result in engine.step()]
    assert len(order) <= 3 + MAX_OVERTAKEN + 2


@dataclass(frozen=True)
class Refuses(Score):
    """It bars every position from some offset on."""

    def __call__(self, view: View) -> Tensor:
        return torch.where(view.offsets >= 4, -torch.inf, view.belief.logp)


def test_a_row_that_stalls_leaves_alone() -> None:
    model, engine = ToyDenoiser(2), Engine(ToyDenoiser(2), max_rows=4)
    stuck = Request(Canvas.after_prompt([[3]], 7, MASK), Sampler(Policy(Confidence() + Refuses())), key="stuck")
    found = {result.request.key: result for result in engine.run([*requests(3), stuck, *requests(6)])}
    assert isinstance(found["stuck"].error, Stalled) and found["stuck"].trace is None
    assert "Refuses scored every open position -inf" in str(found["stuck"].error)
    for key, result in found.items():
        if key != "stuck":
            check_alone(model, result)


def test_rows_beside_one_that_stalls_are_not_started_again() -> None:
    """Its forwards, and no more, are seen by the listener of the row beside it."""
    engine, seen = Engine(ToyDenoiser(2), max_rows=4), list[int]()
    stuck = Request(Canvas.after_prompt([[3]], 7, MASK), Sampler(Policy(Confidence() + Refuses())), key="stuck")
    limited = Request(Canvas.after_prompt([[3]], 7, MASK), replace(presets.confidence(), limit=3), key="limited")
    beside = Request(
        Canvas.after_prompt([[1]], 9, MASK), presets.confidence(), on_step=lambda step: seen.append(step.index) or False
    )
    found = {result.request.key: result for result in engine.run([stuck, beside, limited])}
    assert isinstance(found["stuck"].error, Stalled) and isinstance(found["limited"].error, Stalled)
    assert "not finished after 3 forwards" in str(found["limited"].error)
    assert seen == list(range(9)) and engine.forwards == 9
    check_alone(ToyDenoiser(2), found[None])


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 7), canvases(), samplers(), st.integers(0, 99))
def test_a_listener_sees_every_change(kind: str, seed: int, canvas: Canvas, sampler: Sampler, row_seed: int) -> None:
    """Its changes rebuild the row, and what it calls settled never changes."""
    model, steps = MODELS[kind](seed), list[RowStep]()
    request = Request(canvas, sampler, row_seed, on_step=lambda step: steps.append(step) or False)
    other = Canvas.after_prompt([[1, 2, 3]], length=11, mask_id=model.mask_id)
    engine = Engine(model, max_rows=3)
    results = list(engine.run([Request(other, presets.confidence(), 5), request, Request(other, presets.eb(), 6)]))
    (result,) = [one for one in results if one.request is request]
    check_alone(model, result)
    assert result.row is not None and result.trace is not None
    assert [step.index for step in steps] == list(range(int(result.trace.steps[0])))
    final, now = result.row.generated.tolist(), canvas.tokens[0, canvas.start :].tolist()
    for step in steps:
        for change in step.changes:
            now[change.offset] = model.mask_id if change.token is None else change.token
        filled = [old == model.mask_id and new in model.eos_ids for old, new in zip(now, step.tokens, strict=True)]
        now = [new if fill else old for old, new, fill in zip(now, step.tokens, filled, strict=True)]
        assert step.tokens == now  # changes and, once a stop rule says so, EOS tokens in the masks that are left
        assert step.tokens[: step.settled] == final[: step.settled]
    assert steps[-1].tokens == final and steps[-1].settled == len(final)
    committed = {change.offset: change.logp for step in steps for change in step.changes}
    for offset, logp in committed.items():
        if result.trace.commit_step[0, offset] >= 0:
            assert logp == pytest.approx(float(result.trace.logp[0, offset]), nan_ok=True)


def test_a_listener_ends_its_row() -> None:
    """It leaves with what was decoded, and the row beside it goes on."""
    engine = Engine(ToyDenoiser(1), max_rows=2)
    canvas = Canvas.after_prompt([[1]], length=12, mask_id=MASK)
    short = Request(canvas, presets.left_to_right(), key="short", on_step=lambda step: step.settled >= 4)
    first, second = engine.run([short, Request(canvas, presets.left_to_right(), key="whole")])
    assert first.request.key == "short" and first.row is not None and first.row.forwards == 4
    assert second.row is not None and second.row.forwards == 12
    assert first.row.generated.tolist() == [*second.row.generated.tolist()[:4], *[MASK] * 8]


def test_a_forward_that_fails_ends_its_rows_alone() -> None:
    """The queue stays, the batch is halved, and grows again."""
    engine = Engine(ToyDenoiser(1), max_rows=4)
    advance = engine_module.advance
    for request in requests(9):
        engine.submit(request)
    assert engine.step() == [] and (engine.running, engine.waiting) == (4, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "advance", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("a kernel\npage")))
        with pytest.raises(RuntimeError, match="a kernel") as raised:
            engine.step()
        lost = engine.abandon(raised.value)
    assert engine_module.advance is advance
    assert [result.request.key for result in lost] == [0, 1, 2, 3]
    assert all(isinstance(result.error, ForwardFailed) for result in lost)
    assert str(lost[0].error) == "the forward failed (RuntimeError: a kernel): try again."
    found, largest = list[Result](), 0
    while not engine.is_idle:
        found += engine.step()
        largest = max(largest, engine.last_rows)
    assert sorted(result.request.key for result in found) == [4, 5, 6, 7, 8] and largest == 2
    for result in found:
        check_alone(ToyDenoiser(1), result)
    long = Canvas.after_prompt([[1]], length=200, mask_id=MASK)
    for number in range(4):
        engine.submit(Request(long, presets.confidence(), number))
    while not engine.is_idle:
        engine.step()
    assert engine.limit_rows == 4


def test_an_error_while_rows_join_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(ToyDenoiser(1), max_rows=4)
    tickets = [engine.submit(request) for request in requests(6)]
    with monkeypatch.context() as patch:
        patch.setattr(State, "add", lambda *_: (_ for _ in ()).throw(RuntimeError("no stream")))
        with pytest.raises(RuntimeError) as raised:
            engine.step()
    lost = engine.abandon(raised.value)
    while not engine.is_idle:
        lost += engine.step()
    assert len(lost) == len(tickets)


def test_short_requests_pass_long_ones_that_wait() -> None:
    """By their deadlines: a long one is passed by those alone that came before its own."""
    engine, order = Engine(ToyDenoiser(1), max_rows=1, short_rows=1), list[str]()
    long, short = (Canvas.after_prompt([[1]], length=n, mask_id=MASK) for n in (40, 10))
    for number in range(3):
        engine.submit(Request(long, presets.confidence(), key=f"long {number}"))
    for number in range(12):
        engine.submit(Request(short, presets.confidence(), key=f"short {number}"))
        for _ in range(8):
            order += [result.request.key for result in engine.step()]
    while not engine.is_idle:
        order += [result.request.key for result in engine.step()]
    assert order.index("short 0") < order.index("long 0") < order.index("short 9")
    assert order.index("long 1") < order.index("short 11")


def test_a_deadline_counts_the_forwards_that_masks_took_lately() -> None:
    """With four forwards for forty masks, a long request is not passed for forty forwards."""
    engine, order = Engine(ToyDenoiser(1), max_rows=1, short_rows=1), list[str]()
    long, short = (Canvas.after_prompt([[1]], length=n, mask_id=MASK) for n in (40, 20))
    quick = presets.uniform(steps=4)
    for number in range(40):
        engine.submit(Request(long, quick, number))
    while not engine.is_idle:
        engine.step()
    engine.submit(Request(short, quick, key="first"))
    engine.submit(Request(long, quick, key="long"))
    for number in range(8):
        engine.submit(Request(short, quick, key=f"short {number}"))
        for _ in range(4):
            order += [result.request.key for result in engine.step()]
    assert order[:4] == ["first", "short 0", "long", "short 1"]


def test_a_short_request_joins_a_batch_that_is_full() -> None:
    engine = Engine(ToyDenoiser(1), max_rows=2, short_rows=1)
    for number in range(4):
        engine.submit(Request(Canvas.after_prompt([[1]], 48, MASK), presets.confidence(), key=f"long {number}"))
    engine.step()
    for number in range(3):
        engine.submit(Request(Canvas.after_prompt([[2]], 6, MASK), presets.confidence(), key=number))
    found, most = list[Result](), 0
    while not engine.is_idle:
        found += engine.step()
        most = max(most, engine.last_rows)
    assert [result.request.key for result in found][:4] == [0, 1, 2, "long 0"] and most == 3
    for result in found:
        check_alone(ToyDenoiser(1), result)


def test_a_request_that_cannot_join_is_an_error_of_its_own() -> None:
    """A token outside the vocabulary; a sampler that needs a cache on a model without one."""
    model = load("toy")
    canvas = Canvas.after_prompt([[2, 20]], length=6, mask_id=model.mask_id)
    good = Request(canvas, presets.confidence(), key="good")
    bad = [
        Request(Canvas.after_prompt([[2, 4000]], length=6, mask_id=model.mask_id), presets.confidence(), key="token"),
        Request(canvas, presets.semi_ar(blocks=2, cache="dual"), key="cache"),
    ]
    found = {result.request.key: result for result in Engine(model).run([good, *bad, good])}
    assert "token 4000 of the canvas is outside the vocabulary" in str(found["token"].error)
    assert "has no KV cache" in str(found["cache"].error)
    assert found["good"].error is None


class Limited:
    """A function that has memory for so many tokens."""

    def __init__(self, tokens: int) -> None:
        self.tokens, self.largest = tokens, 0

    def __call__(self, tokens: Tensor, valid: Tensor) -> Tensor:
        if tokens.numel() > self.tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate much\nmore")
        self.largest = max(self.largest, tokens.numel())
        return torch.sin(torch.arange(tokens.shape[1])[None, :, None] * 3.0 + torch.arange(12.0)).expand(
            len(tokens), -1, -1
        )


def test_a_batch_that_does_not_fit_shrinks_and_continues() -> None:
    limited = Limited(35)
    model = FunctionDenoiser(limited, mask_id=11, vocab_size=12, padding=True)
    canvases = [Canvas.after_prompt([[1, 2]], length=5, mask_id=11) for _ in range(12)]
    found = list(Engine(model, max_rows=12).run(Request(c, presets.confidence(), n) for n, c in enumerate(canvases)))
    assert len(found) == 12 and all(result.error is None for result in found)
    assert 14 <= limited.largest <= 35
    limited.tokens = 5
    (alone,) = Engine(model).run([Request(canvases[0], presets.confidence())])
    assert "one row does not fit into memory: CUDA out of memory. Tried to allocate much" in str(alone.error)


def test_memory_that_runs_out_while_rows_join_shrinks_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    add, sizes = State.add, list[int]()

    def limited(self: State, canvas: Canvas, *rest: Any) -> Any:
        sizes.append(len(self.rows) + canvas.rows)
        if sizes[-1] > 3:
            raise torch.OutOfMemoryError("no room for the KV cache")
        return add(self, canvas, *rest)

    monkeypatch.setattr(State, "add", limited)
    asked = list(requests(9))
    found = {id(result.request): result for result in Engine(ToyDenoiser(1), max_rows=8).run(asked)}
    assert max(sizes) > 3 and len(found) == 9
    for request in asked:
        alone = decode(ToyDenoiser(1), request.canvas, request.sampler, request.seed)
        trace = found[id(request)].trace
        assert trace is not None and torch.equal(trace.tokens, alone.tokens)
    monkeypatch.setattr(State, "add", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("none at all")))
    (failed,) = Engine(ToyDenoiser(1)).run(asked[:1])
    assert "one row does not fit into memory: none at all" in str(failed.error)


def test_the_tickets_of_a_step_include_the_rows_that_it_finished() -> None:
    engine, seen = Engine(ToyDenoiser(1), max_rows=2), set[int]()
    tickets = {engine.submit(request) for request in requests(4)}
    while not engine.is_idle:
        results = engine.step()
        if engine.last_step is not None:
            rows = [engine.ticket_of(row) for row in range(8)]
            seen |= {ticket for ticket in rows if ticket is not None}
        assert len(results) <= 2
    assert seen == tickets
    engine.step()
    assert engine.last_step is None and engine.ticket_of(0) is None


def test_the_memory_budget_passes_over_tensors_without_storage() -> None:
    with memory.TensorBytes() as counted:
        dense = torch.ones(4, 8)
        kept = [dense.to_sparse(), dense.to_mkldnn()]
    assert counted.now >= dense.nbytes and len(kept) == 2


def test_a_memory_limit_bounds_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.MemoryBudget, "per_token", 1.0)
    engine = Engine(ToyDenoiser(1), max_rows=16, memory=100)
    running = []
    for request in requests(8):
        engine.submit(request)
    while not engine.is_idle:
        engine.step()
        running.append(engine.running)
    assert 2 <= max(running) <= 100 // 9


def batch_of(engine: Engine, rows: int, sampler: Sampler) -> None:
    canvas = Canvas.after_prompt([[5, 6, 7]], length=12, mask_id=engine.denoiser.mask_id)
    assert len(list(engine.run(Request(canvas, sampler, n) for n in range(rows)))) == rows


def test_bytes_per_token_are_those_of_the_engine() -> None:
    """Not those of the process: memory that another thread takes does not shrink the batch."""
    quiet, busy, held = Engine(load("tiny"), max_rows=8), Engine(load("tiny"), max_rows=8), list[bytearray]()
    batch_of(quiet, 8, presets.confidence())
    assert quiet.budget.measured == 8 * 15
    logits = 4 * quiet.denoiser.vocab_size
    assert logits < quiet.budget.per_token < 20 * logits
    ended = Event()

    def take_memory() -> None:
        while not ended.wait(0.001) and len(held) < 300:
            held.append(bytearray(b"x") * 1_000_000)

    thread = Thread(target=take_memory)
    thread.start()
    batch_of(busy, 8, presets.confidence())
    ended.set()
    thread.join()
    assert held and busy.budget.per_token == quiet.budget.per_token


def test_peaks_are_forgotten() -> None:
    """After two batches that need less."""
    engine = Engine(load("tiny"), max_rows=8)
    batch_of(engine, 8, presets.confidence())
    light = engine.budget.per_token
    batch_of(engine, 8, presets.fast_dllm(cache="dual", block_length=4))
    heavy = engine.budget.per_token
    assert heavy > 1.5 * light
    batch_of(engine, 8, presets.confidence())
    assert engine.budget.per_token == heavy
    batch_of(engine, 8, presets.confidence())
    assert engine.budget.per_token == light and engine.budget.measured == 8 * 15


def test_drafts_and_the_whole_span_are_recorded() -> None:
    request = next(requests(1))
    engine = Engine(ToyDenoiser(1), observe="span", drafts=True)
    (result,) = engine.run([Request(request.canvas, presets.confidence(), 0)])
    alone = decode(ToyDenoiser(1), request.canvas, presets.confidence(), 0, observe="span", drafts=True)
    assert result.trace is not None and result.trace.drafts == alone.drafts
    torch.testing.assert_close(result.trace.sequence_entropy, alone.sequence_entropy)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Request(3, presets.confidence()), "a request holds a Canvas of one row, not 3"),
        (
            lambda: Request(Canvas.after_prompt([[1], [2]], 3, MASK), presets.confidence()),
            "make a request for each row",
        ),
        (lambda: Request(Canvas.after_prompt([[1]], 3, MASK), "confidence"), "a request holds a Sampler"),
        (lambda: Engine(ToyDenoiser(1), max_rows=0), "max_rows"),
        (
            lambda: Engine(ToyDenoiser(1)).submit(Request(Canvas.after_prompt([[1]], 3, 5), presets.confidence())),
            "mask_id=5, but the model's mask id is 31",
        ),
        (lambda: Engine(ToyDenoiser(1)).submit(3), "submit takes a Request, not int"),
    ],
)
def test_mistakes_are_one_sentence(make: object, sentence: str) -> None:
    with pytest.raises(UncodeError, match=sentence):
        make()  # type: ignore[operator]


def test_grid_samplers_need_the_grid_table() -> None:
    """The strategies above draw from the grid; its table fits the toy's vocabulary."""
    assert len(grid.TABLE.surprisal()) == ToyDenoiser(1).vocab_size


def test_alternatives_are_those_of_a_row_alone() -> None:
    """Beside rows that ask for others or for none, in two lanes; those of a row with a penalty are of edited logits."""
    model, plain = ToyDenoiser(5), presets.confidence()
    each = [plain, presets.fast_dllm(block_length=4), replace(plain, adjust=Adjust(presence_penalty=1.0)), plain]
    heard: dict[int, dict[int, Any]] = {at: {} for at in range(4)}

    def hear(at: int, step: RowStep) -> bool:
        heard[at] |= {change.offset: change.alternatives for change in step.changes}
        return False

    def request(at: int, wanted: int) -> Request[int]:
        canvas = Canvas.after_prompt([[1, 2 + at]], length=7 + at, mask_id=MASK)
        return Request(canvas, each[at], key=at, on_step=partial(hear, at), alternatives=wanted)

    found = {
        one.request.key: one for one in Engine(model).run(request(at, wanted) for at, wanted in enumerate((3, 2, 1, 0)))
    }
    for at, wanted in enumerate((3, 2, 1, 0)):
        row = found[at].row
        assert row is not None and row.alternatives == [heard[at][offset] for offset in range(7 + at)]
        assert all(len(each) == wanted for each in row.alternatives)
        trace = row.trace()
        if wanted:  # greedy: the first is what was committed
            assert [likely[0][0] for likely in row.alternatives] == trace.generated[0].tolist()
            assert [likely[0][1] for likely in row.alternatives] == pytest.approx(trace.logp[0].tolist(), abs=1e-6)
        alone = next(iter(Engine(model).run([request(at, wanted)])))
        assert alone.row is not None and alone.row.alternatives == row.alternatives
    equal = torch.tensor([2.0, 1.0, 2.0, 1.0] * 300)  # of equal ones the lowest ids, however many a row beside wants
    tied = FunctionDenoiser(lambda tokens: equal.expand(*tokens.shape, -1).clone(), mask_id=1, vocab_size=1200)
    canvas = Canvas.after_prompt([[3]], 2, 1)
    rows = [Request(canvas, plain, key=wanted, alternatives=wanted) for wanted in (1, 5, 603)]
    for one in Engine(tied).run(rows):
        ids = [*range(0, 1200, 2), 3, 5, 7][: one.request.alternatives]
        assert one.row is not None and [[token for token, _ in likely] for likely in one.row.alternatives] == [ids] * 2
    with pytest.raises(UncodeError, match="alternatives must be a whole number"):
        Request(Canvas.after_prompt([[1]], 3, MASK), plain, alternatives=-1)
