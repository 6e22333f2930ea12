from __future__ import annotations

import numpy as np
import pytest
import torch

from uncode import Canvas, UncodeError


def test_unequal_prompts_are_padded_on_the_left() -> None:
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=[2, 3], mask_id=9)
    assert canvas.tokens.tolist() == [[1, 2, 3, 9, 9, 0], [0, 0, 4, 9, 9, 9]]
    assert canvas.valid.tolist() == [[True] * 5 + [False], [False] * 2 + [True] * 4]
    assert (canvas.start, canvas.span, canvas.lengths.tolist()) == (3, 3, [2, 3])


def test_a_tensor_of_prompts() -> None:
    canvas = Canvas.after_prompt(torch.tensor([[1, 2], [3, 4]]), length=2, mask_id=0)
    assert canvas.tokens.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]
    assert Canvas.after_prompt(torch.tensor([1, 2]), length=1, mask_id=0).tokens.tolist() == [[1, 2, 0]]
    assert Canvas.after_prompt([5], length=1, mask_id=0).tokens.tolist() == [[5, 0]]


def test_an_array_of_prompts() -> None:
    assert Canvas.after_prompt(np.array([[1, 2]]), length=1, mask_id=0).tokens.tolist() == [[1, 2, 0]]


def test_infilling_aligns_the_rows_at_their_first_mask() -> None:
    canvas = Canvas.infill([[1, 9, 2, 9], [9, 3]], mask_id=9)
    assert canvas.tokens.tolist() == [[1, 9, 2, 9], [0, 9, 3, 0]]
    assert canvas.given.tolist() == [[True, False, True, False], [True, False, True, True]]


def test_anchors_are_given_tokens() -> None:
    canvas = Canvas.after_prompt([[1], [2]], length=[4, 2], mask_id=9)
    assert canvas.with_anchors({1: 5}).tokens.tolist() == [[1, 9, 5, 9, 9], [2, 9, 5, 0, 0]]
    assert canvas.with_anchors([{3: 5}, {}]).tokens.tolist() == [[1, 9, 9, 9, 5], [2, 9, 9, 0, 0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Canvas.after_prompt([], length=3, mask_id=9), "at least one row"),
        (lambda: Canvas.after_prompt([[1]], length=2.5, mask_id=9), "whole number"),
        (lambda: Canvas.after_prompt([[17]], length=2, mask_id=9).check(10), "token 17 .* vocabulary of 10"),
        (lambda: Canvas.after_prompt([[-1]], length=2, mask_id=9).check(10), "token -1"),
        (lambda: Canvas.after_prompt([[1]], length=2, mask_id=9).with_anchors([{}, {}]), "2 rows"),
        (lambda: Canvas.infill([[1, 9, 2]], mask_id=9).with_anchors({1: 3}), "given already"),
        (lambda: Canvas.after_prompt([[1]], length=0, mask_id=9), "at least 1"),
        (lambda: Canvas.after_prompt([[1], [2]], length=[3], mask_id=9), "1 length for 2 prompts: give one for each"),
        (lambda: Canvas.after_prompt(torch.zeros(1, 1, 1), length=3, mask_id=9), "3 dimensions"),
        (lambda: Canvas.after_prompt([[1]], length=3, mask_id=9, pad_id=9), "padding id"),
        (lambda: Canvas.infill([[1, 2]], mask_id=9), "no masks"),
        (lambda: Canvas.infill([], mask_id=9), "at least one row"),
        (lambda: Canvas.after_prompt([[1]], length=3, mask_id=9).with_anchors({7: 1}), "outside row 0"),
        (lambda: Canvas.after_prompt([[1]], length=3, mask_id=9).with_anchors({1: 9}), "mask token"),
        (lambda: Canvas.after_prompt([[9, 1]], length=3, mask_id=9).check(10), "outside its generated span"),
        (lambda: Canvas.after_prompt([[1]], length=1, mask_id=9).with_anchors({0: 1}).check(10), "row 0 .* no masks"),
    ],
)
def test_bad_canvases_are_one_sentence(make: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        make()  # type: ignore[operator]
