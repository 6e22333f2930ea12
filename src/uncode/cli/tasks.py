"""`uncode tasks`: the benchmarks, how the paper runs them, their miniatures, and the prompt of any example."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import require
from .options import Data, Json, complete_task

SUMMARY = "List the benchmarks; print the prompt of an example."


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK", help="A task, to print the prompt of one of its examples.", autocompletion=complete_task
        ),
    ] = None,
    example: Annotated[int, typer.Option(min=0, metavar="N", help="Which example, counted from 0.")] = 0,
    data: Data = None,
    prompt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another prompt: a text with the task's {{placeholders}}.")
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print the prompt with its placeholders instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the benchmarks with the paper's settings and their miniatures, or print a prompt as the model sees it.

    Examples:

      uncode tasks

      uncode tasks gsm8k --data ./data --example 3

      uncode tasks mini_story --example 3 | uncode decode - --sampler story

      uncode tasks countdown --template > mine.txt

      uncode tasks countdown --data ./data --prompt mine.txt
    """
    from ..evals.data import read_text
    from ..evals.names import task_named
    from ..evals.tasks import TASKS

    if name is None:
        alone = prompt is None and data is None and example == 0 and not template
        require(alone, f"these options need a task: uncode tasks NAME ({', '.join(TASKS)}).")
        _list(as_json)
        return
    task = task_named(name)
    if template:
        require(prompt is None and not as_json, "--template prints our own prompt as it is: leave other options out.")
        typer.echo(task.template, nl=False)
        return
    require(prompt is None or prompt.is_file(), f"there is no prompt file '{prompt}'.")
    text = None if prompt is None else read_text(prompt)
    examples = task.examples(data)
    require(example < len(examples), f"{task.title} has {len(examples)} examples, numbered from 0.")
    filled = task.prompt(examples[example], text)
    if as_json:
        chat = task.name in TASKS and task.settings.chat
        typer.echo(json.dumps({"id": examples[example].id, "prompt": filled, "chat": chat}, indent=2))
        return
    typer.echo(filled)


def _list(as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..evals.families import FAMILIES
    from ..evals.tasks import TASKS

    if as_json:
        typer.echo(json.dumps([_as_data(name) for name in TASKS], indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("task", "shots", "length", "rate", "block", "prompt", "data"):
        number = title in ("shots", "length", "rate", "block")
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for name in TASKS:
        s, task = TASKS[name].settings, TASKS[name]()
        numbers = (str(s.shots), str(s.length), f"{s.rate:g}", str(s.block_length))
        where = task.source.hub or f"{task.source.file} (NEUIR/Uncode)"
        table.add_row(name, *numbers, "chat" if s.chat else "raw", where)
    console = Console(highlight=False)
    console.print(table)
    small = ", ".join(f"{name} ({family.like})" for name, family in FAMILIES.items())
    console.print(f"\nin miniature, for the built-in model (`uncode mini`): {small}")


def _as_data(name: str) -> dict[str, Any]:
    from ..evals.names import task_named

    task = task_named(name)
    told = {"name": name, "title": task.title, "metrics": list(task.graders), "source": dataclasses.asdict(task.source)}
    return told | {"settings": dataclasses.asdict(task.settings)}
