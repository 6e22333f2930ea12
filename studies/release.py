"""`python -m studies.release 0.2.0`: write a version wherever it stands, and date the changelog's unreleased lines."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from uncode.core.errors import require
from uncode.version import __version__

from .trainings import ROOT

UNRELEASED = "## [Unreleased]\n"
PLACES = {
    "src/uncode/version.py": r'(?<=__version__ = ")[\d.]+(?=")',
    "CITATION.cff": r"(?<=^version: )[\d.]+$",
    "README.md": r"(?<=^\*\*Status\.\*\* )\d+\.\d+(?=,)",
}
"""The files that name the version, and where. The README names its first two numbers."""


def cut(version: str, root: Path = ROOT, today: str | None = None) -> None:
    """Make the tree the one of a release. A later line of the changelog goes under a new, empty heading."""
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    require(parts is not None, f"'{version}' is not a version: give three numbers, as 0.2.0.")
    assert parts is not None
    is_newer = tuple(map(int, parts.groups())) > tuple(map(int, re.findall(r"\d+", __version__)))
    require(is_newer, f"{version} must be above {__version__}, the version now.")
    changelog = root / "CHANGELOG.md"
    before, heading, after = changelog.read_text().partition(UNRELEASED)
    lines = after.partition("\n## ")[0].strip()
    require(bool(heading and lines), f"'{changelog}' has no lines under '{UNRELEASED.strip()}': there is no release.")
    date = today or datetime.now(UTC).date().isoformat()
    changelog.write_text(f"{before}{heading}\n## [{version}] - {date}\n{after}")
    for name, pattern in PLACES.items():
        text = version.rpartition(".")[0] if name == "README.md" else version
        content, count = re.subn(pattern, text, (root / name).read_text(), flags=re.M)
        require(count == 1, f"'{name}' names the version {count} times, not once.")
        (root / name).write_text(content)


if __name__ == "__main__":
    cut(sys.argv[1] if len(sys.argv) == 2 else sys.exit("usage: python -m studies.release VERSION"))
