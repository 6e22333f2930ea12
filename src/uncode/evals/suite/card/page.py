"""The card of a small model: one page, generated from the files in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....models import TINY
from ...report.table import Table
from .. import report
from ..families import FAMILIES
from ..folder import SECOND_FOLDER, WEIGHTS, TrainedModel, load_runs
from ..names import GROUPS, UNCODE, UNSEEN
from ..results import Cell, Results
from .agreement import Agreement
from .claims import CLAIMS, verdict
from .findings import EASY_ACCURACY, easy_families, findings

FIGURE_FILE = "accuracy.svg"
DETAILS_FILE = "details.md"
RELEASED = "release/tiny-seed-1"
"""Where the repository keeps the weights of the second seed of `tiny`."""


def card(folder: Path) -> str:
    """The card of the model in a folder, as Markdown."""
    runs = load_runs(folder)
    sections = {
        "Findings": _findings(runs),
        "The main presets on every family": _main_table(runs),
        "The paper's claims on this model": _claims(runs),
        "Two seeds": _agreement(runs),
        "What this model cannot show": _limits(runs),
        "Weights": _weights(runs),
    }
    return "\n\n".join([_head(runs[0]), *(f"## {title}\n\n{text}" for title, text in sections.items() if text)]) + "\n"


def _head(run: TrainedModel) -> str:
    size = (run.folder / WEIGHTS).stat().st_size / 1e6
    groups = "; ".join(f"{group} ({_benchmarks(of)})" for group, of in GROUPS.items())
    return (
        f"# {run.name}\n\n"
        f"A masked diffusion language model of LLaDA's architecture with {run.record['parameters'] / 1e6:.2f} M "
        f"parameters ({size:.1f} MB in bfloat16). It solves small problems of seven families, so that anyone can "
        "measure on a laptop what the decoding order does; it knows nothing else. Each family is a small version of "
        f"one of the Uncode paper's benchmarks: {groups}.\n\n"
        "`uncode mini --card` prints this page from the files of the model. "
        f"[{DETAILS_FILE}]({DETAILS_FILE}) has every cell with its interval, the training, the settings, the rates, "
        "the biases, and what direct answers are worth. The project's docs/leaderboard.md has the presets that have no "
        "line here."
    )


def _main_table(runs: Sequence[TrainedModel]) -> str:
    results = runs[0].results
    widest = max(_half_width(cell) for of in results.cells.values() for cell in of.values())
    second = f" The last average is that of a second training run, with seed {runs[1].seed}." if _two(runs) else ""
    return (
        f"Accuracy in per cent on {results.about['problems']:,} held-out problems of each family. The 95 % interval of "
        f"a cell is at most ±{100 * widest:.1f} points, and narrower near 100 %; that of the average stands beside it "
        f"(Wilson).{second} `forwards` is the mean number of forwards per answer, with seed {runs[0].seed}.\n\n"
        f"{report.overview(_by_seed(runs)).markdown()}\n\n"
        f"`uncode samplers` describes the presets. {_notes(results)}\n\n"
        f"![Average accuracy against forwards, for the main presets]({FIGURE_FILE})"
    )


def _half_width(cell: Cell) -> float:
    return (cell.accuracy.high - cell.accuracy.low) / 2


def _benchmarks(families: Sequence[str]) -> str:
    return ", ".join(f"{report.short(name)}: {FAMILIES[name].benchmark_task.title}" for name in families)


def _notes(results: Results) -> str:
    """What the names of the rows mean, for the rows that are there."""
    names = report.main_samplers(results)
    notes = {
        "fast_dllm prefix": "Rows named `prefix` decode with a prefix KV cache, all others without a cache.",
        "semi_ar 4": "A number after `semi_ar` is the number of blocks, which is 8 without it.",
        UNCODE: f"`{UNCODE}, label-free rates` has one rate per family, chosen without labels.",
        UNSEEN: f"`{UNSEEN}` weights EOS as the released code does; the other Uncode rows leave it unweighted.",
    }
    texts = [text for name, text in notes.items() if name in names]
    if results.entropies:
        texts.append("The best fixed rate was found with the labels of these problems.")
    return " ".join(texts)


def _findings(runs: Sequence[TrainedModel]) -> str:
    lines = [f"{number}. {text}" for number, text in enumerate(findings(_by_seed(runs)), 1)]
    seeds = " and ".join(str(run.seed) for run in runs)
    about = f"Two numbers are those of two training runs, with seeds {seeds}. " if _two(runs) else ""
    return f"{about}Brackets are 95 % intervals.\n\n" + "\n".join(lines) if lines else ""


def _claims(runs: Sequence[TrainedModel]) -> str:
    rows = []
    for claim in CLAIMS:
        found = {run.seed: interval for run in runs if (interval := claim.find(run.results)) is not None}
        if len(found) == len(runs):
            rows.append([claim.text, claim.measure, *map(report.points, found.values()), verdict(found)])
    if not rows:
        return ""
    titles = ["claim", "measure", *(f"seed {run.seed}" for run in runs), "on this model"]
    table = Table(titles, rows, labels=2)
    return (
        "A claim holds if the 95 % interval of its measure is above 0: Newcombe's for differences of accuracies, which "
        "are paired by problem, and the bootstrap's for the other measures. There is no correction for the number of "
        "claims. The paper's boundary bias is at both ends of the span; the second and the third row take each end "
        "alone.\n\n" + table.markdown()
    )


def _agreement(runs: Sequence[TrainedModel]) -> str:
    if not _two(runs):
        return ""
    summary = Agreement.of(runs[0].results, runs[1].results).summary()
    return f"{summary} ([details]({DETAILS_FILE}))."


def _limits(runs: Sequence[TrainedModel]) -> str:
    run = runs[0]
    easy = set.intersection(*(set(easy_families(one.results)) for one in runs))
    longest = max(FAMILIES[name].length for name in run.results.cells)
    texts = [
        f"It has {run.record['parameters'] / 1e6:.0f} M parameters. What holds for it need not hold for a model of "
        "8 B parameters.",
        "The problems are generated from templates, and the model was trained on problems of the same templates. "
        "Nothing here is about natural text, knowledge or instructions.",
        f"An answer has at most {longest} tokens. A rate that is right here need not be right for longer answers.",
        "There is one architecture, one training config and "
        + ("two seeds" if _two(runs) else "one seed")
        + ". The intervals cover the choice of the problems, not that of the training run.",
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


def _weights(runs: Sequence[TrainedModel]) -> str:
    is_tiny = runs[0].folder.resolve() == TINY.resolve()
    second = f"`{RELEASED}/{WEIGHTS}` of the repository" if is_tiny else f"`{SECOND_FOLDER}/model/{WEIGHTS}`"
    files = [f"`{WEIGHTS}`", *(second for _ in runs[1:])]
    rows = [[file, str(run.seed), f"`{run.weights_sha256}`"] for file, run in zip(files, runs, strict=True)]
    return (
        f"The checksums identify the weights of these results. [{DETAILS_FILE}]({DETAILS_FILE}) has the commands that "
        "make them again. Another GPU or another version of torch may round differently, and then the weights "
        "differ.\n\n" + Table(["weights", "seed", "sha256"], rows, labels=3).markdown()
    )


def _by_seed(runs: Sequence[TrainedModel]) -> dict[int, Results]:
    return {run.seed: run.results for run in runs}


def _two(runs: Sequence[TrainedModel]) -> bool:
    return len(runs) > 1
