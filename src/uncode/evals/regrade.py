"""Grading of answers in files by every metric of their task, and of a run's answers again, for `uncode regrade`."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError, nearest, require, shown
from ..util.files import exclusive_lock, read_text
from ..util.paths import require_file
from ..util.stats import Interval, wilson
from .data import Fields, parse
from .names import TASK_NAMES
from .published import by_question, example_of, final_text, released_text
from .run.folder import RunFolder
from .run.grading import grade_again
from .run.sample import CellName, RunSample
from .task import AnyTask, Example, Grade
from .tasks import find_task

OnProgress = Callable[[int, int], None]
Grades = dict[str, Grade]
"""The grades of an answer, by metric."""


@dataclass(frozen=True)
class FileAnswer:
    """An answer of a model in a file, and its problem."""

    example: Example
    output: str
    prompt: str | None = None
    """The prompt of the model, if the file has it."""

    def text(self, task: AnyTask, metric: str) -> str:
        """The text that a metric reads. Ours ends at the first EOS token; the released code drops EOS and reads on."""
        answer = task.answer(self.output, metric)
        return released_text(answer) if metric.startswith("paper") else final_text(answer)


@dataclass(frozen=True)
class Graded:
    """The answers of a file with their grades."""

    name: str
    task: AnyTask
    answers: Sequence[FileAnswer]
    grades: Sequence[Grades]

    def accuracy(self, metric: str) -> Interval:
        return wilson(sum(grade[metric].correct for grade in self.grades), len(self.grades))

    def disagreements(self) -> list[int]:
        """The numbers of the answers on which our rule and the paper's rule disagree. The mini families have only ours:
        they are not part of the release."""
        if "paper" not in self.task.graders:
            return []
        return [n for n, g in enumerate(self.grades) if g["correct"].correct != g["paper"].correct]

    def count_only(self, metric: str, other: str) -> int | None:
        """The answers that are right by one metric and wrong by another; None if the task lacks one of them."""
        if not {metric, other} <= self.task.graders.keys():
            return None
        return sum(g[metric].correct and not g[other].correct for g in self.grades)


def row_of(name: str, task: AnyTask, answer: FileAnswer, grades: Grades) -> dict[str, object]:
    """A line for a file of grades: the answer, and its grade by every metric."""
    grades_by_metric = dict[str, object]()
    for metric, grade in grades.items():
        is_moved = not answer.output.startswith(answer.text(task, metric))  # dropped tokens have shifted the span
        span = None if is_moved else grade.span
        grades_by_metric[metric] = {"correct": grade.correct, "span": span, "why": grade.why}
    return {"file": name, "task": task.name, "id": answer.example.id, "text": answer.output} | grades_by_metric


def grades_of(row: dict[str, Any], task: AnyTask) -> Grades:
    """The grades in a line of a file of grades."""
    return {metric: Grade(**row[metric]) for metric in task.graders}


def task_of(path: Path, name: str | None) -> AnyTask:
    """The task of that name; without a name, the task with which the file's name begins."""
    found = next((task for task in TASK_NAMES if path.name.startswith(task)), None)
    if name is None and found is None:
        near = nearest(re.split(r"[_.\-]", path.name)[0], TASK_NAMES)
        which = f"known: {', '.join(TASK_NAMES)}" if near is None else f"did you mean `task={near}`?"
        raise UncodeError(f"the name of '{path}' does not begin with a task: give `task=NAME` ({which}).")
    return find_task(str(name or found))


def read_answers(path: Path, task: AnyTask, data: Path | None) -> list[FileAnswer]:
    """Read answers from a file of JSON lines: {"id", "text"} of our examples, or the format of :mod:`.published`."""
    require_file(path)
    rows = parse(read_text(path), path.name)
    require(len(rows) > 0, f"'{path}' holds no answers: write one JSON object a line.")
    is_published = all(name in rows[0][1] for name in ("question", "output"))
    has_data = data is not None and (data / task.source.file).is_file()
    place, first = rows[0]
    other = None if is_published else _task_of_id(first.get("id"))
    require(  # before any data is downloaded
        other in (None, task.name),
        f"{place} of '{path}' has the id {shown(first.get('id'))}, which is not of {task.title}: did you mean "
        f"`task={other}`?",
    )
    examples = task.examples(data) if has_data or not is_published else []
    known = by_question(examples) if is_published else {example.id: example for example in examples}
    found = []
    for number, (place, row) in enumerate(rows):
        try:
            if is_published:
                example, text, prompt = example_of(task.name, row, number, known), row["output"], None
            else:
                example, text, prompt = _example(row["id"], known, task), row["text"], _prompt(row)
            if not isinstance(text, str):
                raise ValueError(f"its text is {text!r}")
            found.append(FileAnswer(example, text, prompt))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise UncodeError(
                f"{place} of '{path}' cannot be graded ({reason}): a row must hold the id of an example and the text, "
                "or question, output and gold."
            ) from error
    counts = Counter(answer.example.id for answer in found)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    require(repeated is None, f"'{path}' answers '{repeated}' more than once: grade each answer in its own file.")
    return found


def _task_of_id(name: object) -> str | None:
    """The task whose example ids have this form."""
    if not isinstance(name, str):
        return None
    if name.startswith("test/") and name.endswith(".json"):
        return "math500"  # the ids of its data
    begin = name.partition("/")[0].lower()
    return begin if "/" in name and begin in TASK_NAMES else None


def _example(name: object, known: Mapping[str, Example], task: AnyTask) -> Example:
    if not isinstance(name, str) or name not in known:
        first = next(iter(known))
        raise ValueError(
            f"{task.title} has no example with the id {shown(name)}, only such as {first!r}; `uncode tasks {task.name} "
            "--example N --json` prints an id"
        )
    return known[name]


def _prompt(row: Fields) -> str | None:
    """The prompt in a row, as `uncode decode` writes it: a text, or messages."""
    messages = row.get("messages")
    if isinstance(messages, list):
        return "\n".join(str(one.get("content")) for one in messages if isinstance(one, dict))
    text = row.get("prompt", row.get("question"))
    return text if isinstance(text, str) else None


def with_other_prompt(task: AnyTask, answers: Sequence[FileAnswer]) -> list[FileAnswer]:
    """Answers whose prompt is that of another problem than their id: it neither holds the whole problem, in whatever
    template, nor is a part of our prompt (the question alone). Blanks are ignored."""
    found = []
    for one in answers:
        text, ours = _without_whitespace(one.prompt or ""), _without_whitespace(task.prompt(one.example))
        parts = map(_without_whitespace, task.placeholders(one.example).values())
        if text not in ours and not all(part in text for part in parts):
            found.append(one)
    return found


def _without_whitespace(text: str) -> str:
    return "".join(text.split())


def grade_all(
    name: str,
    task: AnyTask,
    answers: Sequence[FileAnswer],
    workers: int,
    on_progress: OnProgress | None = None,
    known: Sequence[Grades] = (),
    keep: Callable[[dict[str, object]], None] | None = None,
) -> Graded:
    """Grade by every metric of the task. At most `workers` programs run at a time.

    `known` are the grades of the first answers, which are not graded again. `keep` is called with every new row.
    """

    def grades(answer: FileAnswer) -> Grades:
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
        pool.shutdown(cancel_futures=True)  # after an interruption, no other answer is graded
    return Graded(name, task, answers, found)


def sample(graded: Graded, count: int, seed: int) -> list[int]:
    """A random sample of the disagreements. The same seed gives the same sample."""
    found = graded.disagreements()
    return sorted(random.Random(seed).sample(found, min(count, len(found))))


@dataclass
class RegradedCell:
    """How the grades of a cell have changed, by our grader."""

    cell: CellName
    answers: int = 0
    right_before: int = 0
    right: int = 0
    changed: int = 0
    """Answers of which any grade has changed, by any metric."""


def regrade_run(folder: RunFolder, data: Path | None, workers: int, on_progress: OnProgress) -> list[RegradedCell]:
    """Grade every answer of a run again, and write the samples with their new grades.

    A run that is being written is refused.
    """
    with ExitStack() as stack:
        for lock in sorted(folder.path.glob("samples.*.lock")):
            stack.enter_context(exclusive_lock(lock, folder.path, "writing samples"))
        samples = folder.all_samples()
        require(len(samples) > 0, f"'{folder.path}' holds no answers yet.")
        graded = _graded(samples, data, workers, on_progress)
        folder.merge(graded)
    found: dict[CellName, RegradedCell] = {}
    for before, after in zip(samples, graded, strict=True):
        cell = found.setdefault(after.cell, RegradedCell(after.cell))
        cell.answers += 1
        cell.right_before += before.grades["correct"].correct
        cell.right += after.grades["correct"].correct
        cell.changed += before.grades != after.grades
    return list(found.values())


def _graded(samples: list[RunSample], data: Path | None, workers: int, on_progress: OnProgress) -> list[RunSample]:
    """The samples in the same order, with new grades."""
    tasks = {name: find_task(name) for name in dict.fromkeys(sample.task for sample in samples)}
    examples = {name: {example.id: example for example in task.examples(data)} for name, task in tasks.items()}
    for one in samples:
        known = one.id in examples[one.task]
        require(known, f"the data of {one.task} has no example '{one.id}': give the data of the run.")
    return grade_again(samples, tasks.values(), examples, workers, on_progress)
