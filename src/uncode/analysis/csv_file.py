"""The arrays of a figure as CSV: one line per value, with its model, task and sampler."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from .analyze import Analysis


def csv_text(analysis: Analysis) -> str:
    """The file. NaN is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, (group, one) in enumerate(analysis.groups.items()):
        columns = one.columns()
        if number == 0:
            writer.writerow(["model", "task", "sampler", *columns])
        writer.writerows([*group, *map(_cell, values)] for values in zip(*columns.values(), strict=True))
    return text.getvalue()


def _cell(value: Any) -> Any:
    return "" if math.isnan(value) else value.item()
