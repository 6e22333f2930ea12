"""Where a frequency table comes from: which tokenizer, which text, when, and by which version."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from ..core.errors import UncodeError


@dataclass(frozen=True)
class Provenance:
    """What is known about the making of a table; what is not known is empty."""

    tokenizer: str = ""
    revision: str = ""
    fingerprint: str = ""
    """Of the tokenizer's vocabulary; see :func:`uncode.frequency.fingerprint`."""
    corpus: str = ""
    files: tuple[str, ...] = ()
    bytes: int = 0
    """Of text as UTF-8, not of the files."""
    documents: int = 0
    tokens: int = 0
    bad: int = 0
    """Records that could not be read and were left out."""
    settings: str = ""
    """What was asked for, as JSON: fields, limits, sample."""
    job: str = ""
    """A checksum of files (sizes and times too), fields, limits and tokenizer: the same job gives the same table."""
    date: str = ""
    version: str = ""

    def to_json(self) -> str:
        """One line; what is empty is left out."""
        return json.dumps({key: value for key, value in dataclasses.asdict(self).items() if value})

    @classmethod
    def from_json(cls, text: str) -> Provenance:
        """Read what :meth:`to_json` wrote; keys of later versions are passed over."""
        try:
            values: dict[str, Any] = json.loads(text)
            known = {field.name: values[field.name] for field in dataclasses.fields(cls) if field.name in values}
            return cls(**(known | {"files": tuple(known.get("files", ()))}))
        except (ValueError, TypeError, AttributeError):
            raise UncodeError("the table's note of where it comes from cannot be read.") from None

    def joined(self, other: Provenance) -> Provenance:
        """Of two tables that are added."""

        def both(mine: str, theirs: str, between: str = " + ") -> str:
            return between.join(dict.fromkeys(word for word in (mine, theirs) if word))

        return Provenance(
            tokenizer=both(self.tokenizer, other.tokenizer),
            revision=both(self.revision, other.revision),
            fingerprint=self.fingerprint or other.fingerprint,
            corpus=both(self.corpus, other.corpus),
            files=self.files + other.files,
            bytes=self.bytes + other.bytes,
            documents=self.documents + other.documents,
            tokens=self.tokens + other.tokens,
            bad=self.bad + other.bad,
            settings=both(self.settings, other.settings, " "),
            date=max(self.date, other.date),
            version=both(self.version, other.version),
        )
