"""`uncode compare`: one prompt, or a file of prompts, under several samplers."""

from __future__ import annotations

import io
import json
import re
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
        "".join(json.dumps(row) + "\n" for row in rows), frequency=lambda *_: uncode.load("toy").frequency
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


def of_file(folder: Path, *words: str) -> list[str]:
    source = folder / "prompts.jsonl"
    source.write_text('"add 1 3 4"\n{"prompt": "add 2 2 2", "id": "second", "seed": 5, "length": 20}\n')
    samplers = ["--samplers", "confidence,tau_leaping", "--set", "tau_leaping.tau=8"]
    return ["compare", *TOY, "--input", str(source), *samplers, *words]


def test_a_file_of_prompts_is_answered_as_each_prompt_alone(tmp_path: Path) -> None:
    out = tmp_path / "compared.jsonl"
    call(*of_file(tmp_path, "--out", str(out), "--seed", "3"))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["sampler"]) for row in rows] == [
        (number, name) for number in (0, "second") for name in ("confidence", "tau_leaping")
    ]
    words = ["compare", *TOY[:2], "--samplers", "confidence,tau_leaping", "--set", "tau_leaping.tau=8", "--json"]
    for at, prompt in enumerate(
        (["add 1 3 4", "--length", "24", "--seed", "3"], ["add 2 2 2", "--length", "20", "--seed", "5"])
    ):
        for row, one in zip(rows[2 * at :], json.loads(call(*words, *prompt).stdout), strict=False):
            facts = ("text", "forwards", "seed")
            assert [row[key] for key in facts] == [one[key] for key in facts] and row["first_eos_step"] == one[
                "first_end"
            ]


def test_a_file_of_prompts_as_table_page_and_frame(tmp_path: Path) -> None:
    out, page = tmp_path / "compared.jsonl", tmp_path / "page.html"
    shown = call(*of_file(tmp_path, "--out", str(out), "--view", str(page)))
    first, second, end = (
        shown.stdout.split("\nsecond: ")[0],
        shown.stdout.split("\nsecond: ")[1],
        shown.stdout.splitlines(),
    )
    assert first.splitlines()[:2] == ["0: add 1 3 4", "  confidence, 24 forwards: 13 ."]
    assert second.startswith("add 2 2 2\n  confidence, 20 forwards: ") and "\x1b[" not in shown.stdout
    assert end[-2].startswith("forwards per answer: confidence 22.0, tau_leaping ")
    assert end[-1].startswith(f"{out}: 4 answers; ")
    text = page.read_text()
    assert "2 prompts, 2 samplers" in text and text.count("<section") == 4 and "4 traces" in shown.stderr
    assert json.loads(call(*of_file(tmp_path, "--json")).stdout) == [
        json.loads(row) for row in out.read_text().splitlines()
    ]


def test_a_comparison_resumes(tmp_path: Path) -> None:
    out = tmp_path / "compared.jsonl"
    words = of_file(tmp_path, "--out", str(out))
    call(*words)
    whole = out.read_text()
    out.write_text("".join(whole.splitlines(keepends=True)[1:3]) + "{")
    assert ", 2 of them of an earlier run;" in call(*words).stdout and out.read_text() == whole
    with pytest.raises(UncodeError, match=r"begun with samplers\.confidence\..* none, now 4"):
        call(*words, "--set", "confidence.steps=4")


def test_a_table_of_a_file_where_there_is_room(tmp_path: Path) -> None:
    rows = json.loads(call(*of_file(tmp_path, "--json")).stdout)
    from uncode.cli.answering.prompts import read_file

    lines = read_file(tmp_path / "prompts.jsonl", None).lines
    console = Console(file=io.StringIO(), force_terminal=True, width=90, record=True)
    console.print(side_by_side._table([(line, rows[2 * at :][:2]) for at, line in enumerate(lines)], ["a", "b"]))
    shown = console.export_text().splitlines()
    assert shown[1].split() == ["prompt", "a", "b"] and max(map(len, shown)) <= 90
    assert "0: add 1 3 4" in shown[3] and shown[3].count("forwards") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is nothing to compare: give a prompt, or --input FILE"),
        (["add 1 3 4", "--input", "x"], "give a prompt or --input FILE, not both"),
        (["add 1 3 4", "--out", "x"], "--out and --batch are for the prompts of --input"),
        (["--input", "x", "--out", "y", "--view", "y"], "--view and --out would both write 'y'"),
        (["--input", "nowhere"], "the file 'nowhere' does not exist"),
    ],
)
def test_mistakes_with_a_file(words: list[str], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call("compare", *TOY, *words)


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
        (["--samplers", "missing.toml"], "the file 'missing.toml' does not exist"),
    ],
)
def test_mistakes(words: list[str], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call("compare", *TOY, "add 1 3 4", *words)


def test_every_sampler_fulfils_the_constraint(tmp_path: Path) -> None:
    """Of one prompt and of a file of prompts."""
    given = (*TOY, "--regex", "[0-9]+ [.]", "--json")
    rows = json.loads(call("compare", "add 1 3 4", *given).stdout)
    file = tmp_path / "prompts.txt"
    file.write_text("add 1 3 4\n")
    rows += json.loads(call("compare", "--input", str(file), *given).stdout)
    assert len(rows) == 6 and all(re.fullmatch("[0-9]+ [.]", row["text"]) for row in rows)
