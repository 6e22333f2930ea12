"""Constraints of gaps: each gap has its own, in any order and with any sampler."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncode
from tests.constraints.test_constrained_decoding import EXPRESSIONS, GRID_TOKENS, KINDS, tried
from tests.constraints.vocabularies import model
from tests.test_invariants import SEEDS, samplers
from uncode import Sampler, Trace, UncodeError, constraint, generate
from uncode.generation.generate import start_decode
from uncode.generation.prompt import Prompt, added_text, with_pieces


def gap_texts(denoiser: Any, prompt: Prompt, trace: Trace, row: int = 0) -> list[str]:
    ids, decode = trace.rows[row].tolist(), denoiser.tokenizer.decode
    return [added_text(decode, ids[:start], ids[start:stop]) for start, stop in prompt.gaps]


@given(samplers(), st.lists(EXPRESSIONS, min_size=3, max_size=3), KINDS, SEEDS, st.integers(1, 6))
def test_whatever_the_sampler_each_gap_is_accepted(
    s: Sampler, found: list[str], kind: str, seed: int, size: int
) -> None:
    """One gap in the middle has no constraint; the row beside has none at all, and is the row alone."""
    denoiser = model(kind, seed % 2, GRID_TOKENS)
    prompt = with_pieces(denoiser, ["a ", "b", "1", "a"], [size + 2, 2, size])
    rules = [constraint(regex=found[0]), None, constraint(regex=found[2])]
    trace = tried(lambda: start_decode(denoiser, [prompt, prompt], s, seed, False, [rules, None]).trace())
    first, _, last = gap_texts(denoiser, prompt, trace)
    assert re.fullmatch(f"[ ](?:{found[0]})", first)  # the space is that of the piece before
    assert re.fullmatch(found[2], last)
    alone = start_decode(denoiser, [prompt], s, seed, False, [rules]).trace()
    assert alone.rows[0].equal(trace.rows[0])
    assert start_decode(denoiser, [prompt], s, seed + 1, False).trace().rows[0].equal(trace.rows[1])


def test_gaps_by_hand() -> None:
    """One constraint for every gap, one for each, and one per prompt."""
    toy, number = uncode.load("toy"), constraint(regex="[0-9]+")
    text = "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:3> = <mask:2>"
    form = r"add 3 4 5 first 3 \+ 4 = ([0-9]+) , then (.*) = (.*)"
    every = re.fullmatch(form, generate(toy, text, constraint=number))
    assert every and all(re.fullmatch("[0-9]+", one) for one in every.groups())
    for same in ("^[0-9]+$", r"\A(?:^[0-9]+)\Z", "(?x) ^[0-9]+$ # digits"):  # a space stands before the second gap
        assert generate(toy, text, constraint=constraint(regex=same)) == every[0]
    each = [None, constraint(choices=["5 + 7"]), None]
    assert ", then 5 + 7 = " in generate(toy, text, constraint=each)
    first, second = generate(toy, [text, text], constraint=[each, number])
    assert ", then 5 + 7 = " in first and second == every[0]
    for wrong, message in (
        ([None, constraint(regex="[0-9 ]{12,}"), None], r"gap 2 accepts fits into 3 tokens: it takes at least \d+"),
        ([None, None, constraint(regex="x")], "the constraint of gap 3 accepts no text that this model can write"),
        ([number], "1 constraint for 3 gaps: give one for each"),
        (["a", None, None], "one for all gaps or one per gap, not"),
    ):
        with pytest.raises(UncodeError, match=message):
            generate(toy, text, constraint=wrong)  # type: ignore[arg-type]
    with pytest.raises(UncodeError, match=r"made by uncode.constraint"):
        generate(toy, "add 3 4 5", constraint=[[number]])


def test_a_trace_keeps_the_constraints_of_gaps() -> None:
    denoiser = model("texts", 0, 100)
    prompt = with_pieces(denoiser, ["", "b", ""], [2, 3])
    trace = start_decode(
        denoiser, [prompt], uncode.presets.confidence(), 0, False, [[constraint(regex="a."), None]]
    ).trace()
    again = Trace.from_json(trace.to_json())
    assert again.constraints == trace.constraints == ({"gaps": [{"regex": "a."}, None]},)
    assert json.dumps(trace.constraints)
