"""The demo: three problems, each solved in three decoding orders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.text import Text

from ...backbones.loading.load import load
from ...core.denoiser import Denoiser
from ...core.errors import require
from ...core.pieces.policy import Sampler
from ...core.support.reprs import counted
from ...evals.suite.families import FAMILIES
from ...evals.suite.families.family import Family
from ...evals.suite.folder import results_of
from ...evals.suite.report import short
from ...evals.suite.results import Results
from ...generation.generate import start_decode
from ...generation.prompt import answer_texts, read_prompts
from ...models import TABLE
from ...samplers.options import DEFAULT_SAMPLER
from ...samplers.resolve import resolve
from ...view.page import Trajectory, Verdict, write_page
from ...view.row_summary import summary
from .drawing import cells_of, draw, merge_eos, show_live

DEMO_FAMILIES = ("mini_story", "mini_algebra", "mini_sudoku")
"""Three families on which the three orders differ."""
SAMPLERS = ("confidence", "semi_ar", DEFAULT_SAMPLER)


def show(model: str, folder: Path, page: Path, seed: int) -> None:
    """Solve one problem of each family in each order, and write the page."""
    console, results = Console(highlight=False), results_of(folder)
    denoiser = load(model, device="cpu")
    table = denoiser.frequency
    require(
        table is not None, f"'{model}' has no frequency table: count one with `uncode count --out {folder / TABLE}`."
    )
    orders = [resolve(name, denoiser) for name in SAMPLERS]
    drawn = Random(seed)
    trajectories = list[Trajectory]()
    for name in DEMO_FAMILIES:
        family = FAMILIES[name]
        example = family.examples()[drawn.choice(_typical_problems(results, name))]
        console.rule(Text(f"{short(name)}: a problem like those of {family.benchmark_task.title}"))
        console.print(Text(family.prompt(example) + "\n"))
        solved = [_solve(family, example, sampler, denoiser, console) for sampler in orders]
        console.print(_pattern(results, name, [t.verdict is not None and t.verdict.right for t in solved]))
        trajectories += solved
    write_page(page, trajectories, "Three problems, three orders")
    console.print(Text(f"{page}: the nine trajectories, to be replayed in a browser."))


def _typical_problems(results: Results, family: str) -> list[int]:
    """The problems with the most common pattern of right and wrong among those on which the three orders differ.

    If the orders never differ, the most common pattern of all.
    """
    marks = _marks(results, family)
    patterns = Counter(each for each in marks if len(set(each)) > 1) or Counter(marks)
    common = patterns.most_common(1)[0][0]
    return [number for number, each in enumerate(marks) if each == common]


def _marks(results: Results, family: str) -> list[tuple[str, ...]]:
    """Right (1) or wrong (0) in each of the three orders, for every problem."""
    cells = [cell for cell in (results.cell(family, name) for name in SAMPLERS) if cell is not None]
    require(len(cells) == len(SAMPLERS), f"the model's results hold no {family}: run `uncode mini` without --quick.")
    return list(zip(*(cell.right for cell in cells), strict=True))


def _solve(family: Family[Any], example: Any, sampler: Sampler, denoiser: Denoiser, console: Console) -> Trajectory:
    prompts = read_prompts(denoiser, [family.prompt(example)], family.length)
    run = start_decode(denoiser, prompts, sampler, 0, stop_at_eos=True)
    trace = show_live(run, denoiser, sampler.name, True, console) if console.is_terminal else run.trace()
    text = answer_texts(denoiser, prompts, trace)[0]
    grade = family.grade(example, text)
    row = trace.row(0, denoiser.tokenizer, text=text, answer_span=grade.span)
    if not console.is_terminal:
        console.print(Text(sampler.name), draw(merge_eos(cells_of(row))), sep="\n")
    verdict = Text("right" if grade.correct else "wrong", style="bold green" if grade.correct else "bold red")
    verdict.append(f": {grade.why.rstrip('.')}; {'; '.join(summary(row))}.\n", style="not bold default")
    console.print(verdict)
    return Trajectory(sampler.name, row, Verdict(grade.correct, grade.why), problem=short(family.name))


def _pattern(results: Results, family: str, solved: list[bool]) -> Text:
    """How often the model's results show the same pattern."""
    marks, seen = _marks(results, family), tuple("1" if right else "0" for right in solved)
    split, same = sum(len(set(each)) > 1 for each in marks), marks.count(seen)
    lines = [
        f"The order changes {split} of {len(marks)} results; {same} follow this pattern.",
        "Right, and wrote EOS early (in the first quarter of the forwards):",
    ]
    for name in SAMPLERS:
        cell = results.cell(family, name)
        assert cell is not None
        lines.append(f"  {name:14}{cell.right.count('1'):4} right {cell.hasty.count('1'):4} early")
    pairs = [(confidence, default) for confidence, *_, default in marks]
    gains, losses = pairs.count(("0", "1")), pairs.count(("1", "0"))
    lines.append(f"{DEFAULT_SAMPLER} corrects {counted(gains, 'error')} of confidence and adds {losses}.\n")
    return Text("\n".join(lines), style="italic")
