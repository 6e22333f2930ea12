"""Usage errors as one sentence: what was wrong, with the value, and what to do."""

from __future__ import annotations

import re
from typing import Any

from ..core.errors import nearest, suggest

_OUT_OF_RANGE = re.compile(
    r"(?P<value>\S+) is not in the range (?:(?P<least>[^<x]+)<=)?x(?:>=(?P<above>\S+?)|<=(?P<most>\S+?))?\.?$"
)
_WRONG_TYPE = re.compile(r"(?P<value>'.*') is not a valid (?P<type>\w+)", re.S)
_NO_COMMAND = re.compile(r"No such command '([^']*)'")
_EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", re.S)
_NO_VALUE = re.compile(r"Option '(.*)' requires an argument")
_TYPES = {"int": "a whole number", "integer": "a whole number", "float": "a number"}


_PARAMETER = re.compile(r"`(?P<name>[a-z_]+)=(?P<value>[^`]*)`")
_RENAMED_OPTIONS = {"fields": "--field"}


def with_options(sentence: str) -> str:
    """Rewrite a library error for the command line: `max_bytes=` becomes --max-bytes, `restart=True` --restart.

    Errors of the library name the parameters of its functions in this form. Options have the same names.
    """

    def option(found: re.Match[str]) -> str:
        name = _RENAMED_OPTIONS.get(found["name"], f"--{found['name'].replace('_', '-')}")
        return name if found["value"] in ("", "True") else f"{name} {found['value']}"

    return _PARAMETER.sub(option, sentence)


def explain_usage(error: Any) -> str:
    """One sentence about a usage error, and the help to read. Help texts, of several lines, are returned unchanged."""
    message, context = str(error.format_message()), getattr(error, "ctx", None)
    if "\n" in message and not _EXTRA.match(message):
        return message
    sentence = _sentence(error, message, context)
    if context is None:
        return f"{sentence.rstrip('.')}."
    more = f"see `{context.command_path} --help`."
    return f"{sentence} {more.capitalize()}" if sentence.endswith("?") else f"{sentence.rstrip('.')}: {more}"


def _sentence(error: Any, message: str, context: Any) -> str:
    """The error in one sentence. Classes are compared by name, because newer versions of typer vendor click."""
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    if kind == "NoSuchOption":
        near = nearest(error.option_name, _options(context))
        return f"there is no option {error.option_name}" + (f": did you mean {near}?" if near else "")
    if kind == "BadParameter" and parameter is not None:
        return _bad_value(parameter, error.message)
    if kind == "MissingParameter" and parameter is not None:
        return f"{_name(parameter)} is missing"
    if found := _NO_COMMAND.match(message):
        return f"there is no command '{found[1]}': {suggest(found[1], context.command.commands)}"
    if found := _EXTRA.match(message):
        takes_prompt = any(one.metavar == "PROMPT" for one in context.command.params)
        words = " ".join(found[1].split())
        return f"'{words}' was not expected" + (": put the whole prompt in quotes" if takes_prompt else "")
    if found := _NO_VALUE.match(message):
        return f"{found[1]} needs a value"
    return message[:1].lower() + message[1:]


def _bad_value(parameter: Any, message: str) -> str:
    if found := _OUT_OF_RANGE.match(message):
        least, most = found["least"] or found["above"], found["most"]
        bounds = " and ".join([f"at least {least}"] * bool(least) + [f"at most {most}"] * bool(most))
        return f"{_name(parameter)} must be {bounds}, not {found['value']}"
    if found := _WRONG_TYPE.match(message):
        return f"{_name(parameter)} must be {_TYPES.get(found['type'], found['type'])}, not {found['value']}"
    return f"{_name(parameter)}: {message}"


def _name(parameter: Any) -> str:
    """An option as it is typed, or an argument's metavar."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.human_readable_name)


def _options(context: Any) -> list[str]:
    return [name for parameter in context.command.get_params(context) for name in parameter.opts if name[:2] == "--"]
