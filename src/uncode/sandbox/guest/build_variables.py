"""Replaces the interpreter's `_sysconfigdata` inside the jail, which lists build paths of the host."""

from __future__ import annotations

build_time_vars: dict[str, str] = {}
