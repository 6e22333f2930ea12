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

from ..core.errors import UncodeError, require, shown
from .characters import Ranges, complement, merged
from .expression import pattern_within

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
_NEEDS_ESCAPE: Ranges = merged([(0, 31), (34, 34), (92, 92)])
PLAIN = complement(_NEEDS_ESCAPE)
"""Characters that a JSON string has as they are."""
_ESCAPE = r'\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})'
CHARACTER = rf'(?:[^"\\\x00-\x1f]|{_ESCAPE})'
INTEGER = r"-?(?:0|[1-9][0-9]*)"
NUMBER = rf"{INTEGER}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{{1,2}})?"
_LONG_MONTH, _SHORT_MONTH = r"(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])", r"(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_DAY = rf"(?:{_LONG_MONTH}|{_SHORT_MONTH}|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_YEAR, _FOURTH = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)", "(?:0[48]|[2468][048]|[13579][26])"
_DATE = rf"(?:{_YEAR}-{_DAY}|(?:[0-9]{{2}}{_FOURTH}|{_FOURTH}00)-02-29)"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_CLOCK})"
_BYTE, _LABEL = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])", r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "uuid": "-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12)),
    "email": rf"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@{_LABEL}(?:\.{_LABEL})+",
    "hostname": rf"{_LABEL}(?:\.{_LABEL})*",
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "uri": r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,4})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*",
}
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
        return _either(plain)
    inner = any_json(depth - 1)
    return _either([*plain, _list("[", [inner], "]"), _list("{", [f'"{CHARACTER}*": ?{inner}'], "}")])


def _either(found: Sequence[str]) -> str:
    return f"(?:{'|'.join(found)})"


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
        keys = set(schema) - _ANNOTATIONS
        for name, build in (
            ("$ref", self._reference),
            ("allOf", self._all_of),
            ("anyOf", self._any_of),
            ("oneOf", self._one_of),
        ):
            if name in keys:
                beside = keys - {name, "type", "nullable"} if name != "$ref" else keys - {name}
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
        return _any(found)

    def _constants(self, values: Any, schema: Mapping[str, Any], beside: set[str]) -> str | None:
        _expect(isinstance(values, list), "'enum' of a JSON schema is a list", values)
        more = beside - {"type"}
        require(not more, f"a constraint cannot have '{min(more, default='')}' beside constants in a JSON schema.")
        types = _types(schema.get("type", list(_OF_TYPE)))
        kept = [value for value in values if any(_has_type(value, one) for one in types)]
        return _any([re.escape(json.dumps(value, ensure_ascii=False)) for value in kept])

    def _reference(self, target: Any, path: tuple[str, ...], depth: int) -> str | None:
        found = self._target(target)
        if path.count(target) >= MAX_UNROLLED:
            return None
        return self.value(found, (*path, target), depth)

    def _target(self, target: Any) -> Any:
        """The part of the schema that a reference names."""
        fits = isinstance(target, str) and (target == "#" or target.startswith("#/"))
        require(fits, f"a constraint follows references within a JSON schema alone, not {shown(target)}.")
        found = self._root
        for part in target.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(name)] if name.isdecimal() and int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, Mapping) else None
            require(found is not None, f"the JSON schema refers to {shown(target)}, which it does not have.")
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
        return _any([self.value(part, path, depth) for part in parts])

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
            require(kind in FORMATS, f"a constraint has no format {shown(kind)}: it has {', '.join(FORMATS)}.")
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
        return _decimals(low, high, above, below)

    def _array(self, schema: Mapping[str, Any], path: tuple[str, ...], depth: int) -> str | None:
        least, most = _bound(schema, "minItems", 0), _bound(schema, "maxItems", None)
        first, items = schema.get("prefixItems", []), schema.get("items", not schema.get("prefixItems"))
        _expect(isinstance(first, list), "'prefixItems' of a JSON schema is a list", first)
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


def _any(found: Sequence[str | None]) -> str | None:
    kept = list(dict.fromkeys(one for one in found if one is not None))
    return None if not kept else kept[0] if len(kept) == 1 else _either(kept)


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


def whole_numbers(low: int | None, high: int | None) -> str | None:
    """The expression of the whole numbers from `low` to `high`; None is no bound."""
    if low is None and high is None:
        return INTEGER
    negative = _naturals(max(1, -high) if high is not None else 1, None if low is None else -low)
    natural = _naturals(max(low, 0) if low is not None else 0, high)
    return _any([negative and f"-{negative}", natural])


def _naturals(low: int, high: int | None) -> str | None:
    """The natural numbers from `low` to `high`, without leading zeros."""
    if high is None:
        digits = len(str(low))
        same = _naturals(low, 10**digits - 1)
        return _any([same, f"[1-9][0-9]{{{digits},}}"])
    if low > high:
        return None
    parts, at = list[str](), low
    while at <= high:
        step = 1  # the largest power of ten at which a run of numbers with free last digits begins here
        while at % (step * 10) == 0 and at + step * 10 - 1 <= high and at > 0:
            step *= 10
        head, free = at // step, len(str(step)) - 1
        last = min(head - head % 10 + 9, (high - step + 1) // step)
        digit = f"[{head % 10}-{last % 10}]" if last > head else str(head % 10)
        before = str(head // 10) if head >= 10 else ""
        parts.append(before + digit + (f"[0-9]{{{free}}}" if free else ""))
        at = (last + 1) * step
    return _any(parts)


def _decimals(low: int | None, high: int | None, above: bool, below: bool) -> str | None:
    """Numbers between two whole ones, which are excluded where `above` or `below` says so."""
    natural = negative = None
    if high is None or high >= 0:
        natural = _magnitudes(max(low or 0, 0), high, above and low is not None and low >= 0, below)
    if low is None or low < 0:
        least = 0 if high is None else max(-high, 0)
        negative = _magnitudes(least, None if low is None else -low, below and high is not None and high <= 0, above)
    return _any([natural, negative and f"-{negative}"])


def _magnitudes(low: int, high: int | None, above: bool, below: bool) -> str | None:
    """The same without a sign; `low` is 0 or more."""
    inner = _naturals(low + above, None if high is None else high - 1)
    found = [inner and rf"{inner}(?:\.[0-9]+)?"]
    if above and (high is None or low < high):
        found.append(rf"{low}\.[0-9]*[1-9][0-9]*")
    if high is not None and not below and high >= low + above:
        found.append(rf"{high}(?:\.0+)?")
    return _any(found)
