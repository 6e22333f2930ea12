"""Reports: numbers against scipy and hand calculations, and what every format makes of them."""

from __future__ import annotations

import csv
import io
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import scipy.stats

from tests.evals.runs import make_run
from uncode.core.errors import UncodeError
from uncode.evals.report import formats
from uncode.evals.report.analysis import Choices, ModelAnalysis, check_choices
from uncode.evals.report.aup import BudgetPoint, aup, families
from uncode.evals.report.records import FIELDS, records
from uncode.evals.report.scores import RunResults, read_runs
from uncode.evals.report.table import Document, Section, TextTable
from uncode.evals.report.tables import accuracy, differences, document
from uncode.evals.report.tables import tests as paired_tests
from uncode.util.stats import newcombe

LLADA = "GSAI-ML/LLaDA-8B-Instruct"
BASE, BETTER, WORSE = "confidence", "uncode", "uniform"
GSM8K = {
    BASE: "1100110010" * 4,
    BETTER: ("1110111011" * 4, "1010111001" * 4),
    WORSE: "0000100010" * 4,
}
SUDOKU = {BASE: "10000", BETTER: "11100", WORSE: "00000"}
CHOICES = Choices("correct", BASE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    marks = {(LLADA, "gsm8k", label): given for label, given in GSM8K.items()}
    marks |= {(LLADA, "sudoku", label): given for label, given in SUDOKU.items()}
    return make_run(tmp_path / "run", marks, costs={BASE: (10, 8, 2.0), BETTER: (5, 8, 0.8), WORSE: (10, 6, 2.5)})


@pytest.fixture
def results(run: Path) -> RunResults:
    return read_runs([run])


@pytest.fixture
def one(results: RunResults) -> ModelAnalysis:
    return ModelAnalysis(results, LLADA, CHOICES)


def test_accuracies_have_wilson_intervals_by_both_rules(one: ModelAnalysis) -> None:
    for metric, right in (("correct", 32), ("paper", 24)):
        found = one.accuracy(BETTER, "gsm8k", metric)
        wanted = scipy.stats.binomtest(right, 40).proportion_ci(method="wilson")
        assert found is not None and found == pytest.approx((right / 40, wanted.low, wanted.high))
    assert one.metrics == ["correct", "paper"] and one.tasks == ["gsm8k", "sudoku"]


def test_the_average_is_the_mean_over_tasks_not_over_examples(one: ModelAnalysis) -> None:
    found = one.average(BETTER, "correct")
    assert found is not None and found.estimate == pytest.approx((0.8 + 0.6) / 2)
    parts = [scipy.stats.binomtest(k, n).proportion_ci(method="wilson") for k, n in ((32, 40), (3, 5))]
    below = math.hypot(0.8 - parts[0].low, 0.6 - parts[1].low) / 2
    above = math.hypot(parts[0].high - 0.8, parts[1].high - 0.6) / 2
    assert found[1:] == pytest.approx((0.7 - below, 0.7 + above))


def test_samplers_are_compared_on_the_same_examples(one: ModelAnalysis) -> None:
    """By hand: per ten examples Uncode gains three, and loses none; uniform loses four and gains one."""
    better, worse = one.comparisons[BETTER, "gsm8k"], one.comparisons[WORSE, "gsm8k"]
    assert (better.pairs, better.test.only_a, better.test.only_b) == (40, 12, 0)
    assert (worse.test.only_a, worse.test.only_b) == (0, 12)
    assert better.test.p == pytest.approx(scipy.stats.binomtest(0, 12).pvalue) == pytest.approx(2 / 2**12)
    assert better.corrected == pytest.approx(4 / 2**12), "two samplers, and both p-values are the same"
    assert better.difference.estimate == pytest.approx(0.3)
    assert better.difference == newcombe([1] * 32 + [0] * 8, [1] * 20 + [0] * 20), "20 right by both, 8 by neither"
    assert one.comparisons[BETTER, "sudoku"].test.p == pytest.approx(0.5)
    assert one.comparisons[BETTER, "sudoku"].corrected == 1.0 == one.comparisons[WORSE, "sudoku"].corrected
    mean = one.average_difference(BETTER)
    assert mean is not None and mean.estimate == pytest.approx((0.3 + 0.4) / 2)


def test_costs_and_speedups_are_ratios_of_totals(one: ModelAnalysis) -> None:
    assert one.cost(BETTER).tokens_per_forward == pytest.approx(1.6) and one.cost(BETTER, "sudoku").answers == 5
    speed = one.speedup(BETTER)
    assert (speed.pairs, speed.seconds, speed.forwards) == (45, pytest.approx(2.5), pytest.approx(2.0))
    assert one.speedup(WORSE, "gsm8k").seconds == pytest.approx(0.8)


def test_incomplete_cells_are_marked_and_never_averaged(tmp_path: Path) -> None:
    marks = {
        (LLADA, "gsm8k", BASE): "10" * 5,
        (LLADA, "gsm8k", BETTER): "1110......",
        (LLADA, "gsm8k", WORSE): "." * 10,
        (LLADA, "sudoku", BASE): "10",
        (LLADA, "sudoku", BETTER): "11",
    }
    results = read_runs([make_run(tmp_path / "run", marks)])
    one = ModelAnalysis(results, LLADA, CHOICES)
    table = accuracy(one)
    rows = {(row[0], row[1]): row[2:] for row in table.rows}
    assert rows[BETTER, "correct"][0].startswith("75.0 [") and rows[BETTER, "correct"][0].endswith("(4 of 10)")
    assert rows[BETTER, "correct"][-1] == "-" and rows[BASE, "correct"][-1].startswith("50.0")
    assert rows[WORSE, "correct"] == ["(0 of 10)", "-", "-"]
    assert one.comparisons[BETTER, "gsm8k"].pairs == 4 and one.comparisons[BETTER, "gsm8k"].test.only_a == 1
    (gap,) = [row for row in differences(one).rows if row[0] == BETTER]
    assert gap[1].startswith("+25.0 [") and gap[1].endswith("(n 4)") and gap[-1] == "-"
    assert (BETTER, "gsm8k") in one.comparisons and (WORSE, "gsm8k") not in one.comparisons
    assert one.speedup(BETTER, "gsm8k").pairs == 4
    best = {(table.rows[r][0], table.titles[c]) for r, c in table.best}
    assert best == {(BASE, "gsm8k"), (BETTER, "sudoku"), (BASE, "average")}, "an incomplete cell is not the best"


def test_equal_values_are_bold_unless_all_are_equal(tmp_path: Path) -> None:
    rows = {"gsm8k": ("1100", "1010", "1000"), "sudoku": ("10", "01", "10"), "gpqa": ("00", "00", "00")}
    marks = {(LLADA, task, s): m for task, some in rows.items() for s, m in zip(GSM8K, some, strict=True)}
    table = accuracy(ModelAnalysis(read_runs([make_run(tmp_path / "run", marks)]), LLADA, CHOICES))
    best = {(table.rows[r][0], table.titles[c]) for r, c in table.best}
    assert best == {(sampler, column) for sampler in (BASE, BETTER) for column in ("gsm8k", "average")}


def test_runs_are_put_together_and_a_cell_is_in_one_of_them(run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", {("Dream", "gsm8k", BASE): "1010"})
    results = read_runs([run, other])
    assert results.models == [LLADA, "Dream"] and results.samplers("Dream") == [BASE]
    assert results.scores["Dream", "gsm8k", BASE].total == 40 and not results.scores[
        "Dream", "gsm8k", BASE
    ].is_complete("correct")
    with pytest.raises(UncodeError, match=f"'{re.escape(str(run))}' is given twice: name each run once"):
        read_runs([run, run])
    again = make_run(tmp_path / "again", {(LLADA, "sudoku", BETTER): "1010"})
    with pytest.raises(UncodeError, match=f"'uncode' on sudoku by {LLADA} is in .*run' and in .*again': give only one"):
        read_runs([run, again])


def test_the_baseline_and_the_metric_are_checked(results: RunResults, tmp_path: Path, run: Path) -> None:
    assert check_choices(results, "paper", None, "") == BASE and check_choices(results, "paper", BETTER, "") == BETTER
    with pytest.raises(UncodeError, match="no run has the sampler 'confidense': did you mean 'confidence'"):
        check_choices(results, "correct", "confidense", "")
    with pytest.raises(UncodeError, match="no sample has the metric 'corect': did you mean 'correct'"):
        check_choices(results, "corect", None, "")
    with pytest.raises(UncodeError, match=r"the paper has no model 'GSAI-ML/LLaDA-1\.6': did you mean"):
        check_choices(results, "correct", None, "GSAI-ML/LLaDA-1.6")
    other = make_run(tmp_path / "other", {("Dream", "gsm8k", BETTER): "1010"}, baseline=BETTER)
    with pytest.raises(UncodeError, match=r"different baselines \(confidence, uncode\)"):
        check_choices(read_runs([run, other]), "correct", None, "")


def test_a_model_without_the_baseline_has_no_comparison(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {("qwen", "gsm8k", "autoregressive"): "1010", ("llada", "gsm8k", BASE): "1111"})
    for section in document(read_runs([run]), CHOICES).sections:
        assert [table.caption for table in section.tables] == ["Accuracy, %", "Cost"] and not section.notes


def test_an_unfinished_baseline_is_compared_on_common_examples_in_one_sentence(tmp_path: Path) -> None:
    marks = {
        (LLADA, "gsm8k", BASE): "1100......",
        (LLADA, "gsm8k", BETTER): "..11110000",
        (LLADA, "sudoku", BASE): "..",
        (LLADA, "sudoku", BETTER): "11",
        (LLADA, "gpqa", BASE): "10",
        (LLADA, "gpqa", BETTER): "11",
    }
    one = ModelAnalysis(read_runs([make_run(tmp_path / "run", marks)]), LLADA, CHOICES)
    assert one.comparisons[BETTER, "gsm8k"].pairs == 2 == one.speedup(BETTER, "gsm8k").pairs
    assert one.comparisons[BETTER, "gsm8k"].difference.estimate == 1.0, "on examples 2 and 3"
    (section,) = document(one.results, CHOICES).sections
    assert section.notes == [
        "The baseline confidence has not answered all examples (gsm8k 4 of 10, sudoku 0 of 2): samplers are compared "
        "on those that both have answered."
    ]
    swapped = document(one.results, Choices("correct", BETTER)).sections[0].notes
    assert "baseline uncode has not answered all examples (gsm8k 8 of 10):" in "".join(swapped)


def test_a_baseline_without_answers_gives_one_sentence_and_no_empty_table(tmp_path: Path) -> None:
    begun = {(LLADA, "gsm8k", BASE): "....", (LLADA, "gsm8k", BETTER): "1110"}
    narrowed = {(LLADA, "gsm8k", WORSE): "1000", (LLADA, "gsm8k", BETTER): "1110"}
    for name, marks in (("begun", begun), ("narrowed", narrowed)):
        (section,) = document(read_runs([make_run(tmp_path / name, marks)]), CHOICES).sections
        assert [table.caption for table in section.tables] == ["Accuracy, %", "Cost"]
        (note,) = section.notes
        assert note == (
            f"No sampler is compared, because {LLADA} has no answers of the baseline confidence: --baseline LABEL "
            "names another one."
        )
    with pytest.raises(UncodeError, match="no run has the sampler 'confidenc': known: uncode"):
        check_choices(read_runs([tmp_path / "begun"]), "correct", "confidenc", "")
    nothing = make_run(tmp_path / "nothing", {(LLADA, "gsm8k", BASE): "....", (LLADA, "gsm8k", BETTER): "...."})
    assert document(read_runs([nothing]), CHOICES).sections[0].notes == []


def test_aup_by_hand() -> None:
    """y1 = 80 at 1; 78 at 2 counts by exp(-3 (1 - 78/80)); 74 is more than five points below the first."""
    points = [BudgetPoint(2, 78), BudgetPoint(1, 80), BudgetPoint(4, 74)]
    weight = math.exp(-3 * (1 - 78 / 80))
    assert aup(points, 80) == pytest.approx(1 * 80 + 0.5 * 1 * (80 + 78 * weight))
    weights = [math.exp(-3 * (1 - y / 90)) for y in (80, 78)]
    assert aup(points, 90) == pytest.approx(80 + 0.5 * (80 * weights[0] + 78 * weights[1]))
    assert aup([BudgetPoint(1, 80)], 80) is None and aup([BudgetPoint(1, 0), BudgetPoint(2, 0)], 0) == 0
    assert aup([BudgetPoint(1, 50), BudgetPoint(3, 50)], 50) == pytest.approx(150), (
        "no loss: accuracy times tokens per forward"
    )


def test_budgets_are_settings_in_the_label() -> None:
    labels = ["eb", "eb gamma=0.1", "eb gamma=0.5", "uncode c4-16gb", "uncode c4-50gb", "uncode", "fast threshold=0.9"]
    assert families(labels) == {"eb": ["eb", "eb gamma=0.1", "eb gamma=0.5"]}
    assert families(["a k=1,cache=dual", "a k=2,cache=dual"]) == {"a": ["a k=1,cache=dual", "a k=2,cache=dual"]}


def test_aup_of_a_run(tmp_path: Path) -> None:
    marks = {(LLADA, "gsm8k", label): "1" * 8 + "00" for label in ("eb", "eb gamma=0.1")}
    marks |= {(LLADA, "gsm8k", BASE): "1" * 10, (LLADA, "gsm8k", "eb gamma=9"): "1........."}
    costs = {"eb": (8, 8, 1.0), "eb gamma=0.1": (4, 8, 1.0), "eb gamma=9": (1, 8, 1.0)}
    one = ModelAnalysis(read_runs([make_run(tmp_path / "run", marks, costs=costs)]), LLADA, CHOICES)
    assert one.aup("eb", "gsm8k") == pytest.approx(80 + 80 * math.exp(-3 * 0.2)), "the incomplete point is left out"
    table = next(t for t in document(one.results, CHOICES).sections[0].tables if "parallelism" in t.caption)
    assert table.rows[0][:3] == ["eb", "3", "123.9"]


def test_the_papers_figures_stand_beside_ours(tmp_path: Path) -> None:
    sizes = {"humaneval": 164, "mbpp": 427, "gsm8k": 1319, "math500": 500, "gpqa": 448, "countdown": 1000}
    marks = {("./mine", task, label): "10" for task in (*sizes, "sudoku") for label in (BASE, "eb", "fast_dllm", "new")}
    results = read_runs([make_run(tmp_path / "run", marks, paper="efficient", costs={"eb": (2, 8, 0.25)})])
    *_, table = document(results, Choices("correct", BASE, True, LLADA)).sections[0].tables
    rows = {row[0]: dict(zip(table.titles, row, strict=True)) for row in table.rows if row[1] == "correct"}
    assert set(rows) == {BASE, "eb", "fast_dllm"}
    assert rows["eb"]["gsm8k"] == "50.0 (61.2, -11.2)" and rows["eb"]["sudoku"] == "50.0 (24.2!, +25.8)"
    assert rows["fast_dllm"]["average"] == "50.0 (33.9!, +16.1)", "with cache, from the efficient table"
    assert rows[BASE]["average"] == "50.0 (33.6, +16.4)", "from the main table"
    assert rows["eb"]["speed-up"] == "2.00x (2.32x)" and rows[BASE]["speed-up"] == "1.00x"
    notes = " ".join(table.notes)
    assert "fast_dllm, humaneval, 35.0: no number of 164 examples gives it" in notes
    assert "gsm8k 2 against 1319" in notes and "Empirical Analysis of Decoding Biases" in notes


def test_a_run_without_counterpart_in_the_paper_is_one_sentence(tmp_path: Path) -> None:
    marks = {("./mine", task, label): "10" for task in ("gsm8k", "mini_story") for label in (BASE, "a|b")}
    marks |= {(LLADA, "mini_story", BASE): "10"}
    results = read_runs([make_run(tmp_path / "run", marks)])
    made = document(results, Choices("correct", BASE, True))
    tables = "its tables are main, dream, efficient, priors, corpora, autoregressive"
    instead = "and --paper-model ID names one of its models instead"
    sentences = [
        f"The paper has no figures of {BASE}, a|b on gsm8k, mini_story by ./mine: {tables}, {instead}.",
        f"The paper has no figures of {BASE} on mini_story by {LLADA}: {tables}.",
    ]
    assert [section.notes for section in made.sections] == [[sentence] for sentence in sentences]
    for section in made.sections:
        assert not [table for table in section.tables if "paper" in table.caption]
    assert sentences[1] in formats.markdown(made) and sentences[0].replace("|", "\\|") in formats.markdown(made)
    assert f"<p>{sentences[0]}</p>" in formats.html(made)
    assert r"\noindent ./mine: The paper has no figures of confidence, a|b on gsm8k, mini\_story" in formats.latex(made)
    assert not any(section.notes for section in document(results, CHOICES).sections)


def test_records_have_every_field_and_read_back_from_csv(results: RunResults) -> None:
    found = records(results, Choices("correct", BASE, True))
    assert all(tuple(record) == FIELDS for record in found)
    rows = list(csv.DictReader(io.StringIO(formats.csv_text(found))))
    assert len(rows) == len(found) == 3 * (2 + 1) * 2
    (row,) = [r for r in rows if (r["sampler"], r["task"], r["metric"]) == (BETTER, "gsm8k", "correct")]
    assert (row["n"], row["total"], row["right"], row["pairs"]) == ("40", "40", "32", "40")
    assert float(row["accuracy"]) == 0.8 and float(row["holm_p"]) == pytest.approx(4 / 2**12)
    assert float(row["difference"]) == pytest.approx(0.3) and float(row["difference_low"]) < 0.3
    assert float(row["paper"]) == pytest.approx(0.792) and float(row["paper_difference"]) == pytest.approx(0.008)
    assert float(row["speedup"]) == pytest.approx(2.5) and float(row["tokens_per_forward"]) == pytest.approx(1.6)
    (average,) = [r for r in rows if (r["sampler"], r["task"], r["metric"]) == (BETTER, "average", "correct")]
    assert float(average["accuracy"]) == pytest.approx(0.7) and average["paper"] == "", "of two tasks, not of seven"


HOSTILE = Document(
    "A & B <script>",
    [Section("m_1 {x}", [TextTable(["sampler", "50 %"], [["<b>a_b|c</b>", "1.0 [0.5, 2.0]"], ["[x] \\ ~^$#", "-"]])])],
)


def test_latex_escapes_and_is_well_formed(results: RunResults) -> None:
    text = formats.latex(HOSTILE)
    assert r"\textless{}b\textgreater{}a\_b|c" in text and r"50 \%" in text and r"m\_1 \{x\}" in text
    assert r"{[}x{]} \textbackslash{} \textasciitilde{}\textasciicircum{}\$\#" in text
    for made in (text, formats.latex(document(results, CHOICES))):
        body = "\n".join(line for line in made.splitlines() if not line.startswith("%"))
        assert body.count(r"\begin{") == body.count(r"\end{") and body.count(r"\toprule") == body.count(r"\bottomrule")
        assert not re.search(r"(?<!\\)[#$]", body) and not re.search(r"(?<!\\)%(?!$)", body, re.M)
        plain = re.sub(r"\\[{}]", "", body)
        assert plain.count("{") == plain.count("}")
        for shape, rows in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", body, re.S):
            for row in re.findall(r"^.*\\\\$", rows, re.M):
                assert len(re.findall(r"(?<!\\)&", row)) == len(shape) - 1, row


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_escapes_and_loads_nothing(results: RunResults) -> None:
    for made in (formats.html(HOSTILE), formats.html(document(results, CHOICES))):
        tags = _Tags()
        tags.feed(made)
        assert not tags.open and not {"script", "link", "img"} & tags.seen
        assert "://" not in made and "{{" not in made
    hostile = formats.html(HOSTILE)
    assert "&lt;b&gt;a_b|c&lt;/b&gt;" in hostile and "<b>a_b" not in hostile
    assert "1.0 <small>[0.5, 2.0]</small>" in hostile


def test_long_tables_are_folded_on_the_page() -> None:
    def page(rows: int) -> str:
        table = TextTable(["sampler", "x"], [[f"row {n}", "1"] for n in range(rows)], "Many")
        return formats.html(Document("t", [Section("m", [table])]))

    assert "<details>" not in page(40)
    tags = _Tags()
    tags.feed(page(41))
    assert not tags.open and "<summary><h3>Many</h3></summary>" in page(41) and "row 40" in page(41)


def test_markdown_has_whole_rows(results: RunResults) -> None:
    text = formats.markdown(HOSTILE)
    assert "| &lt;b>a_b\\|c&lt;/b> | 1.0 [0.5, 2.0] |" in text
    whole = formats.markdown(document(results, CHOICES))
    for block in re.findall(r"(?:^\|.*\n)+", whole, re.M):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    assert "**80.0 [65.2, 89.5]**" in whole


def test_stars_follow_the_corrected_p_value(one: ModelAnalysis) -> None:
    rows = {row[0]: row for row in differences(one).rows}
    assert rows[BETTER][1].startswith("+30.0* [") and "*" not in rows[BETTER][2]
    table = paired_tests(one)
    assert list(table.rows[0]) == ["gsm8k", BETTER, "40", "12", "0", table.rows[0][5], "0.0005", "0.0010"]


def test_the_order_of_the_samples_changes_nothing(tmp_path: Path) -> None:
    marks = {(LLADA, "gsm8k", label): given for label, given in GSM8K.items()}
    first = make_run(tmp_path / "one", marks)
    second = make_run(tmp_path / "two", dict(reversed(marks.items())))
    file = second / "samples.0.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(reversed(lines)))
    one, two = (records(read_runs([folder]), CHOICES) for folder in (first, second))
    key = ("sampler", "task", "metric")
    assert sorted(one, key=lambda r: [r[k] for k in key]) == sorted(two, key=lambda r: [r[k] for k in key])
