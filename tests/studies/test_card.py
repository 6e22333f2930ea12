"""The card: claims, agreement of two runs, findings, direct answers, and where names stand in the figure."""

from __future__ import annotations

import pytest
from studies.agreement import Agreement
from studies.card.claims import CLAIMS, GROUPS, PLANNING, REASONING, verdict
from studies.card.details import DIRECT, details
from studies.card.findings import easy_families, findings
from studies.card.page import card, draw_accuracy
from studies.trainings import FOLDERS, Training, trainings

from uncode.evals.suite import scatter
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.names import with_rate
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.suite.scatter import Box
from uncode.util.stats import Interval

PROBLEMS = 40
ABOUT = {"model": "small", "dtype": "float32", "problems": PROBLEMS, "seed": 0, "device": "cpu", "weights": "1234"}
MEASURES = ("first_before_middle", "last_before_middle", "ends_before_middle")
MEASURES += ("trivial_early", "trivial_early_left_to_right", "trivial_excess")


def results_with(hasty: str = "1", **right: dict[str, int]) -> Results:
    """Results in which each sampler solves the first problems of each family: as many as it says, or `other`."""
    cells: dict[str, dict[str, CellResults]] = {family: {} for family in FAMILIES}
    for family in FAMILIES:
        for name, counts in right.items():
            count = counts.get(family, counts["other"])
            cells[family][name] = CellResults("1" * count + "0" * (PROBLEMS - count), hasty * PROBLEMS, 20.0, 9.0)
    biases = {"all": {key: [0.1, 0.05, 0.2] for key in MEASURES} | {"when": [[0.5, 0.4, 0.6]] * 10}}
    return Results(dict(ABOUT), cells, {}, biases)


def of(other: int, reasoning: int | None = None, planning: int | None = None) -> dict[str, int]:
    counts = {"other": other}
    counts |= {} if reasoning is None else dict.fromkeys(REASONING, reasoning)
    return counts | ({} if planning is None else dict.fromkeys(PLANNING, planning))


def as_in_the_paper() -> Results:
    return results_with(
        confidence=of(30, reasoning=20, planning=30),
        semi_ar=of(30, reasoning=30, planning=20),
        left_to_right=of(30, reasoning=32, planning=15),
        entropy=of(30, reasoning=20, planning=29),
        uncode=of(38),
    )


def test_every_family_is_in_one_group() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(FAMILIES)


def test_claims_hold_where_the_numbers_say_so() -> None:
    found = {claim.text: claim.find(as_in_the_paper()) for claim in CLAIMS}
    assert all(verdict({0: interval, 1: interval}) == "holds" for interval in found.values() if interval)
    assert found["Confidence is below semi-AR on reasoning"].estimate == 0.25  # type: ignore[union-attr]
    assert found["Uncode is above confidence on average"].estimate == pytest.approx(  # type: ignore[union-attr]
        (2 * 8 + 3 * 18 + 2 * 8) / (7 * 40)
    )
    assert found["Confidence is above left to right on sudoku"].estimate == pytest.approx(15 / 40)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        ((1,), "holds"),
        ((1, 1), "holds"),
        ((0, 0), "does not hold: the difference is not significant"),
        ((-1, -1), "does not hold: the opposite does"),
        ((-1, 0), "does not hold"),
        ((1, 0), "only with seed 0"),
        ((-1, 1), "only with seed 1; the opposite with seed 0"),
    ],
)
def test_a_verdict_is_of_all_seeds(signs: tuple[int, ...], words: str) -> None:
    intervals = {1: Interval(2, 1, 3), 0: Interval(0, -1, 1), -1: Interval(-2, -3, -1)}
    assert verdict({seed: intervals[sign] for seed, sign in enumerate(signs)}) == words


def test_two_runs_agree_or_not() -> None:
    one = results_with(confidence=of(10), semi_ar=of(30), eb=of(11))
    two = results_with(confidence=of(10), semi_ar=of(4), eb=of(11))
    same = Agreement.of(one, one)
    assert len(same.pairs) == 3 and not same.differing() and not same.differing(is_corrected=False)
    assert [pair.is_significant() for pair in same.pairs] == [True, True, True]  # 7 problems, all of one sign
    other = Agreement.of(one, two)
    assert [(pair.a, pair.b) for pair in other.differing()] == [("confidence", "semi_ar"), ("semi_ar", "eb")]
    assert sum(pair.is_contradiction() for pair in other.pairs) == 2
    assert other.claim().startswith("Two training runs agree on which sampler is better in 1 of 3 pairs that ")
    assert [row[1] for row in other.table().rows] == ["3", "2", "1 of 3", "`semi_ar`, from 75.0 to 10.0 %"]
    assert other.changes[0].sampler == "semi_ar" and other.changes[0].points == pytest.approx(-65)


def test_holm_leaves_fewer_pairs() -> None:
    """6 problems of one sign: p = 0.03 alone, not after a correction over three pairs."""
    one = results_with(confidence=of(10) | {"mini_story": 16}, semi_ar=of(10), eb=of(10))
    found = Agreement.of(one, results_with(confidence=of(9), semi_ar=of(10), eb=of(10)))
    assert len(found.significant(is_corrected=False)) == len(found.differing(is_corrected=False)) == 2
    assert [pair.b for pair in found.significant()] == ["semi_ar", "eb"]  # 7 problems in the second run


def test_findings_say_what_the_intervals_show() -> None:
    first = as_in_the_paper()
    reasoning, planning, average, best = findings({0: first, 1: first})
    assert reasoning.text == "On reasoning, confidence solves fewer problems than left to right."
    assert [row[1] for row in reasoning.figures.rows] == ["50.0", "80.0", "-30.0 [-38.0, -21.4]", "100", "100"]
    assert planning.text == "On planning, confidence solves more problems than semi-AR."
    assert list(planning.figures.rows[2]) == ["left_to_right", "37.5", "37.5"]
    ours = "Uncode with label-free rates"
    assert average.text == f"On average, {ours} solves more problems than confidence and than semi-AR."
    assert best.text == "`uncode` has the best average of these presets, significantly better than 4 of 4 others."
    assert [row[1] for row in best.figures.rows] == ["95.0", "20"]
    assert best.markdown().startswith(f"**{best.text}**\n\n| % of the problems, or points | seed 0 | seed 1 |")
    level = results_with("0", **{name: of(20) for name in ("confidence", "semi_ar", "left_to_right", "uncode")})
    reasoning, _, _, best = findings({0: first, 1: level})
    assert reasoning.text == "On reasoning, confidence solves fewer problems than left to right with seed 0 only."
    assert list(reasoning.figures.rows[3][1:]) == ["100", "0"] and "than 0 of 3 others" in best.text
    assert findings({1: level})[2].text.endswith(f"no significant difference between {ours} and confidence or semi-AR.")
    worse = results_with(confidence=of(30), semi_ar=of(30), left_to_right=of(10), uncode=of(20))
    reasoning, _, average, best = findings({0: worse})
    assert reasoning.text == "On reasoning, confidence solves more problems than left to right."
    assert average.text == f"On average, {ours} solves fewer problems than confidence and than semi-AR."
    assert best.text.startswith("`confidence` has the best average of these presets") and "2 of 3" in best.text


def test_easy_families() -> None:
    assert easy_families(results_with(a=of(40, reasoning=30), b=of(40), c=of(39, reasoning=30))) == [
        "mini_docstring", "mini_sentence", "mini_countdown", "mini_sudoku",
    ]  # fmt: skip


def both(first: Results, second: Results | None = None) -> list[Training]:
    return [Training(folder, run) for folder, run in zip(FOLDERS, (first, second or first), strict=True)]


def test_a_card_without_rates() -> None:
    runs = both(as_in_the_paper())
    text, more = card(runs), details(runs)
    assert text.count("| holds |") == len(CLAIMS)
    assert [line for line in more.splitlines() if line.startswith("## ")] == [
        "## Families", "## Training", "## Settings of the samplers", "## Every cell", "## Two seeds",
        "## The two biases", "## Frequency tables", "## Make it again",
    ]  # fmt: skip
    assert "| all | 35 |\n| of the second run, inside the interval of the first | 35 |" in more
    assert "uncode train studies/tiny.toml --seed 1 --out second" in more


def test_the_card_is_the_same_with_the_results_of_every_preset() -> None:
    """The leaderboard's rows stay out of its tables, tests and counts."""
    results = as_in_the_paper()
    before = card(both(results)), details(both(results))
    for cells in results.cells.values():
        cells["klass"] = CellResults("1" * PROBLEMS, "0" * PROBLEMS, 5.0, 5.0)
    runs = [run.of_main_presets() for run in both(results)]
    assert (card(runs), details(runs)) == before


def test_direct_answers_stand_beside_left_to_right() -> None:
    results = as_in_the_paper()
    for family, right in {"mini_story": 10, "mini_algebra": 32}.items():
        results.cells[family][DIRECT] = CellResults("1" * right + "0" * (PROBLEMS - right), "0" * PROBLEMS, 5.0, 5.0)
    runs = both(results, as_in_the_paper())
    text = details(runs)
    assert "Reasons help in 1 of 2 lines" in text
    assert "| story | 0 | 25.0 [" in text and "| sudoku | 0 |" not in text
    assert text.count("| 80.0 [65.2, 89.5] | +") == 2
    assert f"| {DIRECT} |" not in card(runs), "the main table has samplers that ran on every family"
    assert f"| {DIRECT} |" in text


def test_names_in_the_figure_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = list[Box]()
    place = scatter._free_place

    def free_place(*args: object) -> Box:
        boxes.append(place(*args))  # type: ignore[arg-type]
        return boxes[-1]

    monkeypatch.setattr(scatter, "_free_place", free_place)
    runs = {run.seed: run.of_main_presets().results for run in trainings()}
    assert draw_accuracy(runs) == draw_accuracy(runs)
    once = boxes[: len(boxes) // 2]
    assert len(once) > 10 and not any(a.overlaps(b) for n, a in enumerate(once) for b in once[:n])
    assert draw_accuracy(runs, "png").startswith(b"\x89PNG")


def test_a_preset_far_below_is_named_below_the_plot() -> None:
    names = {f"sampler {n}": of(30 + n % 5) for n in range(8)} | {"broken": of(2), with_rate(0.5): of(33)}
    drawn = draw_accuracy({0: results_with(**names)}).decode()
    assert "Below the plot: broken, 5.0 % at 20 forwards." in drawn
    assert draw_accuracy({0: results_with(eb=of(30))})
