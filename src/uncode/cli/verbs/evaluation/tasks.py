"""`uncode tasks`: list the benchmarks with the paper's settings, or print the prompt of an example."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ....core.errors import require
from ....util.paths import require_file
from ...options import Data, Json, complete_task
from ...printing import NARROW_COLUMNS, grid, listing, printing

SUMMARY = "List the benchmarks; print the prompt of an example."
TITLES = ("task", "shots", "length", "rate", "block", "prompt", "data")


def command(
    name: Annotated[
        str | None,
        Argument(
            metavar="TASK", help="A task, to print the prompt of one of its examples.", autocompletion=complete_task
        ),
    ] = None,
    example: Annotated[
        int | None, Option(min=0, metavar="N", help="The number of the example, from 0.  [default: 0]")
    ] = None,
    data: Data = None,
    prompt: Annotated[
        Path | None, Option(metavar="FILE", help="Another prompt template: a text with the task's {{placeholders}}.")
    ] = None,
    template: Annotated[bool, Option("--template", help="Print the prompt template, with its placeholders.")] = False,
    as_json: Json = False,
) -> None:
    """List the benchmarks and the mini families, or print the prompt of an example as the model sees it.

    Examples:

      uncode tasks
      uncode tasks gsm8k --data ./data --example 3
      uncode tasks mini_story --example 3 | uncode decode - --sampler story
      uncode tasks countdown --template > mine.txt
      uncode tasks countdown --data ./data --prompt mine.txt
    """
    from ....evals.names import TASK_NAMES
    from ....evals.tasks import TASKS, find_task
    from ....util.files import read_text

    options = {"--example": example, "--data": data, "--prompt": prompt, "--template": template or None}
    given = [option for option, value in options.items() if value is not None]
    if name is None:
        needs = f"{' and '.join(given)} need{'' if given[1:] else 's'} a task"
        require(not given, f"{needs}: write uncode tasks TASK, where TASK is one of {', '.join(TASK_NAMES)}.")
        _list(as_json)
        return
    task = find_task(name)
    if template:
        others = [option for option in given if option != "--template"] + ["--json"] * as_json
        require(not others, f"--template prints a template without an example: leave {' and '.join(others)} out.")
        typer.echo(task.template, nl=False)
        return
    example = example or 0
    if prompt is not None:
        require_file(prompt, "prompt file")
    text = None if prompt is None else read_text(prompt)
    examples = task.examples(data)
    last = len(examples) - 1
    require(example <= last, f"{task.title} has no example {example}: give a number from 0 to {last}.")
    filled = task.prompt(examples[example], text)
    if as_json:
        chat = task.name in TASKS and task.settings.chat
        typer.echo(json.dumps({"id": examples[example].id, "prompt": filled, "chat": chat}, indent=2))
        return
    typer.echo(filled)


def _list(as_json: bool) -> None:
    from ....evals.suite.families import FAMILIES
    from ....evals.tasks import TASKS

    if as_json:
        typer.echo(json.dumps([_as_data(name) for name in TASKS], indent=2))
        return
    small = ", ".join(f"{name} ({family.benchmark})" for name, family in FAMILIES.items())
    with printing() as console:
        is_narrow = console.width < NARROW_COLUMNS
        rows = _rows()
        console.print(listing(_in_words(*row) for row in rows) if is_narrow else grid(TITLES, rows, left=(0, 5, 6)))
        console.print(f"\nin miniature, for the built-in model (`uncode mini`): {small}")


def _rows() -> list[tuple[str, ...]]:
    from ....evals.tasks import TASKS

    rows = list[tuple[str, ...]]()
    for name, task in TASKS.items():
        s, source = task.settings, task.source
        numbers = (str(s.shots), str(s.length), f"{s.rate:g}", str(s.block_length))
        rows.append((name, *numbers, "chat" if s.chat else "raw", source.hub or f"{source.file} (NEUIR/Uncode)"))
    return rows


def _in_words(name: str, *values: str) -> tuple[str, list[str]]:
    """A task for a narrow terminal: its name, and its settings below."""
    *settings, source = zip(TITLES[1:], values, strict=True)
    return name, [", ".join(" ".join(pair) for pair in settings), " ".join(source)]


def _as_data(name: str) -> dict[str, object]:
    from ....evals.tasks import find_task

    task = find_task(name)
    about = {
        "name": name,
        "title": task.title,
        "metrics": list(task.graders),
        "source": dataclasses.asdict(task.source),
    }
    return about | {"settings": dataclasses.asdict(task.settings)}
