"""Decodes and grades the samples of a cell, and appends each to the run folder. Known samples are not repeated."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from queue import SimpleQueue
from threading import Lock
from typing import Any

from ...util.files import Journal
from ...version import __version__
from ..task import Task
from .folder import Cell, RunFolder
from .grading import GradingPool
from .models.model import EvaluatedModel, PreparedSampler, Question, TracedAnswer
from .options import RunOptions
from .sample import Answer, CellName, Grades, Sample, sample_key

MAX_PENDING = 256
"""Answers that wait for their grades; then decoding waits too."""
PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
OPTIONAL_PACKAGES = ("vllm", "gguf")
"""They change answers too, and are noted only where they are installed."""


class Recorder:
    """The samples of a run folder, and this process's file in it."""

    def __init__(
        self, folder: RunFolder, options: RunOptions, lines: Journal, pool: GradingPool, trace_files: ExitStack
    ) -> None:
        self.folder, self.options, self._lines, self._pool = folder, options, lines, pool
        self._trace_files = trace_files
        """They stay open until the last answer is graded."""
        self._lock = Lock()
        self._done: dict[str, dict[CellName, Sample]] = {}
        """The samples by key, then by the cell that they belong to."""
        for sample in folder.all_samples():
            self._done.setdefault(sample.key, {})[sample.cell] = sample

    @classmethod
    @contextmanager
    def open(cls, folder: RunFolder, options: RunOptions) -> Iterator[Recorder]:
        """Open this process's file, and start the threads that grade."""
        with ExitStack() as stack:
            lines = stack.enter_context(folder.writing(options.process))
            trace_files = stack.enter_context(ExitStack())
            pool = GradingPool(options.graders, options.claims)
            stack.callback(pool.close)
            yield cls(folder, options, lines, pool, trace_files)

    def samples(
        self,
        model: EvaluatedModel,
        task: Task[Any],
        sampler: PreparedSampler,
        label: str,
        questions: Sequence[Question],
        seed: int,
        *,
        observe: bool = False,
        is_graded: bool = True,
    ) -> Iterator[Sample | None]:
        """The samples of a cell: first those that the folder holds, then the others as they are finished. None comes
        once all are decoded; after it come those that still wait for their grades."""
        definition, length = dict(sampler.definition), task.settings.length
        cell = Cell(model.name, task.name, label, model.fingerprint, definition, length, seed)
        self.folder.add_cells([cell])
        extra = {"observe": "span"} if observe else {}
        keys = {
            one: sample_key(one.request(task.name) | extra, cell.fingerprint, definition, one.seed) for one in questions
        }
        known = {key for key in keys.values() if key in self._done}  # looked up once: another cell may be being graded
        yield from (self._known(key, cell) for key in keys.values() if key in known)
        missing = [one for one, key in keys.items() if key not in known]
        if not missing:
            return
        pending, made = 0, SimpleQueue[Future[Sample]]()
        traces = self._trace_file(cell) if self.options.traces else None
        for question, found in model.answers(sampler, missing, self.options.batch, observe):
            answer = replace(found, text=question.given + found.text) if question.given else found
            make = partial(self._made, cell, keys[question], question, answer, traces, model)
            if not is_graded:
                yield make({})
                continue
            self._grade(task, question, answer, make, made)
            pending += 1
            while pending >= MAX_PENDING or not made.empty():
                yield made.get().result()
                pending -= 1
        yield None
        for _ in range(pending):
            yield made.get().result()

    def _trace_file(self, cell: Cell) -> Journal:
        return self._trace_files.enter_context(self.folder.writing_traces(cell, self.options.process))

    def _grade(
        self,
        task: Task[Any],
        question: Question,
        answer: Answer,
        make: Callable[[Grades], Sample],
        made: SimpleQueue[Future[Sample]],
    ) -> None:
        """Put the sample into `made` once it is graded. The thread that graded it appends it to the folder, so it never
        waits for the next answer. A queue of the finished ones is cheaper than a search among all that are pending."""

        def finish(grades: Future[Grades]) -> None:
            sample = Future[Sample]()
            try:
                sample.set_result(make(grades.result()))
            except BaseException as error:
                sample.set_exception(error)
            made.put(sample)

        self._pool.submit(task, question.example, answer.text).add_done_callback(finish)

    def _known(self, key: str, cell: Cell) -> Sample:
        """The sample of a key. If another cell made it (the same sampler under another label), it is noted for both."""
        samples = self._done[key]
        if cell.name not in samples:
            model, task, sampler = cell.name
            self._add(replace(next(iter(samples.values())), model=model, task=task, sampler=sampler))
        return self._done[key][cell.name]

    def _add(self, sample: Sample) -> Sample:
        with self._lock:
            self._lines.add(sample.as_row())
            self._done.setdefault(sample.key, {})[sample.cell] = sample
        return sample

    def _made(
        self,
        cell: Cell,
        key: str,
        question: Question,
        answer: Answer,
        traces: Journal | None,
        model: EvaluatedModel,
        grades: Grades,
    ) -> Sample:
        """The sample of a graded answer, appended to the folder. Its trace comes first, so no sample is without one."""
        if traces is not None and isinstance(answer, TracedAnswer):
            span = _span_in_generated(grades, len(question.given))
            correct = grades["correct"].correct if "correct" in grades else None
            notes = {"id": question.example.id, "task": cell.task, "label": cell.sampler}
            line = answer.trace.row(0, model.tokenizer, **notes, answer_span=span, correct=correct)
            with self._lock:
                traces.add(line)
        return self._add(sample_of(cell, key, question, answer, grades))


def _span_in_generated(grades: Grades, given: int) -> tuple[int, int] | None:
    """Where the grader found the answer, in the generated text: behind the `given` characters that were not decoded."""
    span = grades["correct"].span if "correct" in grades else None
    return None if span is None or span[1] <= given else (max(span[0] - given, 0), span[1] - given)


def sample_of(cell: Cell, key: str, question: Question, answer: Answer, grades: Grades) -> Sample:
    """The line of an answer."""
    return Sample(
        key=key,
        model=cell.model,
        task=cell.task,
        sampler=cell.sampler,
        id=question.example.id,
        prompt_sha256=question.prompt_sha256,
        seed=question.seed,
        grades=grades,
        **{f.name: getattr(answer, f.name) for f in fields(Answer)},
    )


def versions() -> dict[str, str]:
    """The versions of everything that can change an answer."""
    found = {"uncode": __version__, "python": platform.python_version()}
    for name in (*PACKAGES, *OPTIONAL_PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            if name in PACKAGES:
                found[name] = "not installed"
    return found
