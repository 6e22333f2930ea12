"""Evaluation configs: TOML files that name the models, tasks and samplers of a table. This module imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, require, shown, suggest
from ...samplers.catalog import read_options
from ...util.toml_file import read_record, read_toml
from ..names import TASK_NAMES
from ..task import AnyTask, TaskSettings
from ..tasks import find_task

AUTOREGRESSIVE = "autoregressive"
"""The name that stands for a sampler where the model is autoregressive."""
AUTOREGRESSIVE_OPTIONS = ("temperature",)
LABEL_FREE = "label-free"
"""As the value of `rate`: choose it for each task by the mean predictive entropy, without labels."""
TASK_FORMAT = "task"
"""As the value of `constraint`: the format of each task."""
_SETTING = re.compile(r"\$(\w+?)(?:\*(\d+))?")


@dataclass(frozen=True)
class SamplerEntry:
    """A row of the table: a sampler, with options that may depend on the task."""

    preset: str
    """A preset, the path of a sampler file, or `autoregressive`."""
    label: str = ""
    """The name of the row. By default that of the preset."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """`$length`, `$rate` and `$block_length` stand for the task's setting, `$block_length*4` for four times that."""
    tasks: tuple[str, ...] = ()
    """The tasks of this row; none means all."""
    stop_at_eos: bool = True
    """Whether an answer may end at an EOS token. Without, every mask is filled."""
    measure_order: bool = False
    """Whether to record when each part of the answer was written."""
    forced_direct: bool = False
    """Whether the answer's first tokens are given, those of an answer without reasoning. For the mini families."""
    reject_trivial: float = 0.0
    """The probability with which the pick of a trivial token is rejected."""
    anchor: str = ""
    """A token that is given inside the answer, at `anchor_at` of its length. It is graded with the answer."""
    anchor_at: float = 0.5
    length: int | None = None
    """Tokens to generate; None is the task's setting."""
    chat: bool | None = None
    """Whether the prompt goes through the chat template; None is the task's setting."""
    constraint: Mapping[str, Any] | str | None = None
    """What every answer fulfils: an argument of `uncode.constraint` with its value, the word "json", or "task", for the
    format of the task."""

    def on(self, task: AnyTask) -> SamplerEntry:
        """The row on a task: the task's format stands for the word."""
        if self.constraint != TASK_FORMAT:
            return self
        require(
            bool(task.format),
            f"the sampler '{self.label}' has the constraint of its tasks, and {task.name} has none: leave it out, or "
            "name the others in `tasks` of this sampler.",
        )
        return replace(self, constraint={"regex": task.format})

    def settings_for(self, task: TaskSettings) -> TaskSettings:
        """The settings of a task as this row has them."""
        length = task.length if self.length is None else self.length
        return replace(task, length=length, chat=task.chat if self.chat is None else self.chat)

    def options_for(self, settings: TaskSettings) -> dict[str, Any]:
        """The options on a task with these settings."""
        return {name: _setting(value, settings) for name, value in self.options.items()}

    def runs_on(self, task: str) -> bool:
        return not self.tasks or task in self.tasks


@dataclass(frozen=True)
class PublishedRow:
    """What others report of a row of the table."""

    sampler: str
    """The label of the row."""
    figures: Mapping[str, float]
    """The accuracy in per cent by task."""
    by: str = ""
    """Who or what measured it, where a source has several."""


@dataclass(frozen=True)
class EvalConfig:
    """What `uncode eval` runs: every sampler on every task with every model."""

    name: str
    title: str
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    samplers: tuple[SamplerEntry, ...]
    baseline: str = ""
    """The label of the sampler that reports compare others with."""
    paper: str = ""
    """The paper's table of the same kind."""
    seed: int = 0
    """Of the first example of a task; example n has this seed plus n."""
    rates: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0)
    """Candidates for `rate = "label-free"`."""
    calibration_examples: int = 64
    """Examples without labels on which that rate is chosen."""
    source: str = ""
    """Where the settings and the published figures are from."""
    differs: str = ""
    """In what the published evaluation differs from this config."""
    published: tuple[PublishedRow, ...] = ()
    calibrated: SamplerEntry | None = field(default=None, metadata={"computed": True})
    """The sampler that is decoded to choose that rate: the first with `rate = "label-free"`. A narrowed config keeps
    it, so that a rate does not depend on which other samplers run."""

    def __post_init__(self) -> None:
        if self.calibrated is None:
            label_free = (entry for entry in self.samplers if entry.options.get("rate") == LABEL_FREE)
            object.__setattr__(self, "calibrated", next(label_free, None))

    @classmethod
    def load(cls, source: str | Path) -> EvalConfig:
        """Load a config of the package by its name, or a TOML file."""
        own = package_configs()
        path = own.get(str(source), Path(source))
        if not path.is_file():
            near = suggest(str(source), PACKAGE_CONFIGS)
            raise UncodeError(f"no evaluation config is named '{source}', and there is no such file: {near}")
        data = read_toml(path, "evaluation config")
        try:
            config = cls.read({"name": path.stem} | data)
            return replace(config, samplers=tuple(_beside(entry, path.parent) for entry in config.samplers))
        except UncodeError as error:
            raise UncodeError(f"in the evaluation config '{path.name}', {error}") from None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> EvalConfig:
        """Build a config from the data of a TOML file, and check its names and values."""
        rows = data.get("samplers", ())
        require(isinstance(rows, Sequence) and not isinstance(rows, str), "samplers must be a list of tables.")
        entries = tuple(_read_entry(row, number) for number, row in enumerate(rows, 1))
        published = _read_published(data.get("published", ()))
        config = read_record(cls, data, "the top level", "{} of the top level", samplers=entries, published=published)
        for name, named in (("models", config.models), ("tasks", config.tasks), ("samplers", entries)):
            require(len(named) > 0, f"{name} is empty: name at least one.")
        for task in (*config.tasks, *(task for entry in entries for task in entry.tasks)):
            require(task in TASK_NAMES, f"there is no task named '{task}': {suggest(task, TASK_NAMES)}")
        for entry in entries:
            require(
                not entry.forced_direct or any(find_task(task).direct for task in entry.tasks or config.tasks),
                f"the sampler '{entry.label}' has forced_direct, and none of its tasks has direct answers: add a task "
                "such as mini_story.",
            )
            for task in (task for task in config.tasks if entry.runs_on(task)):
                entry.on(find_task(task))
        labels = [entry.label for entry in entries]
        twice = [label for label in labels if labels.count(label) > 1]
        require(not twice, f"two samplers have the label '{twice[0] if twice else ''}': give each its own label.")
        known = config.baseline in labels or not config.baseline
        require(known, f"the baseline '{config.baseline}' is no label of a sampler: {suggest(config.baseline, labels)}")
        for row in published:
            require(
                row.sampler in labels,
                f"the published row '{row.sampler}' is no sampler: {suggest(row.sampler, labels)}",
            )
            for task in row.figures:
                require(task in config.tasks, f"the published task '{task}' is not run: {suggest(task, config.tasks)}")
        require(config.calibration_examples > 0, "calibration_examples must be above 0.")
        return config

    def with_seed(self, seed: int) -> EvalConfig:
        """The same config with another seed."""
        return replace(self, seed=seed)

    def narrowed(
        self, models: Sequence[str] = (), tasks: Sequence[str] = (), samplers: Sequence[str] = ()
    ) -> EvalConfig:
        """The same config with other models, and with only these tasks and samplers."""
        full = [find_task(task).name for task in tasks]
        chosen = _chosen(full, self.tasks, "task", self.name)
        labels = _chosen(samplers, [entry.label for entry in self.samplers], "sampler", self.name)
        entries = tuple(entry for entry in self.samplers if entry.label in labels)
        return replace(self, models=tuple(models) or self.models, tasks=chosen, samplers=entries)


def package_configs() -> dict[str, Path]:
    """The paths of the package's own configs, by name."""
    folder = Path(__file__).parent / "configs"
    return {name: folder / f"{name}.toml" for name in PACKAGE_CONFIGS}


PAPER_CONFIGS = ("main", "dream", "efficient", "priors", "corpora", "autoregressive", "mini")
PUBLISHED_CONFIGS = (
    *("llada-eval-md", "llada-1.5-eval-md", "llada-base-eval-md", "fast-dllm", "dsb", "dsb-1.5"),
    *("dream-instruct", "d3llm-llada", "d3llm-dream"),
)
"""Those with the settings and the figures of other projects."""
PACKAGE_CONFIGS = (*PAPER_CONFIGS, "constraints", *PUBLISHED_CONFIGS)


def _read_entry(row: Any, number: int) -> SamplerEntry:
    where = f"sampler {number}"
    require(isinstance(row, Mapping), f"{where} must be a table, not {shown(row)}.")
    options = row.get("options", {})
    require(isinstance(options, Mapping), f"the options of {where} must be a table, not {shown(options)}.")
    given = {"options": dict(options), "constraint": row.get("constraint")}
    entry = read_record(SamplerEntry, row, where, f"{{}} of {where}", **given)
    share, place = entry.reject_trivial, entry.anchor_at
    require(0 <= share <= 1, f"reject_trivial of {where} must lie between 0 and 1, not {shown(share)}.")
    require(0 < place < 1, f"anchor_at of {where} must be more than 0 and less than 1, not {shown(place)}.")
    require(
        entry.length is None or entry.length >= 1, f"length of {where} must be at least 1, not {shown(entry.length)}."
    )
    _check_options(entry)
    _check_constraint(entry, where)
    default = Path(entry.preset).stem if entry.preset.endswith(".toml") else entry.preset
    return replace(entry, label=entry.label or default)


def _beside(entry: SamplerEntry, folder: Path) -> SamplerEntry:
    """The row, whose sampler file may lie where its path leads from the config's folder."""
    there = folder / entry.preset
    is_there = entry.preset.endswith(".toml") and not Path(entry.preset).is_file() and there.is_file()
    return replace(entry, preset=str(there.resolve())) if is_there else entry


def _read_published(rows: Any) -> tuple[PublishedRow, ...]:
    is_list = isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows)
    require(is_list, "published must be a list of tables.")
    found = []
    for number, row in enumerate(rows, 1):
        where, figures = f"published row {number}", row.get("figures", {})
        fits = isinstance(figures, Mapping) and all(
            isinstance(value, int | float) and 0 <= value <= 100 for value in figures.values()
        )
        require(fits, f"figures of {where} must be per cent by task, not {shown(figures)}.")
        found.append(read_record(PublishedRow, row, where, f"{{}} of {where}", figures=dict(figures)))
    return tuple(found)


def _check_options(entry: SamplerEntry) -> None:
    """Raise if the preset or one of its options does not exist, or a value is of the wrong type."""
    if entry.preset == AUTOREGRESSIVE:
        for name in entry.options:
            known = AUTOREGRESSIVE_OPTIONS
            require(name in known, f"an autoregressive model has no option '{name}': {suggest(name, known)}")
        return
    options = entry.options_for(TaskSettings(shots=0, length=1, rate=0.0, chat=False, block_length=1))
    if options.get("rate") == LABEL_FREE:
        options["rate"] = 0.0
    read_options(entry.preset, options)


def _check_constraint(entry: SamplerEntry, where: str) -> None:
    """Raise unless it is one that `uncode.constraint` makes, or the task's."""
    if entry.constraint is None:
        return
    beside = "forced_direct" if entry.forced_direct else AUTOREGRESSIVE if entry.preset == AUTOREGRESSIVE else ""
    require(not beside, f"{where} cannot have a constraint beside '{beside}': leave one of them out.")
    if entry.constraint == TASK_FORMAT:
        return
    from ...constraints.constraint import TextConstraint  # it imports torch

    try:
        TextConstraint.from_dict(entry.constraint)
    except UncodeError as error:
        raise UncodeError(f"the constraint of {where} is wrong: {error}") from None


def _setting(value: Any, settings: TaskSettings) -> Any:
    """The value of an option; `$NAME` and `$NAME*N` stand for a setting of the task."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    found = _SETTING.fullmatch(value)
    known = {"length": settings.length, "rate": settings.rate, "block_length": settings.block_length}
    if found is None or found[1] not in known:
        raise UncodeError(f"'{value}' stands for no setting of a task: use ${', $'.join(known)}.")
    setting = known[found[1]]
    return setting * int(found[2]) if found[2] else setting


def _chosen(wanted: Iterable[str], known: Sequence[str], what: str, config: str) -> tuple[str, ...]:
    """The known names that are wanted, in their own order; all of them if none is named."""
    wanted = list(wanted)
    for name in wanted:
        require(name in known, f"the config '{config}' has no {what} '{name}': {suggest(name, known)}")
    return tuple(name for name in known if not wanted or name in wanted)
