"""The built site in a real browser: both schemes, a phone, search from a folder. `make site` runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.view.browser import Tab, started

SITE = Path(os.environ.get("UNCODE_SITE", "")).resolve()
LOOKED_AT = (
    "index",
    "quickstart",
    "choose-a-sampler",
    "compare-orders",
    "order",
    "step",
    "comparison",
    "troubleshooting",
    "reference/python",
    "reference/samplers",
    "leaderboard",
    "performance",
    "viewer",
    "tiny/card",
)
PHONE = 390

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("UNCODE_SITE" not in os.environ, reason="the site is not built: make site"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", LOOKED_AT)
def test_a_page_is_accessible_and_loads_nothing_from_elsewhere(browser: Any, page: str, scheme: str) -> None:
    tab = Tab(browser, SITE / f"{page}.html", scheme=scheme)
    try:
        assert not tab.errors
        assert all(request.startswith(("file:", "data:", "blob:")) for request in tab.requests)
        assert tab.violations() == []
    finally:
        tab.close()


@pytest.mark.parametrize("page", LOOKED_AT)
def test_a_page_fits_a_phone(browser: Any, page: str) -> None:
    """Wide tables and code scroll inside the page."""
    tab = Tab(browser, SITE / f"{page}.html", width=PHONE)
    try:
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= PHONE
    finally:
        tab.close()


QUERIES = {
    "frequency table": "Frequency tables",
    "fp8": "Smaller weights",
    "gap": "Fill gaps",
    "stream": "Serve a model and call it",
    "own benchmark": "Your own benchmark",
    "threshold without labels": "without labels",
}
"""What a reader looks for, and a page among the first three that are found."""


@pytest.mark.parametrize("query", QUERIES)
def test_search_finds_the_page_in_a_folder(browser: Any, query: str) -> None:
    tab = Tab(browser, SITE / "index.html")
    try:
        tab.page.locator("input.md-search__input").fill(query)
        tab.page.locator("a.md-search-result__link").first.wait_for(timeout=10_000)
        assert any(QUERIES[query] in text for text in tab.texts("a.md-search-result__link h1")[:3])
        assert not tab.errors
    finally:
        tab.close()
