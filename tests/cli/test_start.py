"""Verbs start at once: torch is imported where it is used; Ctrl-C is one word, whenever it comes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import pytest
import typer
from typer.testing import CliRunner

from tests.cli.running import ROOT, TOY, run, run_apart, start_apart
from uncode.backbones.dialects.registry import DIALECTS
from uncode.backbones.loading.device import DTYPES
from uncode.cli import options
from uncode.cli.app import app
from uncode.cli.printing import loading
from uncode.models import RELEASES, TINY
from uncode.samplers.catalog import catalog

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
SLOW = {"torch", "transformers", "huggingface_hub", "datasets", "ray", "scipy"}
TABLE = str(TINY / "frequency.safetensors")
QUICK = [
    ["--help"],
    ["--version"],
    [],
    ["decode", "--help"],
    ["count", "--help"],
    ["mini", "--help"],
    ["train", "--help"],
    ["serve", "--help"],
    ["serve", "--sampler", "confidense"],
    ["samplers"],
    ["samplers", "--json"],
    ["samplers", "confidense"],
    ["tasks"],
    ["tasks", "mini_story"],
    ["tasks", "stroy"],
    ["tasks", "--example", "3"],
    ["table", "show", TABLE],
    ["table", "show", "tiny"],
    ["table", "show", "nowhere"],
    ["table", "show", "tiny", "--tokenizer", "toy"],
    ["table", "import", "README.md", "--out", "/tmp/x.st"],
    ["count", "README.md", "--tokenizer", "toy", "--out", "/tmp/x.st"],
    ["count", "README.md", "--tokenizer", "README.md", "--out", "/tmp/x.st"],
    ["count", "README.md", "--tokenizer", "tiny", "--out", "/tmp/x.st", "--sample", "0"],
    ["count", "README.md", "--tokenizer", "tiny", "--out", "/tmp/x.st", "--config", "en"],
    ["count", "c4-16g", "--tokenizer", "tiny", "--out", "/tmp/x.st"],
    ["count", "nowhere", "--tokenizer", "tiny", "--out", "/tmp/x.st"],
    ["train", "nothing", "--out", "/tmp/x"],
    ["train", "smoke", "--out", str(ROOT / "README.md")],
    ["train", "smoke", "--out", "/tmp/x", "--seed", "-1"],
    ["decode"],
    ["decode", "x", "--sampler", "uncod"],
    ["decode", "x", "--set", "rte=1"],
    ["decode", "x", "--model", "tny"],
    ["decode", "x", "--model", "src"],
    ["compare", "x", "--model", "README.md"],
    ["decode", "x", "--trace", "/nowhere/x"],
    ["decode", "--input", "nowhere.jsonl", "--out", "x.jsonl"],
    ["compare", "x", "--samplers", "uncode,nothing"],
    ["regrade", "nowhere.jsonl"],
    ["regrade", TABLE, TABLE],
    ["regrade", TABLE],
    ["report", "nowhere"],
    ["report", "src", "--format", "latx"],
    ["view", "--help"],
    ["view", "README.md", "--out", "README.md"],
    ["mini", "--show", str(TINY / "results.json")],
    ["mini", "--all", "--show", str(TINY / "results.json")],
    ["mini", "--all", "--second", "tiny"],
    ["mini", "--model", "toy"],
    ["mini", "--model", "nosuch"],
    ["mini", "--family", "stroy"],
    ["mini", "--out", f"{os.devnull}/x"],
    ["eval", "mini", "--out", str(ROOT / "src")],
    ["paper", "--out", str(ROOT / "README.md")],
    ["mini", "--quick", "--device", "xpu7"],
    ["mini", "--quick", "--dtype", "float99"],
    ["demo", "--model", "toy", "--view", os.devnull],
    ["nothing"],
    ["decode", "x", "--set", "rate=high"],
    ["decode", "x", "--sampler", "uncode", "--set", "proxy=confidense"],
    ["decode", "x", "--length", "0"],
    ["decode", "x", "--seed", "9" * 30],
    ["decode", "x", "--device", "gpu"],
    ["decode", "x", "--device", "cpu:7"],
    ["decode", "x", "--dtype", "float33"],
    ["decode", "x", "--weights", "int9"],
    ["decode", "x", "--order", "--json"],
    ["decode", ""],
    ["decode", "a <mask:0> b"],
    ["compare", "x", "--samplers", "uncode,,confidence"],
    ["samplers", "--set", "rate=1"],
    ["lm-eval", "--help"],
    ["lm-eval"],
]


def test_what_needs_no_model_imports_no_torch(tmp_path: Path) -> None:
    """All in one process: each verb in turn, and what was loaded after it."""
    (tmp_path / "prompts.jsonl").write_text('"add 1 2 3"\n')
    other = ["decode", "--input", str(tmp_path / "prompts.jsonl"), "--out", str(tmp_path / "mine.txt")]
    (tmp_path / "mine.txt").write_text("mine\n")
    script = (
        "import sys, json, io, contextlib\n"
        "from uncode.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    sys.argv[1:] = words\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:\n"
        "        try:\n"
        "            main()\n"
        "        except SystemExit:\n"
        "            pass\n"
        f"    loaded = {SLOW!r} & set(sys.modules)\n"
        "    assert not loaded, (words, loaded, err.getvalue())\n"
        "print('ok')\n"
    )
    import json

    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([*QUICK, other])],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "ok\n", done.stderr


def test_importing_uncode_imports_nothing_slow() -> None:
    script = "import sys, uncode; uncode.UncodeError; dir(uncode); print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert not {*SLOW, "numpy", "rich", "typer"} & set(done.stdout.split())


def _interrupted(*words: str, after: float, environment: dict[str, str] | None = None) -> tuple[int, str]:
    command = [sys.executable, "-m", "uncode.cli", *words]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | (environment or {})
    ) as process:
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("after", [0.35, 0.8, 1.6])
def test_ctrl_c_while_importing_prints_one_word(after: float) -> None:
    code, err = _interrupted("decode", "x" * 50, "--length", "4000", after=after)
    assert "Traceback" not in err and err.splitlines()[-1:] == ["uncode: interrupted."], err
    assert code == 130


def test_ctrl_c_while_typer_evaluates_an_annotation_exits_with_130(tmp_path: Path) -> None:
    """The signal comes at a random moment; here it comes inside an eval() of text, which Python treats differently."""
    (tmp_path / "interrupted.py").write_text(
        "import os, signal\n"
        "from uncode import cli\n"
        "from uncode.cli import run\n"
        "run.run = lambda words: eval('os.kill(os.getpid(), signal.SIGINT)')\n"
        "cli.main()\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "uncode: interrupted.\n")


def test_ctrl_c_while_decoding_says_what_was_kept(tmp_path: Path) -> None:
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    prompts.write_text("".join(f'{{"prompt": "add 3 4 {n % 9 + 1}", "id": {n}}}\n' for n in range(5000)))
    with start_apart("decode", *TOY, "--input", str(prompts), "--out", str(out), "--batch", "1") as process:
        deadline = time.monotonic() + 60
        while (not out.exists() or not out.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err, err
    found = re.search(r"stopped after ([\d,]+) of 5,000 answers; the same command resumes there", err)
    assert found and int(found[1].replace(",", "")) == len(out.read_text().splitlines())
    assert err.splitlines()[-1] == "uncode: interrupted."


def test_the_list_of_commands_is_not_cut_at_80_columns() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    assert shown.count("...") == 1, "of the usage line"
    assert max(map(len, shown.splitlines())) <= 80


def _commands() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [(name,)] if inner is None else [(name, each) for each in inner]
    return found


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_help_has_examples_and_one_style_of_metavars(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100"}).output
    assert "Examples:" in shown
    strange = re.findall(r"(?<![\w-])(?:TEXT|INTEGER|FLOAT|PATH|FILENAME|DIRECTORY)\b", shown)
    assert not strange, "a metavar says what is meant (FILE, DIR, N, NAME), not its type"


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_no_example_is_broken_at_40_columns(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "40"}).output
    examples = shown.partition("Examples:")[2].partition("\nOptions")[0].partition("\nArguments")[0]
    assert all(line.startswith("    uncode ") or " | uncode " in line for line in examples.split("\n") if line), shown
    assert "{" not in shown.splitlines()[0]


def test_an_output_that_cannot_be_written_is_one_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "uncode.cli", "tasks"],
            stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "uncode: the output could not be written: No space left on device.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["decode", "x", "--set", "rate=high"], "rate of the sampler 'certain_first' must be a number, not 'high'."),
        (
            ["decode", "x", "--sampler", "uncode", "--set", "proxy=confidense"],
            "the option proxy of the sampler 'uncode' cannot be 'confidense': did you mean 'confidence'?",
        ),
        (["decode", "x", "--set", "informativeness=1"], "'certain_first' must be true or false, not 1."),
        (["samplers", "eb", "--set", "WRONG=1"], "the sampler 'eb' has no option 'WRONG': known: block_length,"),
        (["samplers", "eb", "--set", "gamma=-1"], "the option gamma of the sampler 'eb' must be at least 0, not -1.0."),
        (["samplers", "story", "--set", "top_p=2"], "the option top_p of the sampler 'story.toml' must be above 0"),
        (["decode", "x", "--device", "cpu:7"], "there is no 'cpu:7' here: a CPU has no number; use cpu."),
        (["decode", "caf\udce9"], "the prompt is not UTF-8 text: convert it first."),
        (["decode", "--input", "-", "--out", "x"], "--input takes a file"),
        (["samplers", "--frequency", "llada"], "--frequency changes one sampler"),
        (["compare", "x", "--samplers", "uncode,,eb"], "not 'uncode,,eb'."),
    ],
)
def test_a_bad_value_is_named_at_once(words: list[str], sentence: str) -> None:
    shown = run(*words)
    assert shown.returncode == 2 and sentence in shown.stderr


def test_a_backslash_n_is_explained() -> None:
    assert "is a backslash and an n" in run("decode", "add 3 4 5\\n", *TOY, "--sampler", "confidence").stderr


@pytest.mark.parametrize("verb", ["models", "doctor"])
def test_nothing_is_cut_off_at_40_columns(verb: str) -> None:
    shown = CliRunner().invoke(app, [verb], env={"COLUMNS": "40"}).output
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 40


def test_models_come_at_once_and_fit_80_columns() -> None:
    """Without torch, whose import takes seconds. No name of a model is broken."""
    script = "from uncode.cli.run import run; code = run(['models']); assert 'torch' not in sys.modules; sys.exit(code)"
    words = [sys.executable, "-c", f"import sys; {script}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert set(RELEASES) <= {line.split()[0] for line in lines if line}
    assert all(dialect.title in done.stdout for dialect in DIALECTS)


def test_loading_is_shown_on_a_terminal_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with loading():
        pass
    assert capsys.readouterr().err == ""
    with patch.object(sys.stderr, "isatty", return_value=True), loading():
        assert capsys.readouterr().err == "loading ...\r"
    assert capsys.readouterr().err.strip() == "", "wiped out"


def test_samplers_are_readable_at_40_columns() -> None:
    shown = CliRunner().invoke(app, ["samplers"], env={"COLUMNS": "40"}).output
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 40
    names = [line for line in lines if line and not line.startswith(" ")]
    assert names == list(catalog())


def test_the_shell_completes_names() -> None:
    assert options.complete_model("t") == ["tiny", "toy"]
    assert [name for name, _ in options.complete_sampler("uncode_")] == ["uncode_tau", "uncode_eb", "uncode_fast_dllm"]
    assert "story" in dict(options.complete_sampler("st"))
    assert options.complete_table("l") == ["llada"]
    assert options.complete_dtype("b") == ["bfloat16"] and set(options.DTYPES) == set(DTYPES)
    assert options.complete_weights("i") == ["int8", "int4"]
    assert options.complete_samplers("confidence,uncode_t") == ["confidence,uncode_tau"]
    assert "mini_sudoku" in options.complete_task("mini_s")
    assert options.complete_family("s") == ["sentence", "story", "sudoku"]
    assert options.complete_family("mini_su") == ["mini_sudoku"]
    assert tuple(release.name for dialect in DIALECTS for release in dialect.releases) == tuple(RELEASES)
    environment = {"_UNCODE_COMPLETE": "complete_bash", "COMP_WORDS": "uncode decode --sampler unc", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", "from uncode.cli.app import app; app(prog_name='uncode')"],
        env=ENVIRONMENT | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "uncode_eb" in done.stdout.split()


def test_an_internal_error_is_one_sentence() -> None:
    script = (
        "import sys; from unittest.mock import patch; sys.argv = ['uncode', 'samplers']\n"
        "from uncode.cli import main\nfrom uncode.cli.verbs import samplers\n"
        "with patch.object(samplers, 'catalog', side_effect=ZeroDivisionError('a\\nb')): main()"
    )
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "an unexpected ZeroDivisionError (a b): this is a bug in uncode" in done.stderr


def test_an_error_in_a_piece_of_ones_own_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "my_pieces.py").write_text(
        "from dataclasses import dataclass\n"
        "from uncode.core.pieces.score import Score\n"
        "@dataclass(frozen=True)\n"
        "class Unfinished(Score):\n"
        "    def __call__(self, view):\n"
        "        return logp\n"
    )
    about = tmp_path / "my_pieces-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-pieces\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text("[uncode.pieces]\nmine = my_pieces\n")
    (tmp_path / "mine.toml").write_text('[policy.score]\npiece = "Unfinished"\n')
    command = [
        sys.executable,
        "-m",
        "uncode",
        "decode",
        "add 3 4 5",
        "--model",
        "toy",
        "--sampler",
        "mine.toml",
        "--length",
        "24",
    ]
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ENVIRONMENT.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    place = f"'{tmp_path / 'my_pieces.py'}', line 6, raised NameError (name 'logp' is not defined)"
    assert (done.returncode, done.stderr) == (1, f"uncode: {place}: --debug shows its traceback.\n")


def test_a_closed_output_pipe_is_no_error() -> None:
    command = f'"{sys.executable}" -m uncode.cli samplers --json | head -1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == "[\n0\n" and done.stderr == ""
    assert run_apart("samplers", "--json").returncode == 0
