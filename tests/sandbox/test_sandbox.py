"""The sandbox: hostile programs are judged wrong and leave nothing behind; honest ones are judged by their answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sandbox import hostile, hostile_limits
from uncode import UncodeError
from uncode.sandbox import JAILS, Limits, NoJail, Sandbox, Suite, find_jail
from uncode.sandbox import jail as jails
from uncode.sandbox.jail import Bare, Bubblewrap, Namespaces

SORTING = Suite(
    ("solve",),
    (
        "assert solve([3, 1, 2]) == [1, 2, 3]",
        "assert solve([]) == []",
        "assert solve([5, 5, 1]) == [1, 5, 5]",
        "assert solve(list(range(50, 0, -1))) == list(range(1, 51))",
    ),
)
SMALL = Limits(wall=2.0, cpu=1, memory=512 << 20, disk=8 << 20)
WALLED = [
    pytest.param(kind, id=kind.name, marks=pytest.mark.skipif(not kind().works(), reason=f"no {kind.name} here"))
    for kind in (Bubblewrap, Namespaces)
]
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
HOSTILE = hostile.HOSTILE | hostile_limits.HOSTILE
PROGRAMS = [(name, title, source) for name, programs in HOSTILE.items() for title, source in programs.items()]


def outsiders() -> set[int]:
    """Processes in another process namespace than ours."""
    own, found = os.readlink("/proc/self/ns/pid"), set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "ns" / "pid") != own:
                    found.add(int(entry.name))
            except OSError:  # it has ended, or is not ours to look at
                continue
    return found


def survivors(known: set[int], seconds: float = 20.0) -> set[int]:
    """Strangers that do not end by themselves; others on this machine may have their own jails, which do."""
    left, until = outsiders() - known, time.monotonic() + seconds
    while left and time.monotonic() < until:
        time.sleep(0.2)
        left &= outsiders()
    return left


def looks(*folders: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    files = [file for folder in folders for file in folder.rglob("*") if "__pycache__" not in file.parts]
    return {str(file): (file.lstat().st_size, file.lstat().st_mtime_ns) for file in files if not file.is_dir()}


@pytest.mark.parametrize("kind", WALLED)
def test_hostile_programs_are_judged_wrong_and_leave_nothing(
    kind: type[jails.Jail], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third program, so that each kind has its turn, and every eighth in the other jail.

    All programs in both under `make verify`.
    """
    assert len(PROGRAMS) >= 60 and all(len(programs) >= 3 for programs in HOSTILE.values())
    folders = tmp_path_factory.mktemp("folders")
    monkeypatch.setattr("tempfile.tempdir", str(folders))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SECRET", "of the harness")
    (tmp_path / "precious").write_text("of value")
    watched = (tmp_path, Path(jails.__file__).parent, Path(__file__).parent, Path(os.__file__).parent / "json")
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    before, strangers = looks(*watched), outsiders()
    programs = PROGRAMS if SOAK else PROGRAMS[::5] if kind is Namespaces else PROGRAMS[1::8]
    sandbox, start = Sandbox(SMALL, kind()), time.monotonic()
    assert sandbox.judge(SORTING, "def solve(x):\n    return sorted(x)").passed
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda program: sandbox.judge(SORTING, _with_function(program[2])), programs))
    took = time.monotonic() - start
    fooled = [(p[0], p[1], v.why) for p, v in zip(programs, verdicts, strict=True) if v.passed]
    assert not fooled
    assert took < 120
    assert victim.poll() is None
    victim.kill()
    victim.wait()
    assert looks(*watched) == before
    assert not survivors(strangers)
    assert not list(folders.iterdir())


def _with_function(source: str) -> str:
    """A program that defines no `solve` would not be run at all: it gets one, so that its attack happens."""
    return source if "def solve" in source or "solve =" in source else f"def solve(x):\n    return None\n\n{source}"


@pytest.mark.parametrize("kind", [*WALLED, pytest.param(Bare, id="bare")])
def test_honest_programs_are_judged_by_their_answers(kind: type[jails.Jail]) -> None:
    sandbox = Sandbox(Limits(wall=10), kind())
    right = sandbox.judge(SORTING, "def solve(x):\n    print('working')\n    return sorted(x)")
    assert right.passed and right.program == 0 and right.why == "all tests passed"
    wrong = sandbox.judge(SORTING, "def solve(x):\n    return x")
    assert not wrong.passed and wrong.why.endswith("== [1, 2, 3], and it returned [3, 1, 2]")
    raised = sandbox.judge(SORTING, "def solve(x):\n    return 1 / 0")
    assert not raised.passed and raised.why.endswith(", and it raised ZeroDivisionError: division by zero")
    method = sandbox.judge(SORTING, "class Solution:\n    def solve(self, x):\n        return sorted(x)")
    assert method.why == "the program does not load: NameError: no function named solve"
    second = sandbox.judge(SORTING, "def solve(x: return", "def other(): pass", "def solve(x):\n    return sorted(x)")
    assert second.passed and second.program == 2


PLAIN = {
    "None": "None",
    "bools and numbers": "[True, 1, -2.5, 10**40, 1e300, 3 + 4j]",
    "infinity": "float('inf')",
    "text": "'ä\\n\\x00\\ud800'",
    "bytes": "b'\\x00\\xff'",
    "containers": "{(1, 2): [{3}, frozenset({4})], 'k': range(3)}",
    "fractions": "[__import__('fractions').Fraction(1, 3), __import__('decimal').Decimal('0.1')]",
    "deque": "__import__('collections').deque([1, 2])",
}


@pytest.mark.parametrize("expression", PLAIN.values(), ids=PLAIN.keys())
def test_plain_data_crosses_unchanged(expression: str, walled: Sandbox) -> None:
    tests = (f"assert f() == {expression}", f"assert type(f()) is type({expression})", f"assert g({expression})")
    program = f"def f():\n    return {expression}\ndef g(x):\n    return x == {expression}"
    assert walled.judge(Suite(("f", "g"), tests), program).passed


def test_what_is_no_data_crosses_as_true_or_false(walled: Sandbox) -> None:
    tests = ("assert f('a')", "assert not f('b')", "assert f('a') != f('a')", "assert list(g()) == [0, 1, 2]")
    program = "import re\ndef f(x):\n    return re.match('a', x)\ndef g():\n    return (n for n in range(3))"
    assert walled.judge(Suite(("f", "g"), tests), program).passed
    counts = "from collections import Counter\ndef f():\n    return Counter('aa')"
    assert walled.judge(Suite(("f",), ("assert f() == {'a': 2}",)), counts).passed


def test_pythons_own_exceptions_reach_the_tests(walled: Sandbox) -> None:
    test = "try:\n    f()\n    assert False\nexcept ValueError as error:\n    assert 'no' in str(error)"
    assert walled.judge(Suite(("f",), (test,)), "def f():\n    raise ValueError('no')").passed
    assert not walled.judge(
        Suite(("f",), (test,)), "class Mine(ValueError): pass\ndef f():\n    raise Mine('no')"
    ).passed


def test_the_jail_holds_nothing_of_the_hosts(walled: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the harness")
    program = f"""
import os
def seen():
    return [os.path.exists(p) for p in ({str(tmp_path)!r}, {__file__!r}, "/proc/self", "/sys", "/etc/passwd")]
def environment():
    return dict(os.environ)
def here():
    return os.listdir("."), os.getcwd()
def writes():
    open("note", "w").write("x" * 1000)
    refused = 0
    for path in ("/note", "/harness/note", os.__file__):
        try:
            open(path, "a")
        except OSError:
            refused += 1
    return os.listdir("."), refused
"""
    tests = (
        "assert not any(seen())",
        "assert not set(environment()) - {'LC_CTYPE', 'PWD'}",
        "assert here() == ([], '/box')",
        "assert writes() == (['note'], 3)",
    )
    verdict = walled.judge(Suite(("seen", "environment", "here", "writes"), tests), program)
    assert verdict.passed, verdict.why


def test_without_walls_the_filter_still_refuses(tmp_path: Path) -> None:
    """Where there are no namespaces: no writing, no processes, no sockets, no signals."""
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    server = socket.create_server(("127.0.0.1", 0))
    program = f"""
import os, socket, subprocess, threading
def refused():
    os.chdir({str(tmp_path)!r})
    acts = [
        lambda: open("new", "w"), lambda: os.remove("old"), lambda: os.mkdir("folder"), lambda: os.rename("old", "b"),
        lambda: os.symlink("a", "link"), lambda: os.chmod("old", 0o777), lambda: os.truncate("old", 0),
        lambda: os.fork(), lambda: subprocess.run(["true"]), lambda: threading.Thread(target=print).start(),
        lambda: os.kill({victim.pid}, 9), lambda: os.killpg(0, 9), lambda: os.memfd_create("m"),
        lambda: socket.create_connection(("127.0.0.1", {server.getsockname()[1]})),
    ]
    done = []
    for number, act in enumerate(acts):
        try:
            act()
            done.append(number)
        except (OSError, RuntimeError):
            pass
    return done
"""
    (tmp_path / "old").write_text("old")
    verdict = Sandbox(Limits(wall=10), Bare()).judge(
        Suite(("refused",), ("assert refused() == [], refused()",)), program
    )
    assert verdict.passed, verdict.why
    assert victim.poll() is None and [p.name for p in tmp_path.iterdir()] == ["old"]
    victim.kill()
    victim.wait()
    server.close()


def test_where_nothing_works_the_notice_is_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Bubblewrap, Namespaces):
        monkeypatch.setattr(kind, "works", lambda self: False)
    find_jail.cache_clear()
    with pytest.warns(NoJail, match="WITHOUT WALLS.*Install bubblewrap"):
        assert find_jail().name == "bare"
    with pytest.raises(UncodeError, match="'namespaces' does not work here"):
        find_jail("namespaces")
    with pytest.raises(UncodeError, match="did you mean 'bubblewrap'"):
        find_jail("bublewrap")
    find_jail.cache_clear()
    assert list(JAILS) == ["namespaces", "bubblewrap", "bare"]


@pytest.mark.parametrize("may_write", [True, False])
def test_the_guests_modules_are_compiled_once(may_write: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(jails.GUEST, tmp_path / "guest", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jails, "GUEST", copy)
    monkeypatch.setattr(sys, "dont_write_bytecode", not may_write)
    find_jail.__wrapped__("bare")
    compiled = {path.name.split(".")[0] for path in (copy / "__pycache__").glob("*.pyc")}
    assert compiled == ({path.stem for path in copy.glob("*.py")} if may_write else set())


def test_faults_of_the_tests_or_the_jail_are_nobodys_wrong_answer(
    walled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UncodeError, match="the set-up of the tests fails: ModuleNotFoundError"):
        walled.judge(Suite(("f",), ("assert f()",), setup="import nowhere_to_be_found"), "def f():\n    return 1")
    for suite in (Suite(("f",), ("assert g(1)",)), Suite(("f",), ("import nowhere",)), Suite(("f",), ("assert f(",))):
        with pytest.raises(UncodeError, match=r"a test (fails by itself|is no Python)"):
            walled.judge(suite, "def f():\n    return 1")
    assert not walled.judge(Suite(("f",), ("assert f()",)), "def f():\n    return undefined").passed
    for limits in ({"wall": 0}, {"cpu": 1.5}, {"memory": "1GB"}, {"memory": 1000}, {"files": True}):
        with pytest.raises(UncodeError, match=f"the limit '{next(iter(limits))}'"):
            Limits(**limits)
    for names, tests in (("f", ("assert f()",)), (("f",), "assert f()"), (("f",), ())):
        with pytest.raises(UncodeError, match="must be a list of at least one string"):
            Suite(names, tests)
    with pytest.raises(UncodeError, match="no program to judge"):
        walled.judge(SORTING)
    real = type(walled.jail).command
    broken = lambda self, role, settings: ["true"] if role == "candidate" else real(self, role, settings)  # noqa: E731
    monkeypatch.setattr(type(walled.jail), "command", broken)
    with pytest.raises(UncodeError, match="the jail did not start"):
        walled.judge(SORTING, "def solve(x):\n    return sorted(x)")


def test_the_released_rule_hears_standard_error_alone(walled: Sandbox) -> None:
    assert walled.silent("import sys; sys.exit(3)").passed
    assert walled.silent("print('anything')").passed
    assert not walled.silent("import sys; print('a word', file=sys.stderr)").passed
    assert "SyntaxError" in walled.silent("def f(").why
    assert walled.silent("while True: pass", wall=0.5).why == "the script took too long"
    start = time.monotonic()
    assert not walled.silent("import sys\nwhile True: sys.stderr.write('x' * 100000)").passed
    assert time.monotonic() - start < 5


def test_programs_run_at_low_priority(walled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not a script, whose limit is a time on the clock. Where there is no `nice`, nothing is lowered."""
    reads = "import os\ndef solve():\n    return os.getpriority(os.PRIO_PROCESS, 0)"
    normal = os.getpriority(os.PRIO_PROCESS, 0)
    low = Suite(("solve",), (f"assert solve() == {min(normal + 10, 19)}, solve()",))
    verdict = walled.judge(low, reads)
    assert verdict.passed, verdict.why
    same = f"assert solve() == {normal}, solve()"
    assert walled.silent(f"{reads}\n{same}").passed
    monkeypatch.setattr("uncode.sandbox.sandbox._LOW_PRIORITY", [])
    assert walled.judge(Suite(("solve",), (same,)), reads).passed


@pytest.fixture
def walled() -> Sandbox:
    return Sandbox(Limits(wall=10))


def test_a_program_that_runs_out_of_time_is_told_so(walled: Sandbox) -> None:
    verdict = Sandbox(Limits(cpu=1, wall=20)).judge(SORTING, "def solve(x):\n    while True:\n        pass")
    assert not verdict.passed and "TimeLimit" in verdict.why and verdict.seconds < 10


def test_programs_are_compiled_as_python_compiles_them(walled: Sandbox) -> None:
    """Annotations are evaluated: a name that was never imported is an error, as it is outside."""
    program = "def solve(x: List[int]):\n    return sorted(x)"
    assert "NameError: name 'List' is not defined" in walled.judge(SORTING, program).why
    assert "List" in walled.silent(program).why
    assert walled.silent("exit(0)").passed and walled.silent("quit()").passed
