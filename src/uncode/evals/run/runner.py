"""Runs an evaluation: every sampler of a config on every task with every model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ...core.errors import require
from ..task import AnyTask, Example, TaskSettings
from ..tasks import find_task
from .calibrate import RateCalibration
from .config import LABEL_FREE, EvalConfig, SamplerEntry
from .folder import RunFolder, RunInfo
from .models.model import EvaluatedModel, PreparedSampler, Question, SamplerRefused
from .options import OnProgress, RunOptions, RunProgress
from .recorder import CellRun, Recorder, versions
from .sample import RunSample, digest

CALIBRATION = "calibration"
"""The folder inside a run's for the samples from which label-free rates are chosen."""


OnStart = Callable[["Runner", EvaluatedModel], None]
"""Called when a runner has loaded a model, before its first cell."""


@dataclass
class Runner:
    """One process of a run. All processes of a run share its folder, and divide its examples among them."""

    config: EvalConfig
    out: Path
    load: Callable[[str], EvaluatedModel]
    """Loads a model of the config by its name."""
    options: RunOptions = field(default_factory=RunOptions)
    on_progress: OnProgress = lambda progress: None
    known_rates: Mapping[str, float] = field(default_factory=dict)
    """Label-free rates by task, which are not chosen again."""
    on_start: OnStart | None = None
    left_out: dict[str, str] | None = None
    """Gets the samplers that a model cannot be decoded with, and why. Without it, such a sampler is an error."""

    def __post_init__(self) -> None:
        require(self.options.processes > self.options.process >= 0, "there are fewer processes than this one's number.")
        self.tasks: dict[str, AnyTask] = {name: find_task(name) for name in self.config.tasks}
        self._rates: dict[tuple[str, str], float] = {}
        self._questions: dict[tuple[str, str, TaskSettings, str, tuple[int, int] | None], list[Question]] = {}
        """By model, task, settings, the text that begins the answers, and the anchor."""
        self._finished = 0
        self._waiting: CellRun | None = None
        """The cell whose answers are decoded and not all graded."""

    @cached_property
    def examples(self) -> dict[str, list[Example]]:
        """The examples of every task. They are read before any model is loaded, so that missing data is found first."""
        limit = self.options.limit
        return {name: task.examples(self.options.data)[:limit] for name, task in self.tasks.items()}

    @cached_property
    def total(self) -> int:
        """The samples of this process."""
        rows = [
            sum(self._is_mine(task, n) for n in range(len(self.examples[task]))) * len(self.entries(task))
            for task in self.tasks
        ]
        return sum(rows) * len(self.config.models)

    def run(self) -> bool:
        """Fill the run folder. Returns whether the run is complete: other processes may still be at work."""
        return self.merge_if_complete(self.fill())

    def fill(self) -> RunFolder:
        """Make the samples of this process."""
        for task in self.tasks.values():
            task.check_packages()
        config, counts = self.config, {task: len(examples) for task, examples in self.examples.items()}
        rows = [asdict(row) for row in config.published]
        published = {"source": config.source, "differs": config.differs, "rows": rows} if rows else {}
        info = RunInfo(config.name, config.title, (), config.baseline, config.paper, versions(), counts, published)
        first = [self.load(config.models[0])]  # a model that cannot be loaded leaves no folder behind
        folder = RunFolder.create(self.out, info)
        with Recorder.open(folder, self.options) as recorder:
            for name in config.models:
                self._run_model(recorder, first.pop() if first else self.load(name))  # one model in memory at a time
                self._finish_waiting()
        return folder

    def _run_model(self, recorder: Recorder, model: EvaluatedModel) -> None:
        if self.on_start is not None:
            self.on_start(self, model)
        entries = {task: self.entries(task) for task in self.tasks}
        claims = self.options.claims
        if claims is None:
            for task, of in entries.items():
                self._run_task(recorder, model, self.tasks[task], of)
            return
        for unit in work_units(entries, self.tasks):
            if claim(claims, model.name, unit):
                self._run_task(recorder, model, self.tasks[unit.task], unit.entries)

    def entries(self, task: str) -> list[SamplerEntry]:
        """The samplers of a task."""
        has_direct = bool(self.tasks[task].direct)
        return [
            entry.on(self.tasks[task])
            for entry in self.config.samplers
            if entry.runs_on(task) and (has_direct or not entry.forced_direct)
        ]

    def questions(self, model: EvaluatedModel, task: AnyTask, entry: SamplerEntry) -> list[Question]:
        """This process's examples of a task, as a row of the table has the model read them."""
        settings, given = entry.settings_for(task.settings), task.direct if entry.forced_direct else ""
        offset = int(entry.anchor_at * settings.length)
        anchor = (offset, model.anchor_id(entry.anchor)) if entry.anchor else None
        name = model.name, task.name, settings, given, anchor
        if name not in self._questions:
            mine = [pair for pair in enumerate(self.examples[task.name]) if self._is_mine(task.name, pair[0])]
            self._questions[name] = model.questions(task, mine, self.config.seed, given, anchor, settings)
        return self._questions[name]

    def prepared(self, model: EvaluatedModel, task: AnyTask, entry: SamplerEntry) -> PreparedSampler:
        """The sampler of a cell; a label-free rate is chosen first."""
        options = {"rate": self.label_free_rate(model, task)} if entry.options.get("rate") == LABEL_FREE else {}
        return model.with_stop_strings(model.prepare(entry, entry.settings_for(task.settings), options), task.stops)

    def label_free_rate(self, model: EvaluatedModel, task: AnyTask) -> float:
        """The rate with the least mean predictive entropy on examples without labels, as in the paper's appendix."""
        if task.name in self.known_rates:
            return self.known_rates[task.name]
        name = model.name, task.name
        if name not in self._rates:
            assert self.config.calibrated is not None
            calibrated = replace(self.config.calibrated, constraint=None)  # one rate for rows with and without one
            calibration = RateCalibration(model, task, calibrated, self.config.rates, self.config.seed)
            count, out = self.config.calibration_examples, self.out / CALIBRATION
            self._rates[name] = calibration.run(count, out, self.options, self._report_calibration).rate
        return self._rates[name]

    def _report_calibration(self, progress: RunProgress) -> None:
        """Report answers that the total does not count."""
        cell = f"{progress.cell}, {progress.done} of {progress.total}"
        self.on_progress(RunProgress(cell, self._finished, self.total, 0, 0))

    def _is_mine(self, task: str, number: int) -> bool:
        """Whether an example belongs to this process. A batch stays together, so that every process has full ones."""
        if self.options.claims is not None:
            return True
        first = list(self.tasks).index(task)
        return (first + number // self.options.batch) % self.options.processes == self.options.process

    def _run_task(
        self, recorder: Recorder, model: EvaluatedModel, task: AnyTask, entries: Sequence[SamplerEntry]
    ) -> None:
        for entry in entries:
            questions = self.questions(model, task, entry)
            if not questions:
                continue
            try:
                self._run_cell(recorder, model, task, entry, questions)
            except SamplerRefused as error:
                if self.left_out is None:
                    raise
                self.left_out[entry.label] = str(error)

    def _run_cell(
        self,
        recorder: Recorder,
        model: EvaluatedModel,
        task: AnyTask,
        entry: SamplerEntry,
        questions: Sequence[Question],
    ) -> None:
        sampler, before = self.prepared(model, task, entry), self._waiting
        seed, observe = self.config.seed, self.options.observe_span
        run = CellRun(recorder, model, task, sampler, entry.label, questions, seed, observe=observe)
        self._report(run)
        if before and (before.task, before.sampler.definition) == (task, sampler.definition):
            self._finish_waiting()  # this cell has the same answers: decode them once
        self._count(run, run.decoded())
        self._finish_waiting()
        self._waiting = run  # the next cell is decoded while the programs of this one run

    def _finish_waiting(self) -> None:
        """Wait for the grades of the cell that was decoded before."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._count(waiting, waiting.graded())

    def _count(self, run: CellRun, samples: Iterator[RunSample]) -> None:
        """Report the samples of a cell as they come."""
        for sample in samples:
            run.answered += 1
            run.right += sample.grades["correct"].correct
            self._finished += 1
            self._report(run)

    def _report(self, run: CellRun) -> None:
        name = ", ".join(run.cell.name[0 if len(self.config.models) > 1 else 1 :])
        self.on_progress(RunProgress(name, self._finished, self.total, run.right, run.answered))

    def merge_if_complete(self, folder: RunFolder) -> bool:
        """Merge the files of all processes, if every cell has a sample of every example."""
        wanted = {
            ((model, task, entry.label), example.id)
            for model in self.config.models
            for task in self.tasks
            for entry in self.entries(task)
            for example in self.examples[task]
        }
        lines = folder.count_lines()
        if lines < len(wanted):  # which is quick, where reading them all is not
            return False
        samples = folder.all_samples()
        if not wanted <= {(sample.cell, sample.id) for sample in samples}:
            return False
        if lines == len(samples):
            folder.join_files()
        else:
            folder.merge(samples)
        return True


class WorkUnit(NamedTuple):
    """Samplers of one task that one process runs. Each process claims the next unit that nobody has begun, so all of
    them end at about the same time, however long their units take."""

    task: str
    entries: tuple[SamplerEntry, ...]


def work_units(entries: Mapping[str, Sequence[SamplerEntry]], tasks: Mapping[str, AnyTask]) -> list[WorkUnit]:
    """The units of all tasks, by the entries of each: units of several samplers first, then those whose answers are
    programs, which run while others are decoded, then the longest.

    A sampler is a unit. Samplers with a label-free rate, and those of the same presets with fixed rates, are one
    unit: the process that chooses the rate needs it again, and has the answers at the chosen rate already.
    """
    units = []
    for task, of in entries.items():
        calibrated = {entry.preset for entry in of if entry.options.get("rate") == LABEL_FREE}
        together = tuple(entry for entry in of if entry.preset in calibrated)
        units += [WorkUnit(task, together)] if together else []
        units += [WorkUnit(task, (entry,)) for entry in of if entry.preset not in calibrated]

    def order(unit: WorkUnit) -> tuple[int, bool, int]:
        task = tasks[unit.task]
        return -len(unit.entries), not task.grades_in_processes, -task.settings.length

    return sorted(units, key=order)


def claim(folder: Path, model: str, unit: WorkUnit) -> bool:
    """Take a unit, unless a process has it. The folder belongs to one start of a run, so a kill leaves no claim."""
    name = digest([model, unit.task, [entry.label for entry in unit.entries]])
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
