"""The page: everything in one file, nothing that a token says is believed, readable without JavaScript."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zlib import decompress

import pytest

import uncode
from uncode import UncodeError
from uncode.core.moments import moments
from uncode.core.trace.texts import TRIVIAL
from uncode.generation.generate import start_decode
from uncode.generation.prompt import read_prompts
from uncode.view.page import MAX_DRAWN, Trajectory, Verdict, compact, page, write_page
from uncode.view.row_summary import answer_steps, first_eos_step, summary
from uncode.view.script import script
from uncode.view.visible_text import visible

EVIL = '</script><b>"&{{rows}}<!--'
JS = Path(uncode.__file__).parent / "view" / "js"


class Reader(HTMLParser):
    """What a browser would see: the elements, their addresses, and the texts of some of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.tokens: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.policy = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href", "action")]
        self.policy += attributes.get("content") or "" if "http-equiv" in attributes else ""
        self._inside = tag
        if tag == "span" and (attributes.get("class") or "").startswith("t "):
            self._inside = "token"
            self.tokens.append(((attributes["class"] or "")[2:], ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "token":
            self.tokens[-1] = (self.tokens[-1][0], self.tokens[-1][1] + data)
        if self._inside == "script":
            self.scripts.append(data)
        if self._inside == "style":
            self.styles.append(data)

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What the list of problems knows, with the rows of each."""
        found: list[dict[str, Any]] = json.loads(self.scripts[0])
        return [one | {"rows": json.loads(rows)} for one, rows in zip(found, self.scripts[1:-1], strict=True)]


def row_of(sampler: uncode.Sampler, prompt: str = "add 1 3 4", length: int | None = 24, **notes: Any) -> dict[str, Any]:
    model = uncode.load("toy")
    trace = start_decode(model, read_prompts(model, [prompt], length), sampler, 0, True).trace()
    return trace.row(0, model.tokenizer, **notes)


def test_the_final_texts_need_no_script() -> None:
    row = row_of(uncode.presets.left_to_right(), answer_span=[19, 26])
    text = page([Trajectory("mine", row)], "A page")
    shown = Reader(text)
    words = [word for _, word in shown.tokens]
    assert words[:6] == ["first", "1", "+", "3", "=", "4"] and words[-5:] == [".", *"∎∎∎∎"]
    assert len(words) == 24 and shown.tokens[0][0] == "early" and shown.tokens[-1][0] == "filled"
    assert "21 forwards; EOS first committed at step 20; answer committed at steps 7 to 9" in text


def test_nothing_is_fetched_and_no_text_is_markup(tmp_path: Path) -> None:
    row = row_of(uncode.presets.confidence())
    row["generated_texts"][0] = row["prompt_text"] = EVIL
    row["generated_ids"][0] = 5
    out = tmp_path / "page.html"
    one = Trajectory(EVIL, row, Verdict(False, EVIL))
    write_page(out, [one, Trajectory("other", row_of(uncode.presets.confidence()))], EVIL)
    text = out.read_text()
    shown = Reader(text)
    assert "b" not in shown.tags and shown.tags.count("script") == 4 and shown.tags.count("section") == 2
    assert shown.addresses == [] and not re.search(r"https?:(?!//www\.w3\.org/2000/svg\b)|@import|url\((?!#)", text)
    assert shown.tokens[0][1] == EVIL and shown.problems[0]["rows"][0]["generated_texts"][0] == EVIL
    assert list(tmp_path.iterdir()) == [out]


def test_the_policy_allows_this_style_and_this_script_only() -> None:
    shown = Reader(page([Trajectory("mine", row_of(uncode.presets.confidence()))], "t"))
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in ("".join(shown.styles), shown.scripts[-1])]
    assert shown.policy.startswith("default-src 'none'; ")
    assert re.findall(r"(\w+)-src 'sha256-([^']+)'", shown.policy) == [("style", hashes[0]), ("script", hashes[1])]
    assert "unsafe" not in shown.policy


def test_invisible_characters_are_escapes() -> None:
    hidden = "\x00\x07\x1b\x85\u202e\u2066\u2069\u200f\ufeff\ud800\u2028"
    assert visible(f"a{hidden}b\n\tc\r\n") == ("a" + "".join(f"\\u{ord(each):04x}" for each in hidden) + "b\n\tc\n")
    row = row_of(uncode.presets.confidence())
    row["generated_texts"][0] = row["prompt_text"] = hidden
    text = page([Trajectory(hidden, row)], hidden)
    assert text.encode() and not set(hidden) & set(text.split('id="problems"')[0])


def test_the_script_is_the_modules_in_their_order() -> None:
    code = script()
    assert not re.search(r"^(import|export) ", code, re.M) and "</script" not in code and "<!--" not in code
    declared = re.findall(r"^(?:async )?(?:const|let|function\*?|class) (\w+)", code, re.M)
    assert len(declared) == len(set(declared)), "modules share one scope in the page"
    for module in JS.glob("*.js"):
        assert module.read_text().split("*/")[0].split("\n")[-1].strip() in code
    trivial = re.search(r"^const TRIVIAL = (\[[^\]]*\]);$", code, re.M)
    assert trivial and tuple(json.loads(trivial[1])) == TRIVIAL


def test_the_data_of_a_row_is_what_the_page_shows() -> None:
    row = row_of(uncode.presets.remdm())
    small = compact(row)
    assert "canvas_ids" not in small and "window" not in small and small["events"] == row["events"]
    for name in ("logp", "entropy", "margin", "score"):
        assert small[name] == pytest.approx(row[name], rel=1e-3)
    drafts = [[1, 2, -1], [1, 2, -1], [3, 2, 4]]
    assert compact(row | {"drafts": drafts})["draft_changes"] == [[0, 1, 1, 2], [], [0, 3, 2, 4]]


def test_a_long_trace_is_a_small_page() -> None:
    row = long_row(1024)
    assert len(page([Trajectory("a", row), Trajectory("b", row)], "t").encode()) < 1_500_000


def long_row(length: int) -> dict[str, Any]:
    """A row of the toy model, repeated to a length; one token a step, from the ends to the middle."""
    row = row_of(uncode.presets.confidence())
    texts = [text for text in row["generated_texts"] if text.strip()]
    order = [2 * at if 2 * at < length else 2 * (length - at) - 1 for at in range(length)]
    numbers = {name: [-(at % 97) / 31 for at in range(length)] for name in ("logp", "score", "margin")}
    return row | numbers | {
        "canvas_ids": [row["mask_id"]] * length,
        "generated_ids": [5 + at % 9 for at in range(length)],
        "generated_texts": [" " + texts[at % len(texts)].strip() for at in range(length)],
        "commit_step": order,
        "entropy": [(at % 89) / 40 for at in range(length)],
        "runner_up": [(at + 1) % length for at in range(length)],
        "terms": dict.fromkeys(("Confidence", "Informativeness", "ExponentialPosition"), numbers["score"]),
        "forwards": length,
        "committed": [1] * length,
        "mean_entropy": [2 - at / length for at in range(length)],
    }  # fmt: skip


def test_many_rows_are_compressed() -> None:
    row = row_of(uncode.presets.confidence())
    few = [Trajectory("a", row, problem=str(n)) for n in range(MAX_DRAWN)]
    assert "application/deflate" not in page(few, "t").split("<script>")[0]
    blocks = re.findall(r'<script type="application/deflate" id="rows-(\d+)">(.*?)</script>', page([*few, few[0]], "t"))
    assert [int(number) for number, _ in blocks] == list(range(MAX_DRAWN))
    (first, second) = json.loads(decompress(b64decode(blocks[0][1])))
    assert first == second and first["generated_texts"] == row["generated_texts"]


def test_verdicts_and_prompts() -> None:
    row, other = row_of(uncode.presets.confidence()), row_of(uncode.presets.confidence(), "add 2 2 2")
    text = page([Trajectory("a", row, Verdict(True)), Trajectory("b", row, Verdict(False, "13 is not 8"))], "t")
    assert '<span class="verdict right">✓ right</span>' in text and "✗ wrong: 13 is not 8" in text
    assert text.count("<pre>") == 1 and page([Trajectory("a", row), Trajectory("b", other)], "t").count("<pre>") == 2


def test_rows_of_one_prompt_are_one_problem() -> None:
    row, other = row_of(uncode.presets.confidence()), row_of(uncode.presets.confidence(), "add 2 2 2")
    mixed = [Trajectory("a", row), Trajectory("b", other), Trajectory("c", row), Trajectory("d", row, problem="x")]
    problems = Reader(page(mixed, "t")).problems
    assert [[one["title"] for one in problem["rows"]] for problem in problems] == [["a", "c"], ["b"], ["d"]]
    assert [problem["label"] for problem in problems] == ["", "", "x"]


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


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, two: str) -> float:
    dark, bright = sorted((_luminance(one), _luminance(two)))
    return (bright + 0.05) / (dark + 0.05)


def test_shades_differ_in_brightness_and_carry_readable_text() -> None:
    """Brightness alone tells the shades apart, so every reader can, whatever colours they see."""
    style = (JS.parent / "page.css").read_text()
    colours = r"--([\w-]+): var\(--light, (#\w{6})\) var\(--dark, (#\w{6})\);"
    named = {name: pair for name, *pair in re.findall(colours, style)}
    for theme in (0, 1):
        shades = [named[f"s{shade}"][theme] for shade in range(7)]
        brightness = [_luminance(shade) for shade in shades]
        assert brightness == sorted(brightness, reverse=theme == 0)
        for number, shade in enumerate(shades):
            assert _contrast(shade, named["on-low" if number < 4 else "on-high"][theme]) >= 4.5
        for text in ("ink", "soft", "right", "wrong", "mark", "accent"):
            assert min(_contrast(named[text][theme], named[page][theme]) for page in ("page", "card")) >= 4.5


def test_drafts_have_texts() -> None:
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([model.tokenizer.encode("add 1 3 4")], length=12, mask_id=model.mask_id)
    trace = uncode.decode(model, canvas, uncode.presets.confidence(), drafts=True)
    row = trace.row(0, model.tokenizer)
    proposed = {str(token) for draft in row["drafts"] for token in draft if token >= 0}
    assert set(row["draft_texts"]) == proposed and all(row["draft_texts"].values())
    assert uncode.Trace.from_json(json.dumps(row)).row(0, model.tokenizer) == row
