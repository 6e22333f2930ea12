"""`python -m studies.site.numbers [FILE ...]`: how many numbers stand in the prose of a page, the most first.

A number in code, a table, a heading or an address does not count. Pages of Get started, Tutorials, How-to and Concepts
may have thirty.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

from ..trainings import ROOT

LIMIT = 30
LIMITED = ("Get started", "Tutorials", "How-to", "Concepts")
"""The sections of the site whose pages have the limit."""
_NUMBER = re.compile(r"(?<![\w.\-/])\d+(?:,\d{3})*(?:\.\d+)?(?![\w/]|-\w)")


def numbers(page: str) -> list[str]:
    """The numbers in the prose of a page, in their order."""
    without_code = re.sub(r"```.*?```|`[^`]*`|<!--.*?-->|</?[a-z][^>]*>", " ", page, flags=re.S)
    prose = re.sub(r"^ *\|[^\n]*$|^#[^\n]*$|^ *\d+\. ", " ", without_code, flags=re.M)
    return _NUMBER.findall(re.sub(r"\]\([^)]*\)|https?://\S+", " ", prose))


def limited_pages(section: object = None) -> list[Path]:
    """The pages of the sections that have the limit, by the navigation of the site."""
    if section is None:
        top = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
        return [page for one in top for name, inner in one.items() if name in LIMITED for page in limited_pages(inner)]
    if isinstance(section, str):
        file = ROOT / "docs" / section
        return [file] if file.is_file() else []
    inner = section.values() if isinstance(section, dict) else section
    return [page for one in inner for page in limited_pages(one)]  # type: ignore[attr-defined]


if __name__ == "__main__":
    counted = {page: len(numbers(page.read_text())) for page in map(Path, sys.argv[1:])}
    counted = counted or {page: len(numbers(page.read_text())) for page in limited_pages()}
    for page, count in sorted(counted.items(), key=lambda pair: -pair[1]):
        print(f"{count:5d}  {page.name}{'' if count <= LIMIT else f'  more than {LIMIT}'}")
