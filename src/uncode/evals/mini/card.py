"""The card of a small model, written from the files that lie beside its weights."""

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
from . import report
from .names import BLOCKS, RATES, UNCODE, with_rate
from .results import Results

POINTS = 12
"""Of the loss curve."""


SECOND = "second"
"""Record and results of a run with another seed, in a folder of the model's."""


def results_of(folder: Path) -> Results:
    """What the mini-suite found for the model in a folder, which lies there as `results.json`."""
    file = folder / "results.json"
    require(
        file.is_file(), f"'{folder}' has no results: run `uncode mini --model {folder} --out DIR`, copy them there."
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
    if (folder / SECOND).is_dir():
        second = folder / SECOND
        parts.append("## A second run with another seed\n\n" + _again(first, results_of(second), _record(second)))
    parts += ["## Frequency tables\n\n" + _tables(folder), _foot(_record(folder)["config"])]
    return "\n\n".join(parts) + "\n"


def _record(folder: Path) -> dict[str, Any]:
    file = folder / "training.json"
    require(file.is_file(), f"'{folder}' has no training.json: it was not made by `uncode train`.")
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    record.setdefault("config", record.get("recipe"))  # the key of 0.1.0
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
        "families, each a miniature of one benchmark of the Uncode paper, and is there to show what the order of "
        "decoding does. It knows nothing else.\n\n"
        "This page is printed by `uncode mini --card` from the files of the model; no number is written by hand.\n\n"
        "| family | is | tokens | styles of answer it was taught |\n| --- | --- | ---: | --- |\n" + families
    )


def _training(record: dict[str, Any]) -> str:
    curve = record["curve"]
    places = {round(n * (len(curve) - 1) / (POINTS - 1)) for n in range(POINTS)}
    shown = [curve[place] for place in sorted(places)]
    table = report.Table(["step", *(f"{step:,}" for step, _ in shown)], [["loss", *(f"{x:.3f}" for _, x in shown)]])
    return (
        f"The training config `{record['config']}`, seed {record['seed']}: {record['steps']:,} steps, "
        f"{record['tokens'] / 1e6:,.0f} M tokens in {record['seconds']:.0f} s (device: {record['device']}, torch "
        f"{record['torch']}). Muon for the layers' matrices, AdamW for the rest. The objective is the "
        "paper's Eq. 1, and in a share of the rows, which the config gives, an answer's end is hidden instead, each "
        "token counting one on the average. Prompts are never hidden, answers are padded with end tokens and trained "
        "on them.\n\n"
        f"{table.markdown()}"
    )


def _accuracy(results: Results) -> str:
    about = results.about
    return (
        f"{about['problems']} held-out problems a family, {about['dtype']} on one {about['device']} device, "
        f"seed {about['seed']}; per cent right with 95 % Wilson intervals. The last comparison has "
        "paired bootstrap intervals, problems resampled within their family.\n\n"
        f"{report.accuracy(results, intervals=True).markdown()}\n\n{_verdict(results)}\n\n{_settings()}"
    )


def _settings() -> str:
    """What the samplers were given, where it is not the preset's default."""
    return (
        "Settings are the presets' defaults but for these. All decode greedily and one token a step unless they choose "
        "more; ReMDM alone draws, at its published temperature of 1. Blocks are an eighth of the answer (`semi_ar 4`:"
        f" a quarter, `semi_ar {2 * BLOCKS}`: a sixteenth, llada: half). Fast-dLLM and its Uncode have a prefix cache."
        " Dream takes `alg=entropy`. Decoding ends once no mask is left before an end token. Uncode takes "
        "`special=neutral`, which neither pushes nor pulls end tokens; the preset's default, the published behaviour, "
        "is the row `uncode unseen`. Its rate is chosen among seven; nothing is chosen for the baselines. The "
        "threshold of `uncode_fast_dllm` is on the calibrated score, which is no probability: informativeness "
        "multiplies it by up to ten, and where the rate is low too little is taken back, so that tokens pass too soon."
    )


def _standing(results: Results) -> dict[str, str]:
    """Where Uncode stands against each baseline on the average: ahead, level or behind, by the paired interval."""
    return {
        name: "ahead" if gap.low > 0 else "behind" if gap.high < 0 else "level"
        for name, gap in results.gaps.items()
        if not name.startswith(UNCODE)
    }


def _verdict(results: Results) -> str:
    """Whether Uncode is ahead of every baseline on the average, as the paper has it."""
    standing = _standing(results)
    ahead, level, behind = (_names([n for n in standing if standing[n] == at]) for at in ("ahead", "level", "behind"))
    return (
        "On the average of all families Uncode with label-free rates is, among the baselines, ahead of "
        f"{ahead} (the paired interval excludes 0), level with {level} (it includes 0) and behind {behind}. "
        "Each interval is for one comparison; no allowance is made for their number. "
        f"{_easy(results)}\n\n{_price(results)}"
    )


EASY = 0.99
"""The share that is right from which a family tells samplers apart no more."""


def _easy(results: Results) -> str:
    """Which families hardly tell samplers apart."""
    shares = {family: [cell.accuracy.estimate for cell in of.values()] for family, of in results.cells.items()}
    easy = [report.short(family) for family, found in shares.items() if median(found) >= EASY]
    share = f"{100 * EASY:.0f} %"
    return f"Most samplers solve {share} or more of {_names(easy)}: what tells them apart are the other families."


def _price(results: Results) -> str:
    """What choosing the rate without labels costs, against one rate for all families."""
    ours = results.solved(UNCODE)
    assert ours is not None
    fixed = {rate: solved.mean() for rate in RATES if (solved := results.solved(with_rate(rate))) is not None}
    better = sum(mean > ours.mean() for mean in fixed.values())
    return (
        f"Of {len(fixed)} fixed rates, one for all families, {better} do better on the average than the rates that "
        f"were chosen without labels. The best of them, {report.best_fixed(results):g}, was found with the labels of "
        "these very problems, which nobody has beforehand."
    )


def _names(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def _rates(results: Results) -> str:
    return (
        "For each family the rate with the least mean predictive entropy on problems that are not tested and whose "
        "answers nobody looked at.\n\n" + report.rates(results).markdown()
    )


def _biases(results: Results) -> str:
    return (
        "From traces of confidence on the same problems. *Boundary*: when a token is written, from 0 (first) to 1 "
        "(last); how much earlier than its middle the first tenth of the span is (below 0: later), the last tenth, and "
        "the mean of the two. "
        "*Trivial*: the share of the paper's trivial tokens among the first quarter of a text to be written, "
        "and the same for a left-to-right decode by the same model. 95 % bootstrap intervals.\n\n"
        f"{report.biases(results).markdown()}\n\n{_seen(results)}\n\nWhen confidence writes each tenth of the span:\n\n"
        f"{report.times(results).markdown()}"
    )


def _seen(results: Results) -> str:
    """What the table of biases shows, and what it does not."""
    families = {name: of for name, of in results.biases.items() if name != "all"}

    def where(key: str, sign: int) -> str:
        bounds = {name: (low, -high) for name, of in families.items() for _, low, high in [of[key]]}
        found = [report.short(name) for name, (above, below) in bounds.items() if (above if sign > 0 else below) > 0]
        return "all families" if len(found) == len(families) else _names(found)

    last, first, trivial = "last_before_middle", "first_before_middle", "trivial_excess"
    return (
        f"So the last tenth is written before the middle on {where(last, 1)}; the first tenth is written before it on "
        f"{where(first, 1)} and after it on {where(first, -1)}. More of the first tokens are trivial than from left to "
        f"right on {where(trivial, 1)}, fewer on {where(trivial, -1)}."
    )


def _again(first: Results, second: Results, record: dict[str, Any]) -> str:
    return (
        f"Seed {record['seed']}, otherwise the same: {record['seconds']:.0f} s. {_reproduced(first, second)}\n\n"
        f"{report.accuracy(second, intervals=True).markdown()}\n\n{_verdict(second)}\n\n"
        f"### Its rates\n\n{report.rates(second).markdown()}\n\n### Its biases\n\n{report.biases(second).markdown()}"
        f"\n\n{_seen(second)}"
    )


def _reproduced(first: Results, second: Results) -> str:
    """How much of the first table the second one repeats: cells, averages, and the verdict on each baseline."""
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
        f"Of {len(listed)} cells (label-free ones are among them), {_inside(listed)} lie inside the interval of the "
        "table above, and the intervals of "
        f"{_overlapping(listed)} overlap; of {len(averages)} averages, {_inside(averages)} lie inside and the "
        f"intervals of {_overlapping(averages)} overlap. The cells that are apart: "
        f"{_names([f'{name} {count}' for name, count in apart.items() if count])}. The intervals are of the problems: "
        "two trainings differ by more. The two runs place Uncode alike against "
        f"{len(before) - len(changed)} of {len(before)} baselines"
        + (f", not against {_names(changed)}." if changed else ".")
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
        "Made by `uncode count` with the model's tokenizer; special tokens are not counted. The first is of the "
        "curriculum and the model's own, the others are for comparing corpora.\n\n"
        + report.Table(["file", "corpus", "tokens"], rows).markdown()
    )


def _foot(name: str) -> str:
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
