"""The entry point of the bare interpreter inside the jail. It starts the process's role."""

from __future__ import annotations

import json
import os
import sys

from . import candidate, referee, script
from .confine import die_with_parent

ROLES = {"candidate": candidate.main, "referee": referee.main, "script": script.main}


def main() -> None:
    """`argv`: the folder of this package (already used), the role, the settings as JSON."""
    harness, role, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    del sys.argv[1:]
    os.environ.clear()
    sys.path[:] = [folder for folder in sys.path if folder != harness]
    die_with_parent()
    ROLES[role](settings)
