"""Traces as pandas data frames (extra `frames`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.trace.row_record import FILLED, GIVEN
from ..core.trace.schema import FLOATS
from ..util.extras import needed

if TYPE_CHECKING:
    from ..core.trace.trace import Trace

STATES = {GIVEN: "given", FILLED: "filled"}
"""What happened to an offset that was not committed."""


def trace_frame(trace: Trace, tokenizer: Any = None) -> Any:
    """One line per row and offset: token, step, state, and what the model believed at commit.

    `step` is missing where nothing was committed; `state` then says why. `tokenizer` adds the text of each token.
    """
    pandas = needed("pandas", "frames", "a data frame")
    frames = []
    for number in range(len(trace.tokens)):
        row = trace.row(number, tokenizer)
        length = len(row["commit_step"])
        columns: dict[str, Any] = {
            "row": number,
            "sampler": row["sampler"]["name"],
            "seed": row["seed"],
            "offset": range(length),
            "token": row["generated_ids"],
        }
        if tokenizer is not None:
            columns["text"] = row["generated_texts"]
        steps = row["commit_step"]
        columns["step"] = pandas.array([None if step < 0 else step for step in steps], dtype="Int64")
        columns["state"] = [STATES.get(step, "committed") for step in steps]
        columns |= {name: pandas.array(row[name], dtype="Float64") for name in FLOATS}
        columns |= {f"term_{name}": pandas.array(term, dtype="Float64") for name, term in row["terms"].items()}
        frames.append(pandas.DataFrame(columns, index=range(length)))
    return pandas.concat(frames, ignore_index=True)
