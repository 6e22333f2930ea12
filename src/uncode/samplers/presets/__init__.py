"""Every published sampler as one expression, and our own."""

from typing import NoReturn

from ...core.errors import NoSuchName
from ..preset import PRESETS as _ALL
from .classic import *  # noqa: F403
from .newer import *  # noqa: F403
from .own import *  # noqa: F403

PRESETS = {name: entry.make for name, entry in _ALL.items() if not name.startswith("legacy.")}
"""Every preset by its name, in the order of the files."""
__all__ = sorted(PRESETS)  # noqa: PLE0605  # a list of all, whatever a checker can see


def __dir__() -> list[str]:
    """The presets alone, for completion."""
    return __all__


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName("uncode.presets", name, __all__)
