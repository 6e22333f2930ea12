"""The tables released with the paper: their URLs, checksums and vocabulary sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ..util.fetch import RELEASE

_URL = f"{RELEASE}baseline/"


@dataclass(frozen=True)
class Released:
    """A table file of the paper's repository (NEUIR/Uncode, MIT licence), with the model's token ids."""

    url: str
    sha256: str
    vocab_size: int
    corpus: str


RELEASED = {
    "llada": Released(
        f"{_URL}reference_corpus_llada.json",
        "d3added6fe3b1e470a5558d612cc1f52b521415260b76a582b4a367241984749",
        126464,
        "general text (as released; the paper says 16 GB of C4)",
    ),
    "dream": Released(
        f"{_URL}reference_corpus_dream.json",
        "910863033246e63dff61a6969909e65dbee877de195e45115494847522e13201",
        152064,
        "mathematics in LaTeX, by its most frequent tokens (as released; the paper says 16 GB of C4)",
    ),
}
"""By the name that `uncode table get` takes. docs/frequency.md describes what the files really hold."""
