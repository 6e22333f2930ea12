"""The index from paper to code, generated from the presets: `python -m studies.papers`."""

from __future__ import annotations

from uncode.samplers.catalog import catalog
from uncode.samplers.preset import Preset
from uncode.util.write import write_whole

from .trainings import ROOT

NOT_HERE = """
WINO (Hong et al., ICLR 2026; Feng-Hong/WINO-DLLM LLaDA/decoding.py, decoding_wino) drafts every position above 0.6
and takes back what is below 0.9 when its own token is hidden. The check is made in the same forward, through a
shadow block: masks at the positions of the open block, which see every token but the one at their own position.
This needs an attention mask per query, which the models here do not take, and plain forwards cannot replace it: a
token that is masked in the canvas is hidden from all other positions too. `edit`, `saber` and `core` revise tokens
without it.

SOAR (duterscmy/SOAR) keeps a beam of canvases from step to step, DAEDAL (Li-Jinsong/DAEDAL) lengthens the canvas
while it decodes, and DAWN (lizhuo-luo/DAWN) and CLAD (ziyigu2004/CLAD) read attention maps. [Decisions](decisions.md)
says why they are not here.

FreeDave (arXiv:2510.00294; cychomatica/FreeDave generation/core.py, block_decode_with_full_attention_FreeDave) is no
preset: it is `draft_steps` of any sampler of one token a step. FreeDave++, which drafts beside a confidence threshold,
is not here.
"""


def page() -> str:
    """docs/papers.md."""
    lines = [
        "# Papers",
        "",
        "For readers of a paper who look for its sampler: the expression of every preset, its source, its cost, and",
        "each default quoted. `python -m studies.papers` writes this page from the presets in `samplers/presets/` and",
        "`samplers/legacy.py`.",
        "",
        "## Presets",
    ]
    entries = catalog().values()
    lines += [line for entry in entries if not _is_quirk(entry) for line in _section(entry)]
    lines += ["", "## Bug-compatible versions"]
    lines += [line for entry in entries if _is_quirk(entry) for line in _section(entry)]
    lines += ["", "## Not here", NOT_HERE.rstrip()]
    return "\n".join(lines) + "\n"


def _is_quirk(entry: Preset) -> bool:
    return entry.name.startswith("legacy.")


def _section(entry: Preset) -> list[str]:
    name = entry.name if _is_quirk(entry) else f"presets.{entry.name}"
    lines = ["", f"### `{name}`", "", entry.summary, "", f"Source: {entry.source}."]
    if entry.defaults:
        lines += ["", entry.defaults]
    if entry.cost:
        lines += ["", f"Cost: {entry.cost}"]
    return lines


if __name__ == "__main__":
    write_whole(ROOT / "docs" / "papers.md", page())
