"""The threshold from the model itself: the least one that spoils few answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from uncode import FunctionDenoiser, UncodeError, choose_threshold

VOCAB, MASK = 16, 15
TEXT = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
SURE = [0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.93, 0.92, 0.91, 0.90]
"""The probability of the proposal at each position of the text."""
WRONG = {4, 7}
"""Where the proposal is another token than that of the text."""


def model(sure: list[float] = SURE, start: int = 0, wrong: set[int] = WRONG) -> FunctionDenoiser:
    """It proposes the text, with the probabilities above, except where it is wrong."""
    rows = []
    for position, probability in enumerate(sure):
        row = torch.full((VOCAB,), (1 - probability) / (VOCAB - 2))
        row[MASK] = 0.0  # it is never proposed
        row[TEXT[position] + 1 if position in wrong else TEXT[position]] = probability
        rows.append(row.log())
    logits = torch.cat([torch.zeros(start, VOCAB), torch.stack(rows)])

    def fn(tokens: Tensor) -> Tensor:
        return logits[: tokens.shape[1]].expand(len(tokens), -1, -1)

    return FunctionDenoiser(fn, MASK, VOCAB)


def test_the_least_threshold_that_spoils_few_answers_is_chosen() -> None:
    """The surest error is at 0.95, the other at 0.92. An answer with neither of the two masked has none."""
    every = [([], TEXT)] * 40
    none = choose_threshold(model(), every, max_error=0.001, masks=10)
    assert none.threshold == pytest.approx(0.96) and none.error == 0
    assert none.answers == 400 and none.proposals > 2000 and 0.3 < none.share < 0.5
    alone = choose_threshold(model(wrong={4}), every, max_error=0.9, masks=10)
    assert alone.threshold == pytest.approx(0.90) and alone.share == 1
    assert alone.error == pytest.approx(0.55, abs=0.07)  # the share of the answers in which the fifth token is masked
    between = choose_threshold(model(), every, max_error=alone.error, masks=10)
    assert between.threshold == pytest.approx(0.93) and between.error == alone.error


def test_errors_are_counted_by_answer_not_by_token() -> None:
    """In one answer of ten all is wrong: a tenth of the answers is spoilt, whatever the number of wrong tokens."""
    wrong = [([], [token + 1 for token in TEXT])] * 4
    found = choose_threshold(model(wrong=set()), [*wrong, *[([], TEXT)] * 36], max_error=0.1, masks=10)
    assert found.threshold == pytest.approx(0.90) and found.error == pytest.approx(0.1) and found.share == 1
    found = choose_threshold(model(wrong={9}), [*wrong, *[([], TEXT)] * 36], max_error=0.1, masks=10)
    assert found.threshold == pytest.approx(0.91)


def test_prompts_are_not_masked_and_the_seed_decides() -> None:
    examples = [([14, 14, 14], TEXT)] * 5
    found = [choose_threshold(model(start=3), examples, masks=3, seed=seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] and found[0].threshold == pytest.approx(0.96)
    assert found[0].proposals != found[2].proposals or found[0].share != found[2].share


def test_equal_probabilities_pass_together() -> None:
    """Seven positions at the same probability, two of them wrong: none of them may pass."""
    sure = [0.99, 0.98, 0.97, *[0.5] * 7]
    found = choose_threshold(model(sure), [([], TEXT)] * 10, max_error=0.01, masks=10)
    assert np.isclose(found.threshold, 0.97)


def test_what_cannot_be_chosen_is_refused() -> None:
    always = model(wrong=set(range(10)))
    with pytest.raises(UncodeError, match=r"more than 0.01 of the answers have a wrong proposal at every"):
        choose_threshold(always, [([], TEXT)] * 4, max_error=0.01)
    with pytest.raises(UncodeError, match="there are no examples: give pairs of token ids"):
        choose_threshold(always, [])
    with pytest.raises(UncodeError, match="max_error must be between 0 and 1, not 2"):
        choose_threshold(always, [([], TEXT)], max_error=2.0)
    with pytest.raises(UncodeError, match="the answer of an example is empty"):
        choose_threshold(always, [(TEXT, [])])
