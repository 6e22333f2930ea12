"""The pages of the site, the checker of its links, and the count of numbers; mkdocs itself runs in `make site`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from studies.site import links, numbers, pictures, reference, staging
from studies.site.hooks import on_page_content

import uncode
from tests.cli.running import run
from uncode.cli.app import app
from uncode.samplers.catalog import catalog
from uncode.util.extras import EXTRAS

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
TEACHING = [page.stem for page in numbers.limited_pages()]
HELPING = ["troubleshooting", "faq", "comparison"]


def nav_pages(section: object) -> list[str]:
    if isinstance(section, str):
        return [section]
    inner = section.values() if isinstance(section, dict) else section
    return [page for one in inner for page in nav_pages(one)]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    staging.stage(folder)
    return folder


def test_every_page_is_in_the_navigation_once(pages: Path) -> None:
    listed = nav_pages(CONFIG["nav"])
    assert len(listed) == len(set(listed))
    assert set(listed) == {page.relative_to(pages).as_posix() for page in pages.rglob("*.md")} - {"files"}


def test_links_lead_to_where_pages_lie_in_the_site(pages: Path) -> None:
    for page in pages.rglob("*.md"):
        if page.parent.name == "reference":
            continue  # mkdocs follows its links
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            assert target.startswith(("http", "mailto:")) or (page.parent / target).exists(), f"{page}: {target}"


def test_a_list_gets_the_blank_line_that_markdown_wants(pages: Path) -> None:
    page = (pages / "concepts.md").read_text()
    assert not re.search(r"^[A-Za-z][^\n]*\n[*-] ", re.sub(r"```.*?```", "", page, flags=re.S), re.M)


def test_the_reference_has_every_public_name_verb_sampler_model_and_config(pages: Path) -> None:
    def page(name: str) -> str:
        return (pages / "reference" / name).read_text()

    documented = set(re.findall(r"^::: uncode[\w.]*\.(\w+)$", page("python.md"), re.M))
    assert set(uncode.__all__) - {"__version__", "presets"} <= documented
    verbs = {command.name for command in app.registered_commands} | {"table get", "table merge"}
    assert all(f"## `uncode {verb}`\n" in page("commands.md") for verb in verbs)
    assert all(f"## `{name}`\n" in page("samplers.md") for name in catalog())
    assert all(
        f"| `{option.name}` |" in page("samplers.md") for entry in catalog().values() for option in entry.options
    )
    listed = json.loads(run("models", "--json").stdout)
    assert all(f"`{entry['name']}`" in page("models.md") for entry in listed)
    assert "## `main`" in page("configs.md") and "| `commit_step` |" in page("trace.md")
    assert "## `POST /v1/chat/completions`" in page("http.md") and "| `max_tokens` |" in page("http.md")


def test_a_table_keeps_bars_and_lines_of_its_cells() -> None:
    assert reference.table(("a",), [("x | y\nz",)]) == "| a |\n|---|\n| x \\| y z |"


def test_a_role_becomes_the_name_it_means() -> None:
    assert on_page_content("see :func:<code>~uncode.a.b</code>.") == "see <code>b</code>."


def test_a_broken_site_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<script src='https://cdn.example/x.js'></script><h2 id='one'>One</h2>"
        "<p>text\n* no list <code>\n* fine</code></p><a href='b.html#none'></a><a href='c.html'></a>"
        "<a href='#one'></a><a href='https://example.org'></a>"
    )
    (tmp_path / "b.html").write_text("<a href='a.html#one'></a><a href='/a.html#two'></a><a href='/a.html'></a>")
    assert sorted(links.problems(tmp_path)) == [
        "a.html links to b.html#none, and that page has no such section",
        "a.html links to c.html, which is not there",
        "a.html loads https://cdn.example/x.js from another host",
        "a.html shows markdown: 'text\\n* no list'",
        "b.html links to /a.html#two, and that page has no such section",
    ]
    assert list(links.problems(tmp_path / "empty")) == [
        f"{tmp_path / 'empty'} has no page: build the site with `make site`"
    ]


def test_numbers_are_counted_in_prose_alone() -> None:
    text = (
        "# 1\n\nOf 7, and 1,024 in 3.5 s; LLaDA-8B `4` [9](a5.md#6)\n\n| 8 |\n|---|\n| 2 |\n\n1. one\n\n```\n11\n```\n"
    )
    assert numbers.numbers(text) == ["7", "1,024", "3.5", "9"]


@pytest.mark.parametrize("name", [*TEACHING, *HELPING])
def test_a_page_says_whom_it_serves_and_has_few_numbers(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    assert re.match(r"# [^\n]+\n\nFor [^\n]*(:|who)", page)
    assert len(numbers.numbers(page)) <= numbers.LIMIT


def test_every_picture_is_small_and_shown() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert f"pictures/{picture.name})" in pages and picture.stat().st_size <= pictures.MAX_BYTES, picture.name


def test_the_limit_is_for_the_pages_that_teach() -> None:
    names = {page.name for page in numbers.limited_pages()}
    assert {"install.md", "adding-a-sampler.md", "gaps.md", "order.md"} <= names and "leaderboard.md" not in names


def test_install_lists_every_extra_and_the_memory_of_models() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    assert set(re.findall(r"^\| `([\w-]+)` \| [^|]* \|$", page, re.M)) == {*EXTRAS, "docs", "dev"}
    memory = {entry["name"]: entry["memory"] for entry in json.loads(run("models", "--json").stdout)}
    rows = re.findall(r"^\| `([\w.-]+/[\w.-]+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    assert len(rows) >= 5
    for name, *sizes in rows:
        assert sizes == [f"{memory[name][kind] / 1e9:.1f}" for kind in ("bfloat16", "int8", "int4")]


def test_the_figures_of_samplers_are_those_of_the_leaderboard() -> None:
    page = (ROOT / "docs" / "choose-a-sampler.md").read_text()
    board = (ROOT / "docs" / "leaderboard.md").read_text()
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \| ([\d.]+) / ([\d.]+) \| (\d+) \|$", page, re.M)
    assert len(rows) >= 10
    for name, first, second, forwards in rows:
        row = re.search(rf"\| \d+ \| {name}(?:, [^|]*)? \| (\S+) [^|]*\| (\S+) [^|]*\| (\S+) \| (\S+) \|", board)
        assert row and (row[1], row[2]) == (first, second)
        assert round(float(row[3])) == int(forwards)
    head = re.search(r"^\| Task \(family\) \| (.*) \|$", page, re.M)
    assert head
    families = re.findall(r"^\| [^|]* \(`(\w+)`\) \| (.*) \|$", page, re.M)
    assert len(families) >= 5
    for family, cells in families:
        for sampler, cell in zip(re.findall(r"`(\w+)`", head[1]), cells.split(" | "), strict=True):
            assert cell == " / ".join(by_family(board, seed, sampler, family) for seed in (0, 1))


def by_family(board: str, seed: int, sampler: str, family: str) -> str:
    table = board.partition("## By family")[2].partition(f"| seed {seed} |")[2].partition("\n\n")[0]
    column = [name.strip() for name in table.splitlines()[0].strip("|").split("|")].index(family)
    row = next(line for line in table.splitlines() if re.match(rf"\| {sampler}(, [^|\d]*)? \|", line))
    return row.strip("|").split("|")[column + 1].strip(" *")
