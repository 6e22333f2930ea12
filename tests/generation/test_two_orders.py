"""Two orders: the more consistent answer is kept, sure rows are decoded once, and every forward is counted."""

from __future__ import annotations

import math

import pytest
import torch

import uncode
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, UncodeError, decode, presets, two_orders
from uncode.generation.order_choice import check_masks

ORDERS = [presets.confidence(), presets.left_to_right()]
CANVAS = Canvas.after_prompt([[1, 2, 3], [4], [5, 6]], length=[12, 9, 12], mask_id=MASK)


def by_hand(model: ToyDenoiser, trace: uncode.Trace, row: int) -> float:
    """The self-check less the entropies, with one forward per part."""
    length, start = int(trace.canvas.lengths[row]), trace.canvas.start
    prompt = trace.tokens[row, :start][trace.canvas.valid[row, :start]]
    answer = trace.generated[row, :length]
    text = next((at + 1 for at, token in enumerate(answer.tolist()) if token in model.eos_ids), length)
    middle, total = (text + 1) // 2, 0.0
    for start_of, stop in ((0, middle), (middle, text)):
        for parity in (0, 1):
            part = [at for at in range(start_of, stop) if at % 2 == parity]
            masked = answer.clone()
            masked[part + list(range(stop, text))] = MASK
            logp = model.network(torch.cat([prompt, masked])[None]).log_softmax(-1)[0, len(prompt) :]
            total += sum(float(logp[at, answer[at]]) for at in part)
    return total - float(trace.entropy[row, :text].sum())


@pytest.mark.parametrize("seed", [0, 3])
def test_the_more_consistent_answer_is_kept(seed: int) -> None:
    model = ToyDenoiser(seed, boost=1.0)
    traces = [decode(ToyDenoiser(seed, boost=1.0), CANVAS, order) for order in ORDERS]
    found = two_orders(model, CANVAS, ORDERS, sure=-1)
    assert found.again == (0, 1, 2)
    for row in range(3):
        wanted = [by_hand(model, trace, row) for trace in traces]
        torch.testing.assert_close(found.consistency[row], torch.tensor(wanted, dtype=torch.float64))
        better = int(wanted[1] > wanted[0])
        assert int(found.kept[row]) == better
        assert torch.equal(found.generated[row], traces[better].generated[row])
        assert int(found.forwards[row]) == sum(int(trace.forwards[row]) for trace in traces) + 8


def test_sure_rows_are_decoded_once() -> None:
    model = ToyDenoiser(1)
    found = two_orders(model, CANVAS, ORDERS, sure=1e9)
    assert found.again == () and found.second is None and found.consistency.isnan().all()
    assert torch.equal(found.tokens, found.first.tokens) and torch.equal(found.forwards, found.first.forwards)
    assert model.forwards == len(found.first)
    doubts = [float(e.nansum() - e.nan_to_num(0).max()) for e in found.first.entropy]
    some = two_orders(ToyDenoiser(1, boost=0.0), CANVAS, ORDERS, sure=sorted(doubts)[1])
    assert len(some.again) <= 2 and math.isnan(float(some.consistency[doubts.index(min(doubts)), 0]))


def test_the_parts_of_the_self_check() -> None:
    masks, counted = check_masks(7, 5)
    assert counted.int().tolist() == [
        [1, 0, 1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0, 0, 0],
    ]
    assert masks.int().tolist()[0] == [1, 0, 1, 1, 1, 0, 0] and masks.int().tolist()[3] == [0, 0, 0, 1, 0, 0, 0]


def test_the_default_orders_and_wrong_ones() -> None:
    model = uncode.load("toy")
    canvas = Canvas.after_prompt([model.tokenizer.encode("add 3 4 5")], length=24, mask_id=model.mask_id)
    found = two_orders(model, canvas)
    assert not (found.tokens == model.mask_id).any() and [s.name for s in found.first.samplers] == ["certain_first"]
    with pytest.raises(UncodeError, match="two samplers were expected"):
        two_orders(model, canvas, "confidence")
    with pytest.raises(UncodeError, match="sure must be a number"):
        two_orders(model, canvas, sure="very")  # type: ignore[arg-type]
