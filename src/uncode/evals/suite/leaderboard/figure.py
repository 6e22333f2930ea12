"""The figure of the leaderboard: accuracy against forwards, with the Pareto front of each seed."""

from __future__ import annotations

from ..scatter import Point, Scatter, draw_scatter
from .board import Board

SIZE = (11, 7)
"""In inches; there are more names than on the card."""


def draw_board(board: Board, kind: str = "svg") -> bytes:
    """The figure as the content of an .svg or .png file. Rows on a front are highlighted, ours or not, and so
    are rows that are new beside stored ones."""
    points = {
        name: {seed: Point(one.forwards, 100 * one.average.estimate) for seed, one in of.items()}
        for name, of in board.points.items()
    }
    on_front = {name for front in board.fronts.values() for name in front}
    labels = {name: f"{name} (best fixed)" if name == board.hindsight else name for name in points}
    bold = {*on_front, *board.new}
    return draw_scatter(Scatter(points, labels, on_front, bold, board.fronts, SIZE, board.new), kind)
