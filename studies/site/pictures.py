"""`python -m studies.site.pictures [NAME ...]`: the pictures of figures and pages in the docs, from decodes of `tiny`.

Figures need the extra `plots`; pages need playwright and a Chromium on this machine. Decoding takes minutes on two
cores. The README's picture and the leaderboard's come with `make docs`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..trainings import ROOT

FOLDER = ROOT / "docs" / "pictures"
MAX_BYTES = 150_000
WIDTH, HEIGHT = 1200, 820
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROBLEM = ("tasks", "mini_story", "--example", "3")
SAMPLERS = ("confidence", "uncode 0.1", "left_to_right")
FIGURES = {"heatmap": ("heatmap",), "trivial": ("trivial", "--parts", "10")}
"""The figures of docs/analysis.md, by the words of `uncode analyze`."""


def uncode(*words: str, **options: Any) -> str:
    words = (sys.executable, "-m", "uncode.cli", *words)
    return str(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, **options).stdout)


def figures(work: Path) -> None:
    """Heat map and trivial tokens of twenty stories in three orders, as docs/analysis.md draws them."""
    run = work / "run"
    names = ",".join(SAMPLERS)
    uncode("eval", "mini", "--tasks", "mini_story", "--samplers", names, "--limit", "20", "--traces", "--out", str(run))
    reference = next((run / "traces").glob("*left_to_right*"))
    for name, words in FIGURES.items():
        extra = ("--reference", str(reference)) if name == "trivial" else ()
        uncode("analyze", words[0], str(run), *words[1:], *extra, "--out", str(FOLDER / f"{name}.png"), "--force")


def viewer(work: Path) -> None:
    """One problem under two samplers, in the middle of the replay, with the details of a token."""
    page = work / "compared.html"
    problem = uncode(*PROBLEM)
    uncode("compare", "-", "--samplers", "confidence,uncode", "--view", str(page), input=problem)
    with opened(page.as_uri()) as tab:
        scrubber = tab.locator("input[type=range]")
        scrubber.fill(str(int(scrubber.get_attribute("max") or 0) // 3))
        tab.locator(".canvas").last.locator(".written:not([aria-label^=masked])").nth(11).click()
        shot(tab, "viewer")


def live_page(work: Path) -> None:
    """The page of `uncode serve`, after a decode."""
    with serving(work) as address, opened(address) as tab:
        tab.locator(".bench").wait_for()
        tab.get_by_label("Prompt", exact=True).last.fill(uncode(*PROBLEM))
        tab.get_by_role("button", name="Decode", exact=True).click()
        tab.locator(".progress", has_text="Finished.").wait_for(timeout=120_000)
        shot(tab, "live-page")


@contextmanager
def opened(address: str) -> Iterator[Any]:
    """The page in a browser of this machine, in light colours."""
    from playwright.sync_api import sync_playwright

    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path)
        page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light").new_page()
        page.goto(address)
        yield page
        browser.close()


@contextmanager
def serving(work: Path) -> Iterator[str]:
    """The address of a server that runs until the end of the block."""
    words, log = [sys.executable, "-m", "uncode.cli", "serve", "--port", "0"], work / "log"
    with log.open("w") as lines, subprocess.Popen(words, stdout=lines, stderr=lines) as server:
        try:
            while not (found := re.search(r"http://[\d.]+:\d+", log.read_text())):
                assert server.poll() is None, log.read_text()
                time.sleep(0.2)
            yield found[0]
        finally:
            server.terminate()


def shot(tab: Any, name: str) -> None:
    tab.wait_for_timeout(500)  # transitions end
    tab.screenshot(path=FOLDER / f"{name}.png")


MAKERS: dict[str, Callable[[Path], None]] = {"figures": figures, "viewer": viewer, "live-page": live_page}

if __name__ == "__main__":
    for each in sys.argv[1:] or MAKERS:
        with tempfile.TemporaryDirectory() as folder:
            MAKERS[each](Path(folder))
    for file in sorted(FOLDER.glob("*.png")):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")
