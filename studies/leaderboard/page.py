"""docs/leaderboard.md, generated from stored results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uncode.core.errors import require
from uncode.evals.report.table import TextTable
from uncode.evals.suite import report
from uncode.evals.suite.board import Board
from uncode.evals.suite.every_preset import entries_by_label
from uncode.evals.suite.names import UNCODE
from uncode.samplers.catalog import catalog

from ..agreement import Agreement
from ..trainings import Training
from .findings import family_losses, headline, lucky, opponents, own_rows, unbeaten, wins

PAGE_FILE, FIGURE_FILE = "leaderboard.md", "leaderboard.svg"
_OWN_RULE = (
    "`uncode_fast_dllm` is the paper's own rule. Its score is not a probability: informativeness multiplies it by up "
    "to ten. So at low rates improbable tokens pass its threshold, and programs fail. `certain_first_fast` admits by "
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
_SIGNIFICANT = (
    "* **Significantly better**: the exact McNemar test on the same problems gives p < 0.05 with both seeds, after "
    "Holm's correction over all rows that are compared with the same one. The correction depends on that row, so a "
    "pair may be significant in one table and not in another."
)


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
        "Standings": _standings(board),
        "Wins, ties and losses": _wins(board),
        "Two seeds": _two_seeds(board),
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
    return (
        "# Leaderboard\n\n"
        "For readers who choose or compare samplers: the accuracy and the forwards of every preset on small problems, "
        "with intervals and paired tests.\n\n"
        f"{headline(board)}\n\n"
        f"![Accuracy against forwards, with the Pareto front](pictures/{FIGURE_FILE})"
    )


def _standings(board: Board) -> str:
    return (
        "Accuracy in per cent with its 95 % interval, and the mean number of forwards per answer:\n\n"
        f"{report.standings(board).markdown()}\n\n{_bullets(_about(board))}{_notes(board)}"
    )


def _about(board: Board) -> list[str]:
    """What a reader must know about the standings."""
    about = board.first.about
    texts = [
        f"**The model** is `tiny` in {about['dtype']}, trained with seeds {' and '.join(map(str, board.runs))} "
        "([card](../src/uncode/models/tiny/README.md)). It has 7 M parameters and knows problems from templates. A "
        "model of 8 B parameters may rank the samplers differently.",
        f"**The problems** are {about['problems']:,} held-out ones of each mini family.",
        "**Rows** are ordered by the mean of the averages. **Forwards** include probes. A row is on the **Pareto "
        "front** (`front`) if no other has at least its accuracy in at most its forwards.",
        "**Intervals** are Wilson's. They cover the choice of the problems, not that of the training run.",
        "**What favours the best row**: it was chosen by these figures. The rate of `certain_first` and "
        "`certain_first_fast` was chosen with the labels of other problems of these families.",
    ]
    return texts + _hindsight(board)


def _hindsight(board: Board) -> list[str]:
    if not board.hindsight:
        return []
    return [
        f"`{board.label(board.hindsight)}` was chosen with the labels of these problems. So it has no rank, is not a "
        "reference and takes no part in the front."
    ]


def _notes(board: Board) -> str:
    notes = list(dict.fromkeys(note for name, note in NOTES.items() if name in board.names))
    return f"\n\nRows to read with care:\n\n{_bullets(notes)}" if notes else ""


def _wins(board: Board) -> str:
    own = list(dict.fromkeys([board.best, *own_rows(board)]))
    return (
        f"{unbeaten(board, own)} `{UNCODE}` and this library's samplers beside all ranked rows, with both seeds:\n\n"
        f"{wins(board, own).markdown()}\n\n"
        "* **Wins** are the rows that this one is significantly better than, **losses** those that are significantly "
        "better. **dominated by** counts rows that are at least as accurate in no more forwards.\n"
        f"{_SIGNIFICANT}\n\n"
        f"{_folded('Against each row', opponents(board, own).markdown())}\n\n"
        f"{_folded('Rows that are significantly better on one family', _on_families(board, own))}"
    )


def _on_families(board: Board, rows: Sequence[str]) -> str:
    return f"{family_losses(board, rows).markdown()}\n\nThe rows are better with both seeds, where no seed is named."


def _two_seeds(board: Board) -> str:
    agreement = Agreement.of(*board.runs.values())
    return f"{agreement.claim()}\n\n{agreement.table().markdown()}\n\nEach fixed rate of `{UNCODE}` counts."


def _new_problems(board: Board) -> str:
    about = board.first.about
    shown = [name for name in OWN_DEFAULTS if name in board.names]
    standings = "\n\n".join([report.standings(board).markdown(), *_hindsight(board)])
    return (
        f"{unbeaten(board, shown)} Our defaults on problems of a new draw, beside the rows that were decoded on it:"
        f"\n\n{wins(board, shown).markdown()}\n\n"
        f"`uncode mini --draw {about['draw']}` draws these {about['problems']:,} problems of each family.\n\n"
        f"{_folded('Standings on new problems', standings)}\n\n{_differences(board, shown)}"
    )


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"* {text}" for text in texts)


def _folded(summary: str, text: str) -> str:
    return f"<details markdown>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _differences(board: Board, references: Iterable[str]) -> str:
    tables = [_folded(f"From <code>{name}</code>", report.differences(board, name).markdown()) for name in references]
    about = "In points, with Newcombe's intervals and Holm's p-values; a star marks p < 0.05."
    return "\n\n".join([about, *tables])


def _families(board: Board) -> str:
    shown = [_folded(f"Seed {seed}", report.by_family(board, seed).markdown()) for seed in board.runs]
    return "Accuracy in per cent; the best of each column are bold.\n\n" + "\n\n".join(shown)


def _reasoning(board: Board) -> str:
    tables = {seed: table for seed in board.runs if (table := report.reasoning_on(board, seed)) is not None}
    found = lucky(board)
    claim = f"{found[0]}\n\n{found[1].markdown()}\n\n" if found else ""
    about = f"{report.SOUND}. In per cent; the difference is paired, in points."
    shown = [_folded(f"Every row, seed {seed}", table.markdown()) for seed, table in tables.items()]
    return "\n\n".join([f"{claim}{about}", *shown]) if tables else ""


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
        + _folded("Options and costs", TextTable(["row", "options", "cost"], rows, labels=3).markdown())
    )


def _without_row(board: Board) -> str:
    rows = [[f"`{name}`", why] for name, why in board.without_row.items()]
    return TextTable(["preset", "why"], rows, labels=2).markdown() if rows else ""


def _commands() -> str:
    return (
        "```sh\n"
        "uncode mini --all --device cuda --workers 8 --out board   # the table, on any model\n"
        "uncode mini --all --second studies/tiny-seed-1 --device cuda --workers 8 --out board   # with another seed\n"
        f"{COMMAND}   # this page, from the stored results\n"
        "```\n\n"
        "[Adding a sampler](adding-a-sampler.md) leads from an equation to a row of this table."
    )
