"""The tables released with the paper: their addresses, checksums and vocabularies."""

from __future__ import annotations

from dataclasses import dataclass

from ..fetch import RELEASE

_ADDRESS = f"{RELEASE}baseline/"


@dataclass(frozen=True)
class Released:
    """A file of the paper's repository (NEUIR/Uncode, MIT licence). Its ids are those of the model's vocabulary."""

    url: str
    sha256: str
    vocab_size: int
    corpus: str


RELEASED = {
    "llada": Released(
        f"{_ADDRESS}reference_corpus_llada.json",
        "d3added6fe3b1e470a5558d612cc1f52b521415260b76a582b4a367241984749",
        126464,
        "general text (as released; the paper says 16 GB of C4)",
    ),
    "dream": Released(
        f"{_ADDRESS}reference_corpus_dream.json",
        "910863033246e63dff61a6969909e65dbee877de195e45115494847522e13201",
        152064,
        "mathematics in LaTeX, by its most frequent tokens (as released; the paper says 16 GB of C4)",
    ),
}
"""By the name `uncode table get` takes. What the files really hold: docs/frequency.md."""
