"""The pictures and figures of docs/order.md, docs/step.md and docs/caches.md."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from studies.card.claims import CLAIMS
from studies.trainings import ROOT, trainings

from studies import concept_pictures as pictures
from uncode.analysis.figures.style import picture
from uncode.evals.suite.report import points

ORDER = (ROOT / "docs" / "order.md").read_text()
LINES = {
    "the last tenth": 1,
    "the first tenth": 2,
    "confidence minus left to right": 3,
    "reasoning: blocks (`semi_ar`) minus confidence": 4,
    "planning: confidence minus blocks": 5,
}
"""The lines of the page's tables, and which of the card's claims each is."""


def test_the_figures_of_the_page_are_those_of_the_stored_results() -> None:
    for line, number in LINES.items():
        cells = re.search(rf"^\| {re.escape(line)} \| (.*) \|$", ORDER, re.M)
        assert cells, line
        found = [CLAIMS[number].find(run.results) for run in trainings()]
        assert cells[1].split(" | ") == [points(interval) for interval in found if interval]


def test_the_diagrams_are_as_they_are_drawn_today() -> None:
    """That of a step has the stages of the page; that of caches is made of the plans of their policies."""
    assert (pictures.FOLDER / pictures.STEP).read_text() == pictures.step()
    assert (pictures.FOLDER / pictures.CACHES).read_text() == pictures.caches()
    page = (ROOT / "docs" / "step.md").read_text()
    assert [name for name, _, _ in pictures.STAGES] == re.findall(r"^\d\. \*\*([\w ]+)\.\*\*", page, re.M)


def test_every_picture_can_be_drawn() -> None:
    runs = trainings()
    for figure in (pictures.boundary(runs), pictures.trivial(runs[0])):
        assert ElementTree.fromstring(picture(figure, "svg")).tag.endswith("svg")
    for name in (pictures.BOUNDARY, pictures.TRIVIAL, pictures.STEP):
        assert f"pictures/{name}" in ORDER + (ROOT / "docs" / "step.md").read_text()
