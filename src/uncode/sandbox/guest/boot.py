"""The entry point of the bare interpreter inside the jail. It starts the process's role.

Only the module of that role is imported: a process per program makes the start most of the time of a verdict.
"""

from __future__ import annotations

import json
import os
import sys

from .parent import die_with_parent

ROLES = ("candidate", "referee", "script")


def main() -> None:
    """`argv`: the folder of this package (already used), the role, the settings as JSON."""
    harness, role, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    assert role in ROLES
    module = __import__(f"{__package__}.{role}", fromlist=["main"])
    del sys.argv[1:]
    os.environ.clear()
    sys.path[:] = [folder for folder in sys.path if folder != harness]
    die_with_parent()
    module.main(settings)
