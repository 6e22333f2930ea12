"""Decodes and grades the samples of a cell, and appends each to the run folder. Known samples are not repeated."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import InitVar, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from queue import SimpleQueue
from threading import Lock
from typing import Any

from ...util.files import Journal
from ...version import __version__
from ..task import AnyTask
from .folder import RunCell, RunFolder
from .grading import GradingPool
from .models.model import EvaluatedModel, PreparedSampler, Question, TracedAnswer
from .options import RunOptions
from .sample import ANSWER_FIELDS, Answer, CellName, Grades, RunSample, sample_key

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
        self.folder, self.options, self.pool, self._lines = folder, options, pool, lines
        self._trace_files = trace_files
        """They stay open until the last answer is graded."""
        self._lock = Lock()
        self._done: dict[str, dict[CellName, RunSample]] = {}
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
            pool = stack.enter_context(closing(GradingPool(options.graders, options.claims)))
            yield cls(folder, options, lines, pool, trace_files)

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def trace_file(self, cell: RunCell) -> Journal | None:
        """The file for the traces of a cell, if the run keeps them."""
        if not self.options.traces:
            return None
        return self._trace_files.enter_context(self.folder.writing_traces(cell, self.options.process))

    def known(self, key: str, cell: RunCell) -> RunSample:
        """The sample of a key. If another cell made it (the same sampler under another label), it is noted for both."""
        samples = self._done[key]
        if cell.name not in samples:
            model, task, sampler = cell.name
            self.add(replace(next(iter(samples.values())), model=model, task=task, sampler=sampler))
        return self._done[key][cell.name]

    def add(self, sample: RunSample) -> RunSample:
        """Append a sample to the folder."""
        with self._lock:
            self._lines.add(sample.as_row())
            self._done.setdefault(sample.key, {})[sample.cell] = sample
        return sample

    def add_trace(self, traces: Journal, line: Mapping[str, Any]) -> None:
        with self._lock:
            traces.add(line)


@dataclass
class CellRun:
    """A cell that is being filled, in two stages: `decoded` runs the model, then `graded` waits for the last grades."""

    recorder: Recorder
    model: EvaluatedModel
    task: AnyTask
    sampler: PreparedSampler
    label: str
    questions: InitVar[Sequence[Question]]
    seed: int
    observe: bool = False
    """Whether the mean predictive entropy is recorded."""
    is_graded: bool = True
    answered: int = 0
    """Its answers so far, and how many of them are right."""
    right: int = 0

    def __post_init__(self, questions: Sequence[Question]) -> None:
        model, task, definition = self.model, self.task, dict(self.sampler.definition)
        length = questions[0].length if questions else task.settings.length
        self.cell = RunCell(model.name, task.name, self.label, model.fingerprint, definition, length, self.seed)
        self.recorder.folder.add_cells([self.cell])
        extra = {"observe": "span"} if self.observe else {}
        self._keys = {
            one: sample_key(one.request(task.name) | extra, model.fingerprint, definition, one.seed)
            for one in questions
        }
        self._traces: Journal | None = None
        self._pending, self._made = 0, SimpleQueue[Future[RunSample]]()

    def decoded(self) -> Iterator[RunSample]:
        """The samples that the folder holds, then the others as they are finished, until all answers are decoded."""
        recorder, options = self.recorder, self.recorder.options
        known = {key for key in self._keys.values() if key in recorder}  # looked up once: another cell may be graded
        yield from (recorder.known(key, self.cell) for key in self._keys.values() if key in known)
        missing = [one for one, key in self._keys.items() if key not in known]
        if not missing:
            return
        self._traces = recorder.trace_file(self.cell)
        for question, found in self.model.answers(self.sampler, missing, options.batch, self.observe):
            answer = replace(found, text=question.given + found.text) if question.given else found
            if not self.is_graded:
                yield self._record(question, answer, {})
                continue
            grades = recorder.pool.submit(self.task, question.example, answer.text)
            grades.add_done_callback(partial(self._finish, question, answer))
            self._pending += 1
            while self._pending >= MAX_PENDING or not self._made.empty():
                yield self._next_graded()

    def graded(self) -> Iterator[RunSample]:
        """The samples that still wait for their grades."""
        while self._pending:
            yield self._next_graded()

    def _next_graded(self) -> RunSample:
        self._pending -= 1
        return self._made.get().result()

    def _finish(self, question: Question, answer: Answer, grades: Future[Grades]) -> None:
        """Record a graded answer, in the thread that graded it: so it never waits for the next answer. A queue of the
        finished ones is cheaper than a search among all that are pending."""
        sample = Future[RunSample]()
        try:
            sample.set_result(self._record(question, answer, grades.result()))
        except BaseException as error:
            sample.set_exception(error)
        self._made.put(sample)

    def _record(self, question: Question, answer: Answer, grades: Grades) -> RunSample:
        """Append an answer to the folder. Its trace comes first, so no sample is without one."""
        cell, recorder = self.cell, self.recorder
        if self._traces is not None and isinstance(answer, TracedAnswer):
            span = _span_in_generated(grades, len(question.given))
            correct = grades["correct"].correct if "correct" in grades else None
            notes = {"id": question.example.id, "task": cell.task, "label": cell.sampler}
            tokenizer = self.model.tokenizer
            line = answer.trace.row(0, tokenizer, **notes, answer_span=span, correct=correct)
            recorder.add_trace(self._traces, line)
        sample = RunSample(
            **{name: value for name, value in vars(answer).items() if name in ANSWER_FIELDS},
            key=self._keys[question],
            model=cell.model,
            task=cell.task,
            sampler=cell.sampler,
            id=question.example.id,
            prompt_sha256=question.prompt_sha256,
            seed=question.seed,
            grades=grades,
        )
        return recorder.add(sample)


def _span_in_generated(grades: Grades, given: int) -> tuple[int, int] | None:
    """Where the grader found the answer, in the generated text: behind the `given` characters that were not decoded."""
    span = grades["correct"].span if "correct" in grades else None
    return None if span is None or span[1] <= given else (max(span[0] - given, 0), span[1] - given)


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
