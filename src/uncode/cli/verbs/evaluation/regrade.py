"""`uncode regrade`: grade saved answers by our rule and by the paper's."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ....core.errors import require
from ....core.support.reprs import counted
from ....util.files import Journal, read_job
from ....util.paths import require_file
from ....version import __version__
from ...options import Data, Json, complete_task
from ...outputs import check_resumable, same_file
from ...printing import MAX_TABLE_WIDTH, grid, printing, resumable

if TYPE_CHECKING:
    from rich.table import Table

    from ....evals.regrade import FileAnswer, Graded
    from ....evals.task import Task

SUMMARY = "Grade saved answers by our rule and by the paper's."
AnswerSet = tuple[str, "Task[Any]", "list[FileAnswer]"]
"""The name of a file, its task and its answers."""
TITLES = ("answers", "n", "correct, %", "paper, %", "gained", "lost")


def command(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Answers, as JSON lines, or one run folder.")],
    task: Annotated[
        str | None,
        Option(
            metavar="TASK", help="The task of the answers.  [default: by the file's name]", autocompletion=complete_task
        ),
    ] = None,
    data: Data = None,
    show: Annotated[
        int, Option(min=0, metavar="N", help="Print N answers per file on which the two rules disagree.")
    ] = 0,
    seed: Annotated[int, Option(metavar="N", help="The seed of --show.")] = 0,
    workers: Annotated[
        int, Option(min=1, metavar="N", help="Number of programs that run at the same time.")
    ] = os.cpu_count() or 1,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Write every grade to this file (JSON lines), and resume from it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Grade answers by our rule and by the paper's, with 95 % intervals.

    "Gained" counts the answers that only our rule accepts, "lost" those that only the paper's rule accepts.

    A line of a file is {"id": ..., "text": ...}, with the id of an example (`uncode tasks TASK --example N --json`
    prints it), or {"question": ..., "output": ..., "gold": ...}, as d1 publishes LLaDA's answers. The latter hold the
    problem, and need --data only to check it. A warning names lines with the prompt of another problem.

    The answers of a run folder are graded again in place, without decoding.

    Examples:

      uncode regrade gsm8k_256.jsonl --data ./data
      uncode regrade answers.jsonl --task humaneval --data ./data --out graded.jsonl
      uncode regrade math500_128.jsonl math500_256.jsonl --show 20
      uncode regrade runs/main --data ./data
    """
    from ....evals.regrade import read_answers, sample, task_of
    from ....sandbox import NoJail

    if any(file.is_dir() for file in files):
        _regrade_run(files, data, workers, as_json, has_other_options=bool(task or out or show))
        return
    _check_files(files, out)
    warnings.simplefilter("always", NoJail)
    tasks = [task_of(path, task) for path in files]
    sets = list[AnswerSet]()
    for path, one in zip(files, tasks, strict=True):
        answers = read_answers(path, one, data)
        _warn_of_other_prompts(path, one, answers)
        sets.append((path.name, one, answers))
    graded = _grade(sets, workers, out, {} if out is None else _job(files, tasks, data))
    if as_json:
        typer.echo(json.dumps([_as_data(one) for one in graded], indent=2))
        return
    with printing() as console:
        console.print(_table(graded), width=None if console.is_terminal else MAX_TABLE_WIDTH)
    for group in graded:
        for number in sample(group, show, seed):
            _print_disagreement(group, number)


def _regrade_run(files: list[Path], data: Path | None, workers: int, as_json: bool, has_other_options: bool) -> None:
    """Grade a run's answers again, write them back, and say what changed."""
    alone = len(files) == 1 and not has_other_options
    require(alone, "a run folder is graded alone: give one folder, and --data if its tasks need data.")
    from ....evals.regrade import regrade_run
    from ....evals.run.folder import RunFolder
    from ....util.progress import item_bar
    from ....util.stats import wilson

    with item_bar("grading") as on_progress:
        cells = regrade_run(RunFolder.existing(files[0]), data, workers, on_progress)
    if as_json:
        typer.echo(json.dumps([vars(cell) for cell in cells], indent=2))
        return
    rows = list[tuple[str, ...]]()
    for cell in cells:
        now, before = wilson(cell.right, cell.answers).percent(), 100 * cell.right_before / cell.answers
        _, task, sampler = cell.cell
        rows.append((task, sampler, str(cell.answers), now.replace(" %", "", 1), f"{before:.1f}", str(cell.changed)))
    table = grid(("task", "sampler", "n", "correct, %", "before, %", "changed"), rows, left=range(2))
    with printing() as console:
        console.print(table, width=None if console.is_terminal else MAX_TABLE_WIDTH)


def _check_files(files: list[Path], out: Path | None) -> None:
    """Raise if a file is missing or given twice, or if the grades cannot be written to `out`."""
    for number, file in enumerate(files):
        require_file(file)
        twice = any(same_file(file, other) for other in files[:number])
        require(not twice, f"'{file}' is given twice: name each file once.")
    if out is not None:
        check_resumable(out, "--out")
        require(
            out.resolve() not in [file.resolve() for file in files],
            f"'{out}' is one of the files to grade: choose another --out.",
        )
        if out.exists():
            read_job(out.resolve())


def _warn_of_other_prompts(path: Path, task: Task[Any], answers: list[FileAnswer]) -> None:
    from ....evals.regrade import with_other_prompt

    if others := with_other_prompt(task, answers):
        typer.echo(
            f"warning: the id and the prompt of {len(others)} of {counted(len(answers), 'answer')} in '{path}' are of "
            f"different problems (the first: '{others[0].example.id}'): check the ids.",
            err=True,
        )


def _grade(sets: list[AnswerSet], workers: int, out: Path | None, job: dict[str, object]) -> list[Graded]:
    """Grade the answers. With `out`, every grade is written at once, so that the same command can resume."""
    from ....evals.regrade import grade_all, grades_of
    from ....util.progress import item_bar

    found: list[Graded] = []
    begin = 0
    with ExitStack() as stack:
        journal = None
        if out is not None:
            journal = stack.enter_context(Journal.of_job(out, job))
            stack.enter_context(resumable(out, "grades"))
        for name, task, answers in sets:
            rows = journal.rows[begin : begin + len(answers)] if journal else []
            same = [row.get("id") for row in rows] == [answer.example.id for answer in answers[: len(rows)]]
            require(same, f"'{out}' was changed: remove it, or choose another --out.")
            known, keep = [grades_of(row, task) for row in rows], journal.add if journal else None
            with item_bar(f"grading {name}") as on_progress:
                found.append(grade_all(name, task, answers, workers, on_progress, known, keep))
            begin += len(answers)
    if out is not None:
        typer.echo(f"{out}: {begin} grades.", err=True)
    return found


def _job(files: list[Path], tasks: list[Task[Any]], data: Path | None) -> dict[str, object]:
    """Everything that the grades depend on."""
    sources = [] if data is None else [data / task.source.file for task in tasks]
    return {
        "files": [_digest(file) for file in files],
        "tasks": [task.name for task in tasks],
        "data": [_digest(source) for source in sources if source.is_file()],
        "version": __version__,
    }


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _as_data(one: Graded) -> dict[str, object]:
    metrics = {name: one.accuracy(name)._asdict() for name in one.task.graders}
    changes = {"gained": one.count_only("correct", "paper"), "lost": one.count_only("paper", "correct")}
    return {"file": one.name, "task": one.task.name, "answers": len(one.answers), "metrics": metrics} | changes


def _table(graded: list[Graded]) -> Table:
    """One line per file, and a second one if the task has a strict metric."""
    from rich.table import Table

    rows = []
    for one in graded:
        cells = [_percent(one, name) for name in ("correct", "paper")]
        changes = one.count_only("correct", "paper"), one.count_only("paper", "correct")
        counts = ["" if count is None else str(count) for count in changes]
        rows.append((one.name, str(len(one.answers)), *cells, *counts))
        strict = [_percent(one, name) for name in ("strict", "paper_strict")]
        if any(strict):
            rows.append(("  strict", "", *strict, "", ""))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title, column in zip(TITLES, zip(*rows, strict=True), strict=True):
        name = title == TITLES[0]  # the only column that may shrink
        width = None if name else max(map(len, (title, *column)))
        table.add_column(title, justify="left" if name else "right", overflow="fold", min_width=width, no_wrap=not name)
    for row in rows:
        table.add_row(*row)
    return table


def _percent(one: Graded, metric: str) -> str:
    return one.accuracy(metric).percent().replace(" %", "", 1) if metric in one.task.graders else ""


def _print_disagreement(one: Graded, number: int) -> None:
    answer, grades = one.answers[number], one.grades[number]
    typer.echo(f"\n{one.name} {answer.example.id}")
    for name, grade in grades.items():
        typer.echo(f"  {name}: {'right' if grade.correct else 'wrong'}: {grade.why}")
    end = answer.text(one.task, "correct").strip()[-300:]
    typer.echo("  " + end.replace("\n", "\n  "))
