"""The process that compiles one constraint for a server, and what is said to it and by it.

It gives up its rights before it reads what a client has sent: it can write no file, start no process and reach no
network, and its time and memory are limited. It needs no torch, so it starts in a fifth of a second. It answers with
arrays, and nothing that could be run is read back.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from ..core.errors import UncodeError, require
from ..sandbox.confined import confined_python
from .compiled import byte_dfa, cached, content_of, expression_from, keep, read
from .token_dfa import TokenDfa, token_dfa
from .vocabulary import Vocabulary

MARGIN_SECONDS = 5
"""Of processor time beyond the limit on time that the server keeps, so that the server says why it ended."""


def command(seconds: float, room: int) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of the process, which may take so many seconds and bytes."""
    require(os.name == "posix", "this system cannot compile constraints within limits: run the server on Linux.")
    return confined_python(__name__, str(int(seconds) + MARGIN_SECONDS), str(room))


def question(source: Mapping[str, Any], vocabulary: Vocabulary) -> bytes:
    """What the process reads: what a constraint is made of, and the vocabulary."""
    return json.dumps(source).encode() + b"\n" + vocabulary.content


def answered(answer: bytes, vocabulary: Vocabulary) -> TokenDfa | None:
    """The automaton of an answer, which is then kept on disk; None where the process could not finish. Raises the error
    of a constraint that was refused."""
    head, _, content = answer.partition(b"\n")
    try:
        said = json.loads(head)
    except ValueError:
        return None
    if "refused" in said:
        raise UncodeError(said["refused"])
    found = read(content, vocabulary.size)
    if found is not None and re.fullmatch("[0-9a-f]{32}", said["keep"]):
        keep(said["keep"], content)
    return found


def main() -> None:
    """`argv`: seconds and bytes. The question is on standard input, and the answer goes to standard output."""
    from ..sandbox.guest.confine import confine_to  # Windows has no limits, and a server there imports this file

    confine_to(int(sys.argv[1]), int(sys.argv[2]))
    content = b""
    try:
        said, content = _compiled(sys.stdin.buffer.read())
    except UncodeError as refused:
        said = {"refused": str(refused)}
    except MemoryError:
        return
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + content)
    sys.stdout.buffer.flush()


def _compiled(asked: bytes) -> tuple[dict[str, str], bytes]:
    """The answer: the name to keep it by, if it is not kept already, and the automaton."""
    head, _, content = asked.partition(b"\n")
    vocabulary = Vocabulary.read(content)
    expression = expression_from(json.loads(head))
    name, found = cached(expression, vocabulary)
    if found is not None:
        return {"keep": ""}, content_of(found)
    return {"keep": name}, content_of(token_dfa(byte_dfa(expression), vocabulary))


if __name__ == "__main__":
    main()
