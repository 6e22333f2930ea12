"""The journal of a model under lm-eval: every answer is a line, found by its key when a run is started again.

lm-eval's own response cache finds an answer by the request alone, so it would return the answers of another sampler.
Our keys cover the request, the weights, the sampler as data and the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...util.files import Journal, exclusive_lock, read_rows
from ...util.paths import make_folder

Add = Callable[[Mapping[str, Any]], None]


class AnswerJournal:
    """The answers so far, by key. Without a folder they are kept in memory only.

    Every process appends to its own file and reads the files of all, so a run may be resumed with another number
    of processes.
    """

    def __init__(self, folder: Path | None, process: int = 0) -> None:
        self.folder, self.process = folder, process
        self._rows: dict[str, Mapping[str, Any]] = {}
        if folder is not None:
            make_folder(folder)
            for file in sorted(folder.glob("answers.*.jsonl")):
                self._read(file)

    def _read(self, file: Path) -> None:
        for number, row in enumerate(read_rows(file), 1):
            require(isinstance(row.get("key"), str), f"line {number} of '{file}' is no answer: remove the line.")
            self._rows.setdefault(row["key"], row)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        return self._rows[key]

    @contextmanager
    def writing(self) -> Iterator[Add]:
        """A function that adds an answer. Its line is with the operating system when the function returns."""
        if self.folder is None:
            yield self._keep
            return
        file = self.folder / f"answers.{self.process}.jsonl"
        with exclusive_lock(file.with_suffix(".lock"), self.folder, "writing answers"), Journal.open(file) as lines:

            def add(row: Mapping[str, Any]) -> None:
                lines.add(row)
                self._keep(row)

            yield add

    def _keep(self, row: Mapping[str, Any]) -> None:
        self._rows[row["key"]] = row
