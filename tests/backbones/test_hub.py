"""Models by their hub id, from a hub on this machine and in their own processes, as huggingface_hub asks for."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.checkpoints import checkpoint
from tests.hub import Files, Hub, Repo, environment, files_in, serve

PYTHON = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"}
LLADA = "GSAI-ML/LLaDA-8B-Instruct"
TOKEN = "xyz"
QUICK = 15.0
"""Seconds; the retries of huggingface_hub take longer."""
UNASKED: Files = dict.fromkeys(
    ["pytorch_model.bin", "modeling_llada.py", "optimizer.pt", "README.md", "step-9/model.safetensors"], b"?"
)

SCRIPT = """
import json, os, sys, tempfile, time
import uncode

log = tempfile.TemporaryFile()
os.dup2(log.fileno(), 2)
for line in sys.stdin:
    start, said = time.perf_counter(), {}
    try:
        model = uncode.load(**json.loads(line))
        canvas = uncode.Canvas.after_prompt([[1, 2, 3]], length=6, mask_id=model.mask_id)
        trace = uncode.decode(model, canvas, uncode.presets.confidence())
        said = {"about": model.about, "tokens": trace.generated[0].tolist()}
    except Exception as error:
        said = {"kind": type(error).__name__, "error": str(error)}
    sys.stderr.flush()
    log.seek(0)
    said |= {"seconds": time.perf_counter() - start, "stderr": log.read().decode()}
    log.seek(0)
    log.truncate()
    print(json.dumps(said), flush=True)
"""


@dataclass
class Outcome:
    """How it went to load a model and to decode six tokens with it."""

    seconds: float
    stderr: str
    about: dict[str, Any] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=list)
    kind: str = ""
    error: str = ""

    @property
    def chatter(self) -> list[str]:
        """What was printed besides progress bars."""
        return [line for line in self.stderr.splitlines() if line.strip() and "%|" not in line]


class Runner:
    """A Python process that loads a given model."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def load(self, name: str | Path, **options: str) -> Outcome:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"name": str(name), **options}) + "\n")
        self.process.stdin.flush()
        alarm = Timer(60, self.process.kill)
        alarm.start()
        try:
            return Outcome(**json.loads(self.process.stdout.readline()))
        finally:
            alarm.cancel()


@contextmanager
def runner(home: Path, endpoint: str, **more: str) -> Iterator[Runner]:
    command, pipe = [sys.executable, "-c", SCRIPT], subprocess.PIPE
    variables = environment(home, endpoint, **PYTHON, **more)
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=variables) as process:
        yield Runner(process)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        "llada": checkpoint(folder / "llada", "llada", 0),
        "older": checkpoint(folder / "older", "llada", 1),
        "dream": checkpoint(folder / "dream", "dream", 1, shards=3),
    }


@pytest.fixture(scope="module")
def hub(folders: dict[str, Path]) -> Iterator[Hub]:
    llada, older, dream = (files_in(folder) for folder in folders.values())
    llama = {"config.json": json.dumps({"model_type": "llama"}).encode()}
    size = {"d_model": 1 << 16, "n_layers": 1000, "mlp_hidden_size": 1 << 18}
    vast = {"config.json": json.dumps(json.loads(llada["config.json"]) | size).encode()}
    with serve() as made:
        made.repos = {
            LLADA: Repo([llada | UNASKED, older], {"v0": 1, "refs/pr/1": 1}),
            "some/dream": Repo([dream | UNASKED]),
            "some/private": Repo([llada], token=TOKEN),
            "some/secret": Repo([llada], token=TOKEN),
            "some/gated": Repo([llada], gated=True),
            "some/readme": Repo([{"README.md": b"later"}]),
            "some/llama": Repo([llada | llama]),
            "some/vast": Repo([llada | vast]),
            "some/pickle": Repo([{"config.json": llada["config.json"]} | UNASKED]),
            "some/down": Repo([llada], status=503),
            "some/dropped": Repo([llada], cuts=1),
            "some/cut": Repo([llada], cuts=99),
            "some/short": Repo([dream], short=True),
            "some/busy": Repo([llada]),
        }
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def online(hub: Hub, home: Path) -> Iterator[Runner]:
    with runner(home, hub.endpoint) as made:
        yield made


@pytest.fixture(scope="module")
def downloaded(online: Runner) -> dict[str, Outcome]:
    """What is in the cache from here on."""
    requests: dict[str, dict[str, str]] = {LLADA: {}, "some/dream": {}, "some/private": {"token": TOKEN}}
    return {name: online.load(name, **options) for name, options in requests.items()} | {
        "older": online.load(LLADA, revision="v0")
    }


def refused(outcome: Outcome, name: str, message: str) -> None:
    """One sentence about the model and nothing else, soon."""
    assert outcome.kind == "UncodeError", outcome
    assert name in outcome.error and message in outcome.error and outcome.error.endswith(".")
    assert len(outcome.error.splitlines()) == 1
    assert outcome.chatter == [] and outcome.seconds < QUICK


def loaded(outcome: Outcome, like: Outcome) -> None:
    assert outcome.error == "" and outcome.about == like.about and outcome.tokens == like.tokens
    assert outcome.chatter == [] and outcome.seconds < QUICK


def test_a_hub_id_is_the_same_model_as_its_folder(
    hub: Hub, online: Runner, downloaded: dict[str, Outcome], folders: dict[str, Path]
) -> None:
    for name, folder in ((LLADA, "llada"), ("some/dream", "dream"), ("some/private", "llada")):
        found, local = downloaded[name], online.load(folders[folder])
        assert found.about == {"model": name, "revision": hub.repos[name].hashes[0]}, found
        assert local.about == {"model": folder} and len(local.tokens) == 6
        assert found.tokens == local.tokens and found.chatter == []


def test_nothing_but_the_model_is_asked_for(hub: Hub, downloaded: dict[str, Outcome]) -> None:
    """Neither pickles nor code nor what lies in folders, though the hub has them."""
    assert hub.files_asked(LLADA) == {"config.json", "model.safetensors"}
    shards = {f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)}
    assert hub.files_asked("some/dream") == {"config.json", "model.safetensors.index.json", *shards}


def test_a_revision_is_a_branch_a_tag_or_a_commit(
    hub: Hub, online: Runner, downloaded: dict[str, Outcome], folders: dict[str, Path]
) -> None:
    now, before = hub.repos[LLADA].hashes
    assert downloaded["older"].tokens == online.load(folders["older"]).tokens
    for revision, commit in {"main": now, "v0": before, "refs/pr/1": before, before: before}.items():
        like = downloaded[LLADA if commit == now else "older"]
        assert like.about["revision"] == commit
        loaded(online.load(LLADA, revision=revision), like)
    for revision in ("v9", "0" * 40):
        refused(online.load(LLADA, revision=revision), LLADA, f"has no revision '{revision}'")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such", "neither a folder here nor a model you can see on the hub (http://127.0.0.1:"),
        ("no/such", "check the spelling, run `hf auth login` if it is private, or give a local folder"),
        ("no--such/name", "could not be fetched"),
        ("some/gated", "is gated: accept its terms there and run `hf auth login`"),
        ("some/readme", "has no config.json and is no model: give a local folder"),
        ("some/llama", "is a 'llama' model, not a masked diffusion or masked language model: uncode loads"),
        ("some/vast", "GB free: choose a smaller dtype or another device"),
        ("some/pickle", "has no safetensors on the hub, and pickled weights can run code and are never read"),
        ("some/down", "cannot download '"),
        ("some/down", "answers 503, and the local cache is incomplete; give a local folder, or use the built-in model"),
    ],
)
def test_what_the_hub_does_not_have_is_one_sentence(hub: Hub, online: Runner, name: str, message: str) -> None:
    refused(online.load(name), name, message)
    assert hub.files_asked(name) <= {"config.json"}, "no weights are fetched in vain"


def test_a_private_model_needs_a_token(online: Runner, downloaded: dict[str, Outcome]) -> None:
    name = "some/private"
    refused(online.load(name), name, "run `hf auth login` if it is private")
    refused(online.load(name, token="zyx"), name, "refused the token for 'some/private': check it")
    loaded(online.load(name, token=TOKEN), downloaded[name])


def test_the_cache_is_used_while_the_hub_fails(hub: Hub, online: Runner, downloaded: dict[str, Outcome]) -> None:
    """An overloaded hub, and a stranger who answers everything with a page of his own."""
    name = "some/busy"
    first = online.load(name)
    assert first.tokens == downloaded[LLADA].tokens
    for status in (429, 500, 503):
        hub.repos[name].status = status
        loaded(online.load(name), first)
    hub.portal = True
    try:
        loaded(online.load(LLADA), downloaded[LLADA])
        refused(online.load("no/such"), "no/such", "cannot download '")
    finally:
        hub.portal = False


@pytest.mark.slow
def test_the_cache_is_enough_without_a_hub(home: Path, downloaded: dict[str, Outcome]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # but does not listen
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with runner(home, endpoint) as alone, runner(home, endpoint, HF_HUB_OFFLINE="1") as offline:
            without_a_hub(alone, downloaded, f"the hub ({endpoint}) cannot be reached")
            without_a_hub(offline, downloaded, "offline mode is on (HF_HUB_OFFLINE)")


def without_a_hub(run: Runner, downloaded: dict[str, Outcome], why: str) -> None:
    for name in (LLADA, "some/dream", "some/private"):
        loaded(run.load(name), downloaded[name])
    for revision in ("v0", downloaded["older"].about["revision"]):
        loaded(run.load(LLADA, revision=revision), downloaded["older"])
    message = f"{why}, and the local cache is incomplete; give a local folder, or use the built-in model"
    refused(run.load("some/other"), "some/other", message)
    refused(run.load(LLADA, revision="v9"), LLADA, f"at revision 'v9': {message}")


def test_the_command_line_lists_what_is_in_the_cache(hub: Hub, home: Path, downloaded: dict[str, Outcome]) -> None:
    command = [sys.executable, "-m", "uncode.cli", "models", "--json"]
    variables = environment(home, hub.endpoint, **PYTHON)
    shown = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=60, check=True)
    cached = {entry["name"]: entry["cached"] for entry in json.loads(shown.stdout)}
    assert cached.pop(LLADA) == sorted(hub.repos[LLADA].hashes)
    assert cached and not any(cached.values())


@pytest.mark.slow
def test_a_broken_download_is_no_model_and_a_later_one_is(
    hub: Hub, online: Runner, home: Path, downloaded: dict[str, Outcome]
) -> None:
    """A connection that breaks once is taken up again; one that stays broken, or a short file, is an error."""
    with runner(home, hub.endpoint, HF_TOKEN=TOKEN) as later:
        assert online.load("some/dropped").tokens == downloaded[LLADA].tokens
        broken = {"some/cut": downloaded[LLADA], "some/short": downloaded["some/dream"]}
        for name in broken:
            outcome = online.load(name)
            assert outcome.kind == "UncodeError" and outcome.seconds < QUICK
            assert f"'{name}' could not be fetched" in outcome.error and "try again" in outcome.error
            assert len(outcome.error.splitlines()) == 1
            assert not list(home.glob(f"hub/models--{name.replace('/', '--')}/**/*.safetensors"))
            hub.repos[name].status = 503
        assert not list(home.rglob("*.incomplete"))
        shutil.rmtree(home / "hub" / "models--some--cut" / "trees", ignore_errors=True)  # says what is missing
        for name, like in broken.items():
            refused(later.load(name), name, "the local cache is incomplete")
            hub.repos[name] = Repo(hub.repos[name].commits)
            outcome = later.load(name)
            assert outcome.tokens == like.tokens and outcome.about["model"] == name
        assert later.load("some/secret").tokens == downloaded[LLADA].tokens, "the token in HF_TOKEN is sent"
        refused(later.load("some/gated"), "some/gated", "is gated: accept its terms there")
