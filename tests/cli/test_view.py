"""`uncode view`: from trace files to a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import TOY, run


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two traces of one prompt, and one of another."""
    monkeypatch.chdir(tmp_path)
    for name, prompt, sampler in (
        ("a", "add 1 3 4", "confidence"),
        ("b", "add 1 3 4", "left_to_right"),
        ("c", "add 2 2 2", "confidence"),
    ):
        assert run("decode", prompt, *TOY, "--sampler", sampler, "--trace", f"{name}.jsonl").returncode == 0
    return tmp_path


def problems(file: str) -> list[list[str]]:
    """The titles on a page, prompt by prompt."""
    text = Path(file).read_text()
    data = json.loads(text.split('id="problems">')[1].split("</script>")[0])
    return [[trace["sampler"] for trace in problem["traces"]] for problem in data]


def test_traces_of_one_prompt_stand_side_by_side(traces: Path) -> None:
    shown = run("view", "a.jsonl", "b.jsonl", "c.jsonl", "--out", "page.html")
    assert shown.stdout == "page.html: 3 traces, to be replayed in a browser.\n" and shown.stderr == ""
    assert problems("page.html") == [["confidence", "left_to_right"], ["confidence"]]
    assert run("view", "a.jsonl", "b.jsonl", "--out", "page.html", "--title", "Mine").returncode == 0
    assert "<title>Mine</title>" in Path("page.html").read_text()


def test_rows_are_named_and_chosen(traces: Path) -> None:
    lines = Path("a.jsonl").read_text() * 2 + Path("c.jsonl").read_text()
    Path("many.jsonl").write_text(lines)
    assert run("view", "many.jsonl").returncode == 0
    assert problems("view.html") == [["confidence, row 0", "confidence, row 1"], ["confidence, row 2"]]
    assert run("view", "many.jsonl", "--row", "2").returncode == 0
    assert problems("view.html") == [["confidence"]]
    assert "there is no row 3: the traces have rows 0 to 2." in run("view", "many.jsonl", "--row", "3").stderr
    assert run("view", "a.jsonl", "c.jsonl", "a.jsonl").stdout == "view.html: 2 traces, to be replayed in a browser.\n"


def test_the_notes_of_an_evaluation_name_the_rows(traces: Path) -> None:
    row = json.loads(Path("a.jsonl").read_text())
    noted = row | {"task": "sums", "id": "7", "label": "mine", "correct": False}
    Path("noted.jsonl").write_text(json.dumps(noted) + "\n")
    assert run("view", "noted.jsonl").returncode == 0
    text = Path("view.html").read_text()
    assert '"label":"sums 7"' in text and '"title":"mine"' in text and "✗ wrong" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.jsonl"], "the file 'nowhere.jsonl' does not exist: give the path of a trace."),
        (["empty.jsonl"], "'empty.jsonl' holds no trace: it is empty."),
        (["other.jsonl"], "line 1 of 'other.jsonl' is no trace: give files that uncode wrote."),
        (["text.txt"], "line 1 of 'text.txt' is not JSON"),
        (["bare.jsonl"], "line 1 of 'bare.jsonl' has no texts: write the trace with its tokenizer."),
        (["cut.jsonl"], "line 1 of 'cut.jsonl' cannot be read: "),
        (["a.jsonl", "--out", "text.txt"], "'text.txt' exists and is not a page"),
        (["a.jsonl", "--out", "nowhere/page.html"], "does not exist"),
        (["a.jsonl", "--out", "a.jsonl", "--force"], "--out would replace the trace 'a.jsonl': choose another file."),
    ],
)
def test_errors_are_one_sentence(traces: Path, words: list[str], sentence: str) -> None:
    row = json.loads(Path("a.jsonl").read_text())
    Path("empty.jsonl").write_text("")
    Path("other.jsonl").write_text('{"prompt": 3}\n')
    Path("text.txt").write_text("a text\n")
    Path("bare.jsonl").write_text(json.dumps({k: v for k, v in row.items() if not k.endswith(("text", "texts"))}))
    Path("cut.jsonl").write_text(json.dumps(row | {"logp": row["logp"][:3]}))
    shown = run("view", *words)
    assert shown.returncode == 2 and sentence in shown.stderr and shown.stdout == ""
    assert len(shown.stderr.splitlines()) == 1


def test_an_animated_picture(traces: Path) -> None:
    shown = run("view", "a.jsonl", "b.jsonl", "--animate", "orders.svg")
    assert shown.stdout == "orders.svg: 2 traces, animated.\n" and not Path("view.html").exists()
    assert "confidence" in Path("orders.svg").read_text()
    assert run("view", "a.jsonl", "--animate", "orders.svg", "--out", "page.html").returncode == 0
    assert Path("page.html").is_file()
    for arguments, words in (
        (["a.jsonl", "--animate", "x.gif"], "--animate takes an .svg file, not 'x.gif'."),
        (["a.jsonl", "c.jsonl", "--animate", "x.svg"], "prompt"),
    ):
        shown = run("view", *arguments)
        assert shown.returncode == 2 and words in shown.stderr and len(shown.stderr.splitlines()) == 1


def test_decode_and_compare_write_the_page_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("decode", "add 1 3 4", *TOY, "--sampler", "left_to_right", "--view", "one.html")
    assert shown.stdout.startswith("first 1 + 3") and problems("one.html") == [["left_to_right"]]
    assert shown.stderr == "one.html: 1 trace, to be replayed in a browser.\n"
    words = ("compare", "add 1 3 4", *TOY, "--samplers", "confidence,margin", "--view", "two.html", "--json")
    shown = run(*words)
    assert [row["title"] for row in json.loads(shown.stdout)] == ["confidence", "margin"]
    assert "two.html: 2 traces" in shown.stderr and problems("two.html") == [["confidence", "margin"]]
    Path("prompts.jsonl").write_text('"add 1 3 4"\n')
    for arguments, sentence in (
        (["--input", "prompts.jsonl", "--out", "x", "--view", "x"], "--view and --out would both write 'x'"),
        (["add 1 3 4", "--trace", "x", "--view", "x"], "--trace and --view would both write 'x'"),
        (["add 1 3 4", "--view", "prompts.jsonl"], "'prompts.jsonl' exists and is not a page"),
    ):
        shown = run("decode", *TOY, *arguments)
        assert shown.returncode == 2 and sentence in shown.stderr and len(shown.stderr.splitlines()) == 1
