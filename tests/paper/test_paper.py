"""`uncode paper`: what is decoded, what the report says, and that its words follow the traces."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

import uncode
from tests.cli.running import call, run
from tests.paper.run_by_hand import PROBLEMS, SPAN, STORY, SUDOKU, make_run
from uncode.analysis import choose
from uncode.analysis.analyze import analyze
from uncode.analysis.figures import draw
from uncode.analysis.measures.outcomes import accuracy_gain
from uncode.evals.run.folder import RunFolder
from uncode.paper import report
from uncode.paper.arrays import Arrays, arrays_of
from uncode.paper.config import TASKS, paper_config
from uncode.paper.findings import AGREES, CANNOT_TELL, DISAGREES, Finding, findings
from uncode.paper.report import CAPTIONS, summary, write_report
from uncode.util.stats import Interval, mean_interval

UNDECIDED = ("The clip hardly matters.", "Uncode is robust to the corpus of its frequency table.")
"""They are about equal averages, which eight problems cannot show."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[RunFolder, Arrays]]:
    made = {}
    for agreeing in (True, False):
        folder = make_run(tmp_path_factory.mktemp("run"), agreeing=agreeing)
        made[agreeing] = folder, arrays_of(folder)
    return made


@pytest.mark.parametrize(("agreeing", "verdict"), [(True, AGREES), (False, DISAGREES)])
def test_the_words_follow_the_traces(runs: dict[bool, tuple[RunFolder, Arrays]], agreeing: bool, verdict: str) -> None:
    """Traces with the opposite effect turn every verdict round, and the sentence with it."""
    found = {one.paper: one for one in findings(runs[agreeing][1])}
    assert {paper: one.verdict for paper, one in found.items() if one.verdict != verdict} == dict.fromkeys(
        UNDECIDED, CANNOT_TELL
    )
    better = found["On reasoning, semi_ar is better than confidence."]
    assert re.search(r"100\.0 points \[\d", better.shown), "the interval is of what the word says"
    assert ("better than" if agreeing else "worse than") in better.shown
    assert ("earlier" if agreeing else "later") in found[next(p for p in found if p.startswith("A token given"))].shown


def test_a_verdict_needs_an_interval_without_zero() -> None:
    for interval, verdict in (((1, 0.1, 2), AGREES), ((-1, -2, -0.1), DISAGREES), ((1, -0.1, 2), CANNOT_TELL)):
        assert Finding("", "", "", Interval(*interval)).verdict == verdict
    alone = Finding("", "", "", mean_interval([3]))
    assert alone.verdict == CANNOT_TELL and alone.data()["interval"] == [3, None, None]
    assert "agrees with 1 and disagrees with 0; 1 are undecided" in summary(
        [Finding("", "", "", Interval(1, low, 2)) for low in (0.5, 0.0)]
    )


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_the_report_has_every_figure_and_every_finding(
    runs: dict[bool, tuple[RunFolder, Arrays]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """All figures are laid out, which is quick. Every sixth is rendered, and all under `make verify`."""
    folder, arrays = runs[True]
    calls, last, real = itertools.count(), dict[str, bytes](), report.picture

    def picture(figure: Any, kind: str) -> bytes:
        if next(calls) // len(report.FORMATS) % every == 0:
            last[kind] = real(figure, kind)
        return last[kind]

    monkeypatch.setattr(report, "picture", picture)
    page = write_report(tmp_path / "report", folder, arrays, findings(arrays)).read_text()
    assert re.findall(r'<section id="(\w+)">', page) == [*CAPTIONS, "cases"]
    assert page.count("data:image/png;base64,") == len(CAPTIONS) and "<script" not in page and "http" not in page
    kept = json.loads((tmp_path / "report" / "findings.json").read_text())
    assert len(kept) == 25 and all(one["shown"].replace("'", "&#x27;") in page for one in kept)
    for figure in CAPTIONS:
        for name in (f"figures/{figure}.png", f"figures/{figure}.svg", f"arrays/{figure}.csv"):
            assert (tmp_path / "report" / name).stat().st_size > 100
    assert "16 problems" not in page and f"{PROBLEMS} problems each" in page and STORY in page


def test_sweeps_by_hand(runs: dict[bool, tuple[RunFolder, Arrays]], tmp_path: Path) -> None:
    """Right answers by rate, rejection and prior, as the traces were made."""
    folder, arrays = runs[True]
    groups = arrays["rates"].groups

    def shares(found: dict[object, dict[str, object]], task: str) -> dict[object, float]:
        return {value: one[task].share.estimate for value, one in found.items()}  # type: ignore[attr-defined]

    rates = choose.varied(groups, "rate", "uncode")
    assert shares(rates, STORY) == {0.0: 0, 0.02: 0, 0.05: 0, 0.1: 0, 0.25: 1, 0.5: 1, 1.0: 1}
    assert shares(rates, SUDOKU) == {0.0: 1, 0.02: 0, 0.05: 0, 0.1: 0, 0.25: 0, 0.5: 0, 1.0: 0}
    assert shares(choose.varied(groups, "rejection", "confidence"), STORY) == {0.0: 0, 0.25: 0, 0.5: 0, 0.75: 0, 1.0: 1}
    assert list(choose.varied(groups, "clip", "uncode")) == [2.5, 5.0, 10.0, 20.0]
    assert list(choose.varied(groups, "table", "uncode")) == ["prose", "tiny"]
    priors = choose.priors(groups)
    assert [priors[name][STORY].share.estimate for name in choose.PRIORS] == [0, 0, 0, 1]
    gain = accuracy_gain(priors["both priors"], priors["position"])
    assert gain.estimate == 1 and gain.low > 0.5
    efficient = choose.efficient(groups)
    assert choose.speed_up(efficient["uncode_tau"], efficient["confidence"]) == 2
    assert efficient["eb"][STORY].tokens_per_forward == 1
    outcomes = analyze("accuracy", folder.trace_files(("uncode",), (STORY,)))
    *names, entropy, rate, clip, rejected = outcomes.csv().splitlines()[1].split(",")
    assert names == ["tiny", STORY, "uncode", "0", "1", str(SPAN), str(SPAN)] and float(entropy) == pytest.approx(0.1)
    assert (rate, clip, rejected) == ("0.25", "10.0", "0.0")


def test_anchors_by_hand(runs: dict[bool, tuple[RunFolder, Arrays]]) -> None:
    """The neighbours of an anchor are written first, so they come earlier by what they had to wait before."""
    found = arrays_by_text(runs[True][1])
    anchor, control = found[" the"], found[""]
    assert anchor.anchor == SPAN // 4 and control.anchor is None
    spread = anchor.spread(control)
    at = spread.distance.tolist().index(1)
    before = (SPAN - 48 + 1 + 17) / (SPAN - 1)  # EOS, the result and the text in front of it come first
    assert spread.earlier[at] == pytest.approx(before - 1 / (SPAN - 2), abs=1 / (SPAN - 2))
    assert spread.near.low > 0


def arrays_by_text(arrays: Arrays) -> dict[str, object]:
    return {one.text: one for one in reversed(arrays["anchors"].groups.values())}  # type: ignore[misc]


@pytest.mark.slow
def test_figures_of_sweeps_from_any_traces(runs: dict[bool, tuple[RunFolder, Arrays]], tmp_path: Path) -> None:
    """What a figure compares must be there; the error names it. The report above draws all of them."""
    folder = runs[True][0].path
    for kind in ("planning", "rejection", "hyperparameters", "rates", "priors", "corpora", "efficiency"):
        found = analyze(kind, [folder])
        assert found.groups
    draw(found, tmp_path / "efficiency.svg")
    assert (tmp_path / "efficiency.svg").read_text().startswith("<?xml")
    only = runs[True][0].trace_files(("confidence", "left_to_right"))
    for kind, words in (
        ("rejection", "no two samplers 'confidence' that differ in their rejection alone"),
        ("hyperparameters", "no two samplers 'uncode' that differ in their rate alone"),
        ("priors", "do not hold the four samplers of the ablation"),
        ("efficiency", "a sampler that writes several tokens a forward"),
        ("anchors", "no trace has a given token inside its answer"),
    ):
        with pytest.raises(uncode.UncodeError, match=words):
            analyze(kind, only)
    with pytest.raises(uncode.UncodeError, match="compared with one sampler without an anchor"):
        analyze("anchors", [folder])


def test_what_is_decoded() -> None:
    """Each label once; anchors on one task; EOS counts as neutral on the mini families alone."""
    config = paper_config("tiny", TASKS, [Path("prose.safetensors")])
    labels = [entry.label for entry in config.samplers]
    assert len(labels) == len(set(labels)) == 35 and not any(entry.stop_at_eos for entry in config.samplers)
    assert {entry.tasks for entry in config.samplers if entry.anchor} == {("mini_story",)}
    uncodes = [
        entry for entry in config.samplers if entry.preset == "uncode" and "informativeness" not in entry.options
    ]
    assert {entry.options["special"] for entry in uncodes} == {"neutral"}
    others = paper_config("GSAI-ML/LLaDA-8B-Instruct", ("gsm8k", "sudoku"))
    assert all("special" not in entry.options for entry in others.samplers)


def test_sentences_of_the_verb(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments, words in (
        (["--quick", "--tasks", "gsm8k"], "--quick chooses its own tasks"),
        (["--tasks", ","], "--tasks names nothing"),
        (["--tasks", "mini_stroy"], "mini_story"),
        (["--model", "tny"], "tiny"),
        (["--out", str(tmp_path / "file")], "is a file: choose another folder than"),
    ):
        with pytest.raises(uncode.UncodeError, match=words):
            call("paper", *arguments)


@pytest.mark.slow
def test_the_whole_command(tmp_path: Path) -> None:
    """Two problems of two tasks; the second time nothing is decoded."""
    for _ in range(2):
        shown = run("paper", "--tasks", "mini_sudoku,mini_algebra", "--n", "2", "--out", str(tmp_path / "out"))
        assert shown.returncode == 0, shown.stderr
        assert re.match(r"Of 2\d findings of the paper, this model agrees with", shown.stdout)
    samples = (tmp_path / "out" / "run" / "samples.jsonl").read_text().splitlines()
    assert len(samples) == 2 * (2 * 30 + 6)
    assert (tmp_path / "out" / "report.html").is_file()
