"""Reading a TOML file that a user wrote."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a TOML file. Errors call the file a `what`, such as "corpus spec"."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UncodeError(f"the {what} '{path}' cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UncodeError(f"the {what} '{path}' is not a TOML file: it is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise UncodeError(f"the {what} '{path}' is not a TOML file: {error}.") from None
