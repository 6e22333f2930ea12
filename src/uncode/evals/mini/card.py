"""The card of a small model, generated from the files in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from ...core.errors import require
from ...frequency import FrequencyTable
from ...models import TABLE
from ...stats import Interval
from ..families import FAMILIES
from ..families.family import BLOCKS
from ..report.table import Table
from . import report
from .names import RATES, UNCODE, with_rate
from .results import Results

CURVE_POINTS = 12
"""Points of the loss curve on the card."""
SECOND_FOLDER = "second"
"""The folder, inside the model's, with the record and the results of a run with another seed."""


def results_of(folder: Path) -> Results:
    """The mini-suite's results for the model in a folder, from its `results.json`."""
    file = folder / "results.json"
    require(
        file.is_file(),
        f"'{folder}' has no results.json: run `uncode mini --model {folder} --out DIR` and copy it there.",
    )
    return Results.load(file)


def card(folder: Path) -> str:
    """The card of the model in a folder, as Markdown."""
    first = results_of(folder)
    parts = [
        _head(folder),
        "## Training\n\n" + _training(_record(folder)),
        "## Every sampler on every family\n\n" + _accuracy(first),
        "## Uncode's rate, chosen without labels\n\n" + _rates(first),
        "## The two biases\n\n" + _biases(first),
    ]
    if (folder / SECOND_FOLDER).is_dir():
        second = folder / SECOND_FOLDER
        parts.append("## A second run with another seed\n\n" + _second_run(first, results_of(second), _record(second)))
    parts += ["## Frequency tables\n\n" + _tables(folder), _commands(_record(folder)["config"])]
    return "\n\n".join(parts) + "\n"


def _record(folder: Path) -> dict[str, Any]:
    file = folder / "training.json"
    require(file.is_file(), f"'{folder}' has no training.json: it was not made by `uncode train`.")
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    record.setdefault("config", record.get("recipe"))  # the former key
    return record


def _head(folder: Path) -> str:
    record = _record(folder)
    size = (folder / "model.safetensors").stat().st_size / 1e6
    families = "\n".join(
        f"| `{name}` | {family.title} | {family.length} | {', '.join(style for style, _ in family.styles)} |"
        for name, family in FAMILIES.items()
    )
    return (
        f"# {record['config']}\n\n"
        "A masked diffusion language model of LLaDA's architecture, small enough to be part of a package: "
        f"{record['parameters'] / 1e6:.2f} M parameters, {size:.1f} MB in bfloat16. It answers problems of seven "
        "families, each a small version of one benchmark of the Uncode paper. It exists to show the effect of the "
        "decoding order, and knows nothing else.\n\n"
        "`uncode mini --card` prints this page from the files of the model. No number is written by hand.\n\n"
        "| family | is | tokens | styles of the training answers |\n| --- | --- | ---: | --- |\n" + families
    )


def _training(record: dict[str, Any]) -> str:
    curve = record["curve"]
    places = {round(n * (len(curve) - 1) / (CURVE_POINTS - 1)) for n in range(CURVE_POINTS)}
    shown = [curve[place] for place in sorted(places)]
    table = Table(["step", *(f"{step:,}" for step, _ in shown)], [["loss", *(f"{x:.3f}" for _, x in shown)]])
    return (
        f"The training config `{record['config']}`, seed {record['seed']}: {record['steps']:,} steps, "
        f"{record['tokens'] / 1e6:,.0f} M tokens in {record['seconds']:.0f} s (device: {record['device']}, torch "
        f"{record['torch']}). Muon updates the layers' matrices, AdamW all other parameters. The objective is the "
        "paper's Eq. 1. In a share of the rows, which the config sets, a suffix of the answer is masked instead, with "
        "a mean weight of one per token. Prompts are never masked. Answers are padded with EOS tokens, which are "
        "trained too.\n\n"
        f"{table.markdown()}"
    )


def _accuracy(results: Results) -> str:
    about = results.about
    return (
        f"{about['problems']} held-out problems per family, {about['dtype']} on one {about['device']} device, "
        f"seed {about['seed']}; accuracy in per cent with 95 % Wilson intervals. The column `{UNCODE} minus it` has "
        "paired bootstrap intervals, with problems resampled within their family.\n\n"
        f"{report.accuracy(results, intervals=True).markdown()}\n\n{_verdict(results)}\n\n{_settings()}"
    )


def _settings() -> str:
    """The settings that differ from the presets' defaults."""
    return (
        "Settings are the presets' defaults, with these exceptions. All samplers decode greedily, one token per step "
        "unless they choose more; only ReMDM samples, at its published temperature of 1. A block is an eighth of the "
        f"answer (`semi_ar 4`: a quarter, `semi_ar {2 * BLOCKS}`: a sixteenth, llada: half). Fast-dLLM and "
        "`uncode_fast_dllm` use a prefix cache. Dream uses `alg=entropy`. Decoding stops once no mask is left before "
        "an EOS token. Uncode uses `special=neutral`, which leaves EOS unweighted; the row `uncode unseen` has the "
        "preset's default, the published behaviour. Uncode's rate is chosen among seven; nothing is chosen for the "
        "baselines. The threshold of `uncode_fast_dllm` applies to the calibrated score, which is not a probability: "
        "informativeness multiplies it by up to ten, and a low rate compensates too little, so that tokens pass the "
        "threshold too early."
    )


def _standing(results: Results) -> dict[str, str]:
    """Whether Uncode is ahead of, level with or behind each baseline on average, by the paired interval."""
    return {
        name: "ahead" if gap.low > 0 else "behind" if gap.high < 0 else "level"
        for name, gap in results.gaps.items()
        if not name.startswith(UNCODE)
    }


def _verdict(results: Results) -> str:
    """The baselines that Uncode is ahead of, level with and behind on average."""
    standing = _standing(results)
    ahead, level, behind = (_names([n for n in standing if standing[n] == at]) for at in ("ahead", "level", "behind"))
    return (
        "On average over all families, Uncode with label-free rates is ahead of "
        f"{ahead} (the paired interval excludes 0), level with {level} (it includes 0) and behind {behind}. "
        "Each interval is for one comparison, without a correction for multiple comparisons. "
        f"{_easy(results)}\n\n{_fixed_rates(results)}"
    )


EASY_ACCURACY = 0.99
"""A family with this median accuracy or more does not distinguish the samplers."""


def _easy(results: Results) -> str:
    """A sentence about the families that hardly distinguish the samplers."""
    shares = {family: [cell.accuracy.estimate for cell in of.values()] for family, of in results.cells.items()}
    easy = [report.short(family) for family, found in shares.items() if median(found) >= EASY_ACCURACY]
    share = f"{100 * EASY_ACCURACY:.0f} %"
    return f"Most samplers solve {share} or more of {_names(easy)}; only the other families distinguish them."


def _fixed_rates(results: Results) -> str:
    """A comparison of the rates chosen without labels with one fixed rate for all families."""
    ours = results.solved(UNCODE)
    assert ours is not None
    fixed = {rate: solved.mean() for rate in RATES if (solved := results.solved(with_rate(rate))) is not None}
    better = sum(mean > ours.mean() for mean in fixed.values())
    return (
        f"Of {len(fixed)} fixed rates for all families, {better} have a better average than the rates that were "
        f"chosen without labels. The best fixed rate, {report.best_fixed(results):g}, was found with the labels of "
        "the test problems, which are not available in practice."
    )


def _names(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def _rates(results: Results) -> str:
    return (
        "For each family, the chosen rate has the smallest mean predictive entropy on other held-out problems. Their "
        "answers are not used.\n\n" + report.rates(results).markdown()
    )


def _biases(results: Results) -> str:
    return (
        "Measured on traces of the confidence sampler on the same problems. *Boundary*: a token's time goes from 0 "
        "(written first) to 1 (last). The columns say how much earlier than the middle of the span its first tenth is "
        "written (below 0: later), its last tenth, and the mean of the two. "
        "*Trivial*: the share of the paper's trivial tokens among the first quarter of the text tokens that are "
        "written, and the same share for a left-to-right decode by the same model. 95 % bootstrap intervals.\n\n"
        f"{report.biases(results).markdown()}\n\n{_biases_in_words(results)}\n\n"
        f"When confidence writes each tenth of the span:\n\n{report.times(results).markdown()}"
    )


def _biases_in_words(results: Results) -> str:
    """The table of biases in words."""
    families = {name: of for name, of in results.biases.items() if name != "all"}

    def families_with(key: str, sign: int) -> str:
        bounds = {name: (low, -high) for name, of in families.items() for _, low, high in [of[key]]}
        found = [report.short(name) for name, (above, below) in bounds.items() if (above if sign > 0 else below) > 0]
        return "all families" if len(found) == len(families) else _names(found)

    last, first, trivial = "last_before_middle", "first_before_middle", "trivial_excess"
    return (
        f"So the last tenth is written before the middle on {families_with(last, 1)}. The first tenth is written "
        f"before the middle on {families_with(first, 1)}, and after it on {families_with(first, -1)}. Compared with "
        f"left to right, more of the first tokens are trivial on {families_with(trivial, 1)}, and fewer on "
        f"{families_with(trivial, -1)}."
    )


def _second_run(first: Results, second: Results, record: dict[str, Any]) -> str:
    return (
        f"Seed {record['seed']}, otherwise the same: {record['seconds']:.0f} s. {_reproduced(first, second)}\n\n"
        f"{report.accuracy(second, intervals=True).markdown()}\n\n{_verdict(second)}\n\n"
        f"### Its rates\n\n{report.rates(second).markdown()}\n\n### Its biases\n\n{report.biases(second).markdown()}"
        f"\n\n{_biases_in_words(second)}"
    )


def _reproduced(first: Results, second: Results) -> str:
    """How much of the first table the second run reproduces: cells, averages, and the verdict on each baseline."""
    cells = {
        family: [(cell.accuracy, two.accuracy) for name, cell in of.items() if (two := second.cell(family, name))]
        for family, of in first.cells.items()
    }
    means = [(first.average(name), second.average(name)) for name in first.samplers()]
    averages = [(one, two) for one, two in means if one is not None and two is not None]
    apart = {report.short(family): len(pairs) - _overlapping(pairs) for family, pairs in cells.items()}
    listed = [pair for pairs in cells.values() for pair in pairs]
    after = _standing(second)
    before = {name: standing for name, standing in _standing(first).items() if name in after}
    changed = [f"{name} ({before[name]}, then {after[name]})" for name in before if before[name] != after[name]]
    return (
        f"Of {len(listed)} cells (with the label-free ones), {_inside(listed)} lie inside the interval of the "
        "table above, and the intervals of "
        f"{_overlapping(listed)} overlap. Of {len(averages)} averages, {_inside(averages)} lie inside, and the "
        f"intervals of {_overlapping(averages)} overlap. Cells without overlap: "
        f"{_names([f'{name} {count}' for name, count in apart.items() if count])}. The intervals cover the choice of "
        "problems only; two training runs differ by more. The two runs agree on Uncode's place against "
        f"{len(before) - len(changed)} of {len(before)} baselines"
        + (f", and disagree on {_names(changed)}." if changed else ".")
    )


Pair = tuple[Interval, Interval]


def _inside(pairs: list[Pair]) -> int:
    return sum(one.low <= two.estimate <= one.high for one, two in pairs)


def _overlapping(pairs: list[Pair]) -> int:
    return sum(one.low <= two.high and two.low <= one.high for one, two in pairs)


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
        + Table(["file", "corpus", "tokens"], rows).markdown()
    )


def _commands(name: str) -> str:
    lines = (
        "# in a checkout of the repository, with the extra `train`",
        f"uncode train {name} --out mine --prepare   # training examples, tokenizer, the text to count",
        f"uncode train {name} --out mine --device cuda",
        f"uncode count mine/examples/curriculum.jsonl --tokenizer mine/model --out mine/model/{TABLE}",
        "uncode mini --model mine/model --device cuda --workers 7 --out mini",
        "cp mini/results.json mine/model/   # of another seed: training.json and results.json to mine/model/second",
        "python -m uncode.evals.mini.write mine/model   # this card, and a sampler for each family",
    )
    return "\n".join(("## Make it again\n", "```sh", *lines, "```"))
