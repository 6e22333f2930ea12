"""Pieces are data: frozen dataclasses that turn into plain dictionaries and back.

Every part of a sampler (score, selector, proposal, ...) is a :class:`Piece`. A piece is written as
``{"piece": "TopK", "quota": {"piece": "Even", "steps": 256}}``; reading it back checks every key
and type, so that a misspelt setting is an error with the near name and never a silent default.
"""

from __future__ import annotations

import copy
import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..errors import SettingError, UncodeError, nearest, shown, suggest
from .tables import OWN, OWN_OR_NONE, FrequencySource, UnnamedTable, resolver_of
from .tables import Resolver as Resolver  # noqa: PLC0414
from .tables import Table as Table  # noqa: PLC0414

if TYPE_CHECKING:
    from torch import Tensor

    from ..view import View

ENTRY_POINTS = "uncode.pieces"
MAX_FLOAT = 3.0e38
"""Scores and beliefs are float32, which has no larger numbers."""
MAX_BITS = 31
"""Whole numbers lie below 2^31, as lengths do: the product of two of them is exact in 64 bits."""


REGISTRY: dict[str, type[Piece]] = {}
"""Every piece by its name; defining a class adds it."""


@dataclasses.dataclass(frozen=True)
class Buffer:
    """Numbers that a piece remembers from step to step, for each row by itself."""

    name: str
    per: typing.Literal["row", "position", "token"] = "position"
    """The shape: `[B, 1]`, `[B, W]` over the columns of the view, or `[B, W, V]`."""
    fill: float = 0.0
    """What it holds before the first step of a block."""
    outlives_block: bool = False
    """Whether it keeps what it holds when the next block opens."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part of a sampler. Subclasses are frozen dataclasses; their fields are all there is to them."""

    needs_schedule: ClassVar[bool] = False
    """Whether it reads `view.block_steps`, which only selectors with a schedule have. :class:`Policy` checks it."""

    per_row: ClassVar[tuple[str, ...]] = ()
    """Fields in which the rows of a lane may differ; see :meth:`for_rows`."""

    needs_drift: ClassVar[bool] = False
    """Whether it reads `view.belief.drift`. The last step's log-probabilities are then kept, `[B, W, V]`."""

    def __init_subclass__(cls) -> None:
        known = REGISTRY.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise UncodeError(
                f"two pieces are named '{cls.__name__}' ({known.__module__} and {cls.__module__}): rename one, or "
                "import it from one place only."
            )
        REGISTRY[cls.__name__] = cls

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():
            where = f"{type(self).__name__}.{name}"
            try:
                object.__setattr__(self, name, read_value(getattr(self, name), hint, where))
            except _NoPiece as error:
                raise SettingError(f"{where} must be {error.in_code()}.") from None
        self.check()

    def check(self) -> None:
        """Raise :class:`UncodeError` if a value is out of range; types have been checked."""

    @property
    def draws(self) -> bool:
        """Whether it reads `view.noise`, so that another step may decide otherwise on the same belief."""
        return False

    @property
    def max_probes(self) -> int:
        """The most forwards that it runs within a step of a row, by `view.probe`."""
        return 0

    def buffers(self) -> tuple[Buffer, ...]:
        """What it remembers from step to step; it reads `view.memory[name]`. Names are unique in a sampler."""
        return ()

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        """The next values of its buffers, after a step that commits `view.chosen`. Only a proposal reads the logits."""
        return {}

    def pieces(self) -> Iterator[Piece]:
        """This piece and all that it is made of."""
        yield self
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Piece):
                    yield from part.pieces()

    def bind(self, facts: Any) -> Self:
        """The same piece, ready for one model: ids resolved, sizes checked, tensors on its device."""
        return self._changed(lambda value: value.bind(facts) if isinstance(value, Piece) else value)

    def is_like(self, other: Piece) -> bool:
        """Whether the two differ in nothing but what they take `per_row`, so that their rows are decided together."""

        def alike(ours: Any, theirs: Any) -> bool:
            if isinstance(ours, Piece) and isinstance(theirs, Piece):
                return ours.is_like(theirs)
            if isinstance(ours, tuple) and isinstance(theirs, tuple):
                return len(ours) == len(theirs) and all(map(alike, ours, theirs))
            return bool(ours == theirs)

        names = [f.name for f in dataclasses.fields(self) if f.compare and f.name not in self.per_row]
        return type(self) is type(other) and all(alike(getattr(self, n), getattr(other, n)) for n in names)

    def for_rows(self, rows: Sequence[Self], facts: Any) -> Self:
        """This bound piece, for the rows of a lane. `rows` are their own pieces, as the callers gave them: they differ
        in their `per_row` fields alone. A piece that has such fields returns a copy that is :meth:`holding` them."""

        def of_parts(value: Any, theirs: Sequence[Any]) -> Any:
            if isinstance(value, tuple):
                return tuple(map(of_parts, value, zip(*theirs, strict=True)))
            return value.for_rows(theirs, facts) if isinstance(value, Piece) else value

        fields = [f.name for f in dataclasses.fields(self) if f.name not in self.per_row]
        parts = {name: of_parts(getattr(self, name), [getattr(row, name) for row in rows]) for name in fields}
        return self.holding(**parts)

    def with_table(self, table: Table) -> Self:
        """The same piece with a frequency table in the place of every placeholder."""

        def changed(value: Any) -> Any:
            if isinstance(value, UnnamedTable):
                return table
            return value.with_table(table) if isinstance(value, Piece) else value

        return self._changed(changed)

    def _changed(self, change: Callable[[Any], Any]) -> Self:
        """The same piece, each of its values changed, those in tuples too."""

        def changed(value: Any) -> Any:
            return tuple(map(changed, value)) if isinstance(value, tuple) else change(value)

        values = {field.name: changed(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **values)

    def holding(self, **tensors: Tensor) -> Self:
        """A copy that carries tensors beside its fields; for `bind`."""
        bound = copy.copy(self)
        for name, tensor in tensors.items():
            object.__setattr__(bound, name, tensor)
        return bound

    def to_dict(self) -> dict[str, Any]:
        """Plain data: numbers, strings, lists and dictionaries. A None that is the default is left out."""
        values = ((field, getattr(self, field.name)) for field in dataclasses.fields(self))
        settings = {field.name: _plain(value) for field, value in values if (value, field.default) != (None, None)}
        return {"piece": type(self).__name__} | settings

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, frequency: FrequencySource | None = None) -> Self:
        """The piece that `data` describes; it must be a `cls`.

        `frequency` is the table that the data names, or a function of its name and sha256 that finds it.
        """
        piece = _read_piece(data, cls, resolver_of(frequency))
        assert isinstance(piece, cls)
        return piece


def brief(piece: Piece, settings: bool = True) -> str:
    """A piece by its name, the pieces in it, and the settings that are not its defaults: `TopK(Even(steps=12))`.

    A sum of scores reads as a sum. Frequency tables are left out. Without `settings`, names alone.
    """
    terms = getattr(piece, "terms", (piece,))
    if len(terms) > 1:
        return " + ".join(brief(term, settings) for term in terms)
    inside = []
    for field in dataclasses.fields(piece):
        value = getattr(piece, field.name)
        if isinstance(value, Piece):
            inside.append(brief(value, settings))
        elif settings and value != field.default and not isinstance(value, Table):
            is_long = isinstance(value, tuple) and len(value) > 3
            inside.append(f"{field.name}={f'{len(value)} items' if is_long else repr(value)}")
    return type(piece).__name__ + (f"({', '.join(inside)})" if inside else "")


def _hints(cls: type[Piece]) -> dict[str, Any]:
    """The annotations of the fields of a piece."""
    if cls not in _HINTS:
        hints = typing.get_type_hints(cls)
        _HINTS[cls] = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return _HINTS[cls]


_HINTS: dict[type[Piece], dict[str, Any]] = {}


def _plain(value: Any) -> Any:
    if isinstance(value, Piece):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Table):
        return {"table": value.name, "sha256": value.sha256}
    return "none" if value is None else value


@cache
def _load_plugins() -> None:
    """Import out-of-tree pieces once; importing a module registers its classes."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            raise UncodeError(
                f"the entry point '{entry.name}' ({entry.value}) cannot be imported ({type(error).__name__}: {error}): "
                "correct it, or uninstall its package."
            ) from error


def _known(kind: type[Piece]) -> dict[str, type[Piece]]:
    """Every piece of a kind by its name."""
    _load_plugins()
    return {n: c for n, c in REGISTRY.items() if issubclass(c, kind) and not _is_abstract(c)}


def _concrete(name: str, kind: type[Piece]) -> type[Piece]:
    fitting = _known(kind)
    if name not in fitting:
        near = suggest(name, fitting)
        own = "" if near.startswith("did you mean") else f" One of your own needs an entry point of '{ENTRY_POINTS}'."
        raise SettingError(f"no {_words(kind)} is named '{name}': {near}{own}", ("piece",))
    return fitting[name]


def _words(kind: type[Piece]) -> str:
    """A kind of piece as words: `BlockSchedule` is a block schedule."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()


def _is_abstract(cls: type[Piece]) -> bool:
    """A class that others of this room extend is a kind, not a piece one can name."""
    return cls.__dict__.get("kind", False) is True


class _NoPiece(SettingError):
    """Neither a piece of the wanted kind nor the data of one. Code and files get different sentences."""

    def __init__(self, value: Any, kind: type[Piece]) -> None:
        super().__init__(f"a {_words(kind)} must be a table with a 'piece' key, not {shown(value)}.")
        self.value, self.kind = value, kind

    def in_code(self) -> str:
        """What to pass instead, with an example: the piece whose name is near, or one that needs no values."""
        calls = {name: f"{name}({'...' if _needs_values(cls) else ''})" for name, cls in _known(self.kind).items()}
        near = calls.get(nearest(str(self.value), calls) or "") or min(calls.values(), key=lambda call: "..." in call)
        return f"a {_words(self.kind)}, such as {near}, not {shown(self.value)}"


def _needs_values(cls: type[Piece]) -> bool:
    return any(f.default is f.default_factory is dataclasses.MISSING for f in dataclasses.fields(cls))


def _read_piece(data: Any, kind: type[Piece], tables: Resolver | None) -> Piece:
    if not isinstance(data, dict):
        raise _NoPiece(data, kind)
    fields = dict(data)
    default = kind.__name__ if not _is_abstract(kind) else None
    name = fields.pop("piece", default)
    if name is None:
        raise SettingError(f"a {_words(kind)} needs a 'piece' key that names it.")
    cls = _concrete(str(name), kind)
    hints = _hints(cls)
    for key in fields:
        if key not in hints:
            raise SettingError(f"{name} has no setting '{key}': {suggest(key, {*hints, 'piece'})}", (key,))
    values = {key: _read_setting(key, value, hints[key], name, tables) for key, value in fields.items()}
    try:
        return cls(**values)
    except TypeError as error:
        missing = str(error).split("argument")[-1].lstrip("s: ")
        raise SettingError(f"{name} needs a value for {missing}.") from None
    except UncodeError as error:
        raise SettingError(str(error)) from None


def _read_setting(key: str, value: Any, hint: Any, name: str, tables: Resolver | None) -> Any:
    try:
        return read_value(value, hint, f"{name}.{key}", tables)
    except SettingError as error:
        raise SettingError(str(error), (key, *error.path)) from None


def read_value(value: Any, hint: Any, where: str, tables: Resolver | None = None) -> Any:
    """`value` as the annotation `hint` asks for it, or an error that names the setting."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _read_any(value, typing.get_args(hint), where, tables)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(read_value(item, typing.get_args(hint)[0], where, tables) for item in value)
    if origin is typing.Literal:
        if isinstance(value, str) and value in typing.get_args(hint):
            return value
        choices = [str(c) for c in typing.get_args(hint)]
        raise SettingError(f"{where} cannot be {shown(value)}: {suggest(str(value), choices)}")
    if isinstance(hint, type) and issubclass(hint, Piece):
        return value if isinstance(value, hint) else _read_piece(value, hint, tables)
    if hint is Table:
        return _read_table(value, where, tables)
    if hint is float and type(value) in (int, float):
        return _read_float(value, where)
    if hint is int and type(value) is int:
        return _read_int(value, where)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise SettingError(f"{where} must be {_describe(hint)}, not {shown(value)}.")


def _read_float(value: float, where: str) -> float:
    """A number of float32: JSON and TOML files of a sampler have no infinity, and no piece needs one."""
    if abs(value) <= MAX_FLOAT:
        return float(value)
    raise SettingError(f"{where} must be a number from -{MAX_FLOAT:g} to {MAX_FLOAT:g}, not {shown(value)}.")


def _read_int(value: int, where: str) -> int:
    if abs(value) < 1 << MAX_BITS:
        return value
    raise SettingError(f"{where} must be a whole number below 2^{MAX_BITS}, not {shown(value)}.")


def _read_any(value: Any, hints: tuple[Any, ...], where: str, tables: Resolver | None) -> Any:
    if (value is None or (isinstance(value, str) and value == "none")) and type(None) in hints:
        return None
    options = [h for h in hints if h is type(value)] or [h for h in hints if h is not type(None)]
    for hint in options[:-1]:
        try:
            return read_value(value, hint, where, tables)
        except UncodeError:
            continue
    return read_value(value, options[-1], where, tables)


def _read_table(value: Any, where: str, tables: Resolver | None) -> Table:
    if isinstance(value, Table):
        return value
    named = isinstance(value, dict) and set(value) == {"table", "sha256"}
    if not named or not all(isinstance(part, str) for part in value.values()):
        raise SettingError(f"{where} must be a frequency table written as its name and sha256, not {shown(value)}.")
    found = None if tables is None else tables(value["table"], value["sha256"])
    if found is None and value in ({"table": OWN, "sha256": ""}, {"table": OWN_OR_NONE, "sha256": ""}):
        return UnnamedTable(value["table"])
    if found is None:
        raise UncodeError(
            f"{where} needs the frequency table '{value['table']}': pass that table as the sampler's frequency."
        )
    return found


def _describe(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return "a list"
    names = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
    return names.get(hint, f"a {getattr(hint, '__name__', hint)}")
