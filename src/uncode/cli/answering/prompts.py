"""Prompts from the command line and from files, as rows to decode."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...core.errors import UncodeError, require, suggest
from ...core.support.json_lines import read_json_lines
from ...generation.gaps import check_gaps
from ...util.files import read_text
from ...util.paths import require_file
from ..outputs import check_resumable

if TYPE_CHECKING:
    from ...core.denoiser import Denoiser
    from ...generation.prompt import Messages, Prompt

PROMPT_KEYS = ("prompt", "messages", "id", "length", "seed")


@dataclass(frozen=True)
class PromptLine:
    """A line of a file of prompts."""

    number: int
    """The number of the prompt, from 0."""
    where: str
    """The line and the file, for error messages."""
    prompt: str | Messages
    id: str | int
    length: int | None
    seed: int | None

    def as_row(self) -> dict[str, object]:
        """The id and the prompt, as an answer repeats them."""
        return {"id": self.id, "prompt" if isinstance(self.prompt, str) else "messages": self.prompt}

    def row(self, denoiser: Denoiser, chat: bool, length: int | None) -> Prompt:
        """The row to decode. `length` applies if the line has none of its own."""
        from ...generation.prompt import has_gaps

        gaps = isinstance(self.prompt, str) and not chat and has_gaps(denoiser, self.prompt)
        try:
            return read_prompt(denoiser, self.prompt, chat, length if self.length is None and not gaps else self.length)
        except UncodeError as error:
            raise UncodeError(f"{self.where}: {error}") from error


def read_prompt(denoiser: Denoiser, prompt: str | Messages, chat: bool, length: int | None) -> Prompt:
    """The row of a prompt, which may be a message of the user."""
    from ...generation.prompt import read_prompts

    if isinstance(prompt, str):
        require(bool(prompt.strip()), "the prompt is empty.")
        prompt = [{"role": "user", "content": prompt}] if chat else prompt
    return read_prompts(denoiser, [prompt], length)[0]


def read_typed(prompt: str) -> str:
    """The prompt of the command line. `-` reads standard input, without the line end that a pipe adds."""
    text = _standard_input() if prompt == "-" else prompt
    require(_is_text(text), "the prompt is not UTF-8 text: convert it first.")
    require(bool(text.strip()), "the prompt is empty: write one, or pipe one into `uncode decode -`.")
    check_gaps(text)
    if "\n" not in text and "\\n" in text:
        typer.echo(r"note: \n in the prompt is a backslash and an n; in bash, $'...' makes it a line break.", err=True)
    return text


def _standard_input() -> str:
    stream = getattr(sys.stdin, "buffer", None)
    try:
        text = sys.stdin.read() if stream is None else stream.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UncodeError(f"standard input is not UTF-8 text (byte {error.start}): convert it first.") from None
    return text.replace("\r\n", "\n").removesuffix("\n")


@dataclass(frozen=True)
class PromptFile:
    """The prompts of a file, and the file for their answers, if there is one."""

    lines: list[PromptLine]
    content: bytes
    out: Path | None


def longest_answer(length: int | None, prompts: PromptFile | None) -> int:
    """The longest answer that the option or a line of the file asks for."""
    return max(length or 0, *(line.length or 0 for line in prompts.lines)) if prompts else length or 0


def read_file(path: Path, out: Path | None) -> PromptFile:
    """Read the prompts in a file of JSON lines, or the lines of a .txt file. The first bad line is an error."""
    require(str(path) != "-", "--input takes a file: one prompt comes from standard input with `uncode decode -`.")
    require_file(path)
    if out is not None:
        check_resumable(out, "--out")
        require(out.resolve() != path.resolve(), f"'{out}' is the file of the prompts: choose another --out.")
    content = read_text(path).removeprefix("\ufeff")
    return PromptFile(read_lines([(str(path), content)]), content.encode(), out)


def read_lines(files: Iterable[tuple[str, str]]) -> list[PromptLine]:
    """The prompts in files of these names and contents, numbered from the first file's first."""
    read, names = list[PromptLine](), list[str]()
    for name, content in files:
        names.append(name)
        if name.lower().endswith(".txt"):
            lines = [(at, line) for at, line in enumerate(content.splitlines(), 1) if line.strip()]
        else:
            lines = list(read_json_lines(content, f"'{name}'"))
        read += [_read_line(data, len(read) + n, f"line {at} of '{name}'") for n, (at, data) in enumerate(lines)]
    shown = names[0] if len(names) == 1 else "the input"
    require(len(read) > 0, f"'{shown}' holds no prompts: write one JSON object a line, or texts into a .txt file.")
    seen: dict[str | int, PromptLine] = {}
    for one in read:
        first = seen.setdefault(one.id, one)
        require(first is one, f"{one.where} has the id {one.id!r} of {first.where}: give each prompt its own.")
    return read


def _read_line(data: Any, number: int, where: str) -> PromptLine:
    if isinstance(data, str):
        data = {"prompt": data}
    require(isinstance(data, dict), f'{where} is no prompt: write {{"prompt": "..."}} or {{"messages": [...]}}.')
    unknown = next((key for key in data if key not in PROMPT_KEYS), None)
    require(unknown is None, f"{where} has an unknown key '{unknown}': {suggest(str(unknown), PROMPT_KEYS)}")
    require(("prompt" in data) != ("messages" in data), f"{where} needs a prompt or messages, and not both.")
    prompt = data["prompt"] if "prompt" in data else data["messages"]
    fits = _is_text(prompt) if "prompt" in data else _are_messages(prompt)
    shape = "a text" if "prompt" in data else 'a list of {"role": "...", "content": "..."}'
    require(fits, f"{where}: {'its prompt is' if 'prompt' in data else 'its messages are'} not {shape}.")
    name = data.get("id", number)
    require(_is_text(name) or _is_whole(name), f"{where}: its id is neither a text nor a whole number.")
    length, seed = data.get("length"), data.get("seed")
    require(length is None or (_is_whole(length) and length > 0), f"{where}: its length is not a whole number above 0.")
    require(seed is None or (_is_whole(seed) and abs(seed) < 2**63), f"{where}: its seed is not a whole number.")
    return PromptLine(number, where, prompt, name, length, seed)


def _is_text(value: object) -> bool:
    """Whether a value is a text that can be encoded. JSON allows half a surrogate pair, which cannot."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_messages(value: object) -> bool:
    def is_message(message: object) -> bool:
        return (
            isinstance(message, dict) and set(message) == {"role", "content"} and all(map(_is_text, message.values()))
        )

    return isinstance(value, Sequence) and len(value) > 0 and all(map(is_message, value))
