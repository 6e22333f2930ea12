"""The wheel is whole: what help texts and docs name is in it, and its metadata names only addresses that exist."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    wanted = {name.removeprefix("src/") for name in listed.stdout.splitlines()}
    assert wanted and wanted <= set(wheel.namelist())
    data = {"uncode/train/configs/smoke.toml", "uncode/frequency/corpora/specs/c4-16gb.toml", "uncode/py.typed"}
    assert data <= wanted
    assert not [name for name in wheel.namelist() if name.startswith("tests")]


def test_the_package_names_no_address_that_nobody_has_made(wheel: zipfile.ZipFile) -> None:
    """It is on no index and in no public repository yet; docs/releasing.md says what a release adds."""
    name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    about, _, page = wheel.read(name).decode().partition("\n\n")
    assert [line for line in about.splitlines() if line.startswith("Project-URL")] == [
        "Project-URL: Paper, https://github.com/NEUIR/Uncode"
    ]
    assert page == (ROOT / "README.md").read_text() and "pip install uncode" not in page
