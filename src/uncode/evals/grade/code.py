"""Finds the program in an answer, in code fences, between sentences, or a function's body alone, and runs its tests.

There may be several readings, best first. The sandbox finds out which of them is Python.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from ...sandbox import Sandbox, Suite
from ..task import Grade
from .find import Found, everything, fences_of, tagged
from .pattern import lazy_pattern

_PROGRAM_START = lazy_pattern(
    r"^[ \t]*(?:(?:from|import|def|async[ \t]+def|class)[ \t]+\w|@\w"
    r"|[A-Za-z_]\w{0,99}[ \t]{0,9}(?::[^=\n]{1,99})?=[^=])",
    re.M,
)
"""The first line of a program."""
_CODE_LINE = lazy_pattern(
    r"""\s|\#|@\w|[)\]}]|['"]{3}|(?:from|import|def|class|async|if|for|while|try|except|finally|else|elif|with|return|
    assert|print|raise|pass|del|global)\b|[A-Za-z_][\w.\[\]'"]*\s*(?:=|\(|:\s*\w+\s*=|[-+*/]=)""",
    re.X,
)
"""The beginning of a line of code, as opposed to a sentence."""
_INDENTED_LINE = lazy_pattern(r"[ \t]")
_RETURNS = lazy_pattern(r"^[ \t]*(?:return|yield|raise)\b", re.M)
MAX_BLOCKS = 3
"""Of each kind, so that few programs are tried."""


@dataclass(frozen=True)
class Reading:
    """A program, and the part of the answer that it comes from."""

    source: str
    place: Found


def readings(text: str, name: str, stub: str = "") -> list[Reading]:
    """Programs that may define `name`. `stub` is the beginning in the prompt; a body alone is appended to it."""
    text = text.replace("\ufeff", " ").replace("\u00a0", " ")  # Python does not accept these as blanks
    whole = everything(text)
    region = tagged(whole)  # denials are ignored: the tests decide about a program
    region = region.strip() if region is not None else None
    found = [code for part in ([region, whole] if region is not None else [whole]) for code in _codes(part, name)]
    if not stub:
        return found
    if found:
        return [Reading(_after(stub, code.source), code.place) for code in found]
    indented = re.match(r"(?:\s*\n)?[ \t]", text) is not None
    if not indented and re.search(r"^(?:async[ \t]+)?(?:def|class)[ \t]+\w", text, re.M):
        return []  # another function is not a body
    fences = fences_of(whole)
    fences = [fence for fence in fences if _RETURNS.search(fence.text)] or fences  # the last may show how to call it
    bodies = [body for part in (*fences[-1:], whole) for body in (part, _up_to_margin(part))]
    bodies += _blocks(whole, _CODE_LINE) + _blocks(whole, _INDENTED_LINE)
    return [Reading(stub + _indented(body.text), body) for body in bodies if body.text.strip()]


def run_tests(sandbox: Sandbox, suite: Suite, programs: list[Reading]) -> Grade:
    """Grade the first reading that is a valid program."""
    if not programs:
        return Grade(False, None, f"no function named {' or '.join(suite.names)}")
    verdict = sandbox.judge(suite, *(program.source for program in programs))
    chosen = programs[verdict.program if verdict.program is not None else 0]
    return Grade(verdict.passed, chosen.place.span, verdict.why)


def run_script(sandbox: Sandbox, script: str, text: str) -> Grade:
    """Grade by the released rule: the answer and its tests are one script, which must not write to standard error."""
    verdict = sandbox.silent(script)
    return Grade(verdict.passed, (0, len(text)), verdict.why)


def _blocks(text: Found, line: re.Pattern[str]) -> list[Found]:
    """The blocks of lines of a kind, such as a body between sentences: first those that return, then by length."""
    found, start, at = list[Found](), 0, 0
    for each in text.text.splitlines(keepends=True):
        if each.strip() and not line.match(each):
            found.append(text.part(start, at))
            start = at + len(each)
        at += len(each)
    found = [block for block in (*found, text.part(start, at)) if block.text.strip()]
    return sorted(found, key=lambda block: (_RETURNS.search(block.text) is None, -len(block.text)))[:MAX_BLOCKS]


def _after(stub: str, code: str) -> str:
    """The code after the stub, which may hold imports and helpers. Imports from __future__ are moved to the top."""
    future = re.findall(r"^from __future__ import .*$", code, re.M)
    return "\n".join([*future, stub, "", re.sub(r"^from __future__ import .*$", "", code, flags=re.M), ""])


def _codes(text: Found, name: str) -> list[Reading]:
    """The readings that define the name."""
    name = re.escape(name)
    defines = re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{name}\b|^{name}\s*(?::[^=\n]+)?=", re.M)
    fences = [fence for fence in fences_of(text) if _PROGRAM_START.search(fence.text)]
    found = []
    if any(defines.search(fence.text) for fence in fences):
        place = Found(text.whole, fences[0].start, fences[-1].end)
        found.append(Reading("\n\n".join(_dedented(fence.text) for fence in fences), place))
        found += [Reading(_dedented(fence.text), fence) for fence in reversed(fences) if defines.search(fence.text)]
    parts, unfenced = [text], _between_sentences(text)
    if unfenced is not None:
        blocks = [m.start() for m in re.finditer(r"^\S", unfenced.text, re.M)]
        # the end of the answer may have cut off the last top-level statement
        parts = [unfenced, *([unfenced.part(0, blocks[-1])] if len(blocks) > 1 else []), text]
    return found + [Reading(_dedented(part.text), part) for part in parts if defines.search(part.text)]


def _up_to_margin(body: Found) -> Found:
    """A body up to the first later line without indentation, where prose or another function begins."""
    end = re.search(r"\n(?=[^\s])", body.text[1:])
    return body.part(0, 1 + end.start()) if end else body


def _between_sentences(text: Found) -> Found | None:
    """The lines from the first line of a program to the last before prose. Lines inside a string are not prose."""
    start = end = None
    at, quoted = 0, False
    for line in text.text.split("\n"):
        if start is None and _PROGRAM_START.match(line):
            start = at
        if start is not None and line.strip():
            if not quoted and (line.startswith("```") or not _CODE_LINE.match(line)):
                break
            end = at + len(line)
            quoted ^= len(re.findall(r'"""|\'\'\'', line)) % 2 == 1
        at += len(line) + 1
    return None if start is None or end is None else text.part(start, end)


def _dedented(code: str) -> str:
    """The code without the indentation that all lines share, or that only the first line has."""
    lines = code.strip("\n").split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    if margin == 0 and lines[0][:1].isspace() and _PROGRAM_START.match(lines[0]):
        lines[0] = lines[0].lstrip()
    return "\n".join(line[margin:] for line in lines)


def _indented(body: str) -> str:
    """A function's body, indented by four blanks."""
    lines = body.strip("\n").expandtabs(4).split("\n")
    later = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    first = len(lines[0]) - len(lines[0].lstrip())
    if later and first == 0 and min(later) > 0:  # the first line followed the prompt directly and lost its indentation
        deeper = lines[0].rstrip().endswith(":") and min(later) == later[0]
        lines[0] = " " * (max(0, later[0] - 4) if deeper else min(later)) + lines[0]
    return "\n" + textwrap.indent(textwrap.dedent("\n".join(lines)), "    ") + "\n"
