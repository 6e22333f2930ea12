"""The wheel is whole: what help texts and docs name is in it, and its metadata names only addresses that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from studies.release import PLACES, UNRELEASED, cut

import uncode
from uncode import UncodeError

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
    assert "pip install uncode" not in page


def test_the_wheel_s_readme_links_to_nothing_that_an_index_has_not(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    page = wheel.read(name).decode().partition("\n\n")[2]
    whole = (ROOT / "README.md").read_text()
    assert re.findall(r"\]\(([^)]*)\)", page) == [
        to for to in re.findall(r"\]\(([^)]*)\)", whole) if to.startswith("http")
    ]
    kept = set(page.splitlines()) & set(whole.splitlines())
    assert len(kept) > 50 and "![" not in page and "## Cite" in kept and page.startswith("# uncode\n")


def test_the_citation_and_the_readme_name_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == uncode.__version__ and citation["license"] == "MIT"
    assert citation["references"][0]["title"] == "Empirical Analysis of Decoding Biases in Masked Diffusion Models"
    assert f"**Status.** {uncode.__version__.rpartition('.')[0]}," in (ROOT / "README.md").read_text()


def test_a_release_writes_its_version_everywhere(tmp_path: Path) -> None:
    for name in (*PLACES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{UNRELEASED}\n### Added\n\n* A line.\n")
    cut("99.2.0", tmp_path, "2030-01-02")
    log = (tmp_path / "CHANGELOG.md").read_text()
    assert log == f"# Changelog\n\n{UNRELEASED}\n## [99.2.0] - 2030-01-02\n\n### Added\n\n* A line.\n"
    assert (tmp_path / "src/uncode/version.py").read_text().endswith('__version__ = "99.2.0"\n')
    assert yaml.safe_load((tmp_path / "CITATION.cff").read_text())["version"] == "99.2.0"
    assert "**Status.** 99.2, " in (tmp_path / "README.md").read_text()
    for version, fault in (("99.3.0", "no lines under"), ("0.0.1", "must be above"), ("1.0", "three numbers")):
        with pytest.raises(UncodeError, match=fault):
            cut(version, tmp_path)


def test_the_workflow_runs_what_a_person_can_run() -> None:
    """Every step is a target of the Makefile, on every Python that the package names."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    made = {target for step in steps for target in re.findall(r"^make ([\w-]+)", step)}
    assert {"check", "test", "site", "release-check"} == made <= targets
    pythons = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert pythons == named


def test_templates_and_hooks_can_be_read() -> None:
    for file in [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]:
        assert yaml.safe_load(file.read_text()), file
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {"ruff-check", "ruff-format", "mypy"} <= {hook["id"] for hook in hooks}
