"""Trace lines made by hand: only what a figure reads differs from line to line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MASK, EOS = 99, 98
Line = dict[str, Any]


def line(commit_step: Sequence[int], forwards: int | None = None, label: str = "hand", **others: Any) -> Line:
    """A line of a whole trace. Offsets of step -1 are given; `others` replaces or adds fields."""
    span = len(commit_step)
    steps = forwards or max(commit_step) + 1
    ids = list(others.pop("generated_ids", range(10, 10 + span)))
    return {
        "schema": 1,
        "model": "model",
        "dtype": "float32",
        "special_ids": [EOS, MASK],
        "observe": "open",
        "versions": {"uncode": "0"},
        "sampler": {"name": "confidence", "policy": {}},
        "seed": 0,
        "mask_id": MASK,
        "prompt_ids": [1, 2],
        "canvas_ids": [token if step == -1 else MASK for token, step in zip(ids, commit_step, strict=True)],
        "generated_ids": ids,
        "commit_step": list(commit_step),
        **{name: [0.5] * span for name in ("logp", "entropy", "margin", "score")},
        "runner_up": [None] * span,
        "terms": {"Confidence": [0.0] * span},
        "forwards": steps,
        "committed": [list(commit_step).count(step) for step in range(steps)],
        "mean_entropy": [1.0] * steps,
        "window": [[2, 2 + span]] * steps,
        "label": label,
        "task": "task",
    } | others


def write(path: Path, lines: Sequence[Line]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path
