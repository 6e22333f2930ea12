"""The verb analyze: figures, arrays and sentences, from traces made by hand."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import uncode
from tests.analysis.lines import Line, line, write
from tests.cli.running import call, run
from uncode.analysis.analyze import analyze
from uncode.analysis.kinds import KINDS, SWEEPS

WORDS = ["So", " the", " answer", " is", " 4", "."]


def traced(steps: list[int], label: str, **others: object) -> Line:
    entropies = {"mean_entropy": [1.0 / (step + 1) for step in range(max(steps) + 1)], "observe": "span"}
    return line(
        steps, label=label, generated_texts=WORDS, answer_span=[17, 18], correct=True, **{**entropies, **others}
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two samplers, two traces each."""
    monkeypatch.chdir(tmp_path)
    inwards, onwards = [0, 2, 4, 5, 3, 1], [0, 1, 2, 3, 4, 5]
    (tmp_path / "run").mkdir()
    write(tmp_path / "run" / "a.jsonl", [traced(inwards, "confidence"), traced(inwards[::-1], "confidence")])
    write(tmp_path / "run" / "b.jsonl", [traced(onwards, "left_to_right")] * 2)
    return tmp_path


OF_ANY_TRACES = [kind for kind in KINDS if kind == "accuracy" or kind not in (*SWEEPS, "anchors")]
"""The others compare certain samplers; tests/paper draws them."""
FIGURES = [*((kind, "svg") for kind in OF_ANY_TRACES), ("heatmap", "png"), ("heatmap", "pdf")]
OTHERS = [
    pytest.param(kind, suffix, marks=pytest.mark.slow)
    for suffix in ("png", "pdf")
    for kind in OF_ANY_TRACES
    if kind != "heatmap"
]


@pytest.mark.parametrize(("kind", "suffix"), [*FIGURES, *OTHERS])
def test_every_figure_in_every_format(kind: str, suffix: str, folder: Path) -> None:
    """Drawn twice, it is the same file; another figure replaces it without --force. Other formats: `make verify`."""
    out = folder / f"figure.{suffix}"
    shown = run("analyze", kind, "run", "--out", str(out))
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr.strip() == f"{out}: {kind} of 4 traces." and "confidence" in shown.stdout
    before = out.read_bytes()
    assert run("analyze", kind, "run", "--out", str(out)).returncode == 0 and out.read_bytes() == before
    if suffix == "svg":
        assert b"<dc:date>" not in before


def test_the_arrays_by_hand_as_json_and_csv(folder: Path) -> None:
    found = json.loads(run("analyze", "heatmap", "run/b.jsonl", "--json").stdout)
    (group,) = found["groups"]
    assert (group["model"], group["task"], group["sampler"], group["traces"]) == ("model", "task", "left_to_right", 2)
    assert group["probability"] == [[float(step >= offset) for step in range(6)] for offset in range(6)]
    assert group["boundary_first"]["index"] == [0.0, 0.0, 0.0]
    assert run("analyze", "entropy", "run", "--out", "e.csv").returncode == 0
    rows = list(csv.DictReader((folder / "e.csv").read_text().splitlines()))
    assert len(rows) == 12 and rows[1] == {
        "model": "model", "task": "task", "sampler": "confidence", "step": "1", "mean": "0.5", "low": "0.5",
        "high": "0.5", "running": "2",
    }  # fmt: skip


def test_the_reference_of_trivial_tokens(folder: Path) -> None:
    found = analyze("trivial", [folder / "run" / "a.jsonl"], reference=[folder / "run" / "b.jsonl"])
    ((group, share),) = found.references.items()
    assert group.sampler == "left_to_right" and share.estimate == 0.5  # the, is and the full stop
    shown = run("analyze", "trivial", "run/a.jsonl", "--reference", "run/b.jsonl", "--out", "t.svg")
    assert "reference: 0.50 (no spread) of left_to_right task" in shown.stdout and (folder / "t.svg").is_file()
    both = run("analyze", "trivial", "run/a.jsonl", "--reference", "run")
    assert "the reference is one sampler for each task, not confidence, left_to_right" in both.stderr


def test_several_tasks_are_several_panels(folder: Path) -> None:
    """Each panel has its own length and its own reference."""
    other = line([1, 0], label="left_to_right", task="other", generated_texts=["x", "."], observe="span")
    write(folder / "run" / "c.jsonl", [other])
    found = analyze("trivial", ["run"], reference=["run/b.jsonl", "run/c.jsonl"])
    assert [group.task for group in found.groups] == ["other", "task", "task"]
    assert {group.task: found.reference_of(group)[1].estimate for group in found.groups} == {"task": 0.5, "other": 0.5}  # type: ignore[index]
    for kind in ("heatmap", "entropy", "trivial"):
        assert run("analyze", kind, "run", "--out", "f.png").returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("heatmop run", "there is no figure 'heatmop': did you mean 'heatmap'?"),
        ("heatmap nowhere", "the file 'nowhere' does not exist: give the path of a trace."),
        ("heatmap empty", "the folder 'empty' holds no traces: `uncode decode --trace FILE.jsonl` writes one."),
        ("heatmap run --out x.gif", "--out takes a .png, .svg, .pdf or .csv file, not 'x.gif'."),
        ("heatmap run --out mine.png", "'mine.png' exists and is not a figure: choose another name, or replace it"),
        ("heatmap run --out mine.csv", "'mine.csv' exists and is not a CSV of an analysis"),
        ("heatmap run --parts 1", "--parts must be at least 2, not 1."),
        ("heatmap run --parts 7", "has a span of 6 tokens, which cannot be cut into 7 parts: give --parts 6 or fewer."),
        ("answers run --parts 4", "the figure 'answers' has no steps to divide: leave --parts out."),
        ("heatmap run --reference run", "the figure 'heatmap' has no reference: leave --reference out."),
        ("heatmap schema.jsonl", "field 'schema' is 2, and this version of uncode reads schema 1"),
        ("heatmap run lengths.jsonl", "(6 and 2 tokens): give --parts N to compare equal parts of the span"),
        ("heatmap run open.jsonl", "traces with observe='span' and observe='open' are mixed in"),
        ("entropy open.jsonl", "has the entropy of the open block alone (observe='open'): decode again"),
        ("heatmap", "TRACES... is missing: see `uncode analyze --help`."),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(words: str, sentence: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    for name in ("mine.png", "mine.csv"):
        (folder / name).write_text("mine\n")
    write(folder / "schema.jsonl", [traced([0, 1, 2, 3, 4, 5], "x", schema=2)])
    write(folder / "lengths.jsonl", [line([0, 1], observe="span")])
    write(folder / "open.jsonl", [line([0, 1, 2, 3, 4, 5])])
    shown = run("analyze", *words.split())
    assert shown.returncode == 2 and shown.stdout == ""
    assert sentence in shown.stderr and len(shown.stderr.splitlines()) == 1
    assert (folder / "mine.png").read_text() == "mine\n"


def test_parts_allow_different_lengths(folder: Path) -> None:
    write(folder / "run" / "c.jsonl", [line([0, 1], label="left_to_right", observe="span")])
    for kind in ("heatmap", "entropy"):
        assert run("analyze", kind, "run", "--parts", "2", "--out", "f.png").returncode == 0


def test_decoded_traces_of_any_sampler_are_drawn(folder: Path) -> None:
    """A remasker, a stop rule and blocks, on the toy model."""
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([model.tokenizer.encode("add 3 4 5")], length=24, mask_id=model.mask_id)
    for sampler in (uncode.presets.remdm(block_length=8, start=0.5), uncode.presets.semi_ar(blocks=4)):
        trace = uncode.decode(model, canvas, sampler, observe="span")
        trace.save(folder / f"{sampler.name}.jsonl", model.tokenizer)
    for kind in ("heatmap", "trivial", "entropy"):
        shown = run("analyze", kind, "remdm.jsonl", "semi_ar.jsonl", "--out", "f.png")
        assert shown.returncode == 0, shown.stderr


def test_the_help_names_every_figure_and_whole_examples() -> None:
    shown = re.sub(r"\s+", " ", call("analyze", "--help").output)
    assert all(kind in shown for kind in KINDS) and "uncode analyze trivial run --parts 20 --out trivial.svg" in shown


def test_traces_in_memory_equal_those_in_files(tmp_path: Path) -> None:
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([model.tokenizer.encode("add 1 3 4")] * 2, length=24, mask_id=model.mask_id)
    trace = uncode.decode(model, canvas, uncode.presets.confidence(), observe="span")
    trace.save(tmp_path / "a.jsonl", model.tokenizer)
    for kind in ("heatmap", "trivial", "entropy"):
        saved, kept = analyze(kind, [tmp_path / "a.jsonl"]), analyze(kind, [trace], tokenizer=model.tokenizer)
        assert saved.data() == kept.data() and kept.traces == 2
    assert analyze("heatmap", [trace, tmp_path / "a.jsonl"]).traces == 4
