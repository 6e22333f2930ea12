"""The animation: an image that moves without a script, shows every token at its step, and believes no text."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncode
from tests.view.test_page import row_of
from uncode import UncodeError
from uncode.core.moments import moments
from uncode.view.animation import animation, write_animation
from uncode.view.animation_style import HOLD_SECONDS, ShownSteps
from uncode.view.page import Trajectory, Verdict
from uncode.view.shown_tokens import shown_tokens
from uncode.view.token_layout import TokenText, cut_to, lay_out, visible, width_of, wrap
from uncode.view.visible_text import BREAK

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "</text><script>alert(1)</script>",
    "]]>&amp;\"'",
    "\u202ereversed",
    "\x00\x1b[31m",
    "\ud800",
    "\ufffe",
    "\u200b",
]


def groups(svg: str) -> list[tuple[list[str], str]]:
    """The tokens in the order of the file: their classes and their texts."""
    every = [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.get("class") == "all"]
    tokens = [token for group in every for token in group]
    return [((token.get("class") or "").split(), "".join(token.itertext())) for token in tokens]


def keyframes(svg: str) -> dict[str, list[tuple[float, str]]]:
    """The percentages of each animation with their declarations."""
    found = dict[str, list[tuple[float, str]]]()
    for name, frames in re.findall(r"@keyframes ([\w-]+)\{((?:[^{}]*\{[^{}]*\})*)\}", svg):
        pairs = re.findall(r"([^{}]*)\{([^{}]*)\}", frames)
        times = [
            (float(time.rstrip("%")) if time != "to" else 100.0, rule) for t, rule in pairs for time in t.split(",")
        ]
        found[name] = times
    return found


def test_the_file_is_an_image_that_loads_nothing(tmp_path: Path) -> None:
    row = row_of(uncode.presets.confidence())
    out = tmp_path / "order.svg"
    write_animation(out, [Trajectory("confidence", row, Verdict(True))], title="One sum")
    svg = out.read_text()
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg" and root.find(f"{SVG}title").text == "One sum"  # type: ignore[union-attr]
    assert svg.count("http") == 1 and not re.search(r"<script|<foreignObject|@import|url\(|\son\w+=|javascript:", svg)
    assert set(re.findall(r'href="([^"]*)"', svg)) == {"#steps"}
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("preset", ["confidence", "left_to_right", "uniform", "eb"])
def test_tokens_appear_in_the_order_of_their_commits(preset: str) -> None:
    row = row_of(getattr(uncode.presets, preset)())
    svg = animation([Trajectory(preset, row)])
    frames, drawn = keyframes(svg), groups(svg)
    order = sorted(
        range(24), key=lambda at: (row["commit_step"][at] % (row["forwards"] + 2), at)
    )  # -2, filled, is last
    words = moments(row["commit_step"])
    assert [classes[1] for classes, _ in drawn] == [words[at] for at in order]
    steps = [int(classes[-1][1:]) for classes, _ in drawn]
    assert steps == [row["forwards"] if row["commit_step"][at] < 0 else row["commit_step"][at] for at in order]
    starts = [frames[f"s{step}"][1][0] for step in sorted(set(steps))]
    assert starts == sorted(set(starts)) and all(frames[f"s{step}"][1][1].startswith("opacity:0") for step in steps)
    texts = [text for classes, text in drawn if "pale" not in classes]
    signs = {at for at in range(24) if row["generated_ids"][at] in row["special_ids"]}
    assert texts == [row["generated_texts"][at].strip() for at in order if at not in signs]


def test_the_final_state_is_held_and_the_loop_is_one() -> None:
    row, other = row_of(uncode.presets.left_to_right()), row_of(uncode.presets.confidence())
    svg = animation([Trajectory("a", row, Verdict(True)), Trajectory("b", other, Verdict(False))], seconds=6)
    loop = float(re.search(r"animation:([\d.]+)s linear infinite", svg)[1])  # type: ignore[index]
    last = max(frames[1][0] for name, frames in keyframes(svg).items() if re.fullmatch(r"[se]\d+", name))
    assert 3 <= HOLD_SECONDS - 0.2 <= loop * (1 - last / 100) <= HOLD_SECONDS
    for name, frames in keyframes(svg).items():
        assert frames[0][0] == 0 and frames[-1][0] == 100, name
        assert all(before[0] <= after[0] for before, after in pairwise(frames)), name


def test_without_animations_the_final_state_is_shown() -> None:
    """All animations are in one rule for readers who have not asked for reduced motion."""
    row = row_of(uncode.presets.remdm(), length=12)
    svg = animation([Trajectory("remdm", row)])
    start = svg.index("@media (prefers-reduced-motion:no-preference)")
    assert "animation" not in svg[:start] and "keyframes" not in svg[:start]
    left = [text for classes, text in groups(svg) if "gone" not in classes and "pale" not in classes]
    assert sorted(left) == sorted(
        text.strip() for text, token in zip(row["generated_texts"], row["generated_ids"], strict=True) if token != 1
    )
    strip = next(use for use in ET.fromstring(svg).iter(f"{SVG}use"))
    assert strip.get("transform", "").endswith(f",{14 - 20 * row['forwards']})")


def test_erased_tokens_disappear_again() -> None:
    row = row_of(uncode.presets.remdm())
    svg = animation([Trajectory("remdm", row)])
    gone = [classes[-1] for classes, _ in groups(svg) if "gone" in classes]
    erased = [step for step, _, token in row["events"] if token < 0]
    assert sorted(int(name.split("-")[1]) for name in gone) == erased != []
    frames = keyframes(svg)
    for name in gone:
        assert frames[name][0][1].startswith("opacity:0") and frames[name][-1][1].startswith("opacity:0")
        assert any(rule.startswith("opacity:1") for _, rule in frames[name])


def test_an_erased_token_stands_from_its_commit_to_its_erasure() -> None:
    row = row_of(uncode.presets.left_to_right(), length=3)
    events = [[0, 0, 9], [1, 1, 8], [1, 0, -1], [2, 0, row["generated_ids"][0]], [3, 1, 7], [4, 2, 6]]
    row |= {"commit_step": [2, 3, 4], "forwards": 5, "events": events, "event_texts": ["x", "y", "", "f", "z", "w"]}
    found = [(token.offset, token.text, token.span) for token in shown_tokens(row) if not token.stays]
    assert found == [(0, "x", ShownSteps(0, 1)), (1, "y", ShownSteps(1, 3))]
    assert [token.span.start for token in shown_tokens(row) if token.stays] == [2, 3, 4]
    wide = row | {"event_texts": ["much too wide", *row["event_texts"][1:]]}
    assert row["generated_texts"][0] == "first" and ">much\u00a0too\u00a0…</text>" in animation([Trajectory("", wide)])


def test_no_text_is_markup_and_no_character_is_hidden() -> None:
    row = row_of(uncode.presets.left_to_right())
    row["generated_texts"][: len(HOSTILE)] = HOSTILE
    row["prompt_text"] = "".join(HOSTILE)
    evil = "".join(HOSTILE)
    svg = animation([Trajectory(evil, row, Verdict(False, evil))], title=evil)
    assert {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()} == {
        "svg", "title", "desc", "style", "defs", "text", "tspan", "rect", "path", "g", "use",
    }  # fmt: skip
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe]", svg)
    shown = [text for _, text in groups(svg)]
    assert HOSTILE[:2] == shown[:2] and "\\u202ereversed" in shown
    assert "\\u0000\\u001b[31m" in shown and "\\ud800" in shown


def test_given_tokens_do_not_move_and_have_no_mask() -> None:
    row = row_of(uncode.presets.confidence(), "add 3 4 5 first 3 + <mask:1> = <mask:1> , then", None)
    svg = animation([Trajectory("gaps", row)])
    kinds = [(classes[1], len(classes)) for classes, _ in groups(svg)]
    assert sum(kind == "given" for kind, _ in kinds) == 3 and all(
        count == 2 for kind, count in kinds if kind == "given"
    )
    assert svg.count('class="mask"') == 2 + 1  # and one in the legend


def test_the_same_trajectories_make_the_same_file() -> None:
    row = row_of(uncode.presets.remdm())
    trajectories = [Trajectory("a", row, Verdict(True, "8 is 8")), Trajectory("b", row)]
    assert animation(trajectories, title="t") == animation(trajectories, title="t")


def test_two_traces_of_a_hundred_tokens_are_below_100_kb() -> None:
    row, pair = row_of(uncode.presets.confidence()), []
    for stride in (37, 73):  # two orders, a step for each token
        texts, steps = [f" word{at}" for at in range(100)], [stride * at % 100 for at in range(100)]
        long = {"generated_texts": texts, "commit_step": steps, "generated_ids": [5] * 100, "canvas_ids": [0] * 100}
        pair.append(row | long | {"forwards": 100, "mask_id": 0})
    svg = animation([Trajectory(str(number), row, Verdict(True, "yes")) for number, row in enumerate(pair)])
    assert len(groups(svg)) == 200 and len(svg.encode()) < 100_000


def test_wrong_input_is_one_sentence() -> None:
    row, other = row_of(uncode.presets.confidence()), row_of(uncode.presets.confidence(), "add 2 2 2")
    one = Trajectory("a", row)
    bare = Trajectory("bare", {key: value for key, value in row.items() if key != "generated_texts"})
    wrong: list[tuple[list[Trajectory], dict[str, Any], str]] = [
        ([], {}, "no trajectory"),
        ([one] * 5, {}, "5 trajectories are too many"),
        ([one, Trajectory("b", other)], {}, "different prompts"),
        ([bare], {}, "the trace of 'bare' has no texts"),
        ([one], {"seconds": 0.0}, "seconds must be a positive number"),
        ([one], {"columns": 3}, "columns must be at least"),
    ]
    for trajectories, options, message in wrong:
        with pytest.raises(UncodeError, match=message):
            animation(trajectories, **options)


def test_lines_break_at_line_breaks_and_between_words() -> None:
    pieces = [TokenText(text) for text in (" one", " tw", "o", " ", "3", "4", ".\n", "    five", "\n", "\n", "six")]
    parts, lines = lay_out(pieces, 9)
    where = [[(part.line, part.column, part.text) for part in each] for each in parts]
    assert where[:3] == [[(0, 0, "one")], [(0, 4, "tw")], [(0, 6, "o")]]
    assert where[3:7] == [[(1, 0, " ")], [(1, 1, "3")], [(1, 2, "4")], [(1, 3, f".{BREAK}")]]  # a word in four tokens
    assert where[7:] == [[(2, 4, "five")], [(2, 8, BREAK)], [(3, 0, BREAK)], [(4, 0, "six")]] and lines == 5
    assert [part.text for part in lay_out([TokenText("ab"), TokenText("cdefghijk")], 4)[0][1]] == ["cd", "efgh", "ijk"]
    assert wrap("Question: how\n  many now?", 10) == ["Question:", "how", "  many", "now?"]
    assert cut_to("abcdef", 4) == "abc…" and cut_to("日本語", 4) == "日…" and width_of("e\u0301日") == 3


@given(st.lists(st.tuples(st.text(" \nab日\u0301\x00", max_size=9), st.booleans())), st.integers(8, 20))
@example([("\x00日", False), ("\u0301", False)], 8)
def test_no_two_tokens_overlap(texts: list[tuple[str, bool]], columns: int) -> None:
    """Every token has a place, in order, within the columns; the sign of a line break may stand one column beyond."""
    pieces = [TokenText(" ", True) if alone else TokenText(visible(text)) for text, alone in texts]
    parts, lines = lay_out(pieces, columns)
    flat = [part for each in parts for part in each]
    assert all(parts) and all(part.width >= 1 and part.line < lines for part in flat)
    for before, after in pairwise(flat):
        assert (before.line, before.column + before.width) <= (after.line, after.column) or before.line < after.line
    assert all(part.column + part.width <= columns + part.text.endswith(BREAK) for part in flat)
    for piece, each in zip(pieces, parts, strict=True):
        assert "".join(part.text for part in each).replace(BREAK, "\n").strip(" ") == piece.text.strip(" ")
