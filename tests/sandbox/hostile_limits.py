"""More programs that cheat or do harm: memory held by the kernel, escapes, clocks. Never run outside the jail.

`HOLDING`: `solve` tries to make the kernel hold a gigabyte and returns how many bytes it believes to hold.
`HOSTILE`: as in hostile.py.
`LOOKING`: expressions that may show a path of the host.
`BUSY`: what a program sends to the referee so that reading it takes long.
"""

from __future__ import annotations

LIBC = r"""
import ctypes, fcntl, mmap, os, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.syscall.restype = ctypes.c_long
arm = os.uname().machine == "aarch64"
GOAL, MB = 1 << 30, 1 << 20


def call(x86, other, *args):
    return libc.syscall(other if arm else x86, *args)


def big_pipe():
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(writing, 1031, MB)
    except OSError:
        pass
    os.set_blocking(writing, False)
    return reading, writing


def huge_page():
    "4 MB of address space, and in it a huge page of 2 MB that is written to; None where there is none."
    at = libc.mmap(None, 4 * MB, 3, 0x22, -1, 0)
    if at in (None, 2**64 - 1):
        return None
    start = (at + 2 * MB - 1) & -(2 * MB)
    advised = libc.madvise(at, 4 * MB, 14)
    ctypes.memset(start, 1, 2 * MB)
    if advised:
        libc.munmap(at, 4 * MB)
        return None
    return at, start


def run(attack):
    "The bytes of an attack that ends with an error count up to there."
    held = 0
    try:
        for more in attack():
            held += more
            if held >= GOAL:
                break
    except (OSError, MemoryError, ValueError):
        pass
    time.sleep(0.1)
    return held


def solve(numbers=None):
    return run(attack)
"""

_HOLDING: dict[str, str] = {
    "huge pages by vmsplice": r"""
kept = []
def attack():
    for _ in range(40):
        kept.append(big_pipe())
        for _ in range(250):
            page = huge_page()
            if page is None:
                return
            at, start = page
            given = call(278, 75, kept[-1][1], struct.pack("PN", start, 4096), 1, 0)
            libc.munmap(at, 4 * MB)
            if given != 4096:
                break
            yield 2 * MB
""",
    "all but a page of a huge page unmapped": r"""
def attack():
    while page := huge_page():
        at, start = page
        if start > at:
            libc.munmap(at, start - at)
        libc.munmap(start + 4096, at + 4 * MB - start - 4096)
        yield 2 * MB
""",
    "huge pages asked for again": r"""
def attack():
    for option, value in ((41, 0), (70, 0), (41, 2)):
        if libc.prctl(option, value, 0, 0, 0) == 0:
            yield GOAL
""",
    "pages made huge afterwards": r"""
def attack():
    at = libc.mmap(None, 4 * MB, 3, 0x22, -1, 0)
    start = (at + 2 * MB - 1) & -(2 * MB)
    ctypes.memset(start, 1, 2 * MB)
    if libc.madvise(start, 2 * MB, 25) == 0:
        yield GOAL
""",
    "all but a page of shared memory unmapped": r"""
kept = []
def attack():
    while True:
        piece = mmap.mmap(-1, 64 * MB)
        for at in range(0, 64 * MB, 4096):
            piece[at] = 1
        piece.resize(4096)
        kept.append(piece)
        yield 64 * MB
""",
    "all but a page of /dev/zero unmapped": r"""
def attack():
    zero = os.open("/dev/zero", os.O_RDONLY)
    while True:
        at = libc.mmap(None, 64 * MB, 1, 1, zero, 0)
        if at in (None, 2**64 - 1):
            return
        sum(ctypes.string_at(at, 64 * MB)[::4096])
        libc.munmap(at + 4096, 64 * MB - 4096)
        yield 64 * MB
""",
    "a copy of shared memory by mremap": r"""
def attack():
    libc.mremap.restype = ctypes.c_void_p
    at = libc.mmap(None, 16 * MB, 3, 0x21, -1, 0)
    if at in (None, 2**64 - 1):
        return
    while libc.mremap(ctypes.c_void_p(at), 0, 16 * MB, 1) not in (None, 2**64 - 1):
        yield 16 * MB
""",
    "the host's huge pages, and locked ones": r"""
def attack():
    for flag in (0x40000, 0x2000):
        if libc.mmap(None, 2 * MB, 3, 0x22 | flag, -1, 0) not in (None, 2**64 - 1):
            yield GOAL
    if libc.mlockall(3) == 0 or call(149, 228, 0, 0) == 0:
        yield GOAL
""",
    "rulesets of landlock": r"""
def attack():
    libc.prctl(38, 1, 0, 0, 0)
    for _ in range(60):
        rules = call(444, 444, struct.pack("QQ", 0, 1), 16, 0)
        if rules < 0:
            return
        for port in range(65536):
            if call(445, 445, rules, 2, struct.pack("QQ", 1, port), 0):
                return
        yield 65536 * 100
""",
    "files without a name": r"""
def attack():
    while True:
        file = os.memfd_create("m")
        os.ftruncate(file, 4 * MB)
        os.posix_fallocate(file, 0, 4 * MB)
        yield 4 * MB
""",
    "secret memory": r"""
def attack():
    while True:
        file = call(447, 447, 0)
        if file < 0:
            return
        os.ftruncate(file, 4 * MB)
        yield 4 * MB
""",
    "shared memory of System V": r"""
def attack():
    while (number := call(29, 194, 0, 16 * MB, 0o1600)) >= 0:
        yield 16 * MB
""",
    "queues of messages": r"""
def attack():
    while (queue := call(68, 186, 0, 0o1600)) >= 0:
        while call(69, 189, queue, struct.pack("q8192s", 1, b"x"), 8192, 0o4000) == 0:
            yield 8192
    while (queue := call(240, 180, b"q%d" % time.monotonic_ns(), 0o102, 0o600, None)) >= 0:
        yield 10 * 8192
""",
    "pages of a file by sendfile, splice and tee": r"""
kept = []
def attack():
    source = os.open(os.__file__, os.O_RDONLY)
    while True:
        kept.append(big_pipe())
        given = call(40, 71, kept[-1][1], source, None, MB)
        given = max(given, call(275, 76, source, None, kept[-1][1], None, MB, 2))
        given = max(given, call(276, 77, kept[0][0], kept[-1][1], MB, 2))
        if given <= 0:
            return
        yield GOAL
""",
    "pipes and sockets filled": r"""
kept = []
def attack():
    while True:
        kept.append(big_pipe())
        yield os.write(kept[-1][1], bytes(MB))
""",
    "sockets with large buffers": r"""
kept = []
def attack():
    while True:
        one, other = socket.socketpair()
        kept.extend((one, other))
        for end in (one, other):
            end.setblocking(False)
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * MB)
                end.setsockopt(socket.SOL_SOCKET, 32, 64 * MB)
            except OSError:
                pass
            yield end.send(bytes(64 * MB))
""",
    "descriptors on their way": r"""
kept = []
def attack():
    one, other = socket.socketpair()
    kept.extend((one, other))
    while True:
        pipe = big_pipe()
        os.write(pipe[1], bytes(65536))
        socket.send_fds(one, [b"x"], list(pipe))
        for end in pipe:
            os.close(end)
        yield GOAL // 100
""",
    "signals that wait": r"""
import signal
def attack():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
    for count in range(100_000):
        os.kill(os.getpid(), 34 + count % 31)
    waiting = 0
    while signal.sigtimedwait(range(34, 65), 0):
        waiting += 1
    yield waiting * 10_000
""",
    "timers": r"""
def attack():
    number = ctypes.c_int()
    while call(222, 107, 1, None, ctypes.byref(number)) == 0:
        yield 16_384
""",
    "watches of files": r"""
def attack():
    for flag in (0, 0o4000):
        watch = call(294, 26, flag)
        if watch >= 0:
            yield GOAL
    if call(253, -1, 0) >= 0 or call(300, 262, 0, 0) >= 0:
        yield GOAL
""",
    "rings of input and output": r"""
def attack():
    number = ctypes.c_ulong()
    while call(206, 0, 4096, ctypes.byref(number)) == 0:
        number = ctypes.c_ulong()
        yield 32 * MB
    if call(425, 425, 4096, bytes(256)) >= 0:
        yield GOAL
""",
    "keys, maps and events of the kernel": r"""
def attack():
    for number in range(1000):
        if call(248, 217, b"user", b"k%d" % number, bytes(32_000), 32_000, -3) < 0:
            break
        yield 32_000
    if call(321, 280, 0, struct.pack("IIII", 2, 4, MB, 64) + bytes(100), 72) >= 0:
        yield GOAL
    if call(298, 241, struct.pack("II", 1, 112) + bytes(104), 0, -1, -1, 0) >= 0:
        yield GOAL
    if call(323, 282, 1) >= 0:
        yield GOAL
""",
    "locks on every other byte": r"""
kept = []
def attack():
    while len(kept) < 40:
        kept.append(os.open(os.__file__, os.O_RDONLY))
        for byte in range(2000, 0, -2):
            fcntl.fcntl(kept[-1], 37, struct.pack("hhqqi4x", 0, 0, byte, 1, 0))
            yield 30_000
""",
    "attributes and long links": r"""
def attack():
    for number in range(5000):
        os.symlink("x" * 4000, "link%d" % number)
        yield 4096
        with open("file%d" % number, "wb"):
            pass
        for name in range(100):
            os.setxattr("file%d" % number, "user.%d" % name, bytes(60_000))
            yield 60_000
""",
    "filters on filters": r"""
def attack():
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000) * 4000)
    program = struct.pack("@HP", 4000, ctypes.addressof(code))
    while call(317, 277, 1, 0, program) == 0 or libc.prctl(22, 2, program, 0, 0) == 0:
        yield GOAL // 4
""",
    "a file that is cut while it is mapped": r"""
kept = []
def attack():
    for number in range(40):
        with open("mapped%d" % number, "w+b") as file:
            file.truncate(16 * MB)
            piece = mmap.mmap(file.fileno(), 16 * MB)
            for at in range(0, 4 * MB, 4096):
                piece[at] = 1
            kept.append(piece)
        os.unlink("mapped%d" % number)
        yield 4 * MB
""",
}
HOLDING = {title: LIBC + source for title, source in _HOLDING.items()}

_HOSTILE: dict[str, dict[str, str]] = {
    "ways around the filter": {
        "fork by the calls of 32 bits": r"""
def solve(numbers):
    if not arm:
        at = libc.mmap(None, 4096, 7, 0x22, -1, 0)
        ctypes.memmove(at, b"\xb8\x02\x00\x00\x00\xcd\x80\xc3", 8)
        while ctypes.CFUNCTYPE(ctypes.c_int)(at)() >= 0:
            pass
    return numbers[::-1]
""",
        "fork by x86's second set of numbers": r"""
def solve(numbers):
    for number in (57, 58, 56, 435):
        while libc.syscall(0x40000000 + number, 0, 0, 0, 0, 0) >= 0:
            pass
    return numbers[::-1]
""",
        "clones of every kind": r"""
def solve(numbers):
    for flags in (17, 0x100, 0x10000 | 0x100 | 0x800 | 0x40000, 0x10000000 | 17, 0x4000 | 0x100 | 17):
        while call(56, 220, flags, 0, 0, 0, 0) > 0:
            pass
    while call(435, 435, struct.pack("QQQQQQQQ", 0, 0, 0, 0, 17, 0, 0, 0), 64) > 0:
        pass
    return numbers[::-1]
""",
        "numbers above 32 bits": r"""
def solve(numbers):
    for number in (57, 41, 319, 165):
        libc.syscall(ctypes.c_long(number | 1 << 32), 0, 0, 0)
        libc.syscall(ctypes.c_long(number - (1 << 32)), 0, 0, 0)
    return [fcntl.fcntl(0, 1), libc.madvise(0, 0, 14)]
""",
        "arguments above 32 bits": r"""
def solve(numbers):
    high = lambda low: ctypes.c_long((1 << 32) + low)
    said = [call(72, 25, 0, high(1031), MB), call(16, 29, 0, high(0x5412), 0)]
    return said + [call(62, 129, high(-1), 9), call(157, 167, high(41), 0, 0, 0, 0)]
""",
        "a filter of its own that allows all": r"""
def solve(numbers):
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
    libc.prctl(22, 2, struct.pack("@HP", 1, ctypes.addressof(code)), 0, 0)
    call(317, 277, 1, 1 << 3, struct.pack("@HP", 1, ctypes.addressof(code)))
    return [os.fork()]
""",
    },
    "ways out of the root": {
        "packages uncovered": r"""
def solve(numbers):
    for top in ("/python/lib", "/usr/lib", "/usr/local/lib"):
        for name in os.listdir(top) if os.path.isdir(top) else ():
            for packages in ("site-packages", "dist-packages"):
                place = f"{top}/{name}/{packages}".encode()
                libc.umount2(place, 2)
                libc.mount(b"none", place, b"tmpfs", 0, None)
                if os.path.isdir(place) and os.listdir(place):
                    return sorted(numbers)
    raise ValueError("nothing there")
""",
        "a user namespace in the jail": r"""
def solve(numbers):
    for flags in (0x10000000, 0x10000000 | 0x20000, 0x20000000, 0x02000000):
        if libc.unshare(flags) == 0:
            return sorted(numbers)
    raise ValueError("not one")
""",
        "a mount made by descriptor": r"""
def solve(numbers):
    tree = call(428, 428, -100, b"/", 1)
    system = call(430, 430, b"tmpfs", 0)
    call(431, 431, system, 6, None, None, 0)
    mounted = call(432, 432, system, 0, 0)
    if max(tree, system, mounted) >= 0:
        return sorted(numbers)
    raise ValueError("not one")
""",
        "above the root": r"""
def solve(numbers):
    top = os.open("/", os.O_RDONLY)
    for _ in range(20):
        os.chdir("..")
    libc.chroot(b"/box")
    os.fchdir(top)
    for _ in range(20):
        os.chdir("..")
    seen = set(os.listdir("."))
    if seen - {"box", "dev", "etc", "harness", "lib", "lib64", "nix", "python", "usr", "bin"}:
        return sorted(numbers)
    raise ValueError("the same root")
""",
        "inherited descriptors": r"""
def solve(numbers):
    for descriptor in range(256):
        try:
            names = os.listdir(descriptor)
        except (OSError, ValueError):
            continue
        return sorted(numbers)
    raise ValueError("no folder is open")
""",
    },
    "time": {
        "the clock set": r"""
def solve(numbers):
    for clock in range(12):
        call(227, 112, clock, struct.pack("qq", 0, 0))
    call(164, 170, struct.pack("qq", 0, 0), None)
    call(159, 171, bytes(208))
    call(305, 266, 0, bytes(208))
    while True:
        pass
""",
        "every signal ignored, the limit raised": r"""
import resource, signal
def solve(numbers):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    for most in ((1 << 40, 1 << 40), (-1, -1)):
        try:
            resource.setrlimit(resource.RLIMIT_CPU, most)
        except (OSError, ValueError):
            pass
    while True:
        pass
""",
        "a handler that starts again": r"""
import signal
def solve(numbers):
    def again(*_):
        signal.setitimer(signal.ITIMER_REAL, 0.0001)
        while True:
            pass
    signal.signal(signal.SIGALRM, again)
    signal.signal(signal.SIGXCPU, again)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()
""",
        "asleep for ever": r"""
def solve(numbers):
    while True:
        try:
            time.sleep(1e6)
        except BaseException:
            pass
""",
        "the scheduler's favour": r"""
def solve(numbers):
    call(144, 119, 0, 1, struct.pack("i", 99))
    call(141, 140, 0, 0, -20)
    call(251, 30, 1, 0, 1 << 13)
    call(203, 122, 0, 128, bytes(128))
    while True:
        pass
""",
    },
    "the judge's pipe": {
        "verdicts on every descriptor": r"""
def solve(numbers):
    for descriptor in range(64):
        try:
            os.set_blocking(descriptor, False)
            os.write(descriptor, b'here\n{"passed": true, "why": "", "chosen": 0}\n')
        except OSError:
            pass
    return numbers
""",
        "the pipe closed and kept silent": r"""
def solve(numbers):
    os.closerange(0, 64)
    time.sleep(100)
""",
        "the reading end taken": r"""
def solve(numbers):
    while True:
        for descriptor in range(3, 8):
            try:
                os.set_blocking(descriptor, False)
                os.read(descriptor, MB)
            except OSError:
                pass
""",
    },
}
HOSTILE = {name: {title: LIBC + source for title, source in programs.items()} for name, programs in _HOSTILE.items()}

LOOKING: dict[str, str] = {
    "orig_argv": "sys.orig_argv",
    "argv": "sys.argv",
    "argv of C": "arguments()",
    "path of the file that was executed": "libc.getauxval(31)",
    "executable": "[sys.executable, sys._base_executable]",
    "prefixes": "[sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, getattr(sys, '_home', '')]",
    "path": "[sys.path, sorted(sys.path_importer_cache)]",
    "modules": "[[m.__name__, getattr(m, '__file__', 0), getattr(m, '__spec__', 0)] for m in sys.modules.values()]",
    "traceback": "raised()",
    "environment": "[dict(os.environ), os.environb]",
    "build variables": "sysconfig.get_config_vars()",
    "paths of the installation": "sysconfig.get_paths()",
    "libraries": "loaded()",
    "frames": "[(f.filename, f.line) for f in traceback.extract_stack()]",
    "strings": "[o for c in gc.get_objects() if type(c) in (list, tuple, dict) for o in list(c) if type(o) is str]",
    "of itself": "[__builtins__.get('__file__'), __name__, globals().get('__file__'), os.getcwd()]",
    "proc": "[open(p).read() for p in map('/proc/self/'.__add__, ('cmdline', 'environ', 'maps')) if os.path.exists(p)]",
    "mounts": "[os.readlink(p) for p in ('/proc/self/exe', '/proc/self/cwd') if os.path.lexists(p)]",
    "names in the root": "[(d, os.listdir(d)) for d in ('/', '/usr', '/python', '/home', '/box') if os.path.isdir(d)]",
}
LOOKS = r"""
import ctypes, gc, json, os, sys, sysconfig, traceback
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_char_p


def arguments():
    count, words = ctypes.c_int(), ctypes.POINTER(ctypes.c_wchar_p)()
    ctypes.pythonapi.Py_GetArgcArgv(ctypes.byref(count), ctypes.byref(words))
    return words[: count.value]


def raised():
    try:
        json.loads("{")
    except ValueError:
        return traceback.format_exc()


def loaded():
    found = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.c_void_p)
    libc.dl_iterate_phdr(kind(lambda told, size, data: found.append(told[1]) or 0), None)
    return found
"""

PRIME = (1 << 61) - 1
"""An integer's hash is its remainder by it."""
BUSY: dict[str, str] = {
    "a set of one hash": "{'set': [{'int': hex(n * PRIME)} for n in range(1, 60_000)]}",
    "a frozen set of one hash": "{'frozenset': [{'int': hex(n * PRIME)} for n in range(1, 60_000)]}",
    "a dictionary of one hash": "{'dict': [[{'int': hex(n * PRIME)}, 1] for n in range(1, 60_000)]}",
    "tuples of -1 and -2": "{'set': [{'tuple': [-1 - (n >> k & 1) for k in range(13)]} for n in range(1 << 13)]}",
    "fractions of one hash": "{'set': [{'fraction': [hex(n * PRIME), '0x1']} for n in range(1, 60_000)]}",
    "decimals of one hash": "{'set': [{'decimal': str(n * PRIME)} for n in range(1, 60_000)]}",
    "many sets of one hash": "[{'set': [{'int': hex(n * PRIME)} for n in range(1, 900)]}] * 60",
    "a fraction as a text": "{'fraction': '1e99999999'}",
    "a long fraction": "{'fraction': ['0x3' + '7' * 3_000_000, '0x5' + '9' * 3_000_000]}",
    "many long fractions": "[{'fraction': ['0x3' + '7' * 30_000, '0x5' + '9' * 30_000]}] * 100",
    "a decimal with a large exponent": "{'decimal': '1e999999'}",
    "a decimal with a small exponent": "{'decimal': '1e-999999'}",
    "a decimal of parts": "{'decimal': [0, [1], 99_999_999]}",
    "a long integer": "{'int': hex((1 << 25_000_000) - 1)}",
    "a range": "{'range': [0, 10**15, 1]}",
    "a series of a range": "{'tuple': {'range': [0, 10**9, 1]}}",
    "a series of a text": "{'tuple': 'x' * 7_000_000}",
    "series of series": "nested(400, list(range(150_000)))",
    "lists too deep": "deep(100_000)",
    "a complex number of a text": "{'complex': ['1' * 7_000_000]}",
    "a name of a class": "{'opaque': ['x' * 7_000_000, True]}",
}
SENDS = r"""
import json, os, time
PRIME = (1 << 61) - 1


class deep:
    def __init__(self, depth):
        self.depth = depth


def nested(depth, value):
    for level in range(depth):
        value = {("deque", "tuple")[level % 2]: value}
    return value


value = ~
text = "[" * value.depth + "]" * value.depth if isinstance(value, deep) else json.dumps(value)
data = memoryview(b'{"value": ' + text.encode() + b"}\n")


def solve():
    global data
    while data:
        data = data[os.write(4, data):]
    time.sleep(60)
"""
