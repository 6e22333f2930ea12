"""A sandbox for generated programs: the candidate in a jail, the tests outside it, plain data between them."""

from __future__ import annotations

from .jail import JAILS, Jail, NoJail, find_jail
from .sandbox import Limits, Sandbox, Suite, Verdict

__all__ = ["JAILS", "Jail", "Limits", "NoJail", "Sandbox", "Suite", "Verdict", "find_jail"]
