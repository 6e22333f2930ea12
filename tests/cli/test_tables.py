"""The verbs count and table, as a user runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT, run, run_apart
from tests.small_tokenizers import TEXT, TOKENIZERS
from uncode import FrequencyTable
from uncode.cli import main
from uncode.cli.verbs.count import complete_spec, with_ray_address
from uncode.cli.verbs.table import complete, complete_released
from uncode.models import TINY


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    TOKENIZERS["split"]().save_pretrained(folder)
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text, "n": 1}) + "\n" for text in TEXT * 50))
    return folder


def spoil(corpus: Path) -> None:
    with (corpus / "a.jsonl").open("a") as file:
        file.write("nonsense\n")


def test_count_show_compare_merge(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    one, two, both = (tmp_path / f"{name}.safetensors" for name in ("one", "two", "both"))
    shown = run_apart("count", str(corpus), "--tokenizer", str(tokenizer), "--out", str(one))
    assert shown.returncode == 0 and shown.stderr == ""
    assert "tokens in 200 documents" in shown.stdout and len(shown.stdout.splitlines()) == 1
    spoil(corpus)
    json_file = str(tokenizer / "tokenizer.json")
    result = run("count", str(corpus), "--tokenizer", json_file, "--out", str(two), "--max-bytes", "10kB", "--json")
    facts = json.loads(result.stdout)
    assert facts["bytes"] <= 10_000 and facts["sha256"] == FrequencyTable.load(two).sha256 and facts["bad"] == 0
    shown = run("table", "show", str(one), "--tokenizer", str(tokenizer), "--top", "5")
    assert '" the"' in shown.stdout and "200 documents" in shown.stdout and "\x1b[" not in shown.stdout
    data = json.loads(run("table", "show", str(one), "--top", "2", "--json").stdout)
    assert (
        data["made"]["documents"] == 200 and len(data["top"]) == 2 and data["sha256"] == FrequencyTable.load(one).sha256
    )
    shown = run("table", "compare", str(one), str(two), "--tokenizer", str(tokenizer))
    assert "KL(A || B)" in shown.stdout and "change" in shown.stdout
    result = run("table", "compare", str(one), str(one), "--json")
    assert json.loads(result.stdout)["divergence"] == [0, 0] and json.loads(result.stdout)["moved"] == []
    assert run("table", "merge", str(one), str(two), "--out", str(both), "--name", "all").returncode == 0
    assert FrequencyTable.load(both) == FrequencyTable.load(one).merge(FrequencyTable.load(two))


def test_standard_input_a_corpus_spec_and_bad_lines(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    out, text = tmp_path / "t.safetensors", "".join(TEXT)
    result = run_apart("count", "-", "--tokenizer", str(tokenizer), "--out", str(out), "--json", stdin=text)
    assert json.loads(result.stdout)["bytes"] == len(text.encode()) and json.loads(result.stdout)["documents"] == 1
    spec = tmp_path / "mix.toml"
    spec.write_text(f'name = "mix"\nmax_bytes = "1MB"\n[[source]]\nwhere = "{corpus}"\nfields = "text"\n')
    spoil(corpus)
    result = run("count", str(spec), "--tokenizer", str(tokenizer), "--out", str(out))
    assert result.returncode == 0 and "1 bad left out" in result.stdout
    assert result.stderr == f"bad: {corpus / 'a.jsonl'}, line 201: not valid JSON (column 1)\n"
    assert FrequencyTable.load(out).name == "mix"
    result = run("count", str(spec), "--tokenizer", str(tokenizer), "--out", str(out), "--strict")
    assert result.returncode == 2 and "line 201" in result.stderr


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "split"])
@pytest.mark.parametrize("is_folder", [False, True])
def test_many_unknown_tokens_are_a_warning(kind: str, is_folder: bool, tmp_path: Path) -> None:
    """Of letters that the tokenizer does not know. Byte-level BPE knows all, and a few unknown ones are nothing."""
    TOKENIZERS[kind]().save_pretrained(tmp_path / "model")
    tokenizer = tmp_path / "model" / ("" if is_folder else "tokenizer.json")
    known, foreign = "the quick brown fox jumps over the lazy dog " * 20, "\u0c05\u0c06 \u0c07\u0c08 " * 20
    for name, text in (("known", known + "\u0c05"), ("foreign", known + foreign)):
        (tmp_path / f"{name}.txt").write_text(text)
        words = ("--tokenizer", str(tokenizer), "--out", str(tmp_path / name), "--json")
        done = run("count", str(tmp_path / f"{name}.txt"), *words)
        assert done.returncode == 0 and json.loads(done.stdout)["tokens"]
        is_warned = name == "foreign" and kind != "split"
        assert ("% of the tokens are unknown (" in done.stderr) == is_warned, done.stderr


def test_a_finished_count_is_not_repeated(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.safetensors"
    words = ("count", str(corpus), "--tokenizer", str(tokenizer), "--out", str(out))

    def reused(*more: str) -> bool:
        return bool(json.loads(run(*words, *more, "--json").stdout)["reused"])

    assert not reused() and reused()
    assert "made by the same command" in run(*words).stdout and not list(tmp_path.glob("*.counting*"))
    assert not reused("--force") and not reused("--restart") and not reused("--max-documents", "1")
    assert "tokens in 1 document," in run(*words, "--max-documents", "1", "--force").stdout
    spoil(corpus)
    assert not reused() and not reused(), "bad records are reported every time"
    result = run("count", "-", *words[2:], stdin="x")
    assert "made by the same command" not in result.stdout + run("count", "-", *words[2:], stdin="x").stdout


def test_an_error_says_what_is_kept(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    """Nothing where nothing was counted."""
    out, kept = tmp_path / "t.safetensors", tmp_path / "t.safetensors.counting"
    words = ("count", str(corpus), "--tokenizer", str(tokenizer), "--out", str(out))
    for allowed, message in (("1", "nothing was counted"), ("0", "200 of 200 records are bad")):
        result = run(*words, "--field", "n", "--allow-bad", allowed)
        assert result.returncode == 2 and message in result.stderr and not kept.exists()
    spoil(corpus)
    result = run(*words, "--allow-bad", "0")
    assert f"The counts so far are in '{kept}'" in result.stderr and kept.is_file()
    assert run(*words).returncode == 0 and not kept.exists()


def test_the_released_format_is_imported(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.json", tmp_path / "mine.safetensors"
    file.write_text(json.dumps({"num_token": 3, "p_baseline_dict": {"5": 3}}))
    assert run("table", "import", str(file), "--out", str(out), "--vocab-size", "9").returncode == 0
    assert len(FrequencyTable.load(out)) == 9 and FrequencyTable.load(out).name == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count", "README.md", "--tokenizer", "no/such", "--out", "x.st"], "offline mode is on"),
        (["count", "README.md", "--tokenizer", "no such", "--out", "x.st"], "there is no tokenizer at 'no such'"),
        (["count", "README.md", "--tokenizer", "docs", "--out", "x.st"], "no tokenizer in 'docs'"),
        (["count", "README.md", "--tokenizer", "README.md", "--out", "x.st"], "is no tokenizer.json"),
        (["count", "README.md", "--tokenizer", "x", "--out", "no/x.st"], "does not exist"),
        (["count", "README.md", "--tokenizer", "x", "--out", "x.st", "--format", "json"], "is not a format"),
        (["count", "README.md", "--tokenizer", "x", "--out", "x.st", "--max-bytes", "many"], "is not a size"),
        (["count", "no.toml", "--tokenizer", "x", "--out", "x.st"], "the corpus spec 'no.toml' cannot be read"),
        (["count", "a.toml", "b", "--tokenizer", "x", "--out", "x.st"], "a corpus spec cannot be mixed"),
        (["count", "a.toml", "--field", "x", "--tokenizer", "x", "--out", "x.st"], "leave --field out"),
        (["count", "README.md", "--out", "x.st"], "--tokenizer is missing"),
        (["count", "README.md", "--tokenizer", "toy", "--out", "x.st"], "'toy' has no tokenizer"),
        (
            ["count", "no/data", "--tokenizer", "tiny", "--out", "x.st"],
            "there is no file or folder 'no/data' here, and as a dataset id it cannot be read in offline mode",
        ),
        (["count", "c4-16g", "--tokenizer", "tiny", "--out", "x.st"], "did you mean 'c4-16gb'?"),
        (
            ["count", "README.md", "--sample", "0", "--tokenizer", "tiny", "--out", "x.st"],
            "above 0 and at most 1, not 0",
        ),
        (["count", "README.md", "--config", "en", "--tokenizer", "x", "--out", "x.st"], "--config is for dataset ids"),
        (["count", "docs", "--config", "a", "--split", "b", "--tokenizer", "x", "--out", "x.st"], "leave them out"),
        (["table", "import", "README.md", "--out", "x.st"], "'README.md' is not valid JSON (line 1, column 1)"),
        (["table", "get", "lada"], "did you mean 'llada'"),
        (["table", "get", "llada", "--url", "http://127.0.0.1:9/"], "uncode table import FILE"),
        (["table", "show", "lada"], "did you mean 'llada'"),
        (["table", "import", "no.json", "--out", "x.st"], "the file 'no.json' does not exist"),
        (["table", "merge", "x", "--out", "x.st"], "at least two tables"),
        (["table", "shoe", "x"], "there is no command"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["uncode", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2 and message in shown.err and len(shown.err.splitlines()) == 1 and shown.out == ""
    assert not (ROOT / "x.st").exists() and not list(ROOT.glob("x.st*"))


def test_tiny_names_its_own_table(tmp_path: Path) -> None:
    whole = run("table", "show", "tiny", "--top", "3").stdout
    assert "token  " not in whole.split("id  ")[-1], "without a tokenizer there is no column of tokens"
    assert '" "' in run("table", "show", "tiny", "--top", "40", "--tokenizer", "tiny").stdout
    none = run("table", "show", "tiny", "--top", "0").stdout
    assert "sha256" in none and "share" not in none and "--tokenizer" not in none
    assert json.loads(run("table", "show", str(TINY), "--json").stdout)["name"] == "tiny"
    words = ("decode", "Problem: Compute 1 + 2\nSolution:", "--length", "4", "--sampler", "uncode")
    assert run(*words, "--frequency", "tiny").stdout == run(*words).stdout != ""


def test_what_is_printed_into_a_pipe_has_no_trailing_blanks(tmp_path: Path) -> None:
    bare = tmp_path / "bare.safetensors"
    FrequencyTable(FrequencyTable.load(TINY / "frequency.safetensors").counts.flip(0)).save(bare)
    for words in (
        ("show", "tiny"),
        ("show", str(bare)),
        ("compare", "tiny", str(TINY / "tables" / "code.safetensors")),
    ):
        shown = run("table", *words).stdout
        assert len(shown.splitlines()) > 10 and shown == "".join(f"{line.rstrip()}\n" for line in shown.splitlines())
        assert "asked      {}" not in shown


def test_a_shell_completes_tables_and_corpora() -> None:
    assert complete("t") == ["tiny"] and complete_released("") == ["llada", "dream"]
    assert complete_spec("c4-1") == ["c4-16gb"] and "slimpajama" in complete_spec("")


def test_ray_needs_no_address() -> None:
    assert with_ray_address(["count", "a", "--ray"]) == ["count", "a", "--ray="]
    assert with_ray_address(["--ray", "a.txt"]) == ["--ray=", "a.txt"] and with_ray_address([]) == []
    for address in ("auto", "local", "ray://head:10001", "10.0.0.1:6379"):
        assert with_ray_address(["--ray", address, "a"]) == ["--ray", address, "a"]


def test_help_has_examples() -> None:
    assert all("Examples" in run(*words, "--help").stdout for words in (["count"], ["table", "show"], ["table", "get"]))
