"""Shared set-up: one thread per worker, so that parallel workers do not fight over the cores."""

import compileall
import importlib
import os
import pkgutil
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may wait for a network; those of the hub bring their own server

import pytest

with suppress(ModuleNotFoundError):  # the tests of a GPU run where nothing but pytest can be added
    from hypothesis import settings

    settings.register_profile("uncode", deadline=None, derandomize=True, max_examples=12)
    settings.register_profile("soak", deadline=None, max_examples=1000)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "uncode"))

HERE = Path(__file__).parent
WHOLE = ("adapters/test_lm_eval.py", "backbones/test_hub.py", "evals/test_regrade.py", "frequency/test_cluster.py")
"""Files whose tests share something that takes long to make: one worker runs all of such a file."""
OF_TRANSFORMERS = ("backbones/test_masked_lm.py", "evals/test_autoregressive.py", "parity/test_models.py")
"""Files whose tests import the models of transformers, which takes seconds: one worker runs all of them."""
LONG = (
    "paper/test_paper.py", "test_docs.py", "backbones/test_triton.py", "sandbox/test_sandbox.py", "evals/test_mini.py",
    "models/test_tiny.py", "view/test_browser.py", "view/test_notebook.py",
)  # fmt: skip
"""Files with tests of many seconds. They begin first, so that at the end no worker waits for the other."""
WATCHED = (
    "core", "constraints", "generation", "rollouts", "samplers",
    "test_arguments.py", "test_numerics.py", "test_reprs.py",
)  # fmt: skip
"""The tests that count for core's coverage. They reach all of it, and a tracer slows the others by a quarter."""


@contextmanager
def untraced() -> Iterator[None]:
    """Not by pytest-cov's `no_cover`, which leaves a tracer running in the workers of xdist."""
    here, later = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.settrace(here)
        threading.settrace(later)  # type: ignore[arg-type]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Coverage sees core being imported; what the tests import besides is imported faster without a tracer."""
    if session.config.pluginmanager.has_plugin("dsession"):
        return (yield)  # the process that only hands out the tests needs no torch
    # OpenMP reads this once, as its library is loaded. It counts for all threads that tests start, and must not stay:
    # uncode and the programs that tests start choose their threads by it. Without it, the first product of matrices
    # in a new thread makes a pool of threads, and a fork of this process waits for them for ever.
    os.environ["OMP_NUM_THREADS"] = "1"
    with untraced():
        import torch
    del os.environ["OMP_NUM_THREADS"]
    torch.set_num_threads(1)
    import uncode.core

    for module in pkgutil.walk_packages(uncode.core.__path__, "uncode.core."):
        if not module.name.endswith("_triton"):
            importlib.import_module(module.name)
    with untraced():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not str(item.path).endswith(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    watched = item.path.relative_to(HERE).parts[0] in WATCHED
    with nullcontext() if watched else untraced():
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """By the names of files: under pytest 9.2 the marks of xdist 3.8's loadgroup do nothing (its issue 1386)."""
    from xdist.scheduler import LoadScopeScheduling

    assert all((HERE / name).is_file() for name in (*WHOLE, *OF_TRANSFORMERS, *LONG))

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "transformers" if file.endswith(OF_TRANSFORMERS) else file if file.endswith(WHOLE) else nodeid

        def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
            """Forgets what is done: it is asked after each test, and would count all tests before."""
            for scope in [scope for scope, tests in workload.items() if all(tests.values())]:
                del workload[scope]
            return int(super()._pending_of(workload))

    return Together(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session", autouse=True)
def _the_guest_is_compiled() -> None:
    """As pip compiles it when it installs: a jail cannot write bytecode, and would compile the guest at each start."""
    from uncode.sandbox.jail import GUEST

    compileall.compile_dir(GUEST, quiet=1)


@pytest.fixture(scope="session", autouse=True)
def _tokenizers_are_probed_once() -> Iterator[None]:
    """`cutter_for` asks a tokenizer about thousands of texts, a second of work, and answers alike each time."""
    from uncode.frequency.counting import count

    found: dict[str, Any] = {}

    def once(backend: Any) -> Any:
        content = backend.to_str()
        if content not in found:
            found[content] = cutter_for(backend)
        return found[content]

    cutter_for = count.cutter_for
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count, "cutter_for", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _models_on_the_cpu() -> Iterator[None]:
    """Tests that name no device mean the CPU, on a machine with a GPU too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uncode.backbones.loading.device.usual_device", lambda: "cpu")
        yield
