"""docs/leaderboard.md, generated from stored results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uncode.core.errors import require
from uncode.evals.report.table import TextTable
from uncode.evals.suite import report
from uncode.evals.suite.board import Board
from uncode.evals.suite.every_preset import entries_by_label
from uncode.samplers.catalog import catalog

from ..trainings import Training
from .findings import findings, own_finding

PAGE_FILE, FIGURE_FILE = "leaderboard.md", "leaderboard.svg"
_OWN_RULE = (
    "`uncode_fast_dllm` is the paper's own rule. Its score is no probability: informativeness multiplies it by up to "
    "ten. So at low rates improbable tokens pass its threshold, and programs fail. `certain_first_fast` admits by "
    "probability and ranks by the score."
)
NOTES = {
    "fast_dllm prefix": "Rows named `prefix` decode with a prefix KV cache, all others without one. On `tiny` a "
    "cache costs accuracy.",
    "uncode_fast_dllm": _OWN_RULE,
    "uncode_fast_dllm prefix": _OWN_RULE,
    "prophet": "`prophet` needs to know where the answer stands. Its row averages the gap over the masks that propose "
    "text, which is our default.",
    "edit": "`edit` is made for models that were trained to correct visible tokens (LLaDA2.1). `tiny` was not.",
}
"""What a reader must know about a row, by its name."""
OWN_DEFAULTS = ("certain_first", "certain_first_fast")
"""The rows that others are compared with on new problems."""
COMMAND = "python -m studies.leaderboard"


def board_of(runs: Sequence[Training]) -> Board:
    return Board({run.seed: run.results for run in runs})


def fresh_board(runs: Sequence[Training], board: Board) -> Board:
    """The leaderboard of the same models on problems of a new draw."""
    weights = {run.about.get("weights") for run in board.runs.values()}
    for run in runs:
        about = run.results.about
        require(about.get("draw") is not None, "the results on new problems are of no draw: measure them again.")
        require(
            about.get("weights") in weights, "the results on new problems are of other weights: measure them again."
        )
    return board_of(runs)


def page(board: Board, fresh: Board) -> str:
    sections = {
        "What it shows": _bullets(findings(board)),
        "Standings": _standings(board),
        "Differences": _differences(board, board.references),
        "New problems": _new_problems(fresh),
        "By family": _families(board),
        "Right for the right reason": _reasoning(board),
        "Settings and costs": _costs(board),
        "Presets without a row": _without_row(board),
        "Make it again": _commands(),
    }
    return "\n\n".join([_head(board), *(f"## {title}\n\n{text}" for title, text in sections.items() if text)]) + "\n"


def _head(board: Board) -> str:
    about = board.first.about
    return (
        "# Leaderboard\n\n"
        f"Every preset on the {about['problems']:,} held-out problems of each mini family, decoded by the small model "
        f"`tiny` ({about['dtype']}). The figures are of two training runs, with seeds "
        f"{' and '.join(map(str, board.runs))}. The model's "
        "[card](../src/uncode/models/tiny/README.md) describes it; what holds for 7 M parameters and templates need "
        f"not hold for 8 B and text. `{COMMAND}` writes this page from stored results, and only the notes below "
        "the standings are written by hand.\n\n"
        "A difference is *significant* if the exact McNemar test on the same problems gives p < 0.05 after Holm's "
        "correction over all rows that are compared with the same one, with both seeds. The correction depends on the "
        "row that the others are compared with, so a pair may be significant in one list and not in another. "
        "Brackets are 95 % intervals: "
        "Wilson's for averages, Newcombe's for paired differences. They cover the choice of "
        "the problems, not that of the training run. The best row was chosen by these figures, which favours it a "
        "little. The rate of `certain_first` and `certain_first_fast` was chosen with the labels of other problems of "
        "these families."
    )


def _standings(board: Board) -> str:
    return (
        f"![Accuracy against forwards, with the Pareto front](pictures/{FIGURE_FILE})\n\n"
        "Rows are ordered by the mean of the averages. `forwards` is the mean per answer, probes included. A row is on "
        "the Pareto front (`front`) if no other has at least its accuracy in at most its forwards.\n\n"
        f"{report.standings(board).markdown()}{_hindsight_note(board)}{_notes(board)}"
    )


def _hindsight_note(board: Board) -> str:
    if not board.hindsight:
        return ""
    return (
        f"\n\n`{board.label(board.hindsight)}` was chosen with the labels of these problems. So it has no "
        "rank, is no reference and takes no part in the front."
    )


def _notes(board: Board) -> str:
    notes = list(dict.fromkeys(f"* {note}" for name, note in NOTES.items() if name in board.names))
    return "\n\nRows to read with care:\n\n" + "\n".join(notes) if notes else ""


def _new_problems(board: Board) -> str:
    about = board.first.about
    shown = [name for name in OWN_DEFAULTS if name in board.names]
    return (
        f"These rows were also decoded on {about['problems']:,} new problems of each family, which `uncode mini --draw "
        f"{about['draw']}` draws.\n\n{_bullets(own_finding(board, name) for name in shown)}\n\n"
        f"{report.standings(board).markdown()}"
        f"{_hindsight_note(board)}\n\n{_differences(board, shown)}"
    )


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"* {text}" for text in texts)


def _differences(board: Board, references: Iterable[str]) -> str:
    parts = [f"### From `{name}`\n\n{report.differences(board, name).markdown()}" for name in references]
    return "In points, with Holm's p-values; a star marks p < 0.05.\n\n" + "\n\n".join(parts)


def _families(board: Board) -> str:
    shown = [report.by_family(board, seed).markdown() for seed in board.runs]
    return "Accuracy in per cent; the best of each column are bold.\n\n" + "\n\n".join(shown)


def _reasoning(board: Board) -> str:
    measured = [table for seed in board.runs if (table := report.reasoning_on(board, seed)) is not None]
    shown = [f"{report.SOUND}. In per cent; the difference is paired, in points.", *(t.markdown() for t in measured)]
    return "\n\n".join(shown) if measured else ""


def _costs(board: Board) -> str:
    """What each row costs, as its preset says, and the options that are not its defaults."""
    entries, known, rows = entries_by_label(), catalog(), []
    for name in board.names:
        entry = entries[name]
        options = ", ".join(f"{option}={value}" for option, value in entry.options.items())
        rows.append([board.label(name), options, known[entry.preset].cost])
    return (
        "Presets run at their defaults, with the options below: `$length` is the number of tokens of an answer, "
        "`$block_length` an eighth of it. A row ends once no mask is left before an EOS token. Costs are those that "
        "[the index of papers](papers.md) states.\n\n"
        + TextTable(["row", "options", "cost"], rows, labels=3).markdown()
    )


def _without_row(board: Board) -> str:
    rows = [[f"`{name}`", why] for name, why in board.without_row.items()]
    return TextTable(["preset", "why"], rows, labels=2).markdown() if rows else ""


def _commands() -> str:
    return (
        "```sh\n"
        "uncode mini --all --device cuda --workers 8 --out board   # the table, on any model\n"
        "uncode mini --all --second studies/tiny-seed-1 --device cuda --workers 8 --out board   # with another seed\n"
        f"{COMMAND}   # this page\n"
        "```\n\n"
        "[Adding a sampler](adding-a-sampler.md) leads from an equation to a row of this table."
    )
