"""System calls a candidate is refused, by what they are for; numbers as (x86_64, aarch64), None where there is none.

From the kernel's headers (asm/unistd_64.h and asm-generic/unistd.h).
"""

from __future__ import annotations

import os

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""For each machine the kernel's word for it, and the column of the tables below."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
Numbers = dict[str, tuple[int | None, int | None]]

PROCESSES: Numbers = {
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "setns": (308, 268),
    "unshare": (272, 97),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
}
"""Other processes, and threads: a candidate is one of each."""

KERNEL: Numbers = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
}
"""Parts of the kernel a function has no business with."""

NETWORK: Numbers = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
}

MEMORY: Numbers = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "semget": (64, 190),
    "semctl": (66, 191),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mlock": (149, 228),
    "mlock2": (325, 284),
    "mlockall": (151, 230),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "set_mempolicy": (238, 237),
}
"""Memory that the limit on address space does not count, or that others feel."""

SIGNALS: Numbers = {"kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "prlimit64": (302, 261)}
"""Allowed to oneself alone: the first argument is the process."""

WRITING: Numbers = {
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
    "mknod": (133, None),
    "mknodat": (259, 33),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "openat2": (437, 437),
}
"""Changes to files: refused as well where there is no file system of one's own."""

ANY_BIT, EQUAL = "any bit", "equal"

Rule = tuple[tuple[int | None, int | None], int, str, tuple[int, ...]]
"""Numbers of a call, which argument is looked at, how, and with which values it is refused."""

BY_ARGUMENT: dict[str, Rule] = {
    "prctl": ((157, 167), 0, EQUAL, (1,)),  # PR_SET_PDEATHSIG: to live on when the parent has died
    "fcntl": ((72, 25), 1, EQUAL, (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals by way of a file
    "ioctl": ((16, 29), 1, EQUAL, (0x8901, 0x8902, 0x5412, 0x40086602, 0x401C5820)),  # the same; flags of files
    "socketpair": ((53, 199), 1, ANY_BIT, (0xE,)),  # all but streams: datagrams may be sent to others
}

OPENING: dict[str, Rule] = {
    "open": ((2, None), 1, ANY_BIT, (WRITES,)),
    "openat": ((257, 56), 2, ANY_BIT, (WRITES,)),
}
"""Calls that open a file; refused for writing where there is no file system of one's own."""

NEWEST = 462
"""Whatever the kernel has learnt since is not there."""
