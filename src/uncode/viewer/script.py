"""The page's script: the modules of `js/` as one text.

A page that is opened from a file cannot load modules, and users have no build step. So the modules are joined when the
page is written: imports and the word `export` are removed, and each module stands after those that it imports.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function)\b)", re.M)


@cache
def script(entry: str = "main") -> str:
    """The module `entry` with all that it imports, in one function scope."""
    order: dict[str, str] = {}
    _add(entry, order)
    return '(() => {\n"use strict";\n' + "\n".join(order.values()) + "})();\n"


def _add(name: str, order: dict[str, str]) -> None:
    """Add a module after those that it imports."""
    source = (files(__package__) / "js" / f"{name}.js").read_text(encoding="utf-8")
    for imported in _IMPORT.findall(source):
        if imported not in order:
            _add(imported, order)
    order[name] = _EXPORT.sub("", _IMPORT.sub("", source)).strip() + "\n"
