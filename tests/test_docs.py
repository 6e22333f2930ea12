"""What the docs show is what happens: every python block runs, and prints the text block below it. So does every block
of commands with a console block below it.

`python tests/test_docs.py` writes what the blocks print today into the pages, and the picture of the README.
A hub id in them stands for a small random checkpoint of its architecture.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from studies.site.reference import MAKERS

import uncode
from tests.backbones.test_tokenizers import llada_tokenizer
from tests.checkpoints import checkpoint
from tests.cli.running import run as run_uncode
from tests.test_troubleshooting import PAGE as TROUBLES
from tests.test_troubleshooting import rewritten as with_messages
from uncode.frequency import FrequencyTable
from uncode.samplers.catalog import catalog
from uncode.samplers.options import OPTIONS
from uncode.samplers.preset import PRESETS
from uncode.server.run import BackgroundServer
from uncode.server.service import Service

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?|```sh\n([^`]*)```\n\n```console\n[^`]*```\n", re.S)
"""A block of Python with what it prints, or a block of commands with what they print."""
FILE = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END\n", re.S | re.M)
ADDRESS = "http://127.0.0.1:8000"
"""On a page that shows what its commands print, this is a server with `tiny`."""


SMALL = {
    "GSAI-ML/LLaDA-8B-Instruct": "llada",
    "Dream-org/Dream-v0-Instruct-7B": "dream",
    "JetLM/SDAR-1.7B-Chat": "sdar",
}
"""The dialect of the small checkpoint that stands for a hub id."""
HUB_ID = re.compile("|".join(SMALL))


@cache
def small_model(hub_id: str) -> str:
    """A folder with a random model of the same architecture, a tokenizer and a frequency table."""
    folder = Path(tempfile.mkdtemp(prefix="small-model-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    checkpoint(folder, SMALL[hub_id], 0)
    tokenizer = llada_tokenizer()
    if SMALL[hub_id] != "llada":  # whose template is a part of its dialect, not of its tokenizer
        tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    FrequencyTable(torch.arange(1, uncode.load(str(folder)).vocab_size + 1)).save(folder / "frequency.safetensors")
    return str(folder)


def with_small_models(text: str) -> str:
    return HUB_ID.sub(lambda found: small_model(found[0]), text)


def printed_by(commands: str) -> str:
    """What a block of commands prints, without its seconds. It writes files with `cat`, and runs `uncode` in this
    process, or curl."""
    for name, content in FILE.findall(commands):
        Path(name).write_text(content)
    printed = ""
    for command in FILE.sub("", commands).replace("\\\n", " ").splitlines():
        program, *words = shlex.split(command, comments=True) or ("",)
        if program == "curl":
            printed += subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
        elif program:
            assert program == "uncode", command
            shown = run_uncode(*words)
            assert shown.returncode == 0, shown.stderr
            printed += shown.stdout
    return "".join(line.rstrip() + "\n" for line in re.sub(r"\b\d+\.\d s\b", "N s", printed).splitlines())


@contextlib.contextmanager
def place_of(page: Path) -> Iterator[Callable[[str], str]]:
    """A page that shows what its commands print runs in a folder of its own, beside a server if it has the address of
    one. Gives what a block says here."""
    text = page.read_text()
    if page == TROUBLES or not any(commands for _, _, commands in BLOCK.findall(text)):
        yield with_small_models
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        address = ADDRESS
        if ADDRESS in text:
            server = BackgroundServer(Service.of(uncode.load("tiny", device="cpu")))
            address = stack.enter_context(server).address
        yield lambda block: with_small_models(block).replace(ADDRESS, address)


def rewritten(page: Path) -> str:
    """The page with the output of its blocks, run in order in one namespace, in place of what it says."""
    module = types.ModuleType(f"docs_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module  # dataclasses look their module up

    has_random_weights = False

    def run(match: re.Match[str]) -> str:
        nonlocal has_random_weights
        if match.group(3):
            if page == TROUBLES or ("curl " in match.group(3) and not shutil.which("curl")):
                return match.group(0)  # tests/test_troubleshooting.py runs it, or nothing here can
            return f"```sh\n{match.group(3)}```\n\n```console\n{printed_by(here(match.group(3)))}```\n"
        has_random_weights |= HUB_ID.search(match.group(1)) is not None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(here(match.group(1)), str(page), "exec"), module.__dict__)
        if has_random_weights and match.group(2) is None:  # which print nothing worth showing
            return match.group(0)
        shown = "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())
        assert shown or match.group(2) is None, f"a block of {page.name} should print, and does not"
        return f"```python\n{match.group(1)}```\n" + (f"\n```text\n{shown}```\n" if shown else "")

    with patch.dict(PRESETS), patch.dict(OPTIONS), place_of(page) as here:  # a page may add its own
        return BLOCK.sub(run, page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_blocks_of_a_page_print_what_it_says(page: Path) -> None:
    """Three pages, and above all the log, take as long as all others together: they run under `make verify`."""
    if page.name in ("log.md", "analysis.md", "animation.md") and os.environ.get("HYPOTHESIS_PROFILE") != "soak":
        pytest.skip("its blocks take long: make verify")
    assert rewritten(page) == page.read_text()


def test_links_between_pages_resolve() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if not target.startswith("http"):
                is_made = target.startswith("reference/") and Path(target).name in MAKERS
                assert is_made or (page.parent / target).exists(), f"{page.name} links to {target}"


README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^uncode .*", "\n".join(re.findall(r"```sh\n(.*?)```", README, re.S)), re.M)


def test_the_readme_is_short_and_leads_with_what_works_from_a_checkout() -> None:
    assert len(README.splitlines()) <= 120
    assert re.findall(r"^make .*|^pip install .*", README, re.M)[0].startswith("make demo")
    assert "uncode-dev" not in README + (ROOT / "pyproject.toml").read_text()  # nobody has made that address


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("uncode decode")])
def test_the_readme_s_decode_commands_answer(command: str) -> None:
    shown = run_uncode(*shlex.split(with_small_models(command), comments=True)[1:])
    assert shown.returncode == 0, shown.stderr


@cache
def help_of(*verb: str) -> str:
    shown = run_uncode(*verb, "--help")
    assert shown.returncode == 0, f"there is no uncode {' '.join(verb)}"
    return shown.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if page != TROUBLES], ids=lambda p: p.name)
def test_the_options_of_a_page_s_commands_exist(page: Path) -> None:
    blocks = FILE.sub("", "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(), re.S))).replace("\\\n", " ")
    for command in re.findall(r"^(?:[A-Z_]+=\S+ )*uncode ([a-z][^\n|#]*)", blocks, re.M):
        verb, *rest = command.split()
        known = help_of(verb, rest[0]) if verb == "table" else help_of(verb)
        if verb != "lm-eval":  # which passes on lm-eval's own
            assert all(f"{option} " in known for option in re.findall(r" (--[a-z-]+)", command)), command


def test_the_number_of_published_samplers_is_that_of_the_presets() -> None:
    files = ("README.md", "pyproject.toml", "src/uncode/cli/app.py", "docs/comparison.md")
    named = (ROOT / name for name in files)
    published = [name for name, entry in catalog().items() if not entry.source.startswith("this library")]
    count = sum(not name.startswith("legacy.") for name in published)
    assert all(f"{count} published samplers" in file.read_text() for file in named)


def test_the_readme_s_accuracies_are_those_of_the_leaderboard() -> None:
    board = (ROOT / "docs" / "leaderboard.md").read_text()
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \| ([\d.]+) / ([\d.]+) \| (\d+) \|$", README, re.M)
    claim = re.search(r"is significantly better than \d+ of \d+ other rows with both seeds", README)
    assert len(rows) == 5 and claim and claim[0] in board
    for name, first, second, forwards in rows:
        row = re.search(rf"\| \d+ \| {name}(?:, [^|]*)? \| (\S+) [^|]*\| (\S+) [^|]*\| (\S+) \| (\S+) \|", board)
        assert row and (row[1], row[2]) == (first, second)
        assert round(float(row[3])) == int(forwards)


PICTURE = ROOT / "docs" / "pictures" / "order.svg"


def picture() -> str:
    """The picture of the README, as the last block of docs/animation.md makes it. The page runs once in a process."""
    if not hasattr(sys.modules.get("docs_animation"), "svg"):
        rewritten(ROOT / "docs" / "animation.md")
    return str(vars(sys.modules["docs_animation"])["svg"])


def words_of(svg: str) -> list[str]:
    """The texts of a picture without the step numbers, in any order."""
    return sorted(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


@pytest.mark.slow
def test_the_readme_shows_the_picture_of_the_docs() -> None:
    """The same words and verdicts. The order is not compared: near ties may depend on the processor."""
    assert f"]({PICTURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
    assert words_of(picture()) == words_of(PICTURE.read_text())


DEMO = re.compile(r"(?<=This is one of its three problems:\n\n```text\n).*?(?=```\n)", re.S)


def with_the_demo(page: Path) -> str:
    """The page with what `uncode demo` prints of its first problem."""
    from typer.testing import CliRunner

    from uncode.cli.answering import three_orders
    from uncode.cli.app import app

    assert "$(BIN)/uncode demo\n" in (ROOT / "Makefile").read_text()
    with tempfile.TemporaryDirectory() as folder:
        words = ["demo", "--view", str(Path(folder) / "demo.html")]
        with patch.object(three_orders, "write_page"):
            shown = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).output
    first = re.split(r"^─+ .* ─+\n", shown, flags=re.M)[1]
    block = "".join(line.rstrip() + "\n" for line in first.strip().splitlines())
    return DEMO.sub(lambda _: block, page.read_text(), count=1)


FIRST_DECODE = ROOT / "docs" / "first-decode.md"


@pytest.mark.slow
def test_the_first_decode_shows_the_demo() -> None:
    """Under `make test`, tests/evals/test_mini.py makes a demo of an untrained model."""
    assert DEMO.search(FIRST_DECODE.read_text()) and with_the_demo(FIRST_DECODE) == FIRST_DECODE.read_text()


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(rewritten(path))
    PICTURE.write_text(picture())
    FIRST_DECODE.write_text(with_the_demo(FIRST_DECODE))
    TROUBLES.write_text(with_messages(TROUBLES.read_text()))
