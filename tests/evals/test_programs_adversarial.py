"""What a program can try against its jail and its judge beyond hostile.py, and right answers in odd clothes."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import uncode
from uncode import UncodeError
from uncode.evals.grade.code import Reading, readings, run_tests
from uncode.evals.grade.find import everything
from uncode.evals.tasks.humaneval import HumanEval, HumanEvalProblem
from uncode.evals.tasks.mbpp import Mbpp, MbppProblem
from uncode.sandbox import Limits, Sandbox, Suite
from uncode.sandbox.jail import Bare, Bubblewrap, Jail, Namespaces

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="the walls are Linux's")

SMALL = Limits(wall=3.0, cpu=2, memory=512 << 20, disk=8 << 20)
ONE = Suite(("solve",), ("assert solve() == 1",))
HONEST = "def solve():\n    return 1"


def kinds(*which: type[Jail]) -> list[Any]:
    return [
        pytest.param(kind, id=kind.name, marks=pytest.mark.skipif(not kind().works(), reason=f"no {kind.name} here"))
        for kind in which
    ]


WALLED = kinds(Bubblewrap, Namespaces)
EVERY = kinds(Bubblewrap, Namespaces, Bare)
BARE = kinds(Bare)
BEST = kinds(Bubblewrap)


LIGHT = f"""
import sys, types
package = types.ModuleType("uncode")  # without what the package itself imports, which takes seconds
package.__path__ = [{str(Path(uncode.__file__).parent)!r}]
sys.modules["uncode"] = package
"""


def box(kind: type[Jail], limits: Limits = SMALL) -> Sandbox:
    return Sandbox(limits, kind())


def says_itself(line: str) -> str:
    """A program that writes its own line to the referee when it is loaded, then an honest function."""
    return f"import os\ndata = {line.encode()!r} + b'\\n'\nwhile data:\n    data = data[os.write(4, data):]\n{HONEST}"


def answers_itself(line: str) -> str:
    """A program whose function writes its own line to the referee."""
    return textwrap.dedent(f"""
        import os, time
        data = {line.encode()!r} + b"\\n"
        def solve(*args):
            global data
            while data:
                data = data[os.write(4, data):]
            time.sleep(60)
    """)


# --- Outliving the run, and reaching out of the jail


def alive(name: str) -> list[int]:
    """Processes of that name that are no zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                comm, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if comm == name and rest.split()[0] != "Z":
                found.append(int(entry.name))
    return found


def mark(number: int) -> str:
    return f"adv{os.getpid() % 100000}-{number}"


FORGETS = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.prctl(1, 0, 0, 0, 0)  # no signal when the parent dies
libc.prctl(15, b"{name}", 0, 0, 0)
def solve():
    time.sleep(30)
"""


@pytest.mark.parametrize("kind", EVERY)
def test_a_program_that_forgets_its_parent_ends_with_its_run(kind: type[Jail]) -> None:
    name = mark(1)
    assert not box(kind, Limits(wall=0.7, cpu=2)).judge(ONE, FORGETS.format(name=name)).passed
    time.sleep(0.3)
    left = alive(name)
    for process in left:
        os.kill(process, 9)
    assert left == []


@pytest.mark.parametrize("kind", EVERY)
def test_a_program_that_forgets_its_parent_ends_with_a_host_that_is_killed(kind: type[Jail], tmp_path: Path) -> None:
    name = mark(2)
    code = f"""{LIGHT}
from uncode.sandbox import Limits, Sandbox, Suite
from uncode.sandbox.jail import {kind.__name__}
Sandbox(Limits(), {kind.__name__}()).judge(Suite(("solve",), ("solve()",)), {FORGETS.format(name=name)!r})
"""
    host = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)})
    until = time.monotonic() + 20
    while not alive(name) and time.monotonic() < until and host.poll() is None:
        time.sleep(0.1)
    begun = bool(alive(name))
    host.kill()
    host.wait()
    time.sleep(0.5)
    left = alive(name)
    for process in left:
        os.kill(process, 9)
    assert begun
    assert left == []


@pytest.mark.parametrize("device", ["/dev/null", "/dev/urandom"])
@pytest.mark.parametrize("kind", WALLED)
def test_the_devices_of_the_host_cannot_be_changed(kind: type[Jail], device: str) -> None:
    """The mode asked for is the one it has: nothing is broken where the wall has a hole."""
    before = os.stat(device)
    program = f"""
import os
def solve():
    for change in (lambda: os.chmod({device!r}, {before.st_mode & 0o7777}), lambda: os.utime({device!r})):
        try:
            change()
        except OSError:
            continue
        return 0
    with open({device!r}, "rb") as file:
        file.read(1)
    if {kind.own_files}:
        with open("/dev/null", "wb") as file:
            file.write(b"x")
    return 1
"""
    verdict = box(kind).judge(ONE, program)
    assert verdict.passed, verdict.why
    assert os.stat(device).st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("kind", WALLED)
def test_files_without_contents_are_counted_too(kind: type[Jail]) -> None:
    """An empty file takes a kilobyte of the kernel's memory and nothing of the disk's size."""
    program = """
import os
def solve():
    for number in range(60_000):
        try:
            os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
        except OSError:
            return 1
    return number
"""
    verdict = box(kind).judge(ONE, program)
    assert verdict.passed, verdict.why


@pytest.mark.parametrize("kind", WALLED)
def test_the_name_of_the_host_is_not_told(kind: type[Jail]) -> None:
    suite = Suite(("solve",), (f"assert solve() != {socket.gethostname()!r}",))
    assert box(kind).judge(suite, "import os\ndef solve():\n    return os.uname().nodename").passed


def test_namespaces_work_where_something_is_mounted_below_the_libraries() -> None:
    """As it is in containers that are lent a graphics card."""
    if os.getuid() != 0 or not Namespaces().works():
        pytest.skip("needs root and namespaces")
    folder = next(
        (p for p in ("/usr/lib/modules", "/usr/lib/tmpfiles.d", "/usr/lib/systemd") if os.path.isdir(p)), None
    )
    if folder is None:
        pytest.skip("there is no folder to mount on")
    asked = f"{LIGHT}\nfrom uncode.sandbox.jail import Namespaces; print(Namespaces().fault())"
    script = f'mount --make-rprivate / && mount -t tmpfs none {folder} && exec "$0" "$@"'
    command = ["unshare", "-m", "sh", "-c", script, sys.executable, "-c", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()[-100:]}")
    assert done.stdout.strip().endswith("None"), done.stdout[-300:]


# --- Without walls: what is promised there is kept


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "30"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("kind", BARE)
def test_bare_sends_no_signal_by_way_of_a_descriptors_owner(kind: type[Jail], sleeper: subprocess.Popen[bytes]) -> None:
    program = f"""
import fcntl, os
def solve():
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, {sleeper.pid})
    fcntl.fcntl(reading, 10, 9)  # F_SETSIG, SIGKILL
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(writing, b"x")
    return 1
"""
    box(kind).judge(ONE, program)
    time.sleep(0.1)
    assert sleeper.poll() is None


@pytest.mark.parametrize("kind", BARE)
def test_bare_reaches_no_socket_by_way_of_a_pair(kind: type[Jail]) -> None:
    path = f"/tmp/adv-{os.getpid()}.socket"  # a socket's path has to be short
    program = f"""
import socket
def solve():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", {path!r})
    return 1
"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(path)
        server.setblocking(False)
        try:
            box(kind).judge(ONE, program)
            with pytest.raises(BlockingIOError):
                server.recv(10)
        finally:
            os.unlink(path)


@pytest.mark.parametrize("kind", BARE)
def test_bare_leaves_shared_memory_of_others_alone(kind: type[Jail]) -> None:
    libc = ctypes.CDLL(None)
    number = libc.shmget(0, 4096, 0o1600)
    if number < 0:
        pytest.skip("no shared memory here")
    try:
        box(kind).judge(ONE, f"import ctypes\ndef solve():\n    return ctypes.CDLL(None).shmctl({number}, 0, None)")
        assert libc.shmctl(number, 2, ctypes.create_string_buffer(256)) == 0
    finally:
        libc.shmctl(number, 0, None)


@pytest.mark.parametrize("kind", BARE)
@pytest.mark.parametrize("call", ["setxattrat", "file_setattr"])
def test_bare_changes_no_file_by_calls_of_newer_kernels(kind: type[Jail], call: str, tmp_path: Path) -> None:
    file = tmp_path / "canary"
    file.write_text("x")
    packed, rest = {
        "setxattrat": (
            "struct.pack('QII', ctypes.addressof(value), 2, 0)",
            "463, -100, path, 0, b'user.adv', told, 16",
        ),
        "file_setattr": ("struct.pack('QIIII', 0x80, 0, 0, 0, 0)", "469, -100, path, told, 24, 0"),
    }[call]
    program = f"""
import ctypes, struct
def solve():
    path, value = {str(file).encode()!r}, ctypes.create_string_buffer(b"hi")
    told = ctypes.create_string_buffer({packed})
    return 0 if ctypes.CDLL(None).syscall({rest}) == 0 else 1
"""
    verdict = box(kind).judge(ONE, program)
    assert verdict.passed, verdict.why
    assert os.listxattr(file) == []


# --- The judge


@pytest.mark.parametrize("number", ["99", "-7", "true"])
@pytest.mark.parametrize("kind", BEST)
def test_a_program_that_says_which_reading_it_is_ends_no_evaluation(kind: type[Jail], number: str) -> None:
    source = says_itself(f'{{"loaded": {number}}}')
    grade = run_tests(box(kind), ONE, [Reading(source, everything(source))])
    assert not grade.correct
    assert grade.span == (0, len(source))


@pytest.mark.parametrize("kind", BEST)
def test_the_reason_is_short_whatever_the_program_says(kind: type[Jail]) -> None:
    long = "b'@' * 3_000_000"
    program = says_itself('{"raised": ["~", ""]}').replace("~", f"' + {long} + b'")
    verdict = box(kind).judge(ONE, program)
    assert not verdict.passed
    assert len(verdict.why) < 2000


@pytest.mark.parametrize("test", ["assert all(map(solve, [1, 2]))"])
@pytest.mark.parametrize("kind", BEST)
def test_a_call_that_fails_ends_no_loop_of_the_tests(kind: type[Jail], test: str) -> None:
    suite = Suite(("solve",), (test,))
    assert not box(kind).judge(suite, "def solve(x):\n    raise StopIteration").passed


@pytest.mark.parametrize("kind", BEST)
def test_an_answer_that_is_handed_back_makes_no_fault_of_the_tests(kind: type[Jail]) -> None:
    suite = Suite(("solve",), ("assert solve(solve(1)) == 1",))
    program = answers_itself("@").replace("b'@'", "b'{\"value\": [' + b'1,' * 300_000 + b'1]}'")
    assert not box(kind, Limits(wall=1.5, cpu=2)).judge(suite, program).passed


class Dead(Jail):
    """A jail that does not start, without a word: out of memory, out of processes."""

    name = "dead"

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        return ["/bin/sh", "-c", "exit 1"]


class Loud(Dead):
    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        return ["/bin/sh", "-c", "echo 'bwrap: Creating new namespace failed' >&2; exit 1"]


@pytest.mark.parametrize("kind", [Dead, Loud])
@pytest.mark.parametrize("role", ["candidate", "referee"])
def test_a_jail_that_does_not_start_is_nobodys_wrong_answer(kind: type[Jail], role: str) -> None:
    class Half(Bubblewrap if Bubblewrap().works() else Namespaces):  # type: ignore[misc]
        def command(self, asked: str, settings: Mapping[str, Any]) -> list[str]:
            return kind().walls({}) if asked == role else super().command(asked, settings)

    with pytest.raises(UncodeError):
        Sandbox(SMALL, Half()).judge(ONE, HONEST)


@pytest.mark.parametrize("kind", [Dead, Loud])
def test_a_jail_that_does_not_start_makes_no_script_silent(kind: type[Jail]) -> None:
    with pytest.raises(UncodeError):
        Sandbox(SMALL, kind()).silent("raise ValueError")


@pytest.mark.parametrize("kind", BEST)
def test_bubblewrap_that_disappears_is_said_so(kind: type[Jail], monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = box(kind)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UncodeError, match=r"bwrap|bubblewrap"):
        sandbox.judge(ONE, HONEST)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("import os\nos.close(2)\nwhile True:\n    pass", id="closes standard error and goes on"),
        pytest.param("import sys\nsys.stderr.write('\\n')", id="writes blanks, which the released rule counts"),
    ],
)
@pytest.mark.parametrize("kind", EVERY)
def test_a_script_that_does_not_end_in_silence(kind: type[Jail], script: str) -> None:
    assert not box(kind).silent(script, wall=0.8).passed


@pytest.mark.parametrize("kind", BEST)
def test_a_host_with_many_open_files_judges_alike(kind: type[Jail]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("not that many files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048 if soft < 2048 else soft, hard))
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        verdict = box(kind).judge(ONE, HONEST)
        silence = box(kind).silent("pass")
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert verdict.passed, verdict.why
    assert silence.passed, silence.why


@pytest.mark.parametrize("kind", BEST)
def test_threads_leave_no_descriptor_child_or_folder(
    kind: type[Jail], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox = box(kind)
    before = len(os.listdir("/proc/self/fd"))
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: sandbox.judge(ONE, f"def solve():\n    return {n % 2}").passed, range(16)))
    assert got == [n % 2 == 1 for n in range(16)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert list(tmp_path.iterdir()) == []


def test_the_wall_is_far_enough_from_the_processors_limit() -> None:
    """Eight judgements at once on two processors: each gets a quarter of one."""
    assert Limits().wall >= 4 * Limits().cpu


@pytest.mark.parametrize("text", ["```\n" + "a" * 6000 + "\n```", "<answer>" * 2500, "<answer>" + "<" * 20_000])
def test_a_long_word_is_read_in_time(text: str) -> None:
    begin = time.process_time()
    readings(text, "solve")
    assert time.process_time() - begin < 0.2


# --- Ordinary Python in the jail

ORDINARY = {
    "files": "import tempfile\nwith tempfile.TemporaryFile('w+') as f:\n    f.write('a')\nopen('x', 'w').close()",
    "chance": "import random, secrets, uuid\nrandom.random(), secrets.token_bytes(3), uuid.uuid4()",
    "asyncio": "import asyncio\nasync def go():\n    await asyncio.sleep(0.001)\nasyncio.run(go())",
    "threads": "import threading\ntry:\n    threading.Thread(target=print).start()\nexcept RuntimeError:\n    pass",
    "modules": "import re, json, functools, collections, heapq, decimal, time, typing, statistics",
    "deep": "def deep(n):\n    return n and 1 + deep(n - 1)\nassert deep(900) == 900",
    "output": "import sys\nprint('x' * 200_000)\nsys.stderr.write('x' * 200_000)",
    "no input": "try:\n    input()\nexcept EOFError:\n    pass\nelse:\n    raise ValueError",
    "dataclass": "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: 'list[int]'\nassert P([1]).x",
}


@pytest.mark.parametrize("kind", WALLED)
def test_ordinary_python_works(kind: type[Jail]) -> None:
    source = "\n".join(
        f"    def part_{n}():\n{textwrap.indent(s, ' ' * 8)}\n    part_{n}()" for n, s in enumerate(ORDINARY.values())
    )
    if not kind.own_files:
        source = source.replace("import tempfile", "return")
    verdict = box(kind).judge(ONE, f"def solve():\n{source}\n    return 1")
    assert verdict.passed, verdict.why


# --- Answers: right ones in odd clothes, wrong ones in good clothes

STUB = '''from typing import List


def add_all(numbers: List[int]) -> int:
    """ Sum of the numbers.
    >>> add_all([1, 2])
    3
    """
'''
CHECK = """def check(candidate):
    assert candidate([]) == 0
    assert candidate([1, 2]) == 3
    assert candidate([5, -7, 1]) == -1
"""
LOOP = "total = 0\nfor n in numbers:\n    total += n\nreturn total"
FUNCTION = "def add_all(numbers):\n    return sum(numbers)\n"


def fence(code: str, tag: str = "python", marks: str = "```") -> str:
    return f"{marks}{tag}\n{code}\n{marks}"


def moved(code: str, blanks: str) -> str:
    return textwrap.indent(code, blanks)


WHOLE = {
    "__future__ in a fence": fence(f"from __future__ import annotations\n\n{FUNCTION}"),
    "__future__ without a fence": f"from __future__ import annotations\n\n{FUNCTION}",
    "a main block": fence(f"{FUNCTION}\nif __name__ == '__main__':\n    raise SystemExit(add_all([1]))"),
    "a usage example and an assert": fence(f"{FUNCTION}\nprint(add_all([1, 2]))\nassert add_all([1, 2]) == 3"),
    "a class and a decorator": fence(
        "import functools\n\nclass Adder:\n    def __init__(self, n):\n        self.n = n\n\n\n"
        "@functools.lru_cache\ndef zero():\n    return 0\n\n\ndef add_all(numbers):\n"
        "    return sum(Adder(numbers).n, zero())"
    ),
    "nested fences": f"````markdown\n```python\n{FUNCTION}```\n````",
    "a fence in the docstring": fence(
        'def add_all(numbers):\n    """Sum.\n\n    ```\n    add_all([1])\n    ```\n    """\n    return sum(numbers)'
    ),
    "tildes": fence(FUNCTION, marks="~~~"),
    "a fence in a list": f"1. The code:\n\n   ```python\n{moved(FUNCTION, '   ')}   ```\n\n2. Done.",
    "Python": fence(FUNCTION, "Python"),
    "python3 and CRLF": fence(FUNCTION, "python3").replace("\n", "\r\n"),
    "a fence with a title": fence(FUNCTION, 'python title="a.py"'),
    "tabs": fence(FUNCTION.replace("    ", "\t")),
    "a byte order mark in the fence": fence(f"\ufeff{FUNCTION}"),
    "a byte order mark without a fence": f"\ufeff{FUNCTION}",
    "blanks that do not break": fence(FUNCTION.replace("    ", "\u00a0" * 4)),
    "a lone surrogate": fence(f"# \ud800\n{FUNCTION}"),
    "two fences, helper last": fence("def add_all(numbers):\n    return go(numbers)")
    + "\n"
    + fence("def go(n):\n    return sum(n)"),
    "a fence that imports the answer": fence(FUNCTION)
    + "\nUse:\n"
    + fence("from my_module import add_all\n\nprint(add_all([1]))"),
    "a fence that asks for input": fence(FUNCTION)
    + "\nUse:\n"
    + fence("numbers = [int(n) for n in input().split()]\nprint(add_all(numbers))"),
    "a wrong attempt first": fence("def add_all(numbers):\n    return 0") + "\nFixed:\n" + fence(FUNCTION),
    "prose around": f"Here is the function:\n\n{FUNCTION}\nThis function sums the numbers.",
    "cut off in a fence": f"```python\n{FUNCTION}\nprint(add_all([1,",
    "cut off without a fence": f"{FUNCTION}\nprint(add_all([1,",
    "an annotated name": fence("add_all: object = lambda numbers: sum(numbers)"),
    "two megabytes": fence(f"text = '{'a' * 2_000_000}'\n{FUNCTION}"),
}
FOR_BOTH = (
    "__future__ in a fence",
    "a byte order mark in the fence",
    "a byte order mark without a fence",
    "python3 and CRLF",
    "blanks that do not break",
    "a fence that imports the answer",
    "a fence that asks for input",
    "an annotated name",
)
BODIES = {
    "four blanks": "    return sum(numbers)\n",
    "two blanks": "  total = 0\n  for n in numbers:\n    total += n\n  return total",
    "three blanks": "   total = 0\n   for n in numbers:\n      total += n\n   return total",
    "a tab": "\ttotal = 0\n\tfor n in numbers:\n\t\ttotal += n\n\treturn total",
    "the margin": "total = 0\nfor n in numbers:\n    total += n\nreturn total",
    "all but the first": "total = 0\n    for n in numbers:\n        total += n\n    return total",
    "all but the first, a loop": "for n in []:\n        pass\n    return sum(numbers)",
    "prose after it": "    return sum(numbers)\n\nThis returns the sum.",
    "the next function cut off": "    return sum(numbers)\n\n\ndef test_add_all(",
    "prose around it": f"Here is the body:\n\n{moved(LOOP, '    ')}\n\nIt works.",
    "prose directly around it": "The body is:\n    return sum(numbers)\nThis sums all numbers.",
    "prose around the margin": f"Here is the body:\n\n{LOOP}\n\nThis works.",
    "two paragraphs of prose": "We add.\n\nThe code follows.\n\n\treturn sum(numbers)\n\nDone.\n\nGood luck.",
    "blank lines in it": "Sure:\n\n    total = sum(numbers)\n\n    # a comment\n\n    return total\n\nDone.",
    "a fence, then its use": f"{fence('return sum(numbers)')}\nUse it so:\n{fence('print(add_all([1, 2]))')}",
    "prose with a sample": "Write:\n\n    return sum(numbers)\n\nFor example:\n\n    >>> add_all([1, 2])\n    3\n",
    "a comment first": "The body:\n\n    # add them\n    return sum(numbers)\n\nThat is all.",
}
WRONG = {
    "the stub alone": fence(STUB),
    "nothing": "",
    "pass": fence("def add_all(numbers):\n    pass"),
    "prose": "I cannot do this.",
    "cut off in the function": "def add_all(numbers):\n    total = 0\n    for n in nu",
    "a right one, then a wrong one": fence(FUNCTION) + "\nRather:\n" + fence("def add_all(numbers):\n    return 0"),
    "a wrong body in prose": "Here is the body:\n\n    return 0\n\nIt works.",
    "a wrong loop in prose": "The body is:\n    for n in numbers:\n        return n\nThis sums all numbers.",
    "prose in an indented block": "The idea:\n\n    sum all numbers and return them\n\nDone.",
    "inside another function": fence("def other():\n    def add_all(numbers):\n        return sum(numbers)"),
}


@pytest.fixture(scope="module")
def humaneval() -> HumanEval:
    task = HumanEval()
    task.__dict__["sandbox"] = Sandbox(SMALL)
    return task


@pytest.fixture(scope="module")
def mbpp() -> Mbpp:
    task = Mbpp()
    task.__dict__["sandbox"] = Sandbox(SMALL)
    return task


STUBBED = HumanEvalProblem("HumanEval/0", STUB, "add_all", CHECK, "    return sum(numbers)\n")
DESCRIBED = MbppProblem(
    "mbpp/1",
    1,
    "Sum.",
    "add_all",
    "add_all(numbers)",
    (),
    ("assert add_all([]) == 0", "assert add_all([1, 2]) == 3"),
    "",
)


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in (WHOLE | BODIES).items()])
def test_humaneval_takes_a_right_answer(humaneval: HumanEval, text: str) -> None:
    grade = humaneval.grade_ours(STUBBED, text)
    assert grade.correct, grade.why


@pytest.mark.parametrize("name", FOR_BOTH)
def test_mbpp_takes_a_right_answer(mbpp: Mbpp, name: str) -> None:
    grade = mbpp.grade_ours(DESCRIBED, WHOLE[name])
    assert grade.correct, grade.why


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in WRONG.items()])
def test_a_wrong_answer_is_wrong(humaneval: HumanEval, mbpp: Mbpp, text: str) -> None:
    assert not humaneval.grade_ours(STUBBED, text).correct
    assert not mbpp.grade_ours(DESCRIBED, text).correct
