"""JSON schemas as regular expressions, for a subset in which no valid-looking text is invalid.

Every text that the expression accepts is valid under the schema; it need not accept every valid one. Keys come in the
order of `properties`, and none that the schema does not name. Between tokens of JSON there is at most one space, after
a comma or a colon. Nesting ends at a depth. What the subset does not have is refused by its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ..core.errors import UncodeError, require, shown
from .expression import pattern_within
from .scalars import CHARACTER, FORMATS, NUMBER, PLAIN, any_of, decimals, either, whole_numbers

ANY_JSON_DEPTH = 3
"""Objects and arrays within one another where a schema says nothing of them."""
MAX_UNROLLED = 3
"""How often a schema may refer to itself, one within the other."""
MAX_LENGTH = 1_000
"""Bounds on the length of a text or of an array."""
MAX_CHARACTERS = 1_000_000
"""Of the expressions of all parts of a schema. Optional keys and references within one another multiply them."""
PART = 50
"""Characters that a part counts for beside its own, so that few parts without an expression are looked at."""
_ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions"}
_ANNOTATIONS |= {"deprecated", "readOnly", "writeOnly", "strict", "$anchor"}
_OF_TYPE = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "null": set[str](),
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
}
_NOT_THESE = {
    "string": {"contentEncoding", "contentMediaType", "contentSchema"},
    "number": {"multipleOf"},
    "integer": {"multipleOf"},
    "object": {"minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired"}
    | {"dependentSchemas", "dependencies", "unevaluatedProperties"},
    "array": {"uniqueItems", "contains", "minContains", "maxContains", "additionalItems", "unevaluatedItems"},
}
"""Keywords that say something of a type and are refused there."""
_SAYS_NOTHING: dict[str, tuple[Any, ...]] = {
    "uniqueItems": (False,),
    "minProperties": (0,),
    "patternProperties": ({},),
    "propertyNames": ({}, True),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "dependencies": ({},),
    "unevaluatedProperties": ({}, True),
    "unevaluatedItems": ({}, True),
    "additionalItems": ({}, True),
}
"""Values with which such a keyword allows everything."""


def expression_of(schema: object) -> str:
    """The regular expression of a schema."""
    try:
        _expect(isinstance(schema, Mapping | bool), "a JSON schema is an object, true or false", schema)
        if schema is True or schema == {}:
            return any_json()
        found = _Schema(schema).value(schema, (), ANY_JSON_DEPTH)
    except RecursionError:
        raise UncodeError("the JSON schema is nested too deeply: nest fewer schemas.") from None
    if found is None:
        raise UncodeError(f"no JSON text of this depth is valid under the schema {shown(schema)}: change it.")
    return found


def any_json(depth: int = ANY_JSON_DEPTH) -> str:
    """The expression of any JSON value, with so many objects and arrays within one another."""
    plain = [f'"{CHARACTER}*"', NUMBER, "true", "false", "null"]
    if not depth:
        return either(plain)
    inner = any_json(depth - 1)
    return either([*plain, _list("[", [inner], "]"), _list("{", [f'"{CHARACTER}*": ?{inner}'], "}")])


def _list(opening: str, items: Sequence[str], closing: str, least: int = 0, most: int | None = None) -> str:
    """`items` and then any number of the last of them, with commas, `least` to `most` in all."""
    start, end, item = re.escape(opening), re.escape(closing), items[-1]
    if most == 0:
        return start + end
    rest = "*" if most is None else f"{{0,{most - 1}}}"
    if least > 1:
        rest = f"{{{least - 1},{'' if most is None else most - 1}}}"
    inside = f"{item}(?:, ?{item}){rest}"
    return f"{start}{inside if least else f'(?:{inside})?'}{end}"


class _Schema:
    """A whole schema, to which its parts may refer."""

    def __init__(self, root: Any) -> None:
        self._root, self._left = root, MAX_CHARACTERS

    def value(self, schema: Any, path: tuple[str, ...], depth: int) -> str | None:
        """The expression of a part of the schema; None where nothing is valid. `path` has the references so far."""
        self._left -= PART
        _check_size(0, self._left)
        found = self._value(schema, path, depth)
        self._left -= len(found or "")
        _check_size(0, self._left)
        return found

    def _value(self, schema: Any, path: tuple[str, ...], depth: int) -> str | None:
        if isinstance(schema, bool):
            return any_json(max(depth - 1, 0)) if schema else None
        _expect(isinstance(schema, Mapping), "a JSON schema is an object, true or false", schema)
        is_whole = schema is self._root or "$id" not in schema
        require(
            is_whole, "a constraint cannot have '$id' inside a JSON schema: '$ref' would mean something else there."
        )
        keys = set(schema) - _ANNOTATIONS
        for name, build in (
            ("$ref", self._reference),
            ("allOf", self._all_of),
            ("anyOf", self._any_of),
            ("oneOf", self._one_of),
        ):
            if name in keys:
                beside = keys - {name, "type"} if name != "$ref" else keys - {name}
                require(
                    not beside,
                    f"a constraint cannot have '{min(beside, default='')}' beside '{name}' in a JSON schema.",
                )
                if "type" in schema:
                    self._check_types(schema, name)
                return build(schema[name], path, depth)
        if "const" in keys:
            return self._constants([schema["const"]], schema, keys - {"const"})
        if "enum" in keys:
            return self._constants(schema["enum"], schema, keys - {"enum"})
        return self._typed(schema, keys, path, depth)

    def _typed(self, schema: Mapping[str, Any], keys: set[str], path: tuple[str, ...], depth: int) -> str | None:
        types = schema.get("type")
        if types is None:
            types = [
                name for name in ("object", "array", "string", "number") if keys & (_OF_TYPE[name] | _NOT_THESE[name])
            ]
            types = types[:1] or list(_OF_TYPE)
            if not keys - {"type"}:
                return any_json(max(depth - 1, 0))
        types = _types(types)
        everything = set().union(*_OF_TYPE.values(), *_NOT_THESE.values()) | {"type"}
        refused = sorted(keys - everything) + sorted(key for one in types for key in keys & _NOT_THESE.get(one, set()))
        refused = [key for key in refused if schema[key] not in _SAYS_NOTHING.get(key, ())]
        require(
            not refused, f"a constraint cannot have '{refused[0] if refused else ''}' of a JSON schema: leave it out."
        )
        builders = {"string": self._string, "integer": self._integer, "number": self._number}
        found = list[str | None]()
        for one in types:
            if one == "object":
                found.append(self._object(schema, path, depth))
            elif one == "array":
                found.append(self._array(schema, path, depth))
            elif one in builders:
                found.append(builders[one](schema))
            else:
                found.append("null" if one == "null" else "(?:true|false)")
        return any_of(found)

    def _constants(self, values: Any, schema: Mapping[str, Any], beside: set[str]) -> str | None:
        _expect(isinstance(values, list), "'enum' of a JSON schema is a list", values)
        more = beside - {"type"}
        require(not more, f"a constraint cannot have '{min(more, default='')}' beside constants in a JSON schema.")
        types = _types(schema.get("type", list(_OF_TYPE)))
        kept = [value for value in values if any(_has_type(value, one) for one in types)]
        return any_of([re.escape(json.dumps(value, ensure_ascii=False)) for value in kept])

    def _reference(self, target: Any, path: tuple[str, ...], depth: int) -> str | None:
        found = self._target(target)
        if path.count(target) >= MAX_UNROLLED:
            return None
        return self.value(found, (*path, target), depth)

    def _target(self, target: Any) -> Any:
        """The part of the schema that a reference names."""
        fits = isinstance(target, str) and (target == "#" or target.startswith("#/"))
        require(fits, f"a constraint follows '$ref' within a JSON schema alone, not to {shown(target)}.")
        found = self._root
        for part in target.split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(name)] if name.isdecimal() and int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, Mapping) else None
            require(found is not None, f"'$ref' of the JSON schema is {shown(target)}, which it does not have.")
        return found

    def _check_types(self, schema: Mapping[str, Any], name: str) -> None:
        """Refuse a type beside alternatives that may be of another one."""
        types, parts = _types(schema["type"]), schema[name] if isinstance(schema[name], list) else []
        types += ["integer"] if "number" in types else []
        fits = all(self._type_of(part) in types for part in parts)
        require(fits, f"a constraint cannot have 'type' beside '{name}' in a JSON schema: write it into each of them.")

    def _all_of(self, parts: Any, path: tuple[str, ...], depth: int) -> str | None:
        require(
            isinstance(parts, list) and len(parts) == 1, "a constraint cannot have 'allOf' of several JSON schemas."
        )
        return self.value(parts[0], path, depth)

    def _any_of(self, parts: Any, path: tuple[str, ...], depth: int) -> str | None:
        _expect(isinstance(parts, list) and len(parts) > 0, "'anyOf' is a list of JSON schemas", parts)
        return any_of([self.value(part, path, depth) for part in parts])

    def _one_of(self, parts: Any, path: tuple[str, ...], depth: int) -> str | None:
        """Alternatives of different types: a value is then valid under one of them alone."""
        types = [self._type_of(part) for part in parts] if isinstance(parts, list) else []
        differ = (
            len(types) > 0
            and None not in types
            and len({"number" if t == "integer" else t for t in types}) == len(types)
        )
        require(differ, "a constraint can have 'oneOf' of different types alone: write 'anyOf'.")
        return self._any_of(parts, path, depth)

    def _type_of(self, part: Any) -> str | None:
        for _ in range(MAX_UNROLLED):
            if isinstance(part, Mapping) and "$ref" in part:
                part = self._target(part["$ref"])
        found = part.get("type") if isinstance(part, Mapping) else None
        return found if isinstance(found, str) else None

    # -- types -----------------------------------------------------------------------------------

    def _string(self, schema: Mapping[str, Any]) -> str | None:
        pattern, kind = schema.get("pattern"), schema.get("format")
        least, most = _bound(schema, "minLength", 0), _bound(schema, "maxLength", None)
        has_length = least or most is not None
        if most is not None and least > most:
            return None
        require(not (pattern and kind), "a constraint cannot have 'pattern' beside 'format' in a JSON schema.")
        if pattern is not None:
            require(not has_length, "a constraint cannot have 'minLength' or 'maxLength' beside 'pattern'.")
            require(isinstance(pattern, str), f"'pattern' of a JSON schema is a text, not {shown(pattern)}.")
            return f'"{pattern_within(pattern, PLAIN)}"'
        if kind is not None:
            require(kind in FORMATS, f"a constraint has no 'format' {shown(kind)}: it has {', '.join(FORMATS)}.")
            require(not has_length, "a constraint cannot have 'minLength' or 'maxLength' beside 'format'.")
            return f'"{FORMATS[kind]}"'
        return f'"{CHARACTER}{_times(least, most)}"'

    def _integer(self, schema: Mapping[str, Any]) -> str | None:
        low, high = _limits(schema)
        return whole_numbers(low, high)

    def _number(self, schema: Mapping[str, Any]) -> str | None:
        if not set(schema) & _OF_TYPE["number"]:
            return NUMBER
        low, high = _limits(schema, whole=False)
        above = low is not None and "exclusiveMinimum" in schema
        below = high is not None and "exclusiveMaximum" in schema
        return decimals(low, high, above, below)

    def _array(self, schema: Mapping[str, Any], path: tuple[str, ...], depth: int) -> str | None:
        least, most = _bound(schema, "minItems", 0), _bound(schema, "maxItems", None)
        first, items = schema.get("prefixItems", []), schema.get("items", not schema.get("prefixItems"))
        _expect(isinstance(first, list), "'prefixItems' of a JSON schema is a list", first)
        _expect(not isinstance(items, list), "'items' of a JSON schema is one schema (a list is 'prefixItems')", items)
        if most is not None and least > most:
            return None
        if first:
            require(items is False or "items" not in schema, "a constraint cannot have 'items' beside 'prefixItems'.")
            found = [self.value(one, path, depth) for one in first]
            require(least <= len(found), "a constraint cannot have 'minItems' above the number of 'prefixItems'.")
            if None in found[:least]:
                return None
            return rf"\[{_in_order([(one, at < least) for at, one in enumerate(found[:most])], prefix=True)}\]"
        item = self.value(items, path, depth)
        if item is None:
            return r"\[\]" if not least else None
        return _list("[", [item], "]", least, most)

    def _object(self, schema: Mapping[str, Any], path: tuple[str, ...], depth: int) -> str | None:
        named, needed, others = (
            schema.get(n, d) for n, d in (("properties", {}), ("required", []), ("additionalProperties", True))
        )
        _expect(isinstance(named, Mapping), "'properties' of a JSON schema is an object", named)
        fits = isinstance(needed, list) and all(isinstance(one, str) for one in needed)
        _expect(fits, "'required' of a JSON schema is a list of names", needed)
        parts = dict(named) | {name: others for name in needed if name not in named}
        if not parts:
            inner = self.value(others, path, depth)
            return r"\{\}" if inner is None else _list("{", [f'"{CHARACTER}*": ?{inner}'], "}")
        pairs = list[tuple[str | None, bool]]()
        for name, part in parts.items():
            inner = self.value(part, path, depth)
            if inner is None and name in needed:
                return None
            key = re.escape(json.dumps(name, ensure_ascii=False))
            pairs.append((None if inner is None else f"{key}: ?{inner}", name in needed))
        return rf"\{{{_in_order(pairs)}\}}"


def _in_order(parts: Sequence[tuple[str | None, bool]], prefix: bool = False) -> str:
    """Parts with commas between them, in this order. One that is not needed may be missing; with `prefix`, all that
    come after it are missing then."""
    started, open_ended = "", ""
    for text, needed in reversed(parts):
        if text is None:
            started, open_ended = ("", "") if prefix else (started, open_ended)
            continue
        if needed:
            started, open_ended = f", ?{text}{started}", f"{text}{started}"
        elif prefix:
            started, open_ended = f"(?:, ?{text}{started})?", f"(?:{text}{started})?"
        else:
            first = f"{text}{started}"
            started, open_ended = (
                f"(?:, ?{text})?{started}",
                f"(?:{first}|{open_ended})" if open_ended else f"(?:{first})?",
            )
        _check_size(len(started) + len(open_ended), MAX_CHARACTERS)
    return open_ended


def _check_size(size: int, most: int) -> None:
    require(
        size <= most,
        f"the JSON schema has an expression of more than {MAX_CHARACTERS:,} characters: make fewer keys optional, or "
        "refer less within one another.",
    )


def _expect(fits: bool, what: str, value: Any) -> None:
    """Raise unless a value fits. A large value is shown only then."""
    if not fits:
        raise UncodeError(f"{what}, not {shown(value)}.")


def _types(types: Any) -> list[str]:
    """The value of `type` as a list."""
    found = [types] if isinstance(types, str) else types
    known = isinstance(found, list) and all(isinstance(one, str) and one in _OF_TYPE for one in found)
    _expect(known, f"'type' of a JSON schema is one of {', '.join(_OF_TYPE)}", types)
    return list(found)


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    kinds = {"string": str, "integer": int, "number": (int, float), "object": Mapping, "array": list}
    return kind in kinds and isinstance(value, kinds[kind])  # type: ignore[arg-type]


def _bound(schema: Mapping[str, Any], name: str, default: int | None) -> Any:
    value = schema.get(name, default)
    value = int(value) if type(value) is float and value.is_integer() else value
    fits = value is None or (type(value) is int and 0 <= value <= MAX_LENGTH)
    require(fits, f"'{name}' of a JSON schema must be a whole number up to {MAX_LENGTH:,} here, not {shown(value)}.")
    return value


def _times(least: int, most: int | None) -> str:
    return "*" if not least and most is None else f"{{{least},{'' if most is None else most}}}"


def _limits(schema: Mapping[str, Any], whole: bool = True) -> tuple[int | None, int | None]:
    """The least and the largest value; of whole numbers, exclusive bounds are moved inside."""
    found = list[int | None]()
    for name, exclusive, inside in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        require(not {name, exclusive} <= set(schema), f"a constraint cannot have '{exclusive}' beside '{name}'.")
        key = exclusive if exclusive in schema else name
        value = schema.get(key)
        fits = value is None or (type(value) in (int, float) and abs(value) < 1e18 and value == int(value))
        require(fits, f"'{key}' of a JSON schema must be a whole number here, not {shown(value)}.")
        found.append(None if value is None else int(value) + inside * (whole and key == exclusive))
    return found[0], found[1]
