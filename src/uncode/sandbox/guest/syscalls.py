"""The system calls that a candidate may make, by purpose. All others are refused.

Numbers are (x86_64, aarch64), or None if there is none, from the kernel's headers (asm/unistd_64.h and
asm-generic/unistd.h). This is an allow list, because many calls hold memory that the limit on address space does not
count (`vmsplice`, `memfd_create`, `landlock_create_ruleset`), and every kernel release adds some.
"""

from __future__ import annotations

import os

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""For each architecture its audit constant, and its column in the tables below."""

Numbers = dict[str, tuple[int | None, int | None]]

FILES: Numbers = {
    "read": (0, 63),
    "pread64": (17, 67),
    "readv": (19, 65),
    "preadv": (295, 69),
    "preadv2": (327, 286),
    "write": (1, 64),
    "pwrite64": (18, 68),
    "writev": (20, 66),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "lseek": (8, 62),
    "close": (3, 57),
    "close_range": (436, 436),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "open": (2, None),
    "openat": (257, 56),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "stat": (4, None),
    "lstat": (6, None),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "fgetxattr": (193, 10),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "flistxattr": (196, 13),
    "umask": (95, 166),
}
"""Reading, and writing to open files."""

WAITING: Numbers = {
    "pipe": (22, None),
    "pipe2": (293, 59),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "shutdown": (48, 210),
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    "getsockopt": (55, 209),
}
"""Pipes, events, and the socket pair of asyncio. `sendmsg` is missing, because it can pass descriptors."""

MEMORY: Numbers = {
    "brk": (12, 214),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "msync": (26, 227),
}

TIME: Numbers = {
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "alarm": (37, None),
    "pause": (34, None),
    "getrusage": (98, 165),
}

HANDLERS: Numbers = {
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
}

ITSELF: Numbers = {
    "exit": (60, 93),
    "exit_group": (231, 94),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getpgid": (121, 155),
    "getpgrp": (111, None),
    "getsid": (124, 156),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "getrlimit": (97, 163),
    "getpriority": (140, 141),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrandom": (318, 278),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "getcpu": (309, 168),
    "capget": (125, 90),
    "wait4": (61, 260),
    "waitid": (247, 95),
}
"""Information about the process itself, and its exit. It has no children, but may call wait."""

ALLOWED: Numbers = FILES | WAITING | MEMORY | TIME | HANDLERS | ITSELF

CHANGING: Numbers = {
    "creat": (85, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "lchown": (94, None),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "fallocate": (285, 47),
    "copy_file_range": (326, 285),
    "flock": (73, 32),
}
"""Changes to files, allowed only if the jail has its own file system."""

PRETENDED: Numbers = {
    "fsync": (74, 82),
    "fdatasync": (75, 83),
}
"""These return success without doing anything: the files are discarded, and a flush would slow down the host."""

THREADS: Numbers = {
    "clone": (56, 220),
    "clone3": (435, 435),
}
"""Refused with errors that the C library understands, so that Python reports that it cannot start a thread."""

SET_UP: Numbers = {
    "pivot_root": (155, 41),
    "mount_setattr": (442, 442),
}
"""Refused too. `enter.py` builds the jail with them, and older C libraries have no function for them."""

ANY_BIT, ALL_BITS, NOT_ONE_OF = "any bit", "all bits", "not one of"

Rule = tuple[int, str, tuple[int, ...]]
"""The number of an argument, a test, and the values for which the call is refused."""

SHARED, ANONYMOUS, LOCKED, HUGE = 0x01, 0x20, 0x2000, 0x40000
"""Flags of mmap."""
DESCRIPTORS, LOCKS = (0, 1, 2, 3, 4, 1030, 1032), (5, 6, 7)
"""Allowed fcntl commands: copies of descriptors, their flags, and locks (for sqlite). Not owners, who get signals."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

BY_ARGUMENT: dict[str, tuple[tuple[int | None, int | None], tuple[Rule, ...]]] = {
    # Anonymous shared memory stays whole until its last page is unmapped: a program that unmaps all but one page
    # of each piece holds any amount within a small address space.
    "mmap": ((9, 222), ((3, ANY_BIT, (LOCKED | HUGE,)), (3, ALL_BITS, (SHARED | ANONYMOUS,)))),
    "mremap": ((25, 216), ((3, ANY_BIT, (0xFFFFFFFE,)),)),  # all but MREMAP_MAYMOVE
    # NORMAL, RANDOM, SEQUENTIAL, WILLNEED, DONTNEED, FREE. Not HUGEPAGE: one page of 4 KB keeps 2 MB alive.
    "madvise": ((28, 233), ((2, NOT_ONE_OF, (0, 1, 2, 3, 4, 8)),)),
    "prctl": ((157, 167), ((0, NOT_ONE_OF, (15, 16)),)),  # its own name
    "fcntl": ((72, 25), ((1, NOT_ONE_OF, (*DESCRIPTORS, *LOCKS)),)),
    # Whether it is a terminal and how wide, bytes to be read, waiting or not, inherited or not.
    "ioctl": ((16, 29), ((1, NOT_ONE_OF, (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),)),
    "socketpair": ((53, 199), ((0, NOT_ONE_OF, (1,)), (1, ANY_BIT, (0xE,)))),  # streams; datagrams may go to others
}
"""Calls that are refused by the value of an argument."""

WITHOUT_FILES: dict[str, tuple[tuple[int | None, int | None], tuple[Rule, ...]]] = {
    "open": ((2, None), ((1, ANY_BIT, (WRITES,)),)),
    "openat": ((257, 56), ((2, ANY_BIT, (WRITES,)),)),
    "fcntl": ((72, 25), ((1, NOT_ONE_OF, DESCRIPTORS),)),
    "mmap": ((9, 222), ((3, ANY_BIT, (SHARED | LOCKED | HUGE,)),)),  # /dev/zero, shared, is anonymous memory too
}
"""The rules that differ if the jail has no separate file system."""

TO_ONESELF: Numbers = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "prlimit64": (302, 261),
}
"""Allowed if the first argument is this process."""

NEWEST = 462
"""The newest known call. Later ones return ENOSYS, so that the C library falls back to older ones."""
