"""The program in an answer: in fences, between sentences, or nothing but a function's body.

Several readings are given, best first; which of them is Python is found out in the sandbox, not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .find import Found, everything, fences_of, first_of, tagged

_BEGINS = re.compile(r"(?:from\s+\w|import\s+\w|(?:async\s+)?def\s+\w|class\s+\w|@\w|[A-Za-z_]\w*\s*=\s*\S)")
_GOES_ON = re.compile(
    r"""\s|\#|@\w|[)\]}]|['"]{3}|(?:from|import|def|class|async|if|for|while|try|except|finally|else|elif|with|return|
    assert|print|raise|pass|del|global)\b|[A-Za-z_][\w.\[\]'"]*\s*(?:=|\(|:\s*\w+\s*=|[-+*/]=)""",
    re.X,
)
"""How a line of code begins, rather than a sentence."""


@dataclass(frozen=True)
class Reading:
    """A program, and the part of the answer it was read from."""

    source: str
    place: Found


def readings(text: str, name: str, stub: str = "") -> list[Reading]:
    """Programs that may define `name`. `stub`: what the prompt began with; a body alone is taken to go on with it."""
    whole = everything(text)
    region = first_of([tagged], whole)
    regions = [region, whole] if region is not None and region.text != text else [whole]
    found: list[Reading] = []
    for part in regions:
        for code in _codes(part, name):
            found.append(Reading(f"{stub}\n\n{code.source}\n" if stub else code.source, code.place))
    if stub and not found:
        fences = fences_of(whole)
        found = [Reading(stub + _indented(body.text), body) for body in (*fences[-1:], whole) if body.text.strip()]
    return found


def _codes(text: Found, name: str) -> list[Reading]:
    """Readings that have a definition of the name in them."""
    defines = re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b|^{re.escape(name)}\s*=", re.M)
    fences = [fence for fence in fences_of(text) if _BEGINS.search(fence.text)]
    found = []
    if any(defines.search(fence.text) for fence in fences):
        place = Found(text.whole, fences[0].start, fences[-1].end)
        found.append(Reading("\n\n".join(_dedented(fence.text) for fence in fences), place))
        found += [Reading(_dedented(fence.text), fence) for fence in reversed(fences) if defines.search(fence.text)]
    unfenced = _between_sentences(text)
    for part in (unfenced, unfenced and _without_last_block(unfenced), text):
        if part is not None and defines.search(part.text):
            found.append(Reading(_dedented(part.text), part))
    return found


def _between_sentences(text: Found) -> Found | None:
    """From the first line that begins a program to the last before prose."""
    start = end = None
    at = 0
    for line in text.text.split("\n"):
        if start is None and _BEGINS.match(line.lstrip()):
            start = at
        if start is not None and line.strip():
            if line.startswith("```") or not _GOES_ON.match(line):
                break
            end = at + len(line)
        at += len(line) + 1
    return None if start is None or end is None else text.part(start, end)


def _without_last_block(code: Found) -> Found | None:
    """Without the last statement at the margin, which the end of the answer may have cut off."""
    blocks = [m.start() for m in re.finditer(r"^\S", code.text, re.M)]
    return code.part(0, blocks[-1]) if len(blocks) > 1 else None


def _dedented(code: str) -> str:
    """Without the blanks that all lines share, or that the first line alone has."""
    lines = code.strip("\n").split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    if margin == 0 and lines[0][:1].isspace() and _BEGINS.match(lines[0].lstrip()):
        lines[0] = lines[0].lstrip()
    return "\n".join(line[margin:] for line in lines)


def _indented(body: str) -> str:
    """A function's body, moved in if it stands at the margin."""
    lines = body.strip("\n").split("\n")
    if lines[0][:1].isspace():
        return "\n" + "\n".join(lines) + "\n"
    # some answers indent all lines but the first, which followed the prompt
    rest = [line for line in lines[1:] if line.strip()]
    if rest and all(line.startswith("    ") for line in rest) and not lines[0].rstrip().endswith(":"):
        return "\n    " + "\n".join(lines) + "\n"
    return "\n" + "\n".join(f"    {line}" if line.strip() else line for line in lines) + "\n"
