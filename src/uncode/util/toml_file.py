"""Reading a TOML file that a user wrote, and its tables as records."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ..core.errors import UncodeError, require, suggest
from ..core.pieces.piece import read_value

T = TypeVar("T")


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


def read_record(cls: type[T], data: Mapping[str, Any], where: str, named: str, **read: Any) -> T:
    """A dataclass from a table of the file. Unknown and missing settings are errors.

    Errors call the table `where`, and a setting as `named` does: `{} of sampler 1`. The values in `read` have been read
    already. A field that stands in no file has the metadata `{"computed": True}`.
    """
    settings = [one for one in fields(cls) if not one.metadata.get("computed")]  # type: ignore[arg-type]
    known, hints = [one.name for one in settings], get_type_hints(cls)
    for key in data:
        require(key in known, f"{where} has no setting '{key}': {suggest(key, known)}")
    required = [one.name for one in settings if one.default is MISSING and one.default_factory is MISSING]
    missing = [name for name in required if name not in {**data, **read}]
    require(not missing, f"{where} needs a value for {', '.join(missing)}.")
    unread = [key for key in data if key not in read]
    return cls(**{key: read_value(data[key], hints[key], named.format(key)) for key in unread}, **read)
