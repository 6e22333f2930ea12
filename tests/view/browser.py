"""A real browser for the tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HEAVY = ("serious", "critical")
OPTIONS = "{ rules: { 'label-content-name-mismatch': { enabled: false } } }"
"""A masked cell holds its final text in a transparent colour. The rule takes that for a visible label."""
LABELLED_MS = 150
"""After this rest the labels of the tokens are right."""
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"


@contextmanager
def started() -> Iterator[Any]:
    """A browser of this machine; without one, or without playwright, the tests are skipped."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"there is no browser on this machine: install one of {', '.join(NAMES)}")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page in the browser, with the errors that it reported."""

    def __init__(self, browser: Any, place: Path | str, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(place if isinstance(place, str) else place.as_uri())

    def close(self) -> None:
        self.context.close()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def position(self) -> int:
        return int(self.page.locator("input[type=range]").input_value())

    def seek(self, position: int) -> None:
        self.page.locator("input[type=range]").fill(str(position))

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.locator(selector).all_text_contents()
        return found

    def count(self, selector: str) -> int:
        found: int = self.page.locator(selector).count()
        return found

    def written(self, scope: str = ".canvas") -> list[str]:
        """The written tokens that the reader sees, as a screen reader hears them when the replay rests."""
        self.page.wait_for_timeout(LABELLED_MS)
        return self.texts(f"{scope} .written:not([aria-label^=masked])")

    def masked(self, scope: str = ".canvas") -> int:
        self.page.wait_for_timeout(LABELLED_MS)
        return self.count(f"{scope} [aria-label^=masked]")

    def violations(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        if not AXE.is_file():
            pytest.skip("axe-core is not installed: run `npm ci`")
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate(f"axe.run(document, {OPTIONS}).then(found => found.violations)")
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in HEAVY]
