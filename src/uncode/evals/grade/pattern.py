"""Regular expressions that are compiled at their first use.

Compiling all patterns of the graders takes 0.2 s. Listing the tasks needs none of them.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """Stands for a compiled pattern. A method is looked up once and kept, so later calls cost nothing extra."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression, self._flags = expression, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` that waits until the pattern is used."""
    return cast(re.Pattern[str], _Pattern(expression, flags))
