"""Where the bare interpreter begins: which role, and whether it has to build its own walls first."""

from __future__ import annotations

import json
import sys

from . import candidate, referee, script
from .confine import die_with_parent
from .enter import enter

ROLES = {"candidate": candidate.main, "referee": referee.main, "script": script.main}


def main() -> None:
    """`argv`: the folder of this package (read before), the role, the settings as JSON."""
    role, settings = sys.argv[2], json.loads(sys.argv[3])
    del sys.argv[1:]
    sys.path[:] = [folder for folder in sys.path if folder != settings["harness"]]
    die_with_parent()
    if settings["enter"]:
        enter(settings)
    ROLES[role](settings)
