"""The paper's figures: complete, and exactly the known ones are flagged."""

from __future__ import annotations

from fractions import Fraction

import pytest

from uncode.core.errors import UncodeError
from uncode.evals.paper import paper_tables
from uncode.evals.paper.tables import is_possible

LLADA, NEWER, DREAM = "GSAI-ML/LLaDA-8B-Instruct", "GSAI-ML/LLaDA-1.5", "Dream-org/Dream-v0-Instruct-7B"
QWEN = "Qwen/Qwen2.5-7B-Instruct"
SIZES = {"humaneval": 164, "mbpp": 427, "gsm8k": 1319, "math500": 500, "gpqa": 448, "countdown": 1000, "sudoku": 500}
IMPOSSIBLE = {
    ("main", NEWER, "confidence", "gpqa", 28.7),
    ("efficient", LLADA, "tau_leaping", "gpqa", 28.9),
    ("efficient", LLADA, "fast_dllm", "humaneval", 35.0),
    ("efficient", LLADA, "fast_dllm", "gpqa", 27.8),
    ("corpora", LLADA, "uncode c4-50gb", "humaneval", 42.2),
    ("corpora", LLADA, "uncode c4-200gb", "humaneval", 42.9),
    ("corpora", LLADA, "uncode c4-400gb", "humaneval", 42.9),
}
WRONG_AVERAGES = {("main", NEWER, "fast_dllm", "average", 36.7), ("efficient", LLADA, "fast_dllm", "average", 33.9)}
DOUBTFUL = {
    ("main", LLADA, "eb", "sudoku", 24.2),
    ("efficient", LLADA, "eb", "sudoku", 24.2),
    ("autoregressive", QWEN, "autoregressive", "countdown", 7.7),
    ("autoregressive", QWEN, "autoregressive", "average", 45.3),
}


def test_every_table_of_the_paper_is_there() -> None:
    paper = paper_tables()
    counts = dict.fromkeys(paper.names, 0)
    for table, _, _ in paper.rows:
        counts[table] += 1
    assert counts == {"main": 16, "dream": 7, "efficient": 6, "priors": 8, "corpora": 6, "autoregressive": 3}
    assert dict(paper.sizes) == SIZES
    for (table, _, _), row in paper.rows.items():
        assert set(row) == ({"average"} if table == "priors" else {*SIZES, "average"})
    assert len(paper.speedups) == 6 and all(key in paper.rows for key in paper.speedups)
    assert paper.speedups["efficient", LLADA, "uncode_fast_dllm"] == 3.99
    assert paper.rows["main", NEWER, "uncode"]["gsm8k"] == 82.2
    assert paper.rows["priors", LLADA, "uncode informativeness only"] == {"average": 34.9}


def test_averages_follow_from_their_rows_but_for_the_known_ones() -> None:
    """A mean of seven rounded figures is at most 0.055 off, and so is its own rounding."""
    wrong = set()
    for key, row in paper_tables().rows.items():
        tasks = [Fraction(str(row[task])) for task in SIZES if task in row]
        if tasks and abs(sum(tasks) / 7 - Fraction(str(row["average"]))) > Fraction("0.11"):
            wrong.add((*key, "average", row["average"]))
    assert wrong == WRONG_AVERAGES


def test_percentages_are_those_of_whole_examples_but_for_the_known_ones() -> None:
    """28.049 may be printed as 28.1: some figures were rounded to two decimals first."""
    wrong = set()
    for figure in paper_tables().figures():
        if figure.column != "average":
            size, value = SIZES[figure.column], Fraction(str(figure.value))
            possible = any(abs(Fraction(100 * k, size) - value) <= Fraction("0.055") for k in range(size + 1))
            assert possible == is_possible(figure.value, size)
            if not possible:
                wrong.add((figure.table, figure.model, figure.sampler, figure.column, figure.value))
    assert wrong == IMPOSSIBLE


def test_exactly_the_known_figures_are_flagged_with_a_reason() -> None:
    flagged = {(f.table, f.model, f.sampler, f.column, f.value): f.doubt for f in paper_tables().figures() if f.doubt}
    assert set(flagged) == IMPOSSIBLE | WRONG_AVERAGES | DOUBTFUL
    assert flagged["efficient", LLADA, "fast_dllm", "average", 33.9] == "the mean of the row is 33.7"
    assert flagged["main", NEWER, "confidence", "gpqa", 28.7] == "no number of 448 examples gives it"
    assert "44.2" in flagged["autoregressive", QWEN, "autoregressive", "average", 45.3]


def test_a_row_is_looked_for_in_its_own_table_first() -> None:
    paper = paper_tables()
    assert paper.find(LLADA, "fast_dllm") == ("main", LLADA, "fast_dllm")
    assert paper.find(LLADA, "fast_dllm", "efficient") == ("efficient", LLADA, "fast_dllm")
    assert paper.find(LLADA, "confidence", "efficient") == ("main", LLADA, "confidence")
    assert paper.find(DREAM, "semi_ar") is None
    with pytest.raises(UncodeError, match="no table 'mian': did you mean 'main'"):
        paper.find(LLADA, "uncode", "mian")
