"""A sandbox for generated programs. The candidate runs in a jail, the tests outside; they exchange plain data."""

from __future__ import annotations

from .jail import JAILS, Jail, NoJail, find_jail
from .sandbox import Judgement, Limits, Sandbox, Suite

__all__ = ["JAILS", "Jail", "Judgement", "Limits", "NoJail", "Sandbox", "Suite", "find_jail"]
