"""Windows that follow the masks, whose place sessions read from the device: graphs that run on a CPU replay them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.backbones.test_cuda_graph import Again, captured
from tests.checkpoints import like_the_toy
from tests.covering import covering
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.transformer.cuda_graph import WindowInputs
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import BlockSchedule, SlidingWindow
from uncode.core.pieces.cache import WindowCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence, ExponentialPosition
from uncode.core.pieces.select import Exactly, Selector, Threshold, TopK
from uncode.core.pieces.stop import AfterEos
from uncode.core.stepper.advance import advance
from uncode.core.stepper.forwards import LookAhead
from uncode.core.stepper.state import State
from uncode.core.trace.trace import Trace
from uncode.generation.decoding import decode, steps

NEVER = WindowCache(margin=3, every=None, prompt_every=None)
CACHES = [NEVER, WindowCache(margin=3, every=6, prompt_every=12), WindowCache(margin=8, every=9, prompt_every=None)]
WINDOWS = [SlidingWindow(6), SlidingWindow(6, columns=5), SlidingWindow(32, columns=32)]


@pytest.fixture(autouse=True)
def _none_made() -> None:
    Again.made.clear()


def sampler_of(
    cache: WindowCache = NEVER,
    blocks: BlockSchedule = WINDOWS[0],
    select: Selector | None = None,
    rate: float = 0.1,
) -> Sampler:
    score = Confidence() + ExponentialPosition(rate)
    return Sampler(Policy(score, select or TopK(Exactly(3)), blocks), cache=cache)


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sessions read where windows are from the device."""
    monkeypatch.setattr(TransformerDenoiser, "slides_on_device", True)
    return monkeypatch


def decoded(model: Any, canvas: Canvas, sampler: Sampler, is_async: bool) -> tuple[Trace, int]:
    """The trace, and how many forwards were launched for nothing."""
    run, forwards = steps(model, canvas, sampler), 0
    run.state.lookahead.is_async = is_async
    session = run.state.session
    plain = session.logits

    def counted(*args: Any) -> Tensor:
        nonlocal forwards
        forwards += 1
        return plain(*args)

    session.logits = counted  # type: ignore[method-assign]
    trace = run.trace()
    return trace, forwards - len(trace)


def agree(wanted: Trace, found: Trace) -> None:
    for name in ("tokens", "commit_step", "window"):
        assert torch.equal(getattr(wanted, name), getattr(found, name))
    torch.testing.assert_close(wanted.logp, found.logp, rtol=0, atol=1e-8, equal_nan=True)


@pytest.mark.parametrize(("dialect", "blocks", "number"), covering(("llada", "dream"), WINDOWS, range(len(CACHES))))
def test_windows_on_the_device_are_those_of_the_host(
    dialect: str, blocks: SlidingWindow, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone and in a batch of unequal rows, with a quota and with a threshold."""
    cache, is_async = CACHES[number], number < 2
    model = like_the_toy(dialect, 1)
    canvases = [Canvas.after_prompt([[1, 2, 3]], length=24, mask_id=model.mask_id)]
    canvases += [Canvas.after_prompt([[1, 2, 3, 4, 5, 6], [4]], length=[24, 19], mask_id=model.mask_id)]
    samplers = [sampler_of(cache, blocks, select) for select in (None, Threshold(0.3))]
    cases = [(canvas, sampler) for canvas in canvases for sampler in samplers]
    plain = [decode(model, *case) for case in cases]
    captured(model, monkeypatch)
    monkeypatch.setattr(TransformerDenoiser, "slides_on_device", True)
    for wanted, case in zip(plain, cases, strict=True):
        agree(wanted, decoded(model, *case, is_async)[0])
    assert any(isinstance(graph.inputs, WindowInputs) and graph.runs for graph in Again.made)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("quota", [1, 4, 8])
def test_every_step_but_the_first_is_one_replay_that_was_launched_ahead(
    rows: int, quota: int, on_device: pytest.MonkeyPatch
) -> None:
    model = captured(like_the_toy("llada", 1), on_device)
    canvas = Canvas.after_prompt([[1, 2, 3] * 10] * rows, length=128, mask_id=model.mask_id)
    launched: list[object] = []
    keeps = LookAhead.keep_logits
    on_device.setattr(LookAhead, "keep_logits", lambda self, *args: (launched.append(args), keeps(self, *args)))
    cache = WindowCache(every=None, prompt_every=None)
    sampler = sampler_of(cache, SlidingWindow(32, columns=32), TopK(Exactly(quota)), rate=0.3)
    trace, in_vain = decoded(model, canvas, sampler, is_async=True)
    assert in_vain == 0 and len(launched) == len(trace) - 2  # the first two are planned by the host
    assert [len(graph.inputs.tokens) for graph in Again.made] == [rows]
    assert Again.made[0].runs == len(trace) - 2  # the first is wide, the second use of a shape is captured


def test_a_forward_is_run_again_where_windows_turn_out_wider(on_device: pytest.MonkeyPatch) -> None:
    """Without a bound on its columns a window grows while its first mask stays; rows that refresh are wider too."""
    model = like_the_toy("llada", 1)
    canvas = Canvas.after_prompt([[1, 2, 3] * 4, [4] * 7], length=[96, 88], mask_id=model.mask_id)
    sampler = sampler_of(WindowCache(margin=3, every=20), SlidingWindow(32), TopK(Exactly(4)), rate=0.0)
    wanted = decode(model, canvas, sampler)
    trace, in_vain = decoded(captured(model, on_device), canvas, sampler, is_async=True)
    agree(wanted, trace)
    assert 0 < in_vain < len(trace) / 4
    widths = {graph.inputs.computed // rows for graph in Again.made if (rows := len(graph.inputs.tokens))}
    assert len(widths) <= 7


@pytest.mark.parametrize("stops", [False, True])
def test_rows_join_and_leave(stops: bool, on_device: pytest.MonkeyPatch) -> None:
    """As alone, whatever was launched before they came."""
    model = like_the_toy("llada", 3)
    samplers = [sampler_of(NEVER), sampler_of(CACHES[1], WINDOWS[1], Threshold(0.2)), sampler_of(CACHES[2])]
    samplers = [sampler.stopping(AfterEos()) if stops else sampler for sampler in samplers]
    requests = [([1, 2], 20), ([3, 4, 5], 31), ([6], 9), ([7, 8], 26)]
    alone = []
    for number, (prompt, length) in enumerate(requests):
        canvas = Canvas.after_prompt([prompt], length=length, mask_id=model.mask_id)
        alone.append(decode(model, canvas, samplers[number % 3], [number]).tokens[0].tolist())
    state, found = State(captured(model, on_device)), dict[int, list[int]]()
    state.lookahead.is_async = True
    joins = {0: 0, 2: 1, 3: 2, 7: 3}
    for step in range(60):
        if step in joins:
            number = joins[step]
            prompt, length = requests[number]
            canvas = Canvas.after_prompt([prompt], length=length, mask_id=model.mask_id)
            state.add(canvas, samplers[number % 3], [number])
        if not state.all_finished:
            advance(state)
            for row in np.flatnonzero(state.rows.finished):
                found[int(state.rows.ids[row])] = state.batch.tokens[row][state.batch.valid[row]].tolist()
            state.keep(np.flatnonzero(~state.rows.finished))
    assert [found[number] for number in range(4)] == alone
