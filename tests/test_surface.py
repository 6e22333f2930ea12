"""The public surface is frozen in surface.txt: every public name with its signature.

`python -m tests.test_surface` writes the file. A change needs a line in the changelog.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import uncode
import uncode.testing
from uncode.samplers.catalog import catalog

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("surface.txt")
CHANGED = (
    "the public surface is not that of tests/surface.txt. If this is meant, add a line to CHANGELOG.md under "
    "Unreleased, then write the file with `python -m tests.test_surface`.\n\n"
)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def surface() -> list[str]:
    """A line for every public name, in order."""
    lines = [
        line
        for name in uncode.__all__
        if name != "__version__"
        for line in described(f"uncode.{name}", getattr(uncode, name))
    ]
    lines += [
        line
        for name in uncode.testing.__all__
        for line in described(f"uncode.testing.{name}", getattr(uncode.testing, name))
    ]
    for name, entry in catalog().items():
        where = "uncode" if name.startswith("legacy.") else "uncode.presets"
        lines.append(f"{where}.{name}({', '.join(f'{option.name}={option.default!r}' for option in entry.options)})")
    return lines


def described(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"{path}: module"
        if not path.endswith(("presets", "legacy")):  # listed by the catalog
            for name in sorted(getattr(value, "__all__", vars(value))):
                found = getattr(value, name)
                if not name.startswith("_") and getattr(found, "__module__", None) == value.__name__:
                    yield from described(f"{path}.{name}", found)
    elif inspect.isclass(value):
        yield f"{path}: class({', '.join(base.__name__ for base in value.__bases__)})"
        yield from members(path, value)
    else:
        yield path + signature(value)


def members(path: str, value: type) -> Iterator[str]:
    """The constructor, fields, methods and properties that a class defines itself."""
    if is_dataclass(value):
        for field in fields(value):
            if not field.name.startswith("_") and field.name in inspect.get_annotations(value):
                default = "" if field.default is MISSING else f" = {field.default!r}"
                yield f"{path}.{field.name}{default}"
    for name, member in sorted(vars(value).items()):
        if name == "__init__" and not is_dataclass(value):
            yield f"{path}{signature(member)}"
        elif not name.startswith("_"):
            plain = getattr(member, "__func__", member)
            if isinstance(member, property) or type(member).__name__ == "cached_property":
                yield f"{path}.{name}: property"
            elif inspect.isfunction(plain):
                yield f"{path}.{name}{signature(plain)}"


def signature(function: Any) -> str:
    """Names, kinds, annotations and defaults of the parameters."""
    return ADDRESS.sub("", str(inspect.signature(function))).replace("'", "")


def test_the_public_surface_is_frozen() -> None:
    frozen = FILE.read_text().splitlines()
    changes = list(difflib.unified_diff(frozen, surface(), "surface.txt", "now", lineterm="", n=0))
    assert not changes, CHANGED + "\n".join(changes)


def test_a_changed_signature_is_seen() -> None:
    def one(a: int, *, b: str = "x") -> None: ...
    def two(a: int, *, b: str = "y") -> None: ...

    assert list(described("f", one)) == ["f(a: int, *, b: str = x) -> None"] != list(described("f", two))
    assert any(line.startswith("uncode.generate(denoiser: Denoiser, prompt:") for line in surface())
    assert "uncode.presets.confidence(" in "\n".join(surface())


if __name__ == "__main__":
    FILE.write_text("\n".join(surface()) + "\n")
