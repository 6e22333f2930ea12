"""Write the leaderboard of a model: `python -m uncode.evals.suite.leaderboard.write FOLDER DOCS`.

FOLDER is a model's, with its `results.json` of every preset and that of a second seed in `second/`. The same two files
in `fresh/` are of problems of a new draw, if there are any. DOCS gets leaderboard.md and pictures/leaderboard.svg
(extra `plots`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from ....util.paths import make_folder
from ....util.write import write_whole
from .figure import draw_board
from .page import FIGURE_FILE, PAGE_FILE, board_of, fresh_board, page


def main(folder: Path, docs: Path) -> None:
    board = board_of(folder)
    make_folder(docs / "pictures")
    write_whole(docs / "pictures" / FIGURE_FILE, draw_board(board))
    write_whole(docs / PAGE_FILE, page(board, fresh_board(folder, board)))
    print(f"{docs / PAGE_FILE}: {len(board.names)} rows, {len(board.without_row)} presets without one")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m uncode.evals.suite.leaderboard.write FOLDER DOCS")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
