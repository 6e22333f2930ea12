"""The card of `tiny`: one page, generated from its two trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncode.evals.report.table import TextTable
from uncode.evals.suite import report
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.names import RATES, UNCODE, UNSEEN, with_rate
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.suite.scatter import Point, Scatter, draw_scatter

from ..agreement import Agreement
from ..trainings import ROOT, WEIGHTS, Training
from .claims import CLAIMS, GROUPS, HOLDS, verdict
from .findings import EASY_ACCURACY, easy_families, findings

FIGURE_FILE = "accuracy.svg"
DETAILS_FILE = "details.md"
COMMAND = "python -m studies.card"


def card(runs: Sequence[Training]) -> str:
    """The card, as Markdown."""
    by_seed = {run.seed: run.results for run in runs}
    sections = {
        "Findings": _findings(by_seed),
        "The main presets on every family": _main_table(by_seed),
        "The paper's claims on this model": _claims(by_seed),
        "Two seeds": _agreement(by_seed),
        "What this model cannot show": _limits(runs),
        "Weights": _weights(runs),
    }
    return "\n\n".join([_head(runs[0]), *(f"## {title}\n\n{text}" for title, text in sections.items())]) + "\n"


def _head(run: Training) -> str:
    size = (run.folder / WEIGHTS).stat().st_size / 1e6
    groups = [[group, _benchmarks(of)] for group, of in GROUPS.items()]
    return (
        f"# {run.name}\n\n"
        "For readers who decode with this model, or cite its figures: what it is, what it shows about decoding "
        "orders, and what it cannot show.\n\n"
        f"It is a masked diffusion language model of LLaDA's architecture with {run.record['parameters'] / 1e6:.2f} M "
        f"parameters ({size:.1f} MB in bfloat16). It solves small problems of seven families, so that anyone can "
        "measure on a laptop what the decoding order does; it knows nothing else. Each family is a small version of "
        "one of the Uncode paper's benchmarks:\n\n"
        f"{TextTable(['group', 'families'], groups, labels=2).markdown()}\n\n"
        f"`{COMMAND}` writes this page from stored results. "
        f"[{DETAILS_FILE}]({DETAILS_FILE}) has every cell with its interval, the training, the settings, the rates, "
        "the biases, and what direct answers are worth. The project's docs/leaderboard.md has the presets that have no "
        "line here."
    )


def _benchmarks(families: Sequence[str]) -> str:
    return ", ".join(f"{report.short(name)}: {FAMILIES[name].benchmark_task.title}" for name in families)


def _findings(runs: Mapping[int, Results]) -> str:
    return "\n\n".join(one.markdown() for one in findings(runs)) + (
        "\n\n"
        "* Brackets are 95 % intervals of the paired difference.\n"
        "* *Significantly better*: the exact McNemar test gives p < 0.05 with both seeds, after Holm's correction over "
        "the presets of this page, fixed rates aside. The leaderboard corrects over more rows.\n"
        f"* `{UNCODE}` has one rate for each family, chosen without labels."
    )


def _main_table(runs: Mapping[int, Results]) -> str:
    (seed, results), (second, _) = runs.items()
    widest = max(_half_width(cell) for of in results.cells.values() for cell in of.values())
    notes = [
        f"**The problems** are {results.about['problems']:,} held-out ones of each family.",
        f"**Intervals** are Wilson's, 95 %. A cell's is at most ±{100 * widest:.1f} points, and narrower near 100 %.",
        f"**Seeds**: the families' columns and `forwards`, the mean per answer, are of seed {seed}. The last average "
        f"is of a second training run, with seed {second}.",
        *_notes(results),
    ]
    listed = "\n".join(f"* {note}" for note in notes)
    return (
        f"Accuracy in per cent, and forwards per answer (`uncode samplers` describes the presets):\n\n"
        f"{_overview(runs).markdown()}\n\n{listed}\n\n"
        f"![Average accuracy against forwards, for the main presets]({FIGURE_FILE})"
    )


def _half_width(cell: CellResults) -> float:
    return (cell.accuracy.high - cell.accuracy.low) / 2


def _overview(runs: Mapping[int, Results]) -> TextTable:
    """One line for each preset: the accuracy on each family in the first run, and the average in the run of each seed.

    The best average comes first. Of Uncode's fixed rates, only the best has a line.
    """
    first = next(iter(runs.values()))
    rows = []
    for name in main_samplers(first):
        averages = [results.average(name) for results in runs.values()]
        cells = [first.cell(family, name) for family in first.cells]
        rows.append(
            [
                report.label(first, name),
                *("" if cell is None else report.percent(cell.accuracy) for cell in cells),
                *("" if one is None else report.percent(one, whole=not n) for n, one in enumerate(averages)),
                f"{first.forwards(name):.0f}",
            ]
        )
    seeds = (f"average, seed {seed}" for seed in runs)
    return TextTable(["preset", *map(report.short, first.cells), *seeds, "forwards"], rows)


def main_samplers(results: Results) -> list[str]:
    """The samplers of the main table, by their average, the best first."""
    best = with_rate(report.best_fixed(results)) if results.entropies else ""
    fixed = {with_rate(rate) for rate in RATES} - {best}
    averages = {name: mean for name in results.samplers() if name not in fixed and (mean := results.average(name))}
    return sorted(averages, key=lambda name: -averages[name].estimate)


def draw_accuracy(runs: Mapping[int, Results], kind: str = "svg") -> bytes:
    """Average accuracy against forwards, for every preset of the main table and both seeds, as the content of an .svg
    or .png file. Uncode and its variants are highlighted."""
    first, points = next(iter(runs.values())), dict[str, dict[int, Point]]()
    for name in main_samplers(first):
        for seed, results in runs.items():
            average, forwards = results.average(name), results.forwards(name)
            if average is not None and forwards is not None:
                points.setdefault(name, {})[seed] = Point(forwards, 100 * average.estimate)
    fixed = {with_rate(rate) for rate in RATES}
    labels = {name: f"{name} (best fixed)" if first.entropies and name in fixed else name for name in points}
    return draw_scatter(Scatter(points, labels, [name for name in points if name.startswith(UNCODE)], [UNCODE]), kind)


def _notes(results: Results) -> list[str]:
    """What the names of the rows mean, for the rows that are there."""
    names = main_samplers(results)
    notes = {
        "fast_dllm prefix": "Rows named `prefix` decode with a prefix KV cache, all others without a cache.",
        "semi_ar 4": "A number after `semi_ar` is the number of blocks, which is 8 without it.",
        UNCODE: f"`{UNCODE}, label-free rates` has one rate per family, chosen without labels.",
        UNSEEN: f"`{UNSEEN}` weights EOS as the released code does; the other Uncode rows leave it unweighted.",
    }
    texts = [text for name, text in notes.items() if name in names]
    return [*texts, *(["The best fixed rate was found with the labels of these problems."] * bool(results.entropies))]


def _claims(runs: Mapping[int, Results]) -> str:
    rows = []
    for claim in CLAIMS:
        found = {seed: interval for seed, results in runs.items() if (interval := claim.find(results)) is not None}
        rows.append([claim.text, claim.measure, *map(report.points, found.values()), verdict(found)])
    titles = ["claim", "measure", *(f"seed {seed}" for seed in runs), "on this model"]
    holding = sum(row[-1] == HOLDS for row in rows)
    return (
        f"{holding} of these {len(rows)} claims hold on this model with both seeds.\n\n"
        f"{TextTable(titles, rows, labels=2).markdown()}\n\n"
        "A claim holds if the 95 % interval of its measure is above 0: Newcombe's for differences of accuracies, which "
        "are paired by problem, and the bootstrap's for the other measures. There is no correction for the number of "
        "claims. The paper's boundary bias is at both ends of the span; the second and the third row take each end "
        "alone."
    )


def _agreement(runs: Mapping[int, Results]) -> str:
    agreement = Agreement.of(*runs.values())
    return (
        f"{agreement.claim()}\n\n{agreement.table().markdown()}\n\n"
        f"Each fixed rate counts. The [details]({DETAILS_FILE}) have every pair."
    )


def _limits(runs: Sequence[Training]) -> str:
    easy = set.intersection(*(set(easy_families(one.results)) for one in runs))
    texts = [
        f"It has {runs[0].record['parameters'] / 1e6:.0f} M parameters. What holds for it need not hold for a model of "
        "8 B parameters.",
        "The problems are generated from templates, and the model was trained on problems of the same templates. "
        "Nothing here is about natural text, knowledge or instructions.",
        f"An answer has at most {max(family.length for family in FAMILIES.values())} tokens. A rate that is right here "
        "need not be right for longer answers.",
        "There is one architecture, one training config and two seeds. The intervals cover the choice of the problems, "
        "not that of the training run.",
        "A share of the training rows masks a suffix of the answer. This makes left to right and small blocks stronger "
        "than they would be without such rows.",
        "Forwards are not seconds: a forward with a cache costs less than one without.",
    ]
    if easy:
        share = f"{100 * EASY_ACCURACY:.0f} %"
        names = ", ".join(report.short(name) for name in FAMILIES if name in easy)
        texts.insert(
            3, f"At least half of the samplers solve {share} or more of {names}: this hardly tells them apart."
        )
    return "\n".join(f"* {text}" for text in texts)


def _weights(runs: Sequence[Training]) -> str:
    first, second = runs
    elsewhere = f"`{(second.folder / WEIGHTS).relative_to(ROOT)}` of the repository"
    rows = [
        [f"`{WEIGHTS}`", str(first.seed), f"`{first.weights_sha256}`"],
        [elsewhere, str(second.seed), f"`{second.weights_sha256}`"],
    ]
    return (
        f"The checksums identify the weights of these results. [{DETAILS_FILE}]({DETAILS_FILE}) has the commands that "
        "make them again. Another GPU or another version of torch may round differently, and then the weights "
        "differ.\n\n" + TextTable(["weights", "seed", "sha256"], rows, labels=3).markdown()
    )
