"""The second page of a model's card: everything that the first page leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....frequency import FrequencyTable
from ....models import TABLE
from ....util.stats import Interval
from ...report.table import Table
from .. import report
from ..families import FAMILIES
from ..families.family import BLOCKS
from ..folder import TrainedModel, load_runs
from ..names import RATES, UNCODE, with_rate
from ..results import Results
from .claims import sign_of
from .commands import commands
from .direct import direct_answers
from .two_seeds import two_seeds

CURVE_POINTS = 12
"""Points of the loss curve."""


def details(folder: Path) -> str:
    """The details of the model in a folder, as Markdown."""
    runs = load_runs(folder)
    sections = {
        "Families": _families(),
        "Training": _training(runs),
        "Settings of the samplers": _settings(),
        "Every cell": _cells(runs),
        "Are the reasons needed?": direct_answers(runs),
        "Two seeds": two_seeds(runs) if len(runs) > 1 else "",
        "Uncode's rate, chosen without labels": _rates(runs),
        "The two biases": _biases(runs),
        "Frequency tables": _tables(folder),
        "Make it again": commands(runs),
    }
    head = (
        f"# {runs[0].name}: details\n\nThe [card](README.md) is the page to read first. Both pages are written by "
        "`python -m uncode.evals.suite.write FOLDER` from the files of the model. No number is written by hand."
    )
    return "\n\n".join([head, *(f"## {title}\n\n{text}" for title, text in sections.items() if text)]) + "\n"


def _families() -> str:
    rows = [
        [f"`{name}`", family.title, str(family.length), ", ".join(style for style, _ in family.styles)]
        for name, family in FAMILIES.items()
    ]
    titles = ["family", "is", "tokens", "styles of the training answers"]
    return Table(titles, rows, labels=4).markdown()


def _training(runs: Sequence[TrainedModel]) -> str:
    return (
        "Muon updates the layers' matrices, AdamW all other parameters. The objective is the paper's Eq. 1. In a share "
        "of the rows, which the config sets, a suffix of the answer is masked instead, with a mean weight of one per "
        "token. Prompts are never masked. Answers are padded with EOS tokens, which are trained too. Runs with "
        "different seeds learn from the same examples.\n\n" + "\n\n".join(_run(run.record) for run in runs)
    )


def _run(record: dict[str, Any]) -> str:
    curve = record["curve"]
    places = {round(n * (len(curve) - 1) / (CURVE_POINTS - 1)) for n in range(CURVE_POINTS)}
    shown = [curve[place] for place in sorted(places)]
    table = Table(["step", *(f"{step:,}" for step, _ in shown)], [["loss", *(f"{x:.3f}" for _, x in shown)]])
    return (
        f"Seed {record['seed']}, config `{record['config']}`: {record['steps']:,} steps, "
        f"{record['tokens'] / 1e6:,.0f} M tokens in {record['seconds']:.0f} s (device: {record['device']}, torch "
        f"{record['torch']}).\n\n{table.markdown()}"
    )


def _settings() -> str:
    """The settings that differ from the presets' defaults."""
    return (
        "Settings are the presets' defaults, with these exceptions.\n\n"
        "* All samplers decode greedily, one token per step unless they choose more. Only ReMDM samples, at its "
        "published temperature of 1.\n"
        f"* A block is an eighth of the answer (`semi_ar 4`: a quarter, `semi_ar {2 * BLOCKS}`: a sixteenth, llada: "
        "half).\n"
        "* Rows named `prefix` use a prefix cache, all others none. Dream uses `alg=entropy`.\n"
        "* Decoding stops once no mask is left before an EOS token.\n"
        "* Uncode uses `special=neutral`, which leaves EOS unweighted. `uncode unseen` has the preset's default, the "
        "published behaviour.\n"
        f"* Uncode's rate is chosen among {len(RATES)}. Nothing is chosen for the baselines.\n"
        "* The threshold of `uncode_fast_dllm` applies to the calibrated score, which is not a probability. "
        "Informativeness multiplies the score by up to ten, and a low rate compensates too little, so tokens pass the "
        "threshold too early."
    )


def _cells(runs: Sequence[TrainedModel]) -> str:
    about = runs[0].results.about
    return (
        f"{about['problems']:,} held-out problems per family, {about['dtype']} on one {about['device']} device, "
        f"decoding seed {about['seed']}. Accuracy in per cent with 95 % Wilson intervals. The column `{UNCODE} minus "
        "it` has Newcombe's intervals for paired differences, without a correction for multiple "
        "comparisons.\n\n" + "\n\n".join(_cells_of(run) for run in runs)
    )


def _cells_of(run: TrainedModel) -> str:
    return (
        f"### Training seed {run.seed}\n\n{report.accuracy(run.results, intervals=True).markdown()}\n\n"
        f"{_fixed_rates(run.results)}"
    ).rstrip()


def _fixed_rates(results: Results) -> str:
    """A comparison of the rates chosen without labels with one fixed rate for all families."""
    ours = results.solved(UNCODE)
    fixed = {rate: solved.mean() for rate in RATES if (solved := results.solved(with_rate(rate))) is not None}
    if ours is None or not fixed:
        return ""
    better = sum(mean > ours.mean() for mean in fixed.values())
    return (
        f"Of {len(fixed)} fixed rates for all families, {better} have a better average than the rates that were "
        f"chosen without labels. The best fixed rate, {report.best_fixed(results):g}, was found with the labels of "
        "the test problems, which are not available in practice."
    )


def _rates(runs: Sequence[TrainedModel]) -> str:
    chosen = [run for run in runs if run.results.entropies]
    tables = [f"### Rates, seed {run.seed}\n\n{report.rates(run.results).markdown()}" for run in chosen]
    if not tables:
        return ""
    return (
        "For each family, the chosen rate has the smallest mean predictive entropy on other held-out problems. Their "
        "answers are not used.\n\n" + "\n\n".join(tables)
    )


def _biases(runs: Sequence[TrainedModel]) -> str:
    measured = [run for run in runs if run.results.biases]
    if not measured:
        return ""
    return (
        "Measured on traces of the confidence sampler on the same problems. *Boundary*: a token's time goes from 0 "
        "(written first) to 1 (last). The columns say how much earlier than the middle of the span its first tenth is "
        "written (below 0: later), its last tenth, and the mean of the two. "
        "*Trivial*: the share of the paper's trivial tokens among the first quarter of the text tokens that are "
        "written, and the same share for a left-to-right decode by the same model. 95 % bootstrap intervals.\n\n"
        + "\n\n".join(_biases_of(run) for run in measured)
    )


def _biases_of(run: TrainedModel) -> str:
    return (
        f"### Biases, seed {run.seed}\n\n{report.biases(run.results).markdown()}\n\n{_biases_in_words(run.results)}\n\n"
        f"When confidence writes each tenth of the span:\n\n{report.times(run.results).markdown()}"
    )


def _biases_in_words(results: Results) -> str:
    """The table of biases in words."""
    families = {name: of for name, of in results.biases.items() if name != "all"}

    def families_with(key: str, sign: int) -> str:
        found = [report.short(name) for name, of in families.items() if sign_of(Interval.read(of[key])) == sign]
        return "all families" if len(found) == len(families) else ", ".join(found) or "none"

    last, first, trivial = "last_before_middle", "first_before_middle", "trivial_excess"
    return (
        f"So the last tenth is written before the middle on {families_with(last, 1)}. The first tenth is written "
        f"before the middle on {families_with(first, 1)}, and after it on {families_with(first, -1)}. Compared with "
        f"left to right, more of the first tokens are trivial on {families_with(trivial, 1)}, and fewer on "
        f"{families_with(trivial, -1)}."
    )


def _tables(folder: Path) -> str:
    files = [folder / TABLE, *sorted((folder / "tables").glob("*.safetensors"))]
    tables = [(file, FrequencyTable.load(file)) for file in files]
    rows = [
        [f"`{file.relative_to(folder)}`", table.made.corpus or table.name, f"{int(table.total):,}"]
        for file, table in tables
    ]
    return (
        "Counted by `uncode count` with the model's tokenizer, without special tokens. The first table is the model's "
        "own, counted from the curriculum. The others are for comparisons of corpora.\n\n"
        + Table(["file", "corpus", "tokens"], rows, labels=2).markdown()
    )
