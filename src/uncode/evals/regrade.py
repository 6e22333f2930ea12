"""Grading answers that lie in files, by every metric of their task: what `uncode regrade` prints."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError, nearest, require, shown
from ..core.support.paths import require_file
from ..files import read_text
from ..stats import Interval, wilson
from .data import Row, parse
from .names import TASK_NAMES, find_task_or_family
from .published import by_question, example_of, final_text, released_text
from .task import Example, Grade, Task

OnProgress = Callable[[int, int], None]
Grades = dict[str, Grade]
"""By metric."""


@dataclass(frozen=True)
class Answer:
    """An answer as a model wrote it, and the problem it answers."""

    example: Example
    output: str
    prompt: str | None = None
    """What the model was given, where the file says it."""

    def text(self, task: Task[Any], metric: str) -> str:
        """What a metric reads. Ours ends at the first end token; the released code drops such tokens and reads on."""
        answer = task.answer(self.output, metric)
        return released_text(answer) if metric.startswith("paper") else final_text(answer)


@dataclass(frozen=True)
class Graded:
    """The answers of a file with their grades."""

    name: str
    task: Task[Any]
    answers: Sequence[Answer]
    grades: Sequence[Grades]

    def accuracy(self, metric: str) -> Interval:
        return wilson(sum(grade[metric].correct for grade in self.grades), len(self.grades))

    def disagreements(self) -> list[int]:
        """Answers that one of our rule and the paper's counts as right, and the other does not."""
        return [n for n, g in enumerate(self.grades) if g["correct"].correct != g["paper"].correct]

    def only(self, metric: str, other: str) -> int:
        return sum(g[metric].correct and not g[other].correct for g in self.grades)


def row_of(name: str, task: Task[Any], answer: Answer, grades: Grades) -> dict[str, Any]:
    """A line for a file: the answer again, and what every metric says of it."""
    grades_by_metric = {}
    for metric, grade in grades.items():
        moved = not answer.output.startswith(answer.text(task, metric))  # tokens before it were dropped
        grades_by_metric[metric] = {"correct": grade.correct, "span": None if moved else grade.span, "why": grade.why}
    return {"file": name, "task": task.name, "id": answer.example.id, "text": answer.output} | grades_by_metric


def grades_of(row: dict[str, Any], task: Task[Any]) -> Grades:
    """What such a line says."""
    return {metric: Grade(**row[metric]) for metric in task.graders}


def task_of(path: Path, name: str | None) -> Task[Any]:
    """The task that is asked for, or that the file's name begins with."""
    found = next((task for task in TASK_NAMES if path.name.startswith(task)), None)
    if name is None and found is None:
        near = nearest(re.split(r"[_.\-]", path.name)[0], TASK_NAMES)
        which = f"known: {', '.join(TASK_NAMES)}" if near is None else f"did you mean --task {near}?"
        raise UncodeError(f"the name of '{path}' begins with no task's: give --task NAME ({which}).")
    return find_task_or_family(str(name or found))


def read_answers(path: Path, task: Task[Any], data: Path | None) -> list[Answer]:
    """Answers from a file of JSON lines: {"id", "text"} of our examples, or as others publish them."""
    require_file(path)
    rows = parse(read_text(path), path.name)
    require(len(rows) > 0, f"'{path}' holds no answers.")
    published = all(name in rows[0][1] for name in ("question", "output"))
    there = data is not None and (data / task.source.file).is_file()
    if not published:
        _check_ids(path, rows, task)
    examples = task.examples(data) if there or not published else []
    known = by_question(examples) if published else {example.id: example for example in examples}
    found = []
    for number, (place, row) in enumerate(rows):
        try:
            if published:
                found.append(Answer(example_of(task.name, row, number, known), _text(row["output"])))
            else:
                found.append(Answer(_example(row["id"], known, task), _text(row["text"]), _prompt(row)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"nothing by the name {error}" if isinstance(error, KeyError) else str(error)
            raise UncodeError(
                f"{place} of '{path}' is no answer to be graded ({reason}): a row holds an example's id and "
                "the text, or question, output and gold."
            ) from error
    counts = Counter(answer.example.id for answer in found)
    again = next((name for name, count in counts.items() if count > 1), None)
    require(again is None, f"'{path}' answers '{again}' more than once: grade each answer in a file of its own.")
    return found


def _check_ids(path: Path, rows: Sequence[Row], task: Task[Any]) -> None:
    """Raise where the first id is another task's, before any data is fetched."""
    place, row = rows[0]
    other = _task_of_id(row.get("id"))
    require(
        other in (None, task.name),
        f"{place} of '{path}' has the id {shown(row.get('id'))}, which is not of {task.title}: did you mean --task "
        f"{other}?",
    )


def _task_of_id(name: Any) -> str | None:
    """The task whose examples are called so."""
    if not isinstance(name, str):
        return None
    if name.startswith("test/") and name.endswith(".json"):
        return "math500"  # the ids of its data
    begin = name.partition("/")[0].lower()
    return begin if "/" in name and begin in TASK_NAMES else None


def _example(name: Any, known: Mapping[str, Example], task: Task[Any]) -> Example:
    if not isinstance(name, str) or name not in known:
        first = next(iter(known))
        raise ValueError(
            f"{task.title} has no example with the id {shown(name)}, only such as {first!r}; `uncode tasks {task.name} "
            "--example N --json` prints an id"
        )
    return known[name]


def _prompt(row: Mapping[str, Any]) -> str | None:
    """The prompt that a row carries, as `uncode decode` writes it: a text, or messages."""
    messages = row.get("messages")
    if isinstance(messages, list):
        return "\n".join(str(one.get("content")) for one in messages if isinstance(one, dict))
    text = row.get("prompt", row.get("question"))
    return text if isinstance(text, str) else None


def with_other_prompt(task: Task[Any], answers: Sequence[Answer]) -> list[Answer]:
    """Answers whose prompt is that of another problem than their id names. Another template is none."""
    return [one for one in answers if one.prompt is not None and not _asks(task, one.example, one.prompt)]


def _asks(task: Task[Any], example: Example, prompt: str) -> bool:
    """Whether a prompt holds the whole problem, or is a part of our prompt (the question alone); blanks aside."""
    text, ours = _without_blanks(prompt), _without_blanks(task.prompt(example))
    return text in ours or all(_without_blanks(value) in text for value in task.blanks(example).values())


def _without_blanks(text: str) -> str:
    return "".join(text.split())


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its text is {value!r}")
    return value


def grade_all(
    name: str,
    task: Task[Any],
    answers: Sequence[Answer],
    workers: int,
    on_progress: OnProgress | None = None,
    known: Sequence[Grades] = (),
    keep: Callable[[dict[str, Any]], None] | None = None,
) -> Graded:
    """Grade by every metric of the task. Programs run in `workers` sandboxes at a time.

    `known` are the grades of the first answers, which are not graded again; `keep` is handed every new one.
    """

    def grades(answer: Answer) -> Grades:
        return {metric: task.grade(answer.example, answer.text(task, metric), metric) for metric in task.graders}

    found, pool = list(known), ThreadPoolExecutor(max(1, workers))
    try:
        for answer, grade in zip(answers[len(found) :], pool.map(grades, answers[len(found) :]), strict=True):
            found.append(grade)
            if keep is not None:
                keep(row_of(name, task, answer, grade))
            if on_progress is not None:
                on_progress(len(found), len(answers))
    finally:
        pool.shutdown(cancel_futures=True)  # after an interruption the rest is not begun
    return Graded(name, task, answers, found)


def sample(graded: Graded, count: int, seed: int) -> list[int]:
    """Disagreements drawn at random, the same for the same seed."""
    found = graded.disagreements()
    return sorted(random.Random(seed).sample(found, min(count, len(found))))
