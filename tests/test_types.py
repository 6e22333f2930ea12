"""Types as users meet them: every Python example of README and docs passes `mypy --strict`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.test_docs import BLOCK, PAGES

ROOT = Path(__file__).parents[1]


def test_the_examples_of_the_docs_are_well_typed(tmp_path: Path) -> None:
    """The blocks of a page are one program, as they are when they run."""
    for page in PAGES:
        blocks = [match.group(1) for match in BLOCK.finditer(page.read_text())]
        if blocks:
            (tmp_path / f"{page.stem.replace('-', '_').lower()}_page.py").write_text("\n".join(blocks))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-uncode.*]\nfollow_imports = silent\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(ROOT / ".mypy_cache/docs")]
    done = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
