"""The journal of a model under lm-eval: every answer is a line, found by its key when a run is started again.

lm-eval's own response cache finds an answer by the request alone, so it would return the answers of another sampler.
Our keys cover the request, the weights, the sampler as data and the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...util.files import Journal, exclusive_lock, read_rows
from ...util.paths import make_folder

Row = Mapping[str, Any]
"""A line of the journal."""


class AnswerJournal(dict[str, Row]):
    """The answers so far, by key. Without a folder they are kept in memory only.

    Every process appends to its own file and reads the files of all, so a run may be resumed with another number
    of processes.
    """

    def __init__(self, folder: Path | None, process: int = 0) -> None:
        super().__init__()
        self.folder, self.process = folder, process
        if folder is not None:
            make_folder(folder)
            for file in sorted(folder.glob("answers.*.jsonl")):
                for number, row in enumerate(read_rows(file), 1):
                    is_answer = isinstance(row.get("key"), str)
                    require(is_answer, f"line {number} of '{file}' is no answer: remove the line.")
                    self.setdefault(row["key"], row)

    @contextmanager
    def writing(self) -> Iterator[Callable[[Row], None]]:
        """A function that adds an answer. Its line is with the operating system when the function returns."""
        with ExitStack() as stack:
            lines = None
            if self.folder is not None:
                file = self.folder / f"answers.{self.process}.jsonl"
                stack.enter_context(exclusive_lock(file.with_suffix(".lock"), self.folder, "writing answers"))
                lines = stack.enter_context(Journal.open(file))

            def add(row: Row) -> None:
                if lines is not None:
                    lines.add(row)
                self[row["key"]] = row

            yield add
