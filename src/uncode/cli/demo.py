"""`uncode demo`: three problems, three orders, real weights: what is right, what is wrong, and why."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..backbones.load import TABLE, load
from ..core.denoiser import Denoiser
from ..core.errors import require
from ..core.policy import Sampler
from ..evals.families import FAMILIES
from ..evals.families.family import Family
from ..evals.mini.card import results_of
from ..evals.mini.contenders import UNCODE, at_rate, baselines
from ..evals.mini.report import short
from ..evals.mini.results import Results
from ..evals.task import Grade
from ..generate import begin
from ..prompt import answers, read_prompts
from ..viewer.moments import summary
from ..viewer.page import Trajectory, Verdict, write_page
from .drawing import draw, spots_of
from .live import watch
from .progress import writable

SEED = 2026
SHOWN = ("mini_story", "mini_algebra", "mini_choice")
"""Families with an order to their answers: reasons first, then the result."""
SAMPLERS = ("confidence", "semi_ar", UNCODE)


def command(
    model: Annotated[Path, typer.Option(metavar="DIR", help="The model, with its results beside it.")],
    page: Annotated[Path, typer.Option(metavar="FILE", help="Where the page goes (HTML).")] = Path("demo.html"),
    seed: Annotated[int, typer.Option(help="Which problems are drawn.")] = SEED,
) -> None:
    """Solve three problems with a small model under confidence, semi-AR and Uncode; write a page to replay them.

    Examples:

      uncode demo --model tiny/model

      uncode demo --model tiny/model --seed 7 --page other.html
    """
    writable(page, "--page")
    console, results = Console(highlight=False), results_of(model)
    rates = {name: results.rate(name) for name in SHOWN}
    denoiser = load(model, device="cpu")
    table = getattr(denoiser, "frequency", None)
    require(
        table is not None, f"'{model}' has no frequency table: count one with `uncode count --out {model / TABLE}`."
    )
    assert table is not None
    drawn = Random(seed)
    trajectories = list[Trajectory]()
    for name in SHOWN:
        family = FAMILIES[name]
        example = drawn.choice(family.examples())
        console.rule(Text(f"{short(name)}: a problem like those of {family.real.title}"))
        console.print(Text(family.prompt(example)), "")
        known = baselines(family.length) | {UNCODE: at_rate(table, rates[name])}
        for sampler in [known[sampler] for sampler in SAMPLERS]:
            trajectories.append(_solve(family, example, sampler, denoiser, console))
        console.print(_pattern(results, name), "")
    write_page(page, trajectories, "Three problems, three orders")
    console.print(Text(f"{page}: the nine trajectories, to be replayed in a browser."))


def _solve(family: Family[Any], example: Any, sampler: Sampler, denoiser: Denoiser, console: Console) -> Trajectory:
    prompts = read_prompts(denoiser, [family.prompt(example)], family.length)
    run = begin(denoiser, prompts, sampler, 0, stop_at_eos=True)
    trace = watch(run, denoiser, sampler.name, True, console) if console.is_terminal else run.trace()
    text = answers(denoiser, prompts, trace)[0]
    grade = family.grade(example, text)
    row = trace.row(0, denoiser.tokenizer, text=text, answer_span=grade.span)
    if not console.is_terminal:
        console.print(Text(sampler.name), draw(spots_of(row)), sep="\n")
    told = Text("right" if grade.correct else "wrong", style="bold green" if grade.correct else "bold red")
    console.print(told.append(f": {_why(grade)}; {'; '.join(summary(row))}.", style="not bold default"), "")
    return Trajectory(f"{short(family.name)}, {sampler.name}", row, Verdict(grade.correct, grade.why))


def _why(grade: Grade) -> str:
    return grade.why.rstrip(".")


def _pattern(results: Results, family: str) -> Text:
    """How often the same is seen, by the model's results."""
    told, total = [], 0
    for name in SAMPLERS:
        cell = results.cell(family, name)
        if cell is not None:
            total = len(cell.right)
            told.append(f"{name} is right in {cell.right.count('1')} and hasty in {cell.hasty.count('1')}")
    return Text(
        f"Of {total} such problems, {'; '.join(told)} (hasty: an end token in the first quarter of its forwards). "
        f"In {results.harmed(family, 'confidence')}, confidence is hasty and wrong where Uncode is right.",
        style="italic",
    )
