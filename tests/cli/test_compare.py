"""`uncode compare`: one prompt, several samplers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import uncode
from tests.cli.running import TOY, call
from uncode import Trace, UncodeError
from uncode.cli.answering import side_by_side


def test_each_sampler_answers_as_it_does_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(call("samplers", "semi_ar", "--set", "blocks=2").stdout)
    words = ["--samplers", f"tau_leaping, uncode,legacy.uncode_release,{file}", "--seed", "3"]
    settings = ["tau_leaping.tau=8", "uncode.special=neutral", "legacy.uncode_release.rate=0.5"]
    given = [word for setting in settings for word in ("--set", setting)]
    rows = json.loads(call("compare", *TOY, "add 1 3 4", *words, *given, "--json").stdout)
    assert [row["title"] for row in rows] == ["tau_leaping", "uncode", "legacy.uncode_release", str(file)]
    alone = [["tau_leaping", "--set", "tau=8"], ["uncode", "--set", "special=neutral"]]
    alone += [["legacy.uncode_release", "--set", "rate=0.5"], [str(file)]]
    for row, sampler in zip(rows, alone, strict=True):
        one = json.loads(call("decode", *TOY, "add 1 3 4", "--seed", "3", "--json", "--sampler", *sampler).stdout)
        same = ("sampler", "seed", "prompt_ids", "generated_ids", "commit_step", "forwards", "text")
        assert [row[key] for key in same] == [one[key] for key in same]
    assert [row["first_end"] for row in rows[:2]] == [rows[0]["first_end"], 18]
    read = Trace.from_json(
        "".join(json.dumps(row) + "\n" for row in rows), tables=lambda *_: uncode.load("toy").frequency
    )
    assert len(read) == 24


def test_plain_and_stacked_when_piped() -> None:
    shown = call("compare", *TOY, "add 1 3 4", "--set", "uncode.special=neutral").stdout
    assert shown.split("\n\n")[0] == "confidence: 24 forwards; EOS first committed at step 0\n13 ."
    assert [part.split(":")[0] for part in shown.split("\n\n")] == ["confidence", "semi_ar", "uncode"]
    assert "\x1b[" not in shown and shown.endswith("so the answer is 8 .\n")


def test_side_by_side_where_there_is_room() -> None:
    rows = json.loads(call("compare", *TOY, "add 1 3 4", "--set", "uncode.special=neutral", "--json").stdout)
    for width, beside in ((120, True), (60, False)):
        console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=width, record=True)
        side_by_side._show(console, rows)
        html, lines = console.export_html(clear=False), console.export_text().splitlines()
        assert (lines[0].split() == ["confidence", "semi_ar", "uncode"]) == beside
        assert lines[-1] == "committed early middle late   ∎ EOS" and max(map(len, lines)) <= width
        assert "background-color: #fde047" in html, "early tokens have their colour"


def test_a_page(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    call("compare", *TOY, "add 1 3 4", "--view", str(out))
    assert out.read_text().count("<section") == 3 and "One prompt, 3 samplers" in out.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--samplers", "confidence,confidense"], "did you mean 'confidence'"),
        (["--samplers", "uncode,uncode"], "'uncode' is named twice"),
        (["--samplers", ","], "takes names with commas between them"),
        (["--set", "rate=1"], "takes NAME.KEY=VALUE here, not 'rate=1'"),
        (["--set", "uncode.rate"], "takes NAME.KEY=VALUE here"),
        (["--set", "margin.steps=1"], "'margin', which is not among --samplers: known: confidence, semi_ar, uncode"),
        (["--set", "uncode.rte=1"], "did you mean 'rate'"),
        (["--samplers", "confidence,margin", "--frequency", "x"], "none of these samplers takes a frequency table"),
        (["--view", "nowhere/page.html"], "does not exist"),
        (["--samplers", "missing.toml"], "no sampler file"),
    ],
)
def test_mistakes(words: list[str], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call("compare", *TOY, "add 1 3 4", *words)
