"""What `uncode paper` decodes: every sampler that a figure compares, on every task. This module imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.task_groups import REASONING, of_group
from ..evals.run.config import EvalConfig
from ..evals.suite.families import FAMILIES
from ..evals.suite.names import RATES, UNCODE
from ..evals.tasks import find_task

TASKS = tuple(FAMILIES)
QUICK_TASKS = ("mini_story", "mini_sudoku")
EXAMPLES, QUICK_EXAMPLES = 200, 3
"""Problems of each task, in a full and in a quick run."""
UNCERTAIN = ("confidence", "entropy", "margin")
"""The samplers by uncertainty, in the grid of heat maps."""
LEFT_TO_RIGHT, SEMI_AR, UNIFORM = "left_to_right", "semi_ar", "uniform"
BASIC = (UNIFORM, *UNCERTAIN, SEMI_AR, LEFT_TO_RIGHT)
REJECTIONS = (0.25, 0.5, 0.75, 1.0)
CLIPS = (2.5, 5.0, 20.0)
"""Beside the preset's 10."""
ANCHORS = (" ", " the", ".")
PLACES = (0.25, 0.75)
EFFICIENT: Mapping[str, Mapping[str, Any]] = {
    "tau_leaping": {},
    "uncode_tau": {"rate": "$rate"},
    "eb": {},
    "uncode_eb": {"rate": "$rate"},
    "fast_dllm": {"block_length": "$block_length"},
    "uncode_fast_dllm": {"block_length": "$block_length", "rate": "$rate"},
}


def paper_config(model: str, tasks: Sequence[str] = TASKS, tables: Sequence[Path] = ()) -> EvalConfig:
    """The config of a run. `tables` are of other corpora. Anchors are set on the first reasoning task."""
    names = [find_task(task).name for task in tasks]
    anchored = (of_group(REASONING, names) or names)[:1]
    special = {"special": "neutral"} if all(name in TASKS for name in names) else {}
    rows: list[dict[str, Any]] = [
        *({"preset": name} for name in BASIC),
        {"preset": UNCODE, "options": {"rate": "$rate", **special}},
        *(
            {"label": f"confidence, reject {share:g}", "preset": "confidence", "reject_trivial": share}
            for share in REJECTIONS
        ),
        *(
            {
                "label": f"anchor {text.strip() or 'space'} {place:g}",
                "preset": "confidence",
                "anchor": text,
                "anchor_at": place,
                "tasks": anchored,
            }
            for place in PLACES
            for text in ANCHORS
        ),
        *({"label": f"uncode {rate:g}", "preset": UNCODE, "options": {"rate": rate, **special}} for rate in RATES),
        *(
            {"label": f"uncode, clip {clip:g}", "preset": UNCODE, "options": {"rate": "$rate", "clip": clip, **special}}
            for clip in CLIPS
        ),
        {
            "label": "uncode, position only",
            "preset": UNCODE,
            "options": {"rate": "$rate", "informativeness": False},
        },
        *(
            {
                "label": f"uncode, table {table.stem}",
                "preset": UNCODE,
                "options": {"rate": "$rate", "frequency": str(table), **special},
            }
            for table in tables
        ),
        *(
            {"preset": name, "options": {**options, **(special if "rate" in options else {})}}
            for name, options in EFFICIENT.items()
        ),
    ]
    whole = [{**row, "stop_at_eos": False} for row in rows]
    title = "The paper's analysis"
    found = {"name": "paper", "title": title, "models": [model], "tasks": names, "samplers": whole}
    return EvalConfig.read(found | {"baseline": "confidence"})
