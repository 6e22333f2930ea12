"""Rollouts as files: safetensors, or Parquet with one line per sample."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor

from ..core.canvas import Canvas
from ..core.errors import UncodeError, require
from ..core.trace.row_record import GIVEN
from ..util.extras import needed
from ..util.paths import kind_at, require_file
from ..util.write import is_stream, write_whole
from .samples import Row, Samples

S = TypeVar("S", bound=Samples)
FORMAT = "uncode rollout 1"
SUFFIXES = (".safetensors", ".parquet")
TENSORS = ("tokens", "step_map", "logp", "prompt", "seeds", "forwards")
COLUMNS = ("prompt", "seed", "forwards", "prompt_ids", "generated_ids", "step_map", "logp")


def save(rollout: Samples, path: str | Path, force: bool) -> None:
    """See :meth:`.rollout.Rollout.save`."""
    is_table = _is_table(path)
    is_free = is_stream(path) or kind_at(path) != "a file" or Path(path).stat().st_size == 0
    require(
        force or is_free or _notes(path, is_table) is not None,
        f"'{path}' exists and is not a rollout: choose another name, or replace it with `force=True`.",
    )
    write_whole(path, _parquet(rollout) if is_table else _safetensors(rollout))


def load(path: str | Path, kind: type[S]) -> S:
    """See :meth:`.rollout.Rollout.load`."""
    is_table = _is_table(path)
    require_file(Path(path))
    notes = _notes(path, is_table)
    require(notes is not None, f"'{path}' holds no rollout: give a file that Rollout.save wrote.")
    assert notes is not None
    try:
        return _read(path, kind, notes, is_table)
    except (SafetensorError, OSError, ValueError, LookupError, TypeError, RuntimeError) as error:
        raise UncodeError(f"'{path}' is damaged: restore it, or make the rollout again.") from error


def _read(path: str | Path, kind: type[S], notes: dict[str, str], is_table: bool) -> S:
    sampler, model = json.loads(notes["sampler"]), json.loads(notes["model"])
    if is_table:
        return kind.assemble(_rows(path), int(notes["mask_id"]), _dtype(notes["dtype"]), sampler, model)
    with safe_open(path, framework="pt") as file:
        tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in (*TENSORS, "valid")}
    start, mask_id, valid = int(notes["start"]), int(notes["mask_id"]), tensors.pop("valid")
    tokens = tensors["tokens"].clone()
    tokens[:, start:].masked_fill_(tensors["step_map"] != GIVEN, mask_id)
    temperature = float(sampler["propose"]["temperature"])
    canvas = Canvas(tokens, valid, mask_id, start)
    return kind(canvas, **tensors, temperature=temperature, sampler=sampler, model=model)


def _is_table(path: str | Path) -> bool:
    suffix = Path(path).suffix.lower()
    require(suffix in SUFFIXES, f"'{path}' must end in .safetensors or .parquet.")
    return suffix == SUFFIXES[1]


def _notes_of(rollout: Samples) -> dict[str, str]:
    return {
        "format": FORMAT,
        "start": str(rollout.canvas.start),
        "mask_id": str(rollout.canvas.mask_id),
        "dtype": str(rollout.logp.dtype).removeprefix("torch."),
        "sampler": json.dumps(rollout.sampler),
        "model": json.dumps(rollout.model),
    }


def _dtype(name: str) -> torch.dtype:
    return torch.float64 if name == "float64" else torch.float32


def _notes(path: str | Path, is_table: bool) -> dict[str, str] | None:
    """What a file says about its rollout; None where it holds none."""
    try:
        if is_table:
            pairs = _pyarrow().parquet.read_schema(path).metadata or {}
            notes = {key.decode(): value.decode() for key, value in pairs.items()}
        else:
            with safe_open(path, framework="pt") as file:
                notes = file.metadata() or {}
    except (SafetensorError, OSError, ValueError):
        return None
    return notes if notes.get("format") == FORMAT else None


def _safetensors(rollout: Samples) -> bytes:
    tensors = {name: getattr(rollout, name).contiguous() for name in TENSORS}
    return to_safetensors(tensors | {"valid": rollout.canvas.valid.contiguous()}, _notes_of(rollout))


def _pyarrow() -> Any:
    needed("pyarrow.parquet", "cluster", "reading and writing Parquet")
    return needed("pyarrow", "cluster", "reading and writing Parquet")


def _parquet(rollout: Samples) -> bytes:
    arrow, rows = _pyarrow(), rollout.rows()
    plain = [[part.tolist() if isinstance(part, Tensor) else part for part in row] for row in rows]
    numbers = arrow.float64() if rollout.logp.dtype == torch.float64 else arrow.float32()
    whole = arrow.list_(arrow.int64())
    kinds = (arrow.int64(), arrow.int64(), arrow.int64(), whole, whole, whole, arrow.list_(numbers))
    schema = arrow.schema(list(zip(COLUMNS, kinds, strict=True)), metadata=_notes_of(rollout))
    columns = dict(zip(COLUMNS, zip(*plain, strict=True), strict=True))
    content = io.BytesIO()
    arrow.parquet.write_table(arrow.table({name: list(of) for name, of in columns.items()}, schema=schema), content)
    return content.getvalue()


def _rows(path: str | Path) -> list[Row]:
    found = []
    for line in _pyarrow().parquet.read_table(path).to_pylist():
        before, generated, step_map = (torch.tensor(line[name], dtype=torch.int64) for name in COLUMNS[3:6])
        logp = torch.tensor(line["logp"], dtype=torch.float64)
        found.append(Row(line["prompt"], line["seed"], line["forwards"], before, generated, step_map, logp))
    require(len(found) > 0, f"'{path}' holds no samples.")
    return found
