"""The heat map and the boundary-first index, against arrays computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uncode
from tests.analysis.lines import Line, line, write
from uncode.analysis.measures.heat_map import HeatMap, earlier_than_inner
from uncode.analysis.measures.order import commit_ranks
from uncode.analysis.read_traces import trace_rows


def heat_map(tmp_path: Path, lines: list[Line], parts: int | None = None) -> HeatMap:
    made = HeatMap(parts)
    for row in trace_rows([write(tmp_path / "a.jsonl", lines)]):
        made.add(row)
    made.finish()
    return made


def test_two_traces_by_hand(tmp_path: Path) -> None:
    """The second has ended after two steps: its stop rule fills the last offset, and the first is given."""
    found = heat_map(tmp_path, [line([0, 1, 2, 0]), line([-1, 1, 0, -2], 2)])
    expected = [[1, 1, 1], [0, 1, 1], [0.5, 0.5, 1], [0.5, 1, 1]]
    assert found.probability.tolist() == expected and found.traces == 2
    columns = found.columns()
    assert columns["offset"][5] == 1 and columns["step"][5] == 2 and columns["probability"][5] == 1


def test_steps_may_grow_and_shrink(tmp_path: Path) -> None:
    """Rows of 1, 4 and 2 forwards."""
    found = heat_map(tmp_path, [line([0, 0]), line([3, 1]), line([1, 0])])
    assert np.allclose(found.probability, [[1 / 3, 2 / 3, 2 / 3, 1], [2 / 3, 1, 1, 1]])


def test_a_remasked_offset_is_masked_again(tmp_path: Path) -> None:
    events = [[0, 0, 5], [0, 1, 6], [1, 1, -1], [2, 1, 7]]
    found = heat_map(tmp_path, [line([0, 2], events=events, committed=[2, 0, 1])])
    assert found.probability.tolist() == [[1, 1, 1], [1, 0, 1]]


def test_parts_compare_spans_of_different_lengths(tmp_path: Path) -> None:
    """Two parts: of four offsets in four steps, and of three offsets in two steps (parts of two and one offsets)."""
    found = heat_map(tmp_path, [line([0, 2, 1, 3]), line([0, 1, 1])], parts=2)
    # first: one of two offsets by half of the decode, in both parts; second: one of two, and none of one
    assert found.probability.tolist() == [[0.5, 1.0], [0.25, 1.0]]
    with pytest.raises(uncode.UncodeError, match="has a span of 2 tokens, which cannot be cut into 3 parts"):
        heat_map(tmp_path, [line([0, 1])], parts=3)


def test_parts_as_fine_as_the_trace_are_the_trace(tmp_path: Path) -> None:
    lines = [line([0, 2, 1, 3]), line([3, 2, 1, 0])]
    assert np.array_equal(heat_map(tmp_path, lines, 4).probability, heat_map(tmp_path, lines).probability)


def test_a_left_to_right_decode_that_stops_at_eos_has_a_boundary_index_of_zero() -> None:
    """The stop rule fills the tail, which must not look as if it was written from the boundary."""
    stopped = np.array([0, 1, 2, -2, -2, -2, -2, -2])
    both, first, last = earlier_than_inner(stopped) or (1.0, 1.0, 1.0)
    assert both == pytest.approx(0) and first > 0 > last


def test_ranks_share_a_step_and_end_with_what_was_filled() -> None:
    found = commit_ranks(np.array([2, 0, 0, -1, -2, -2]))
    assert found[:3].tolist() == [0.5, 0.125, 0.125] and np.isnan(found[3]) and found[4:].tolist() == [0.75, 1.0]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0, 2, 4, 6, 7, 5, 3, 1], (4 / 7, 4.5 / 7, 3.5 / 7)),  # outer ranks 0, 2, 3, 1; inner 4, 6, 7, 5
        ([0, 1, 2, 3, 4, 5, 6, 7], (0.0, 3 / 7, -3 / 7)),
        ([0] * 8, (0.0, 0.0, 0.0)),
    ],
)
def test_the_index_by_hand(steps: list[int], expected: tuple[float, float, float]) -> None:
    found = earlier_than_inner(np.array(steps))
    assert found is not None
    assert np.allclose(found, expected)


def test_the_index_has_an_interval_over_traces(tmp_path: Path) -> None:
    inwards, outwards = [0, 2, 3, 1], [2, 0, 1, 3]
    boundary = heat_map(tmp_path, [line(inwards)] * 3 + [line(outwards)]).boundary
    assert boundary is not None and boundary.traces == 4
    assert np.isclose(boundary.index.estimate, (3 - 1) / 4 * (2 / 3))
    assert boundary.index.low < boundary.index.estimate < boundary.index.high
    alone = heat_map(tmp_path, [line(inwards)]).data()["boundary_first"]
    assert alone["index"] == [pytest.approx(2 / 3), None, None] and alone["traces"] == 1, "one trace has no interval"
    assert heat_map(tmp_path, [line([0, 1])]).boundary is None
    assert heat_map(tmp_path, [line([-1, 0, 1, 2])]).boundary is None  # the first quarter is given
