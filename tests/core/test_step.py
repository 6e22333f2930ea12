"""One step, as `docs/step.md` tells it: its files, its stages, what a view holds."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import uncode
from tests import grid
from tests.toy import MASK, ToyDenoiser
from uncode.core.stepper import advance as stepper
from uncode.core.view import View

ROOT = Path(uncode.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs/step.md").read_text()
_, OF_A_STEP, WHEN_OPENED = re.split("## The files of a step|When a block opens, or the host syncs", PAGE)


def named(text: str) -> list[str]:
    return re.findall(r"`((?:core|backbones)/[\w/]+\.py)`", text)


def files_of_steps(model: uncode.Denoiser, **options: Any) -> list[list[str]]:
    """For each step of a decode, the files it runs code of, in the order in which it reaches them."""
    canvas = uncode.Canvas.after_prompt([[1, 2]], 16, model.mask_id)
    run = uncode.steps(model, canvas, uncode.presets.uncode(steps=8, **options))
    found: list[list[str]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in file.parents and (name := str(file.relative_to(ROOT))) not in found[-1]:
            found[-1].append(name)

    while not run.state.all_finished:
        found.append([])
        sys.setprofile(watch)
        try:
            stepper.advance(run.state)
        finally:
            sys.setprofile(None)
    return found


def test_a_step_passes_the_files_that_the_page_lists() -> None:
    steps = files_of_steps(ToyDenoiser(1), frequency=grid.TABLE)
    first, *usual, last = ([file for file in files if file.startswith("core/")] for files in steps)
    of_a_step, helpers, _ = re.split("Two helpers|The forward itself", OF_A_STEP)
    listed = named(of_a_step)
    assert len(usual) == 6 and len(listed) == 10
    for files in usual:
        assert [file for file in files if not file.startswith("core/support/")] == listed
        assert {*files} == {*listed, *named(helpers)}
    assert {*first, *last} == {*listed, *named(helpers), *named(WHEN_OPENED)}


@pytest.mark.parametrize("cache", ["none", "dual"])
def test_a_forward_passes_the_files_that_the_page_lists(cache: str) -> None:
    steps, forward = OF_A_STEP.split("The forward itself")
    in_a_cache, of_the_network = (named(part) for part in forward.split("| file |"))
    listed = {*named(steps), *of_the_network, *(in_a_cache if cache == "dual" else ())}
    model = uncode.load("tiny")
    *_, usual, _last = files_of_steps(model, cache=cache, frequency=model.frequency)
    assert len(of_the_network) == 7 and {*usual} == listed
    assert len(listed) <= (21 if cache == "dual" else 20)


def test_a_step_is_the_eight_calls_that_its_docstring_numbers() -> None:
    numbers = re.findall(r"^    (\d)\. ", inspect.getdoc(stepper.advance).replace("\n", "\n    ") or "", flags=re.M)
    (body,) = ast.parse(inspect.getsource(stepper._advance)).body
    assert isinstance(body, ast.FunctionDef)
    calls = [node.value for node in body.body if isinstance(node, ast.Expr | ast.Assign | ast.Return)]
    assert [int(number) for number in numbers] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(calls) == len(body.body) == 8 and all(isinstance(call, ast.Call) for call in calls)


def test_the_page_names_every_attribute_of_the_view() -> None:
    names = {field.name for field in fields(View)} | {n for n, v in vars(View).items() if isinstance(v, property)}
    rows = PAGE.partition("| attribute of `View` |")[2].partition("\n\n")[0].splitlines()
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row.partition("|")[2].partition("|")[0])} == names


def test_a_view_is_read_only() -> None:
    run = uncode.steps(ToyDenoiser(1), uncode.Canvas.after_prompt([[1, 2]], 4, MASK), "confidence")
    run.state.open_blocks()
    view = stepper.view_of(run.state)
    with pytest.raises(FrozenInstanceError):
        view.eligible = view.tokens  # type: ignore[misc]
