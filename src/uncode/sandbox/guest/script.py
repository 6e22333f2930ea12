"""Runs a whole script in the jail, for the released rule, which looks at standard error only."""

from __future__ import annotations

import builtins
import os
import sys
import types

from .confine import confine
from .pipe import silence

TYPE_CHECKING = False  # importing typing would take a tenth of the start of a guest
if TYPE_CHECKING:
    from typing import Any


def main(settings: dict[str, Any]) -> None:
    with open(0, "rb", closefd=False) as stream:
        source = stream.read().decode()
    started = os.dup(1)
    silence(0, 1)
    confine(settings["limits"], settings["own_files"])
    os.write(started, b"here\n")  # errors before this message are the jail's
    os.close(started)
    module = types.ModuleType("__main__")
    module.__dict__["__file__"] = "script.py"
    module.__dict__["__builtins__"] = builtins
    builtins.__dict__.update(exit=sys.exit, quit=sys.exit)  # normally set by `site`, which is not loaded here
    sys.modules["__main__"] = module
    exec(compile(source.removeprefix("\ufeff"), "<script>", "exec", dont_inherit=True), module.__dict__)
