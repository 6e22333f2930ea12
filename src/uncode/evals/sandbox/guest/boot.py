"""Where the bare interpreter begins, inside the walls: which role it has."""

from __future__ import annotations

import json
import os
import sys

from . import candidate, referee, script
from .confine import die_with_parent

ROLES = {"candidate": candidate.main, "referee": referee.main, "script": script.main}


def main() -> None:
    """`argv`: the folder of this package (read before), the role, the settings as JSON."""
    harness, role, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    del sys.argv[1:]
    os.environ.clear()
    sys.path[:] = [folder for folder in sys.path if folder != harness]
    die_with_parent()
    ROLES[role](settings)
