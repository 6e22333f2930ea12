"""What rooms above do for core's classes: files, pages and data frames.

Core writes no file and draws no page. The door (`uncode/__init__.py`) registers the functions that do, and a method of
a core class calls one by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_REGISTERED: dict[str, str] = {}


def register(**functions: str) -> None:
    """Register functions as `name="module:function"`. Each is imported when it is first called."""
    _REGISTERED.update(functions)


def from_above(name: str) -> Callable[..., Any]:
    """A registered function."""
    module, function = _REGISTERED[name].split(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
