"""The card of the embedded model, written from the files that lie beside its weights."""

from __future__ import annotations

import json
from typing import Any

from ...frequency import FrequencyTable
from ...models import TINY
from ...stats import paired_bootstrap
from ..families import FAMILIES
from . import report
from .contenders import UNCODE
from .results import Results

POINTS = 12
"""Of the loss curve."""


def own_results() -> Results:
    """What the mini-suite found for the shipped weights."""
    return Results.load(TINY / "results.json")


def second_results() -> Results:
    """The same for a model trained with another seed, which is not shipped."""
    return Results.load(TINY / "second" / "results.json")


def card() -> str:
    """The card as Markdown."""
    first, second = own_results(), second_results()
    parts = [
        _head(),
        "## Training\n\n" + _training(),
        "## Every sampler on every family\n\n" + _accuracy(first),
        "## Uncode's rate, chosen without labels\n\n" + _rates(first),
        "## The two biases\n\n" + _biases(first),
        "## A second run with another seed\n\n" + _again(first, second),
        "## Frequency tables\n\n" + _tables(),
        _foot(),
    ]
    return "\n\n".join(parts) + "\n"


def _record(folder: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TINY / folder / "training.json").read_text(encoding="utf-8"))
    return found


def _head() -> str:
    record = _record()
    size = (TINY / "model.safetensors").stat().st_size / 1e6
    families = "\n".join(
        f"| `{name}` | {family.title} | {family.length} | {', '.join(style for style, _ in family.styles)} |"
        for name, family in FAMILIES.items()
    )
    return (
        "# tiny\n\n"
        "A masked diffusion language model of LLaDA's architecture, small enough to be part of a package: "
        f"{record['parameters'] / 1e6:.2f} M parameters, {size:.1f} MB in bfloat16. It answers problems of seven "
        "families, each a miniature of one benchmark of the Uncode paper, and is there to show what the order of "
        "decoding does. It knows nothing else.\n\n"
        "This page is printed by `uncode mini --card` from the files beside it; no number is written by hand.\n\n"
        "| family | is | tokens | styles of answer it was taught |\n| --- | --- | ---: | --- |\n" + families
    )


def _training() -> str:
    record = _record()
    curve = record["curve"]
    shown = [curve[round(n * (len(curve) - 1) / (POINTS - 1))] for n in range(POINTS)]
    table = report.Table(["step", *(f"{step:,}" for step, _ in shown)], [["loss", *(f"{x:.3f}" for _, x in shown)]])
    return (
        f"`recipes/tiny.toml`, seed {record['seed']}: {record['steps']:,} steps, {record['tokens'] / 1e6:,.0f} M tokens "
        f"in {record['seconds']:.0f} s on one {record['device']} with torch {record['torch']}. The objective is the "
        "paper's Eq. 1; prompts are never hidden, answers are padded with end tokens and trained on them.\n\n"
        f"{table.markdown()}"
    )


def _accuracy(results: Results) -> str:
    about = results.about
    return (
        f"{about['problems']} held-out problems a family, {about['dtype']} on one {about['device']} device, "
        f"seed {about['seed']}; per cent right with 95 % Wilson intervals. The average and the last comparison have "
        "bootstrap intervals over all problems, the comparison paired.\n\n"
        f"{report.accuracy(results, intervals=True).markdown()}\n\n{_verdict(results)}"
    )


def _verdict(results: Results) -> str:
    """Whether Uncode is ahead of every baseline on the average, as the paper has it."""
    ours, ahead, level, behind = results.solved(UNCODE), list[str](), list[str](), list[str]()
    assert ours is not None
    for name in results.samplers():
        theirs = None if name.startswith(UNCODE) else results.solved(name)
        if theirs is not None:
            gap = paired_bootstrap(ours, theirs)
            (ahead if gap.low > 0 else behind if gap.high < 0 else level).append(name)
    return (
        f"On the average, Uncode with label-free rates is ahead of {_names(ahead)} (the paired interval excludes 0), "
        f"level with {_names(level)} (it includes 0) and behind {_names(behind)}."
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
        "(last); how much earlier the first and the last tenth of the span are than its middle. *Trivial*: the share "
        "of the paper's trivial tokens among the first quarter of the text's tokens to be written, and the same for a "
        "left-to-right decode by the same model. 95 % bootstrap intervals.\n\n"
        f"{report.biases(results).markdown()}\n\nWhen confidence writes each tenth of the span:\n\n"
        f"{report.times(results).markdown()}"
    )


def _again(first: Results, second: Results) -> str:
    record = _record("second")
    pairs = [
        (cell.accuracy, other.accuracy)
        for family, cells in first.cells.items()
        for name, cell in cells.items()
        if (other := second.cells.get(family, {}).get(name)) is not None
    ]
    inside = sum(one.low <= two.estimate <= one.high for one, two in pairs)
    overlap = sum(one.low <= two.high and two.low <= one.high for one, two in pairs)
    return (
        f"Seed {record['seed']}, otherwise the same: {record['seconds']:.0f} s. Of {len(pairs)} cells, {inside} lie "
        f"inside the interval of the table above, and the intervals of {overlap} overlap.\n\n"
        f"{report.accuracy(second, intervals=True).markdown()}\n\n{_verdict(second)}\n\n"
        f"{report.rates(second).markdown()}\n\n{report.biases(second).markdown()}"
    )


def _tables() -> str:
    files = [TINY / "frequency.safetensors", *sorted((TINY / "tables").glob("*.safetensors"))]
    tables = [(file, FrequencyTable.load(file)) for file in files]
    rows = [
        [f"`{file.relative_to(TINY)}`", table.made.corpus or table.name, f"{int(table.total):,}"]
        for file, table in tables
    ]
    return (
        "Made by `uncode count`; special tokens are not counted. The first is the model's own, the others are for "
        "comparing corpora.\n\n" + report.Table(["file", "corpus", "tokens"], rows).markdown()
    )


def _foot() -> str:
    return (
        "## Make it again\n\n"
        "```sh\n"
        "pip install 'uncode[train]'\n"
        "uncode train recipes/tiny.toml --out tiny --prepare   # lessons, tokenizer, the text to count\n"
        "uncode train recipes/tiny.toml --out tiny             # one GPU\n"
        "uncode count tiny/lessons/curriculum.jsonl --tokenizer tiny/model --out tiny/model/frequency.safetensors\n"
        "uncode mini --model tiny/model --out mini             # the tables above\n"
        "```"
    )
