"""What a notebook shows: one short line, and no tensor."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
import torch

import uncode
from tests import grid
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, FrequencyTable, FunctionDenoiser, Guided, Policy, Sampler, decode, legacy, presets, steps
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.piece import Piece
from uncode.core.pieces.score import Confidence, ExponentialPosition, Informativeness
from uncode.core.pieces.select import TopK
from uncode.core.pieces.stop import AfterEos
from uncode.samplers.interventions import reject_trivial

CANVAS = Canvas.after_prompt([[1, 2, 3], [4]], length=[12, 12], mask_id=MASK)
FUNCTION = FunctionDenoiser(lambda tokens: torch.zeros(*tokens.shape, 5), 0, 5, name="zeros")


@pytest.mark.parametrize(
    ("thing", "shown"),
    [
        (CANVAS, "Canvas(2 rows, 15 columns, 24 masked)"),
        (Canvas.after_prompt([[]], length=1, mask_id=0), "Canvas(1 row, 1 column, 1 masked)"),
        (FUNCTION, "FunctionDenoiser(zeros, 5 tokens, mask_id=0, torch.float32, cpu)"),
        (Guided(FUNCTION, 2), "Guided(FunctionDenoiser(zeros, 5 tokens, mask_id=0, torch.float32, cpu), scale=2.0)"),
        (uncode.load("tiny", device="cpu"), "TransformerDenoiser(tiny, torch.float32, cpu)"),
        (Confidence() + ExponentialPosition(0.25), "Confidence + ExponentialPosition(rate=0.25)"),
        (Informativeness(grid.TABLE) + Confidence(), "Informativeness + Confidence"),
        (Policy(Confidence()), "Policy(Confidence, TopK(Even))"),
        (
            Policy(Confidence(), TopK(), Blocks(length=8), stop=AfterEos()),
            "Policy(Confidence, TopK(Even), Blocks(length=8), AfterEos)",
        ),
        (
            presets.uncode(frequency=grid.TABLE),
            "Sampler('uncode': Confidence + Informativeness + ExponentialPosition(rate=0.25), TopK(Even))",
        ),
        (
            presets.fast_dllm(cache="dual"),
            "Sampler('fast_dllm': Confidence, Threshold(threshold=0.9), Blocks(length=32), DualCache)",
        ),
        (
            presets.confidence(steps=12, temperature=0.5),
            "Sampler('confidence': Confidence, TopK(Even(steps=12)), Sample(temperature=0.5))",
        ),
        (
            reject_trivial(presets.confidence(), tuple(range(50)), 0.5),
            "Sampler('confidence+reject_trivial': Confidence, RejectTrivial(TopK(Even)))",
        ),
        (FrequencyTable(torch.tensor([3, 5])), "FrequencyTable('table', 2 tokens, 8 counted)"),
        (FrequencyTable(torch.tensor([0.25, 0.75])), "FrequencyTable('table', 2 tokens, probabilities)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reprs(thing: Any, shown: str) -> None:
    assert repr(thing) == shown and len(shown) <= 100


def test_a_decode_in_a_notebook() -> None:
    run = steps(ToyDenoiser(1), CANVAS, [presets.confidence(), presets.fast_dllm(block_length=6)])
    assert repr(run) == "Steps(2 rows in decoding, 0 forwards so far)"
    step = next(run)
    assert repr(step).startswith("Step(index=0, 2 rows, ") and repr(step).endswith(" committed)")
    assert repr(step.decision).startswith("Decision(2 rows, ") and repr(step.decision).endswith(" 0 erased)")
    assert repr(step.decision.belief).startswith("Belief([2, ")
    last = list(run)[-1]
    assert repr(last).endswith("1 committed, 1 finished)")
    trace = run.trace()
    assert repr(trace) == f"Trace(2 rows of 12 tokens, {len(trace)} forwards, 2 samplers)"
    one = Canvas.after_prompt([[1]], length=1, mask_id=MASK)
    assert repr(decode(ToyDenoiser(1), one, presets.confidence())) == "Trace(1 row of 1 token, 1 forward, confidence)"


def test_a_view_in_a_debugger() -> None:
    seen = []

    class Looks(Confidence):
        def __call__(self, view: Any) -> torch.Tensor:
            seen.append(repr(view))
            return super().__call__(view)

    decode(ToyDenoiser(1), CANVAS, Sampler(Policy(Looks())))
    assert seen[0] == "View(2 rows, 12 columns, 24 eligible)"


def test_every_sampler_and_piece_is_one_short_line() -> None:
    made = {**presets.PRESETS, **legacy.QUIRKS}
    for preset in made.values():
        needs = {"frequency": grid.TABLE} if "frequency" in signature(preset).parameters else {}
        shown = repr(preset(**needs))
        assert len(shown) <= 100 and "\n" not in shown and shown.startswith("Sampler('")
    long = Sampler(
        Policy(Confidence() + grid.SCORES[-1] + ExponentialPosition(0.123456789) + Confidence()), name="n" * 90
    )
    assert len(repr(long)) == 100 and repr(long).endswith("...)")
    for row in (grid.SCORES, grid.SELECTORS, grid.BLOCKS, grid.CACHES, grid.PROPOSALS, grid.STOPS):
        for piece in row:
            assert isinstance(piece, Piece) and "tensor(" not in repr(piece) and "\n" not in repr(piece)
