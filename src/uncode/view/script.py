"""A page of one file: its script, which is modules as one text.

A page that is opened from a file cannot load modules, and users have no build step. So the modules are joined when the
page is written: imports and the word `export` are removed, and each module stands after those that it imports.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent
LOCKED = "default-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
"""The content security policy of a page, before it allows its own script and style."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w./-]+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function)\b)", re.M)


@cache
def script(entry: Path = FOLDER / "js" / "main.js") -> str:
    """The module `entry` with all that it imports, in one function scope."""
    order: dict[Path, str] = {}
    _add(entry.resolve(), order)
    return '(() => {\n"use strict";\n' + "\n".join(order.values()) + "})();\n"


def _add(path: Path, order: dict[Path, str]) -> None:
    """Add a module after those that it imports."""
    source = path.read_text(encoding="utf-8")
    for imported in _IMPORT.findall(source):
        module = (path.parent / imported).resolve()
        if module not in order:
            _add(module, order)
    order[path] = _EXPORT.sub("", _IMPORT.sub("", source)).strip() + "\n"


def hash_of(text: str) -> str:
    """A script or style as the content security policy names it."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
