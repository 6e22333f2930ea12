"""A sampler as HTML for notebooks: its pieces as a nested list, with all their settings."""

from __future__ import annotations

from dataclasses import Field, fields
from html import escape
from typing import TYPE_CHECKING, Any

from ...core.pieces.piece import Piece
from ...core.pieces.tables import Table
from ...core.support.reprs import counted
from .element import DIM, Html, element

if TYPE_CHECKING:
    from ...core.pieces.policy import Sampler

MAX_ITEMS = 8
"""Items of a setting that are shown. A list of trivial tokens may have hundreds."""
_LIST = "margin:0;padding-left:1.4em;list-style:none;border-left:1px solid rgba(128,128,128,.35)"


def sampler_html(sampler: Sampler) -> Html:
    """The sampler's name and pieces. Settings that have their default value are dim, not hidden."""
    parts = [field for field in fields(sampler) if field.name != "name"]
    title = f"{element('b', 'Sampler')} {escape(sampler.name)}"
    note = element("span", "dim: default values", f"font-size:85%;{DIM}")
    return Html(element("div", f"{title} {note}{_list(sampler, parts)}", "line-height:1.6;color:inherit"))


def _list(piece: Piece, shown: list[Field[Any]]) -> str:
    """The settings that are pieces, each with its own list below it; plain settings after them."""
    lines = []
    for field in shown:
        value = getattr(piece, field.name)
        if isinstance(value, Piece):
            lines.append(_piece(value, field.name))
        elif _holds_pieces(value):
            lines += [_piece(item) for item in value]
        else:
            lines.append(element("li", _setting(field, value)))
    return element("ul", "".join(lines), _LIST) if lines else ""


def _piece(piece: Piece, role: str = "") -> str:
    """A piece with its plain settings on one line, and the pieces in it below."""
    values = [(field, getattr(piece, field.name)) for field in fields(piece)]
    inner = [field for field, value in values if isinstance(value, Piece) or _holds_pieces(value)]
    settings = [_setting(field, value) for field, value in values if field not in inner]
    name = element("b", escape(type(piece).__name__))
    line = " ".join(filter(None, (element("span", escape(role), DIM) if role else "", name, *settings)))
    return element("li", line + _list(piece, inner))


def _setting(field: Field[Any], value: Any) -> str:
    is_default = value is field.default or (not isinstance(value, Table) and value == field.default)
    return element("code", escape(f"{field.name}={_written(value)}"), DIM if is_default else "")


def _written(value: Any) -> str:
    """A value as in Python. A table is its name and the start of its checksum."""
    if isinstance(value, Table):
        return f"{value.name!r} (sha256 {value.sha256[:12]})"
    if isinstance(value, tuple) and len(value) > MAX_ITEMS:
        return f"({', '.join(map(repr, value[:MAX_ITEMS]))}, … {counted(len(value) - MAX_ITEMS, 'item')} more)"
    return repr(value)


def _holds_pieces(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, Piece) for item in value)
