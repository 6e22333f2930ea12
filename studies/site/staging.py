"""The pages of the site in one folder: those of `docs`, those beside the code, and the reference.

A page keeps its name, and a link to another page or file of the repository is rewritten to where that lies in the site.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ..trainings import ROOT
from . import reference

BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "src/uncode/models/tiny/README.md": "tiny/card.md",
    "src/uncode/models/tiny/details.md": "tiny/details.md",
    "src/uncode/models/tiny/accuracy.svg": "tiny/accuracy.svg",
}
"""Where pages that are not in `docs` lie in the site."""
LAST_IN_SEARCH = ("log.md", "decisions.md", "changelog.md")
"""Pages of the project's history, which have every word: a search finds them after all others."""
OTHER = "files"
"""The folder for whatever else a page links to."""
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=[)#])")
_LIST = re.compile(r"^(?![ \t]*(?:[*+-]|\d+\.)[ \t]|[ \t]*\||#|>|  )(\S[^\n]*)\n(?=(?:[*-]|1\.) )", re.M)


def stage(folder: Path) -> None:
    """Write every page of the site into `folder`, which is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    places = _places()
    for source, target in places.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            (folder / target).write_text(_page(source, target, places, folder))
        else:
            shutil.copyfile(source, folder / target)
    (folder / "reference").mkdir()
    for name, make in reference.MAKERS.items():
        (folder / "reference" / name).write_text(make())
    shutil.copytree(Path(__file__).parent / "assets", folder / "assets")


def _places() -> dict[Path, str]:
    docs = ROOT / "docs"
    places = {file: file.relative_to(docs).as_posix() for file in sorted(docs.rglob("*")) if file.is_file()}
    return places | {ROOT / source: target for source, target in BESIDE.items()}


def _page(source: Path, target: str, places: dict[Path, str], folder: Path) -> str:
    """The page with its links rewritten, and a blank line before each list, which GitHub does without."""

    def moved(match: re.Match[str]) -> str:
        meant = Path(os.path.normpath(source.parent / match[1]))
        if meant.is_relative_to(ROOT / "docs") and meant not in places and not meant.exists():
            return match[1]  # a page of the reference, or a broken link that the strict build names
        place = places.get(meant) or f"{OTHER}/{meant.relative_to(ROOT).as_posix()}"
        if place.startswith(f"{OTHER}/"):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(meant, folder / place)
        return os.path.relpath(place, Path(target).parent)

    parts = _CODE.split(source.read_text())
    prose = [part if at % 2 else _LINK.sub(moved, part) for at, part in enumerate(parts)]
    boost = "---\nsearch: {boost: 0.1}\n---\n\n" if target in LAST_IN_SEARCH else ""
    return boost + _LIST.sub(r"\1\n\n", "".join(prose))
