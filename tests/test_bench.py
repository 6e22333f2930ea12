"""Every benchmark runs at a toy size on a CPU: where nobody has a GPU, nobody would see one that no longer starts.

They run in this process, because importing torch again would take longer than most of them. Sizes that a command line
does not offer are set in the module.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import typer

from tests.small_tokenizers import TOKENIZERS
from uncode.backbones.transformer.mixture import Mixture
from uncode.backbones.transformer.shape import Shape
from uncode.cli.app import app
from uncode.evals.suite.families import FAMILIES
from uncode.samplers.presets import PRESETS

BENCH = Path(__file__).parent.parent / "bench"
TOY = Shape(32, 2, 2, 2, 48, 101, theta=10000.0, eps=1e-5, context=64)
SHORT: Any = copy(FAMILIES["mini_algebra"])
SHORT.length = 8
ONE_FAMILY = {SHORT.name: SHORT}
Bench = Callable[..., ModuleType]
Run = Callable[..., str]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A benchmark's module, in which some constants have other values."""
    monkeypatch.syspath_prepend(BENCH)

    def load(name: str, **constants: Any) -> ModuleType:
        module = importlib.import_module(name)
        for constant, value in constants.items():
            monkeypatch.setattr(module, constant, value)
        return module

    return load


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """What a benchmark prints. It must end without an error."""

    def start(module: ModuleType, *words: str) -> str:
        monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", *words])
        threads = torch.get_num_threads()
        try:
            code = module.main()
        except SystemExit as end:
            code = end.code
        finally:
            torch.set_num_threads(threads)
        assert not code, code
        return capsys.readouterr().out

    return start


def test_every_benchmark_is_run_here() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    helpers = {"answers", "published"}  # run by two_orders and cpu
    missing = [file.stem for file in BENCH.glob("*.py") if f'bench("{file.stem}"' not in here]
    assert set(missing) == helpers


def test_agreement_decodes_with_every_preset(bench: Bench, run: Run) -> None:
    """Some presets need a frequency table, and one a tokenizer."""
    agreement = bench("agreement", ProcessPoolExecutor=lambda workers, context: ThreadPoolExecutor(workers))
    printed = run(agreement, "--networks", "1", "--workers", "1", "--device", "cpu")
    samplers = len(PRESETS) + 5
    assert f"{samplers} samplers: 0 of {3 * samplers} rows differ" in printed
    assert figures(bench, "agreement", printed)


@pytest.fixture
def gpu(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The GPU benchmark at toy size on a CPU. Its clock is then the host's, and its limits mean nothing."""
    sizes = {"SHAPE": TOY, "PROMPT": 8, "LENGTH": 16, "BLOCK": 4, "BLOCKS": 4, "MASK": 100, "END": 99, "PROMPT_IDS": 99}
    bench("workload", DEVICE="cpu", store_as=lambda made, weights: made.fuse(), **sizes)
    monkeypatch.setattr(torch.cuda, "Event", HostClock)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "no GPU")
    for name in ("synchronize", "empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: 0)
    return bench("gpu", FLOOR_SIDE=64, FLOOR_BYTES=1 << 12, FLOOR_SECONDS=0.01)


def test_the_gpu_benchmark_measures_all_its_figures(bench: Bench, gpu: ModuleType, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "figures.json"
    bench("throughput", QUOTAS=(2, 4))
    printed = run(gpu, "--layers", "1", "--batches", "1", "2", "--out", str(out))
    found = json.loads(out.read_text())
    assert [(row["cache"], row["batch"]) for row in found["table"]] == [
        *((cache, batch) for batch in (1, 2) for cache in gpu.BLOCK_CACHES),
        ("dual", 16),
    ]
    assert found["belief"]["tokens that differ"] == 0
    assert [row["cache"] for row in found["by quota"]] == ["dual", "window"]
    assert [each["draft steps"] for each in found["by draft steps"]] == [1, 2, 4, 8]
    assert len(figures(bench, "steps", printed)) >= 4 + len(found["table"])
    found["table"][0]["step"] = 99.0 * found["table"][0]["floor"]
    assert "none at batch 1: a step takes 99.00 times its floor, not 1.2" in gpu.missed(found)


def test_rollouts_are_measured(bench: Bench, run: Run) -> None:
    words = ("--family", "mini_sudoku", "--prompts", "2", "--n", "2", "--updated", "2")
    printed = run(bench("rollouts"), *words)
    assert printed.startswith("2 prompts x 2 samples of tiny (float32, cpu)\n")
    apart = re.search(r"canvases, largest difference (\S+)", printed)
    assert apart is not None and float(apart[1]) < 1e-4
    assert re.search(r"^gradient +[\d.]+ s   of 2 samples, 2 at a time$", printed, re.M)


def test_throughput(bench: Bench, gpu: ModuleType, run: Run, tmp_path: Path) -> None:
    """Inside blocks each forward commits as many tokens as it may; in a window it may be fewer."""
    bench("throughput", MAX_REPEATED=1)
    out = tmp_path / "figures.json"
    words = ("--layers", "1", "--weights", "bf16", "fp8", "--quotas", "2", "4", "--batches", "1", "2")
    printed = run(gpu, "--throughput", *words, "--out", str(out))
    rows = json.loads(out.read_text())["throughput"]
    caches = list(gpu.CACHES)
    expected = [("none", 1), *((cache, 1) for cache in caches[1:]), *((cache, 2) for cache in caches[1:])]
    assert [(row["weights"], row["cache"], row["batch"]) for row in rows] == [
        (weights, *each) for weights in ("bf16", "fp8") for each in expected
    ]
    assert all(row["forwards"] == {"2": 8, "4": 4} for row in rows if not row["cache"].startswith("window"))
    assert all(bool(row["published"]) == (row["batch"] == 1) for row in rows)
    assert printed.count("bf16") == printed.count("fp8") == len(expected)
    assert "positional prior in windows: 0.02" in printed
    rows = [{"weights": "fp8", "batch": 1, "rates": {4: rate, 8: 1900.0}} for rate in (900.0, 1099.0)]
    assert gpu.missed({"throughput": rows}) == ["fp8, batch 1, 4 a forward: 1099 tokens/s, not 1100"]


def test_steps_by_weights(gpu: ModuleType, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    printed = run(gpu, "--step", "--layers", "1", "--weights", "bf16", "fp8", "--batches", "1", "--out", str(out))
    assert re.search(r"^ +fp8 +1 .* \d+\.\d\d +\d+\.\d\d$", printed, re.MULTILINE)
    found = json.loads(out.read_text())
    found["by weights"][1] |= {"step": 1.0, "refresh": 1.0}
    found["by weights"][0] |= {"step": 1.2, "refresh": 2.0}
    assert gpu.missed(found) == ["step in fp8: 1.20 times faster than in bf16"]


PUBLISHED_CODE = """
import torch

class LLaDAConfig:
    def __init__(self, **settings):
        self.__dict__ |= settings

class LLaDAModel:
    def __init__(self, settings, init_params):
        assert settings.init_device == "meta" and not init_params

class LLaDAModelLM:
    config_class = LLaDAConfig

    def __init__(self, config, model):
        assert config.d_model == 32

    def load_state_dict(self, state, assign):
        assert assign and "model.transformer.blocks.0.ff_proj.weight" in state

    def eval(self):
        return self

def create_model_config_from_pretrained_config(config):
    return LLaDAConfig(**vars(config))

def generate(model, prompt, steps, gen_length, block_length, mask_id):
    print("noise")
    return torch.cat([prompt, torch.ones(1, gen_length, dtype=torch.long)], 1), steps

def generate_dsb_cache(model, prompt, steps, gen_length, block_length, mask_id, prefix_window, max_block_length=-1):
    return generate(model, prompt, steps, gen_length, block_length, mask_id)
"""


def test_peers(bench: Bench, gpu: ModuleType, run: Run, tmp_path: Path) -> None:
    """The published code is a stub here. The clone lacks one function, and the command says whose code it runs."""
    (tmp_path / "llada").mkdir()
    peers = bench("peers")
    with pytest.raises(SystemExit, match="name a clone"):
        peers.published_code(tmp_path)
    (tmp_path / "llada" / "generate.py").write_text(PUBLISHED_CODE)
    out = tmp_path / "figures.json"
    words = ("--layers", "1", "--weights", "bf16", "fp8", "--quotas", "2", "4", "--prior", "0", "--out", str(out))
    printed = run(peers, str(tmp_path), *words)
    assert f"running the code in {tmp_path / 'llada'}, which is not part of uncode" in printed
    assert "noise" not in printed
    lines = json.loads(out.read_text())
    theirs = ["generate, no cache", "generate_dsb_cache, growing", "generate_dsb_cache, constant"]
    mine = [f"ours, {weights}, {cache}" for weights in ("bf16", "fp8") for cache in peers.CACHES]
    assert [line["name"] for line in lines] == theirs + mine
    best = max(line["rates"]["4"] for line in lines[:3])
    assert lines[3]["speedups"]["4"] == pytest.approx(lines[3]["rates"]["4"] / best)


def test_formats_of_weights(bench: Bench) -> None:
    """A network is quantised before its matrices are joined."""
    calls: list[str] = []
    made = SimpleNamespace(quantize=calls.append, fuse=lambda: calls.append("fuse"))
    for weights in ("bf16", "fp8"):
        bench("workload").store_as(made, weights)
    assert calls == ["fuse", "fp8", "fuse"]


class HostClock:
    """A CUDA event without CUDA."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.time = time.perf_counter()

    def elapsed_time(self, later: HostClock) -> float:
        return 1e3 * (later.time - self.time)


def figures(bench: Bench, check: str, printed: str) -> list[str]:
    """The figures that `make verify-gpu` finds in what a benchmark prints."""
    checks = {each.name: each for each in bench("verify_gpu").checks(Path("out"))}
    return re.findall(checks[check].figure, printed, re.MULTILINE)


def test_the_benchmark_of_block_causal_models(bench: Bench, gpu: ModuleType, run: Run, tmp_path: Path) -> None:
    module = bench("block_causal")
    toy = replace(TOY, head_dim=8, qk_norm=True)
    mixture = Mixture(8, 2, 16, 16, (0,), "sigmoid", has_bias=True, groups=4, open_groups=2, normed=True, scale=2.5)
    shapes = {"sdar": toy, "llada2": replace(toy, layers=3, rotary_dim=4, mixture=mixture)}
    models = {
        name: module.Model(replace(module.MODELS[name].dialect, ids={"mask": 98, "eos": 99}), shape, (4, 8), (1, 2))
        for name, shape in shapes.items()
    }
    bench("block_causal", MODELS=models, PROMPT=6, LENGTH=10, PROMPT_IDS=96)
    printed = run(module, "--batches", "2", "--out", str(tmp_path / "out"))
    lines = json.loads((tmp_path / "out").read_text())
    assert len(lines) == 8 and printed.count(module.HEADER) == 2
    assert all((line["experts"] is None) == (line["model"] == "sdar") for line in lines)
    assert all(2 <= line["experts"] <= 8 for line in lines[4:])


def test_the_gpu_checks_are_commands_that_exist(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    module = bench("verify_gpu")
    for check in module.checks(Path("out")):
        for word in check.command:
            assert not word.endswith(".py") or (BENCH.parent / word).is_file()
        if "uncode.cli" in check.command:
            verb, *options = check.command[check.command.index("uncode.cli") + 1 :]
            group: Any = typer.main.get_command(app)
            group.commands[verb].make_context(verb, options)  # an unknown option is an error
    answer = module.Check("python", ("-c", "print('2 apples')"), r"^\d+ apples$").run()
    assert answer == (True, "2 apples")
    half = {"stored": [True, False], "new": [True, True]}
    results = {name: SimpleNamespace(cell=lambda *_, n=name: SimpleNamespace(right=half[n])) for name in half}
    monkeypatch.setattr(module, "results_of", lambda folder: results["new" if folder == Path("out") else "stored"])
    assert module.changed(Path("out")) == 0.5
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["verify_gpu.py", "--only", "suite"])
    with pytest.raises(SystemExit, match="need a CUDA GPU"):
        module.main()


def test_analyze(bench: Bench, run: Run) -> None:
    printed = run(bench("analyze"), "--traces", "16", "--figures", "accuracy", "--check")
    assert printed.startswith("16 traces of 1,024 positions") and "accuracy" in printed


def test_count(bench: Bench, run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text('{"text": "three apples and four pears"}\n' * 20)
    words = ("--text", str(text), "--tokenizer", "tiny")
    count = bench("count")
    alone = {method: run(count, *words, "--method", method).split()[0] for method in count.METHODS}
    assert len(set(alone.values())) == 1
    seconds = {"uncode": 1.0, "batch": 2.0, "threads": 3.0}

    def measured(method: str, text: Path, tokenizer: str, *more: str) -> tuple[int, float, float]:
        return count.METHODS[method](text, tokenizer), seconds[method], 1e6

    printed = run(bench("count", measured=measured), *words, "--check")
    assert "threads" in printed and "3.00 x" in printed and "uncode, one core" in printed


def test_material(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in (("a.py", "print(1)"), ("b.md", "prose"), ("same.md", "prose"), ("c.png", "no text")):
        (tmp_path / name).write_text(text)
    files = sorted(tmp_path.iterdir())
    material = bench("material", _files=lambda folder: iter(files), cache_folder=lambda: tmp_path)
    texts = [json.loads(line)["text"] for line in material.corpus().read_text().splitlines()]
    assert sorted(texts) == ["print(1)", "prose"]
    (tmp_path / "qwen2_5").mkdir()
    (tmp_path / "qwen2_5" / "tokenizer.json").write_text("{}")
    assert material.tokenizer() == tmp_path / "qwen2_5"


def test_cpu(bench: Bench, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours and the published style must write the same tokens."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    cpu = bench("cpu", FAMILIES=ONE_FAMILY, BLOCKS=2)
    assert len(re.findall(r"^(?:none|prefix|dual) +\d", run(cpu), re.MULTILINE)) == 3
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 1)
    cpu.with_a_load(cpu.uncode.load("tiny", device="cpu", dtype="float32"))


def test_draft_steps(bench: Bench, run: Run) -> None:
    """At any size the tokens are the same."""
    drafts = bench("draft_steps", FAMILIES=ONE_FAMILY)
    printed = run(drafts, "--problems", "2", "--counts", "1", "3")
    assert printed.count("average") == 3 and "0 of 6 rows differ from those with 1" in printed


def test_caches(bench: Bench, run: Run) -> None:
    caches = bench("caches", SEEDS={"seed 0": "tiny"}, BLOCK=16)
    words = ["--samplers", "fast_dllm,dcd", "--families", "mini_sudoku", "--problems", "2", "--workers", "1"]
    rows = [line.split(" | ") for line in run(caches, *words, "--device", "cpu").splitlines() if " | " in line]
    assert [row[1] for row in rows[1:]] == ["none", "prefix", "dual", "window", "none", "window"]


def test_weights(bench: Bench, run: Run) -> None:
    weights = bench("weights", FAMILIES=ONE_FAMILY)
    printed = run(weights, "--device", "cpu", "--problems", "2", "--families", SHORT.name)
    rows = [line.split() for line in printed.splitlines()[2:]]
    assert [row[0] for row in rows[:5]] == ["float32", "bfloat16", "fp8", "int8", "int4"]
    assert rows[0][1:5] == ["0.00", "%", "0.0000", "0.00000"] and rows[6][1] == "algebra"
    changes = {row[0]: float(row[4]) for row in rows[:5]}
    assert 0 < changes["int8"] < changes["fp8"] < changes["int4"]


def test_weights_of_a_random_network(bench: Bench, run: Run) -> None:
    weights = bench("weights", SHAPES={"8B": TOY}, MASK=100, END=99, PROMPT=8, LENGTH=12)
    printed = run(weights, "--device", "cpu", "--random", "1")
    assert "random weights on cpu, 1 layers" in printed and len(printed.splitlines()) == 7


def test_engine(bench: Bench, run: Run) -> None:
    engine = bench("engine", LENGTHS=(4, 8), PROMPTS=(3, 5))
    printed = run(engine, "--tiny", "--rows", "2", "--requests", "4", "--caches", "none", "dual")
    assert [line.split()[-1] for line in printed.splitlines()[1:]] == ["0", "0"]  # rows that differ


def test_engine_arrivals(bench: Bench, run: Run) -> None:
    bench("serve_engine", LENGTHS={"cpu": (4, 8)}, PROMPTS=(3, 5))
    engine = bench("engine")
    assert bench("engine_arrivals").MAX_SECONDS > 1
    words = ("--rows", "2", "--requests", "3", "--caches", "dual", "window-never", "--quotas", "2", "--rates", "50")
    printed = run(engine, "--tiny", "--arrivals", *words)
    assert len(re.findall(r"requests at random \d+\.\d: \d+\.\d\d of it$", printed, re.MULTILINE)) == 2
    assert len(re.findall(r"settled token p50 \d+\.\d\d s, p99 \d+\.\d\d s of 3$", printed, re.MULTILINE)) == 2


def test_serve_engine(bench: Bench, run: Run) -> None:
    bench("serve_engine", ROUNDS=1, LENGTHS={"cpu": (4, 8)}, PROMPTS=(3, 5))
    printed = run(bench("serve"), "--engine", "--device", "cpu", "--tokens", "8", "--concurrency", "2")
    assert figures(bench, "engine", printed)


@pytest.mark.slow
def test_serve_load(bench: Bench, run: Run) -> None:
    """Beside it, `make test` runs the parts of bench/serve.py that need no server."""
    pytest.importorskip("httpx")
    load = bench("serve_load", LONG=2, SHORT=4, LENGTHS=(4, 8), MIN_MEAN_BATCH=0.0, MIN_SPEEDUP=0.0)
    bench("serve_load", decode_all_alone=lambda cases: [load.decode_alone(case) for case in cases])
    printed = run(bench("serve"), "--requests", "9", "--concurrency", "3", "--sample", "2")
    assert "0 of 9 requests lost" in printed and "0 of 9 answers differ" in printed


def test_gap_sizes(bench: Bench, run: Run) -> None:
    printed = run(bench("gap_sizes", FAMILIES=ONE_FAMILY, MAX_CHOSEN_TOKENS=2), "--answers", "1")
    assert re.search(r"^with the token after the gap: \d of 1", printed, re.MULTILINE)


def test_loading(bench: Bench, run: Run) -> None:
    shape = replace(TOY, vocab=126464, width=8)  # the special tokens are LLaDA's
    printed = run(bench("loading", SIZES={"1gb": shape}), "--device", "cpu")
    assert "torch.float32 on cpu: at the peak" in printed
    assert len(re.findall(r"^(?:page cache|cold disk): \d+\.\d\d s; load_file", printed, re.MULTILINE)) == 2


def test_constraints(bench: Bench, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    TOKENIZERS["byte-level"]().backend_tokenizer.save(str(file))
    module = bench("constraints", SCHEMAS={"union": bench("constraints").SCHEMAS["union"]})
    printed = run(module, str(file), "--masks", "12")
    for name in ("union", "any JSON", r"\[A-Za-z ,\.\]\{1,80\}", "median", "largest"):
        assert re.search(rf"^{name} +\d+\.\d\d +[1-9]\d* +[1-9]\d*( +\d+\.\d\d){{6}}$", printed, re.MULTILINE)
    assert re.search(r"^peak memory of the process: \d+ MiB$", printed, re.MULTILINE)


def test_steps_with_constraints(bench: Bench, gpu: ModuleType, run: Run) -> None:
    module = bench("constraints", rules=lambda: {"words": {"regex": "[a-z ,.]{2,9}"}})
    printed = run(module, "--device", "cpu", "--layers", "1", "--batches", "1", "2", "--quotas", "2")
    assert len(re.findall(r"^bf16 +[12] +2  (?:no|every|every second) row( +\d+\.\d+){4}$", printed, re.M)) == 5


def test_loop(bench: Bench, run: Run) -> None:
    printed = run(bench("loop", LENGTH=8), "--repeats", "1")
    assert printed.count("times the copied loop") == 2


def test_startup(bench: Bench, run: Run) -> None:
    printed = run(bench("startup", COMMANDS=(["--version"],)), "--times", "1")
    assert "import torch" in printed and "uncode --version" in printed


def test_two_processes_up_to_their_answers(bench: Bench, run: Run) -> None:
    printed = run(bench("startup", SHORT=8), "--answers", "--own")
    assert set(json.loads(printed)) == set(bench("startup").COLUMNS)


@pytest.mark.slow
def test_two_processes(bench: Bench, run: Run) -> None:
    printed = run(bench("startup"), "--answers")
    assert re.search(r"^ +2( +\d+\.\d\d){4}$", printed, re.MULTILINE)


def test_threshold(bench: Bench, run: Run) -> None:
    for texts in ("training", "own"):
        threshold = bench("threshold", FAMILIES=ONE_FAMILY, EXAMPLES=2, MASKS=1)
        printed = run(threshold, "--problems", "2", "--temperatures", "2", "--text", texts)
        assert "temperature 2: at " in printed and "points, p " in printed


def test_two_orders(bench: Bench, run: Run) -> None:
    printed = run(bench("two_orders", FAMILIES=ONE_FAMILY), "--problems", "2")
    assert "of 2 twice" in printed and "two orders minus rate" in printed
