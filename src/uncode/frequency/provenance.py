"""The provenance of a frequency table: its tokenizer, its corpus, its date and the version of uncode."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from ..core.errors import UncodeError


@dataclass(frozen=True)
class Provenance:
    """How a table was made. Unknown fields are empty."""

    tokenizer: str = ""
    revision: str = ""
    fingerprint: str = ""
    """The fingerprint of the tokenizer's vocabulary; see :func:`uncode.frequency.fingerprint`."""
    corpus: str = ""
    files: tuple[str, ...] = ()
    bytes: int = 0
    """The size of the counted text as UTF-8, not of the files."""
    documents: int = 0
    tokens: int = 0
    bad: int = 0
    """The number of records that could not be read and were left out."""
    settings: str = ""
    """The settings of the count as JSON: fields, limits, sample."""
    job: str = ""
    """A checksum of the files (with sizes and times), fields, limits and tokenizer. Equal jobs give equal tables."""
    date: str = ""
    version: str = ""

    def to_json(self) -> str:
        """The non-empty fields as one line of JSON."""
        return json.dumps({key: value for key, value in dataclasses.asdict(self).items() if value})

    @classmethod
    def from_json(cls, text: str) -> Provenance:
        """Read the output of :meth:`to_json`. Unknown keys, of later versions, are ignored."""
        try:
            values = json.loads(text)
            known = {field.name: values[field.name] for field in dataclasses.fields(cls) if field.name in values}
            return cls(**(known | {"files": tuple(known.get("files", ()))}))
        except (ValueError, TypeError, AttributeError):
            raise UncodeError("the provenance of the table is damaged: count or import the table again.") from None

    def joined(self, other: Provenance) -> Provenance:
        """The provenance of the sum of two tables."""

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
