"""The page: everything in one file, nothing that a token says is believed, whole without JavaScript."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import uncode
from uncode import UncodeError
from uncode.generation import start_decode
from uncode.prompt import read_prompts
from uncode.viewer.moments import answer_steps, first_eos_step, moments, summary
from uncode.viewer.page import Trajectory, Verdict, page, write_page

EVIL = '</script><b>"&{{steps}}<!--'


class Reader(HTMLParser):
    """What a browser would see: the elements, the texts of the tokens, their titles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.hovers: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href", "action")]
        self._inside = "token" if "title" in attributes else tag
        if "title" in attributes:
            self.hovers.append(attributes["title"] or "")
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "token":
            self.texts[-1] += data
        if self._inside == "script":
            self.scripts.append(data)


def row_of(sampler: uncode.Sampler, prompt: str = "add 1 3 4", length: int | None = 24, **notes: Any) -> dict[str, Any]:
    model = uncode.load("toy")
    trace = start_decode(model, read_prompts(model, [prompt], length), sampler, 0, True).trace()
    return trace.row(0, model.tokenizer, **notes)


def replayed(replay: dict[str, Any], step: int) -> dict[int, str]:
    """What the page's script writes up to a step."""
    now = {}
    for at, offset, text in replay["writes"]:
        if at < step:
            now[offset] = text
    return {offset: text for offset, text in now.items() if text is not None}


def test_every_token_has_its_commit_time_and_its_tooltip() -> None:
    row = row_of(uncode.presets.left_to_right(), answer_span=[19, 26])
    shown = Reader(page([Trajectory("mine", row)], "A page"))
    assert shown.texts[:6] == ["first", "1", "+", "3", "=", "4"] and shown.texts[-5:] == [".", *"∎∎∎∎"]
    assert len(shown.texts) == 24
    assert re.fullmatch(r'" 1", offset 1: step 1, probability 0\.\d+, entropy [\d.]+ nats', shown.hovers[1])
    assert shown.hovers[-1].endswith("filled by the stop rule")
    assert "grey where filled in" in page([Trajectory("mine", row)], "A page")
    assert "21 forwards; EOS first committed at step 20; answer committed at steps 7 to 9" in page(
        [Trajectory("mine", row)], "A page"
    )


def test_nothing_is_fetched_and_no_text_is_markup(tmp_path: Path) -> None:
    row = row_of(uncode.presets.confidence())
    row["generated_texts"][0] = row["prompt_text"] = EVIL
    row["generated_ids"][0] = 5
    out = tmp_path / "page.html"
    one = Trajectory(EVIL, row, Verdict(False, EVIL))
    write_page(out, [one, Trajectory("other", row_of(uncode.presets.confidence()))], EVIL)
    text = out.read_text()
    shown = Reader(text)
    assert "b" not in shown.tags and shown.tags.count("script") == 2 and shown.tags.count("section") == 2
    assert shown.addresses == [] and not re.search(r"https?:|//cdn|@import|url\(", text)
    assert shown.texts[0] == EVIL
    replay = json.loads(shown.scripts[0])
    assert [0, EVIL] in [write[1:] for write in replay[0]["writes"]]
    assert list(tmp_path.iterdir()) == [out]


def test_the_replay_ends_with_the_text() -> None:
    """Also where tokens were taken back, and in a text with gaps, whose given tokens are never masked."""
    for row in (
        row_of(uncode.presets.uniform()),
        row_of(uncode.presets.remdm()),
        row_of(uncode.presets.confidence(), "add 3 4 5 first 3 + <mask:1> = <mask:1> , then", None),
    ):
        shown = Reader(page([Trajectory("one", row)], "t"))
        replay = json.loads(shown.scripts[0])[0]
        final = {at: shown.texts[at] for at, step in enumerate(row["commit_step"]) if step >= 0}
        assert replayed(replay, replay["forwards"]) == final
        assert replayed(replay, 0) == {} and replay["forwards"] == row["forwards"]
        assert set(final) <= set(replay["masked"])
    assert replay["masked"] == [0, 2] and shown.texts == ["4", "=", "7", ",", "then"]
    remasked = row_of(uncode.presets.remdm())
    assert any(
        text is None for _, _, text in json.loads(Reader(page([Trajectory("", remasked)], "")).scripts[0])[0]["writes"]
    )


def test_verdicts_and_prompts() -> None:
    row, other = row_of(uncode.presets.confidence()), row_of(uncode.presets.confidence(), "add 2 2 2")
    text = page([Trajectory("a", row, Verdict(True)), Trajectory("b", row, Verdict(False, "13 is not 8"))], "t")
    assert '<span class="verdict right">✓ right</span>' in text and "✗ wrong: 13 is not 8" in text
    assert text.count("<pre>") == 1 and page([Trajectory("a", row), Trajectory("b", other)], "t").count("<pre>") == 2


def test_a_page_without_rows_or_texts_is_refused() -> None:
    with pytest.raises(UncodeError, match="no trajectory"):
        page([], "t")
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([[2, 13]], length=3, mask_id=0)
    bare = uncode.decode(model, canvas, uncode.presets.confidence()).row(0)
    with pytest.raises(UncodeError, match="the trace of 'bare' has no texts"):
        page([Trajectory("bare", bare)], "t")


def test_moments_are_thirds_of_the_commits() -> None:
    assert moments([2, 1, 0]) == ["late", "middle", "early"]
    assert moments([0, 0, 0, 3, 3, 9]) == ["early"] * 3 + ["middle"] * 2 + ["late"]
    assert moments([-1, 0, -2, 1, -2, 2]) == ["given", "early", "filled", "middle", "filled", "late"]
    assert moments([0, 1, -3, -3, -3, -3]) == ["early", "early", "masked", "masked", "masked", "masked"]
    assert moments([4]) == ["early"] and moments([]) == []


def test_steps_of_the_first_eos_and_of_the_answer() -> None:
    row = row_of(uncode.presets.confidence(), answer_span=[0, 2])
    assert first_eos_step(row) == 0 and answer_steps(row) == (23, 23)
    cut = row_of(uncode.presets.left_to_right(), length=5)
    assert first_eos_step(cut) is None and answer_steps(cut) is None
    assert summary(cut) == ["5 forwards", "no EOS committed"]
    assert answer_steps(row | {"answer_span": [900, 901]}) is None
