"""A run folder of `uncode paper` made by hand. Every effect of the paper is there, or its opposite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.analysis.lines import EOS, Line, line, write
from uncode.evals.run.config import SamplerEntry
from uncode.evals.run.folder import RunCell, RunFolder, RunInfo
from uncode.paper.config import paper_config

SPAN, TEXT = 64, 48
"""Tokens of an answer, and how many of them are text. The last text token is the result."""
PROBLEMS = 8
STORY, SUDOKU = "mini_story", "mini_sudoku"
RATES = {STORY: 0.25, SUDOKU: 0.0}
ENDS_FIRST = [*range(SPAN - 1, TEXT - 1, -1), TEXT - 1, *range(TEXT - 1)]
"""EOS from the end, then the result, then the text in front of it."""
ONWARDS = list(range(SPAN))


def make_run(folder: Path, *, agreeing: bool) -> RunFolder:
    """Write the run. With `agreeing=False` every effect is turned round."""
    config = paper_config("tiny", (STORY, SUDOKU), [Path("prose.safetensors")])
    cells: list[RunCell] = []
    made = RunFolder.create(folder, RunInfo("paper", "by hand", examples=dict.fromkeys((STORY, SUDOKU), PROBLEMS)))
    (folder / "traces").mkdir(exist_ok=True)
    for task in (STORY, SUDOKU):
        known: list[Any] = []
        for entry in config.samplers:
            definition = _definition(entry, task)
            if not entry.runs_on(task) or (definition in known and not entry.anchor):
                continue  # a run does not repeat what another label has decoded
            known.append(definition)
            cells.append(RunCell("tiny", task, entry.label, "", definition, SPAN, 0))
            lines = [_line(entry, task, definition, n, agreeing) for n in range(PROBLEMS)]
            name = f"tiny-{task}-{entry.label}".replace(", ", "-").replace(" ", "-")
            write(folder / "traces" / f"{name}.0.jsonl", lines)
    made.add_cells(cells)
    return made


def _definition(entry: SamplerEntry, task: str) -> dict[str, Any]:
    """The parts of a sampler that the figures read."""
    options, parts = entry.options, [{"piece": "Confidence"}]
    rate = RATES[task] if options.get("rate") == "$rate" else options.get("rate", 0.0)
    if entry.preset.startswith("uncode"):
        if options.get("informativeness", True):
            table = {"table": Path(options.get("frequency", "tiny")).stem, "sha256": ""}
            special = {"special": options.get("special", "unseen")}
            parts.append({"piece": "Informativeness", "table": table, "clip": options.get("clip", 10.0), **special})
        parts.append({"piece": "ExponentialPosition", "rate": rate, "origin": "span"})
    inner = {"inner": {"piece": "TopK"}, "tokens": []}
    rejecting = {"piece": "RejectTrivial", **inner, "probability": entry.reject_trivial}
    select = rejecting if entry.reject_trivial else {}
    return {"name": entry.preset, "policy": {"score": {"piece": "Sum", "parts": parts}, "select": select}}


def _is_right(entry: SamplerEntry, task: str, rate: float) -> bool:
    """Whether a sampler solves all problems of a task or none, if the paper is right."""
    if entry.preset == "uncode":
        if not entry.options.get("informativeness", True):
            return False
        return rate == 0 if task == SUDOKU else rate >= 0.25
    if entry.preset in ("uncode_tau", "uncode_eb", "uncode_fast_dllm"):
        return True
    if entry.preset == "confidence":
        return task == SUDOKU or entry.reject_trivial == 1
    return entry.preset == "semi_ar" and task == STORY


def _line(entry: SamplerEntry, task: str, definition: dict[str, Any], number: int, agreeing: bool) -> Line:
    rate = next((part["rate"] for part in definition["policy"]["score"]["parts"] if "rate" in part), 0.0)
    is_right = _is_right(entry, task, rate) is agreeing
    is_hasty = entry.preset == ("confidence" if agreeing else "uncode")
    order = _order(entry, agreeing, is_hasty)
    forwards = (32 if agreeing else 48) if entry.preset.startswith("uncode_") else SPAN
    steps = [0] * SPAN
    for place, offset in enumerate(order):
        steps[offset] = place * forwards // SPAN
    ids = list(range(TEXT)) + [EOS] * (SPAN - TEXT)
    if entry.anchor:
        steps[int(entry.anchor_at * SPAN)] = -1
    trivial = TEXT // 2 if (entry.preset == "left_to_right") is not agreeing else 0
    texts = [" the" if n < trivial else f" w{n}" for n in range(TEXT)] + [""] * (SPAN - TEXT)
    result = sum(map(len, texts[: TEXT - 1]))
    return line(
        steps,
        forwards=forwards,
        label=entry.label,
        task=task,
        model="tiny",
        id=f"{task}/{number}",
        sampler=definition,
        generated_ids=ids,
        generated_texts=texts,
        answer_span=[result, result + len(texts[TEXT - 1])],
        correct=is_right,
        observe="span",
        entropy=[1.0 if is_hasty else 0.1] * SPAN,
        mean_entropy=[0.1 if is_right and not is_hasty else 1.0] * forwards,
    )


def _order(entry: SamplerEntry, agreeing: bool, is_hasty: bool) -> list[int]:
    if entry.anchor:
        anchor = int(entry.anchor_at * SPAN)
        return sorted(range(SPAN), key=lambda offset: abs(offset - anchor), reverse=not agreeing)
    if entry.preset == "confidence" and not agreeing:
        return ENDS_FIRST[::-1]
    return ENDS_FIRST if is_hasty else ONWARDS
