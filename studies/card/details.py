"""The second page of a model's card: everything that the first page leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from uncode.evals.report.table import TextTable
from uncode.evals.suite import report
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.family import BLOCKS
from uncode.evals.suite.names import RATES, UNCODE, with_rate
from uncode.evals.suite.results import Results
from uncode.frequency import FrequencyTable
from uncode.models import TABLE, TINY
from uncode.util.stats import Interval, McNemar, newcombe

from ..agreement import Agreement, Pair
from ..trainings import ROOT, TINY_CONFIG, Training
from .claims import sign_of
from .page import COMMAND

DIRECT = "left_to_right direct"
"""Left to right, forced to answer without reasoning. It runs on the families that have such answers."""
MAX_NAMED_PAIRS = 12
"""Pairs of samplers that the text names; the table has all."""
CURVE_POINTS = 12
"""Points of the loss curve."""


def details(runs: Sequence[Training]) -> str:
    """The details, as Markdown."""
    sections = {
        "Families": _families(),
        "Training": _training(runs),
        "Settings of the samplers": _settings(),
        "Every cell": _cells(runs),
        "Are the reasons needed?": _direct_answers(runs),
        "Two seeds": _two_seeds(runs),
        "Uncode's rate, chosen without labels": _rates(runs),
        "The two biases": _biases(runs),
        "Frequency tables": _tables(),
        "Make it again": _commands(runs),
    }
    head = (
        f"# {runs[0].name}: details\n\nFor readers of the [card](README.md) who want every cell, the training and "
        f"the settings behind it. `{COMMAND}` writes both pages from stored results. No number is written by hand."
    )
    return "\n\n".join([head, *(f"## {title}\n\n{text}" for title, text in sections.items() if text)]) + "\n"


def _families() -> str:
    rows = [
        [f"`{name}`", family.title, str(family.length), ", ".join(style for style, _ in family.styles)]
        for name, family in FAMILIES.items()
    ]
    titles = ["family", "is", "tokens", "styles of the training answers"]
    return TextTable(titles, rows, labels=4).markdown()


def _training(runs: Sequence[Training]) -> str:
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
    table = TextTable(["step", *(f"{step:,}" for step, _ in shown)], [["loss", *(f"{x:.3f}" for _, x in shown)]])
    found = [
        f"`{record['config']}`",
        f"{record['steps']:,}",
        f"{record['tokens'] / 1e6:,.0f}",
        f"{record['seconds']:.0f}",
        record["device"],
        record["torch"],
    ]
    about = TextTable(["config", "steps", "M tokens", "seconds", "device", "torch"], [found])
    return f"### Training, seed {record['seed']}\n\n{about.markdown()}\n\n{table.markdown()}"


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


def _cells(runs: Sequence[Training]) -> str:
    about = runs[0].results.about
    return (
        f"{about['problems']:,} held-out problems per family, {about['dtype']} on one {about['device']} device, "
        f"decoding seed {about['seed']}. Accuracy in per cent with 95 % Wilson intervals. The column `{UNCODE} minus "
        "it` has Newcombe's intervals for paired differences, without a correction for multiple "
        "comparisons.\n\n" + "\n\n".join(_cells_of(run) for run in runs)
    )


def _cells_of(run: Training) -> str:
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
        f"{better} of {len(fixed)} fixed rates have a better average than the rates that were chosen without labels. "
        f"The best, {report.best_fixed(results):g}, was found with the labels of the test problems, which are not "
        "available in practice."
    )


def _direct_answers(runs: Sequence[Training]) -> str:
    """Whether reasons are needed: direct answers against left to right, for the families that have both."""
    rows = []
    gaps = list[Interval]()
    for run, family in product(runs, FAMILIES):
        forced, reasoned = (run.results.cell(family, name) for name in (DIRECT, "left_to_right"))
        if forced is not None and reasoned is not None:
            gaps.append(newcombe(reasoned.solved, forced.solved))
            shown = [report.percent(cell.accuracy, whole=True) for cell in (forced, reasoned)]
            rows.append([report.short(family), str(run.seed), *shown, report.points(gaps[-1])])
    if not rows:
        return ""
    table = TextTable(["family", "seed", "forced to answer directly", "left to right", "difference"], rows)
    helps = sum(sign_of(gap) > 0 for gap in gaps)
    return (
        "In these families some training answers have no reasoning: one in ten, and two in ten for choice. To force "
        f"such an answer, we give the model its first words.\n\n{table.markdown()}\n\n"
        f"Reasons help in {helps} of {len(gaps)} lines: the paired 95 % interval of the difference is above 0."
    )


def _two_seeds(runs: Sequence[Training]) -> str:
    """How much of the first run the second reproduces: cells, averages, and the sign of every difference."""
    first, second = (run.results for run in runs)
    agreement = Agreement.of(first, second)
    cells = {
        family: [(cell.accuracy, two.accuracy) for name, cell in of.items() if (two := second.cell(family, name))]
        for family, of in first.cells.items()
    }
    listed = [pair for pairs in cells.values() for pair in pairs]
    inside = sum(one.low <= two.estimate <= one.high for one, two in listed)
    apart = {report.short(family): len(pairs) - _overlapping(pairs) for family, pairs in cells.items()}
    counts = TextTable(
        ["cells of both runs", ""],
        [
            ["all", str(len(listed))],
            ["of the second run, inside the interval of the first", str(inside)],
            ["whose intervals overlap", str(_overlapping(listed))],
            *([f"without overlap: {name}", str(count)] for name, count in apart.items() if count),
        ],
    )
    changes = TextTable(
        ["sampler", *(f"average, seed {run.seed}" for run in runs), "change in points"],
        [[one.sampler, f"{100 * one.first:.1f}", f"{100 * one.second:.1f}", f"{one.points:+.1f}"]
         for one in agreement.changes],
    )  # fmt: skip
    return (
        "Two training runs differ by more than their intervals say, which cover the choice of the problems only."
        f"\n\n{counts.markdown()}\n\n{changes.markdown()}\n\n"
        f"{_signs(agreement)}\n\n{_differing(agreement, runs)}"
    )


def _overlapping(pairs: Sequence[tuple[Interval, Interval]]) -> int:
    return sum(one.low <= two.high and two.low <= one.high for one, two in pairs)


def _signs(agreement: Agreement) -> str:
    corrected, plain = ([len(agreement.significant(holm)), len(agreement.differing(holm))] for holm in (True, False))
    rows = [
        ["pairs of samplers", str(len(agreement.pairs))],
        ["significant in at least one run", str(corrected[0])],
        ["of these, without the same sign in both", str(corrected[1])],
        [
            "significant in both runs, with opposite signs",
            str(sum(pair.is_contradiction() for pair in agreement.pairs)),
        ],
        ["without the correction: significant in at least one run", str(plain[0])],
        ["of these, without the same sign in both", str(plain[1])],
    ]
    return (
        f"{agreement.claim()}\n\n{TextTable(['exact McNemar test on all problems', ''], rows).markdown()}\n\n"
        "Every fixed rate counts as a sampler. A pair is significant at p < 0.05 after Holm's correction over the "
        f"pairs of a run, unless the line says otherwise.{_named(agreement.differing())}"
    )


def _named(pairs: Sequence[Pair]) -> str:
    if not pairs:
        return ""
    names = ", ".join(f"{pair.a} / {pair.b}" for pair in pairs[:MAX_NAMED_PAIRS])
    return f" Pairs without the same sign: {names}{', ...' if len(pairs) > MAX_NAMED_PAIRS else ''}."


def _differing(agreement: Agreement, runs: Sequence[Training]) -> str:
    """The pairs of samplers whose difference is significant in either run and has another sign in the other."""
    found = agreement.differing(is_corrected=False)
    pairs = sorted(found, key=lambda pair: min(pair.first.counts.p, pair.second.counts.p))
    if not pairs:
        return "No pair of samplers that is significant in either run has another sign in the other."
    rows = [
        [f"{pair.a} / {pair.b}", *(_counts(test.counts) for test in (pair.first, pair.second)),
         "yes" if pair.is_significant() else ""]
        for pair in pairs
    ]  # fmt: skip
    titles = ["pair", *(f"seed {run.seed}: only the first, only the second, p" for run in runs), "after Holm"]
    return (
        "Pairs that differ significantly in either run without a correction, and do not have the same sign in both:"
        f"\n\n{TextTable(titles, rows).markdown()}\n\n"
        "The numbers are the problems that only the first sampler of the pair solves, and that only the second solves. "
        "The last column says whether one of the two p-values is below 0.05 after Holm's correction."
    )


def _counts(counts: McNemar) -> str:
    return f"{counts.only_a}, {counts.only_b}, {'< 0.001' if counts.p < 0.001 else f'{counts.p:.3f}'}"


def _rates(runs: Sequence[Training]) -> str:
    chosen = [run for run in runs if run.results.entropies]
    tables = [f"### Rates, seed {run.seed}\n\n{report.rates(run.results).markdown()}" for run in chosen]
    if not tables:
        return ""
    return (
        "For each family, the chosen rate has the smallest mean predictive entropy on other held-out problems. Their "
        "answers are not used.\n\n" + "\n\n".join(tables)
    )


def _biases(runs: Sequence[Training]) -> str:
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


def _biases_of(run: Training) -> str:
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


def _tables() -> str:
    files = [TINY / TABLE, *sorted((TINY / "tables").glob("*.safetensors"))]
    tables = [(file, FrequencyTable.load(file)) for file in files]
    rows = [
        [f"`{file.relative_to(TINY)}`", table.made.corpus or table.name, f"{int(table.total):,}"]
        for file, table in tables
    ]
    return (
        "Counted by `uncode count` with the model's tokenizer, without special tokens. The first table is the model's "
        "own, counted from the curriculum. The others are for comparisons of corpora.\n\n"
        + TextTable(["file", "corpus", "tokens"], rows, labels=2).markdown()
    )


def _commands(runs: Sequence[Training]) -> str:
    """The commands that make both models and their results again."""
    first, second = runs
    config, at = TINY_CONFIG.relative_to(ROOT), "second"
    lines = [
        (f"uncode train {config} --out mine --prepare", "draws the training examples"),
        (f"uncode train {config} --out mine --device cuda", "writes mine/model"),
        (f"uncode count mine/examples/curriculum.jsonl --tokenizer mine/model --out mine/model/{TABLE}", ""),
        ("uncode mini --all --model mine/model --device cuda --workers 7 --out mini", ""),
        (f"cp mini/results.json studies/results/seed-{first.seed}.json", ""),
        (f"uncode train {config} --seed {second.seed} --out {at} --data mine/examples --device cuda", f"{at}/model"),
        (f"cp mine/model/{TABLE} {at}/model/", ""),
        (f"uncode mini --all --model {at}/model --device cuda --workers 7 --out mini-{at}", ""),
        (f"cp mini-{at}/results.json studies/results/seed-{second.seed}.json", ""),
        (COMMAND, "writes the card (extra `plots`)"),
    ]
    code = "\n".join(f"{command}   # {comment}" if comment else command for command, comment in lines)
    return f"```sh\n{code}\n```"
