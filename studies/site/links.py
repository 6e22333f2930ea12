"""`python -m studies.site.links FOLDER`: every link and anchor of the built site leads somewhere, and nothing is loaded
from another host."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
"""What a browser fetches by itself; `a` is followed by a person."""
NOT_LOADED = {"canonical", "next", "prev", "edit", "author"}
"""Kinds of `link` that name a page."""
MARKDOWN = ("\n* ", "\n- ", "\n| ", "](", "\n1. ")
"""What stands in a paragraph if a list or a table was not recognised as one."""


class Page(HTMLParser):
    """The ids, links and paragraphs of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.paragraphs: list[str] = []
        self._depth = 0
        self._is_code = False
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given and (name == "id" or tag == "a")}
        for name, value in given.items():
            if tag == "a" and name == "href":
                self.links.append(value)
            elif (tag, name) in LOADED and not (tag == "link" and given.get("rel", "") in NOT_LOADED):
                self.loaded.append(value)
        if tag == "p":
            self._depth = 1
            self.paragraphs.append("")
        self._is_code = self._is_code or tag == "code"

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._depth = 0
        if tag == "code":
            self._is_code = False

    def handle_data(self, data: str) -> None:
        if self._depth and not self._is_code:
            self.paragraphs[-1] += data


def problems(folder: Path) -> Iterator[str]:
    """One sentence for everything that is wrong with the site."""
    pages = {file: Page(file) for file in sorted(Path(os.path.normpath(folder)).rglob("*.html"))}
    if not pages:
        yield f"{folder} has no page: build the site with `make site`"
    for file, page in pages.items():
        name = file.relative_to(folder)
        yield from (f"{name} loads {one} from another host" for one in page.loaded if urlsplit(one).netloc)
        yield from (
            f"{name} {wrong}" for one in [*page.links, *page.loaded] for wrong in _broken(one, file, folder, pages)
        )
        yield from (
            f"{name} shows markdown: {text.strip()[:80]!r}"
            for text in page.paragraphs
            if any(m in text for m in MARKDOWN)
        )


def _broken(link: str, file: Path, folder: Path, pages: dict[Path, Page]) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    path = unquote(parts.path)
    place = folder / path.lstrip("/") if path.startswith("/") else file.parent / path if path else file
    target = Path(os.path.normpath(place / "index.html" if place.is_dir() else place))
    if not target.exists():
        yield f"links to {link}, which is not there"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        yield f"links to {link}, and that page has no such section"


if __name__ == "__main__":
    found = sorted(set(problems(Path(sys.argv[1]))))
    print("\n".join(found) or "every link of the site leads somewhere, and no page loads anything from another host")
    sys.exit(bool(found))
