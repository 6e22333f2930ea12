"""A piece as data: it survives being written down and read back."""

from __future__ import annotations

import dataclasses
import json

from ..core.pieces.piece import Piece, Table
from .contract import expect


def fresh_copy(piece: Piece) -> Piece:
    """A new piece with the same settings and nothing else: read back from its data."""
    data = json.loads(json.dumps(piece.to_dict()))
    tables = {table.sha256: table for table in tables_in(piece)}
    kind = type(piece)
    return kind.from_dict(data, frequency=lambda name, sha256: tables.get(sha256))


def tables_in(piece: Piece) -> list[Table]:
    """The frequency tables of a piece and of all that it is made of."""
    values = [getattr(part, f.name) for part in piece.pieces() for f in dataclasses.fields(part)]
    return [value for value in values if isinstance(value, Table)]


def check_data(piece: Piece) -> None:
    """It is a frozen dataclass whose fields are all there is to it"""
    name, own = type(piece).__name__, vars(type(piece))
    names = {f.name for f in dataclasses.fields(piece)}
    strange = [n for n in own.get("__annotations__", {}) if n not in names and not n.startswith("_")]
    strange = [n for n in strange if "ClassVar" not in str(own["__annotations__"][n])]
    advice = "decorate the class with @dataclass(frozen=True)"
    expect(not strange, f"{name}.{strange[0] if strange else ''} is no setting: {advice}.")
    try:
        again = fresh_copy(piece)
    except TypeError as error:
        expect(False, f"the data of {name} cannot be written as JSON ({error}): use numbers, words, tuples and pieces.")
    expect(again == piece, f"{name} differs after to_dict and from_dict: its fields must be all there is to it.")
