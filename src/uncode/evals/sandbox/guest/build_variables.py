"""Shown in place of the interpreter's `_sysconfigdata`, which lists the host's paths it was built with."""

from __future__ import annotations

build_time_vars: dict[str, str] = {}
