"""Reads trace files one line at a time: only one row is in memory.

A line of 1,024 positions is about 160 kB of JSON, and a figure needs few of its lists. The others are cut out of the
bytes before the line is parsed, which takes a fifth of the time. A quotation mark inside a JSON string is escaped, so
`"logp": [` can only be a key. If the rest of a line does not parse, the whole line is parsed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UncodeError, require
from ..core.support.json_lines import read_json
from ..core.trace.schema import Damage, read_line
from ..util.paths import kind_at, no_file
from .sampler_settings import SamplerSettings, settings_of

if TYPE_CHECKING:  # a trace in memory needs torch, files do not
    from ..core.trace.trace import Trace

Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Source: TypeAlias = "str | Path | Trace"
"""Where traces come from: a file, a folder, or memory."""
OnBytes = Callable[[int, int], None]
"""Called with the bytes that are read and their total."""

ALWAYS = (
    "schema", "mask_id", "forwards", "canvas_ids", "generated_ids", "commit_step", "special_ids", "observe", "sampler",
    "model", "events",
)  # fmt: skip
"""What every figure reads. `schema` comes first, so that another version is reported before anything else."""
_GZIP, _MARK = b"\x1f\x8b", b"\xef\xbb\xbf"
_CUTS = {
    **{
        name: (f'"{name}": ['.encode(), b"]")
        for name in ("prompt_ids", "logp", "entropy", "margin", "score", "runner_up")
    },
    "terms": (b'"terms": {', b"}"),
    "committed": (b'"committed": [', b"]"),
    "mean_entropy": (b'"mean_entropy": [', b"]"),
    "window": (b'"window": [[', b"]]"),
    "drafts": (b'"drafts": [[', b"]]"),
    "generated_texts": (b'"generated_texts": ["', b'"]'),
}
"""How each list that may be cut begins and ends, in the order of a line."""
_BUFFER_BYTES = 1 << 20
"""A line is longer than the default buffer."""


class Group(NamedTuple):
    """What the rows of a group have in common; empty where a trace does not say."""

    model: str
    task: str
    sampler: str
    """The label in the evaluation, else the sampler's name."""


@dataclass(frozen=True, eq=False)
class TraceRow:
    """One row of a trace: what a figure may need of it."""

    group: Group
    source: str
    """The file, for errors."""
    line: int
    """The number of the line in it, from 1."""
    id: str
    """The problem's; empty where a trace does not say."""
    observe: str
    forwards: int
    """Probes included."""
    steps: int
    commit_step: Whole
    """`[S]`; -1 given, -2 filled by the stop rule."""
    is_eos: Flags
    """`[S]`."""
    events: Whole | None
    """`[n, 3]`: step, offset, token; None unless a remasker ran."""
    entropy: Numbers | None
    """Of the belief at commit, `[S]`."""
    mean_entropy: Numbers | None
    """Of the masked positions, per step."""
    texts: list[str] | None
    """What each token adds to the text, `[S]`."""
    answer_span: tuple[int, int] | None
    """Where the answer stands in the text, in characters."""
    correct: bool | None
    """Whether the answer is right; None if no grader has said so."""
    settings: SamplerSettings

    def __len__(self) -> int:
        """The length of the span."""
        return len(self.commit_step)


def trace_rows(
    sources: Sequence[Source],
    needs: Collection[str] = (),
    on_bytes: OnBytes | None = None,
    tokenizer: Any = None,
) -> Iterator[TraceRow]:
    """The rows of traces in memory, of trace files, of folders of them, and of run folders of `uncode eval --traces`.

    `tokenizer` gives traces in memory their texts. `needs` are the fields of a line beyond those that every figure
    reads: `entropy`, `mean_entropy`, `generated_texts`, `answer_span`, `correct`. A row without a field that the schema
    requires, or of another schema, is an error.
    """
    paths = [source for source in sources if isinstance(source, str | Path)]
    for number, source in enumerate(sources):
        if not isinstance(source, str | Path):
            for at in range(len(source.tokens)):
                yield _row(source.row(at, tokenizer), needs, at, f"trace {number}")
    if paths or not sources:
        for number, file, data in trace_lines(paths, needs, on_bytes):
            yield _row(data, needs, number, str(file))


def trace_lines(
    paths: Sequence[str | Path], needs: Collection[str] | None = None, on_bytes: OnBytes | None = None
) -> Iterator[tuple[int, Path, Any]]:
    """Every line of trace files, not checked: its number, its file and its data. With `needs`, lists that are not among
    them may be empty."""
    files = trace_files(paths)
    total, done, rows = sum(file.stat().st_size for file in files), 0, 0
    for file in files:
        for number, line in _lines(file):
            done += len(line)
            data = _parsed(line, _CUTS if needs is None else needs, f"line {number} of '{file}'")
            if data is not None:
                rows += 1
                yield number, file, data
            if on_bytes is not None:
                on_bytes(done, total)
    require(rows > 0, f"'{paths[0]}' holds no trace: it is empty.")


def trace_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files at these paths, each once. A folder stands for the `.jsonl` files in it, or in its folder `traces`."""
    require(len(paths) > 0, "there are no traces: give a trace file or a folder of them.")
    return list(dict.fromkeys(file for path in paths for file in _files_at(Path(path))))


def _files_at(path: Path) -> Iterable[Path]:
    if kind_at(path) != "a folder":
        require(kind_at(path) == "a file", no_file(path, "trace"))
        return [path]
    is_run = (path / "run.json").is_file()
    inside = path / "traces" if is_run or (path / "traces").is_dir() else path
    files = sorted(inside.glob("*.jsonl"))
    what = f"the run folder '{path}'" if is_run else f"the folder '{path}'"
    advice = "run `uncode eval` with --traces" if is_run else "`uncode decode --trace FILE.jsonl` writes one"
    require(len(files) > 0, f"{what} holds no traces: {advice}.")
    return files


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    try:
        with open(file, "rb", buffering=_BUFFER_BYTES) as lines:
            for number, line in enumerate(lines, 1):
                is_compressed = number == 1 and line.startswith(_GZIP)
                require(not is_compressed, f"'{file}' is compressed: unpack it with gunzip first.")
                if line.strip():
                    yield number, line.removeprefix(_MARK) if number == 1 else line
    except OSError as error:
        raise UncodeError(f"the trace '{file}' cannot be read: {error.strerror}.") from error


def _parsed(line: bytes, needs: Collection[str], where: str) -> Any:
    """The data of a line; None for half a line at the end of a file, which a kill or a running evaluation leaves."""
    try:
        return json.loads(_cut(line, needs))
    except (ValueError, RecursionError):
        pass
    try:
        return read_json(line.decode(), where)
    except UnicodeDecodeError as error:
        raise UncodeError(f"{where} is not UTF-8 text ({error.reason}): decode again or remove the line.") from None
    except UncodeError:
        if line.startswith(b'{"schema":') and not line.endswith(b"\n"):
            return None
        raise


def _cut(line: bytes, needs: Collection[str]) -> bytes:
    """The line without the content of the lists that are not needed. Each is searched for after the one before."""
    parts, done = list[bytes](), 0
    for name, (opening, closing) in _CUTS.items():
        start = -1 if name in needs else line.find(opening, done)
        stop = line.find(closing, start + len(opening)) if start >= 0 else -1
        if stop >= 0:
            parts.append(line[done : start + len(opening)])
            done = stop
    return b"".join([*parts, line[done:]])


def read_fields(data: Any, names: Collection[str] | None, number: int, source: str) -> dict[str, Any]:
    """The fields of a line as in :func:`read_line`; damage is one sentence with the line and its file."""
    try:
        return read_line(data, names)
    except Damage as damage:
        if not isinstance(data, dict) or "schema" not in data:
            raise UncodeError(f"line {number} of '{source}' is no trace: give files that uncode wrote.") from None
        raise UncodeError(f"line {number} of '{source}' cannot be read: {damage}") from None


def _row(data: Any, needs: Collection[str], number: int, source: str) -> TraceRow:
    found = read_fields(data, {*ALWAYS, *needs}, number, source)
    eos_ids = sorted(set(found["special_ids"].tolist()) - {found["mask_id"]})
    events, span = found.get("events"), found.get("answer_span")
    try:
        settings = settings_of(found["sampler"])
    except UncodeError as error:
        raise UncodeError(f"line {number} of '{source}' cannot be read: {error}") from None
    return TraceRow(
        group=Group(found.get("model", ""), _note(data, "task"), _note(data, "label") or found["sampler"]["name"]),
        source=source,
        line=number,
        id=_note(data, "id"),
        observe=found["observe"],
        forwards=found["forwards"],
        steps=found["steps"],
        commit_step=found["commit_step"],
        is_eos=np.isin(found["generated_ids"], eos_ids),
        events=events if events is not None and len(events) else None,
        entropy=found.get("entropy"),
        mean_entropy=found.get("mean_entropy"),
        texts=found.get("generated_texts"),
        answer_span=None if span is None else (int(span[0]), int(span[1])),
        correct=found.get("correct"),
        settings=settings,
    )


def _note(data: dict[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""
