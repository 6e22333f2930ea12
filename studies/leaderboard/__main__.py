"""Write docs/leaderboard.md and its figure (extra `plots`) from the stored results: `python -m studies.leaderboard`."""

from __future__ import annotations

from uncode.evals.suite.scatter import draw_board
from uncode.util.write import write_whole

from ..trainings import ROOT, trainings
from .page import FIGURE_FILE, PAGE_FILE, board_of, fresh_board, page


def main() -> None:
    board, docs = board_of(trainings()), ROOT / "docs"
    write_whole(docs / "pictures" / FIGURE_FILE, draw_board(board))
    write_whole(docs / PAGE_FILE, page(board, fresh_board(trainings("fresh-"), board)))
    print(f"{docs / PAGE_FILE}: {len(board.names)} rows, {len(board.without_row)} presets without one")


if __name__ == "__main__":
    main()
