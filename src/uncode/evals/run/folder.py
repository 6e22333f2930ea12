"""Run folders: `run.json` describes the cells of a run, `samples*.jsonl` hold its samples, one line each.

Every process of a run appends to its own file, so no two processes write into one file, on one machine or on
several that share the folder. Lines are found by their keys, so it does not matter which file holds them. The process
that finds the run complete merges all files into `samples.jsonl`.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ...core.errors import UncodeError, require
from ...util.extras import needed
from ...util.files import Journal, exclusive_lock, read_rows
from ...util.paths import check_folder_can_be_made, make_folder
from ...util.write import is_partial, write_whole
from .sample import CellName, RunSample


class _Identified(Protocol):
    """A sample, or what is kept of one."""

    @property
    def key(self) -> str: ...
    @property
    def cell(self) -> CellName: ...
    @property
    def id(self) -> str: ...


S = TypeVar("S", bound=_Identified)
SCHEMA = 1
INFO, SAMPLES = "run.json", "samples.jsonl"
DRAWN_PROBLEMS = "problems-"
"""A folder for problems that were drawn for this run, followed by the seed of the draw."""
LOCK_SECONDS = 60.0
"""How long a process waits for another one that is writing `run.json`."""


@dataclass(frozen=True)
class RunCell:
    """One sampler on one task with one model: everything that its samples have in common."""

    model: str
    task: str
    sampler: str
    """The sampler's label."""
    fingerprint: str
    """Of the weights, their dtype and format."""
    definition: Mapping[str, Any]
    """The sampler as data."""
    length: int
    """Tokens to generate."""
    seed: int
    """Of the first example; example n has this seed plus n."""

    @property
    def name(self) -> CellName:
        return self.model, self.task, self.sampler


@dataclass(frozen=True)
class RunInfo:
    """What `run.json` says about a run."""

    config: str
    """The name of the config."""
    title: str
    cells: tuple[RunCell, ...] = ()
    baseline: str = ""
    """The sampler's label that others are compared with."""
    paper: str = ""
    """The paper's table of the same kind, if there is one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, int] = field(default_factory=dict)
    """How many examples of each task were asked for."""
    published: Mapping[str, Any] = field(default_factory=dict)
    """The config's published figures: `source`, `differs` and `rows` of sampler, by and figures."""
    schema: int = SCHEMA

    def with_cells(self, cells: Iterable[RunCell], folder: Path) -> RunInfo:
        """The same run with more cells. A cell of the same name must be the same cell."""
        found = {cell.name: cell for cell in self.cells}
        for cell in cells:
            known = found.setdefault(cell.name, cell)
            if known != cell:
                other = next(key for key, value in asdict(cell).items() if value != asdict(known)[key])
                raise UncodeError(
                    f"'{folder}' holds answers of '{cell.sampler}' on {cell.task} by {cell.model} with another "
                    f"{_WORDS.get(other, other)}: choose another `out=`, or another name."
                )
        return replace(self, cells=tuple(found.values()))


_WORDS = {
    "fingerprint": "checkpoint, dtype or format of its weights",
    "definition": "definition of the sampler (its settings, or the code of its pieces)",
}


class RunFolder:
    """A run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: str | Path) -> RunFolder:
        """The folder of a run that was begun before."""
        path = Path(path)
        require(path.is_dir(), f"there is no run folder '{path}': check the path, or make a run with `uncode eval`.")
        require((path / INFO).is_file(), f"'{path}' is no run folder: it has no {INFO} (`uncode eval` makes one).")
        return cls(path)

    @classmethod
    def create(cls, path: str | Path, info: RunInfo) -> RunFolder:
        """Open a run's folder, or make it. The cells of `info` are added to those that it holds."""
        folder = cls(Path(path))
        folder.check()
        make_folder(folder.path)
        with folder.locked():
            if (folder.path / INFO).is_file():
                known = folder.info()
                require(
                    known.config == info.config,
                    f"'{path}' is a run of the config '{known.config}', not '{info.config}': choose another `out=`.",
                )
                counts = {task: max(count, known.examples.get(task, 0)) for task, count in info.examples.items()}
                examples = {**known.examples, **counts}
                info = replace(known.with_cells(info.cells, folder.path), versions=info.versions, examples=examples)
            folder._write(info)
        return folder

    def check(self) -> None:
        """Raise if the folder cannot be made, or holds other files. For use before long work."""
        check_folder_can_be_made(self.path)
        files = self.path.iterdir() if self.path.is_dir() else ()
        others = sorted(
            file.name
            for file in files
            if not (file.name == f"{INFO}.lock" or file.name.startswith(DRAWN_PROBLEMS) or is_partial(file))
        )
        is_run = (self.path / INFO).is_file()  # looked for last, since another process may be making the folder
        require(
            is_run or not others,
            f"'{self.path}' is not empty and no run folder (it holds {others[:3]}): choose another.",
        )

    def add_cells(self, cells: Sequence[RunCell]) -> None:
        """Note cells in `run.json`. A cell of the same name must be the same cell."""
        info = self.info()
        if all(cell in info.cells for cell in cells):
            return
        with self.locked():
            self._write(self.info().with_cells(cells, self.path))

    def _write(self, info: RunInfo) -> None:
        write_whole(self.path / INFO, json.dumps(asdict(info), indent=1) + "\n")

    def info(self) -> RunInfo:
        """What `run.json` says."""
        file = self.path / INFO
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            is_ours = isinstance(data, dict) and {"schema", "cells", "config"} <= set(data)
            require(is_ours, f"'{file}' was not written by `uncode eval`: choose another folder.")
            require(data["schema"] == SCHEMA, f"'{file}' has schema {data['schema']}; this version reads {SCHEMA}.")
            return RunInfo(**{**data, "cells": tuple(RunCell(**cell) for cell in data["cells"])})
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UncodeError(f"'{file}' is damaged: restore it, or choose another folder.") from error

    def samples(self) -> list[RunSample]:
        """All samples. If an example of a cell was answered more than once (its prompt changed), the last one."""
        return last_answers(self.all_samples())

    def to_frame(self) -> Any:
        """A pandas data frame with one line per answer (extra `frames`). Each metric is a column that says whether the
        answer is right by it."""
        pandas = needed("pandas", "frames", "a data frame")
        names = ("model", "task", "sampler", "id", "seed", "text", "forwards", "tokens", "seconds", "first_eos_step")
        lines = [
            {name: getattr(sample, name) for name in (*names, "entropy")}
            | {metric: grade.correct for metric, grade in sample.grades.items()}
            for sample in self.samples()
        ]
        frame = pandas.DataFrame(lines)
        return frame.astype({"first_eos_step": "Int64", "entropy": "Float64"}) if lines else frame

    def all_samples(self) -> list[RunSample]:
        """Every sample once, in the order in which they were written."""
        with garbage_collection_paused():
            return once(sample for file in self.files() for sample in read_samples(file))

    def files(self) -> list[Path]:
        """The files of samples. The merged one comes first."""
        parts = sorted(self.path.glob("samples.*.jsonl"), key=lambda file: (len(file.name), file.name))
        return [file for file in (self.path / SAMPLES, *parts) if file.is_file()]

    @contextmanager
    def writing(self, process: int) -> Iterator[Journal]:
        """The file to which this process appends. Only one process at a time can hold it."""
        file = self.path / f"samples.{process}.jsonl"
        with exclusive_lock(file.with_suffix(".lock"), self.path, "writing samples"), Journal.open(file) as lines:
            yield lines

    @contextmanager
    def writing_traces(self, cell: RunCell, process: int) -> Iterator[Journal]:
        """The file to which this process appends the traces of a cell."""
        make_folder(self.path / "traces")
        with Journal.open(self.path / "traces" / f"{_trace_name(cell)}.{process}.jsonl") as lines:
            yield lines

    def trace_files(self, samplers: Collection[str] = (), tasks: Collection[str] = ()) -> list[Path]:
        """The trace files of these samplers and tasks, all by default, in the order of the run's cells."""
        cells = [cell for cell in self.info().cells if not samplers or cell.sampler in samplers]
        names = [_trace_name(cell) for cell in cells if not tasks or cell.task in tasks]
        return [file for name in names for file in sorted((self.path / "traces").glob(f"{name}.*.jsonl"))]

    def merge(self, samples: Sequence[RunSample]) -> None:
        """Write all samples into one file and remove the others. A kill in between loses nothing."""
        with self.locked():
            lines = (json.dumps(sample.as_row(), ensure_ascii=False) + "\n" for sample in samples)
            write_whole(self.path / SAMPLES, "".join(lines))
            self._remove_parts()

    def join_files(self) -> None:
        """Put the lines of all files into one and remove the others, without reading what they say."""
        with self.locked():
            contents = [file.read_bytes() for file in self.files()]
            write_whole(self.path / SAMPLES, b"".join(content[: content.rfind(b"\n") + 1] for content in contents))
            self._remove_parts()

    def count_lines(self) -> int:
        """The lines of all files: at least as many as there are samples."""
        return sum(file.read_bytes().count(b"\n") for file in self.files())

    def _remove_parts(self) -> None:
        for file in self.files():
            if file.name != SAMPLES:
                file.unlink(missing_ok=True)
        for lock in self.path.glob("samples.*.lock"):  # a killed process leaves its file, and the system its lock
            with suppress(UncodeError), exclusive_lock(lock, self.path, "writing samples"):
                pass  # nobody holds it, and leaving the block removes it

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock while `run.json` or the merged file changes."""
        with exclusive_lock(self.path / f"{INFO}.lock", self.path, "writing", wait_seconds=LOCK_SECONDS):
            yield


def read_samples(file: Path) -> list[RunSample]:
    """The samples in one file of a run folder."""
    found = []
    with garbage_collection_paused():
        for number, row in enumerate(read_rows(file), 1):
            try:
                found.append(RunSample.from_row(row))
            except (LookupError, TypeError) as error:
                raise UncodeError(f"line {number} of '{file}' is no sample ({error}): remove the line.") from error
    return found


def once(samples: Iterable[S]) -> list[S]:
    """Samples without repetitions: the file of a killed process may hold some that the merged file has too."""
    found = dict[tuple[str, CellName], S]()
    for sample in samples:
        found.setdefault((sample.key, sample.cell), sample)
    return list(found.values())


def last_answers(samples: Iterable[S]) -> list[S]:
    """Of several answers to an example of a cell the last one."""
    return list({(sample.cell, sample.id): sample for sample in samples}.values())


def _trace_name(cell: RunCell) -> str:
    return re.sub(r"[^\w.-]+", "-", f"{cell.model}-{cell.task}-{cell.sampler}")


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Half of the time to read a large run goes into collections that find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
