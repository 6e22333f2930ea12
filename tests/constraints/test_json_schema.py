"""JSON schemas: what the expression accepts is valid, and what is outside the subset is refused by its name."""

from __future__ import annotations

import json
from datetime import date
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.constraints.schemas import SCHEMAS
from uncode import UncodeError, constraint
from uncode.constraints.compiled import byte_dfa
from uncode.constraints.scalars import whole_numbers

FLOAT = {"type": "number"}


def nested_arrays(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        found = {"type": "array", "items": found}
    return found


def chain(names: str) -> dict[str, Any]:
    """Objects that refer to one another without a cycle."""
    following = [*({"$ref": f"#/$defs/{name}"} for name in names[1:]), {"type": "integer"}]
    parts = {
        name: {"type": "object", "properties": {"x": one}, "required": ["x"]}
        for name, one in zip(names, following, strict=True)
    }
    return {"$ref": f"#/$defs/{names[0]}", "$defs": parts}


def optional_keys(count: int, depth: int) -> dict[str, Any]:
    inner = optional_keys(count, depth - 1) if depth > 1 else {"type": "null"}
    return {"type": "object", "properties": {f"p{n}": inner for n in range(count)}}


def each_refers_to_all(count: int) -> dict[str, Any]:
    everything = {"anyOf": [{"$ref": f"#/$defs/a{n}"} for n in range(count)] + [{"type": "null"}]}
    return {"$ref": "#/$defs/a0", "$defs": {f"a{n}": everything for n in range(count)}}


def texts(expression: str, count: int, seed: int = 0) -> list[str]:
    """Random texts that an expression accepts."""
    dfa, random, found = byte_dfa(expression), Random(seed), list[str]()
    dead = len(dfa.table) - 1
    bytes_of = [[byte for byte in range(256) if dfa.class_of[byte] == of] for of in range(dfa.table.shape[1])]
    ends = [[(of, to) for of, to in enumerate(row) if to != dead] for row in dfa.table.tolist()]
    distance = np.where(dfa.accepts, 0, 1 << 30)
    for _ in range(dead):
        distance = np.minimum(distance, distance[dfa.table].min(1) + 1)
    for _ in range(count):
        state, text, left = dfa.start, bytearray(), random.randrange(120)
        while not (dfa.accepts[state] and (left <= 0 or not ends[state] or random.random() < 0.1)):
            pairs = ends[state]
            if left <= 0:
                nearest = min(distance[to] for _, to in pairs)
                pairs = [pair for pair in pairs if distance[pair[1]] == nearest]
            plain = [pair for pair in pairs if 32 <= bytes_of[pair[0]][0] < 127] or pairs
            of, state = random.choice(plain if random.random() < 0.95 else pairs)
            text.append(random.choice(bytes_of[of]))
            left -= 1
        found.append(text.decode())
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_accepted_is_valid(name: str) -> None:
    schema = SCHEMAS[name]
    known = set(jsonschema.FormatChecker.checkers) - {
        "time"
    }  # its times have no offset, which the standard's must have
    rule, checker = constraint(json_schema=schema), jsonschema.FormatChecker(known)
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    for text in texts(rule.expression, 30):
        validator.validate(json.loads(text))


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (True, '{"a": [1, {"b": null}], "c": "x\\n"}'),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, "[1, -2,3]"),
        ({"prefixItems": [{"type": "integer"}, {"type": "string"}], "type": "array"}, '[1, "é"]'),
        ({"enum": [1, "a b", None, [1, 2]]}, "[1, 2]"),
        ({"type": "string", "pattern": r"^\d{3}-[A-Z]+$"}, '"123-AB"'),
        ({"type": "string", "pattern": "b"}, '"abc"'),
        ({"type": ["string", "null"], "maxLength": 2}, '"\\"é"'),
        ({"properties": {"a": {"type": "integer"}, "b": True, "c": {}}, "required": ["b"]}, '{"b": 1, "c": "x"}'),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, '{"x": true, "y":false}'),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "0.25"),
        ({"type": "string", "format": "date"}, '"2020-02-29"'),
        ({"type": "string", "format": "date"}, '"1900-12-31"'),
        ({"type": "number", "anyOf": [{"type": "integer"}, {"$ref": "#/$defs/n"}], "$defs": {"n": FLOAT}}, "2.5"),
        (nested_arrays(6), "[[[[[[1]]]]]]"),
        ({"properties": {"a": {"$ref": "#/$defs/a%25b"}}, "$defs": {"a%b": {"maxLength": 2.0}}}, '{"a": "xy"}'),
        (chain("ABCDE"), '{"x": {"x": {"x": {"x": {"x": 3}}}}}'),
    ],
)
def test_documents_that_are_accepted(schema: Any, document: str) -> None:
    assert constraint(json_schema=schema).accepts(document)
    jsonschema.validate(json.loads(document), schema)


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": "array", "uniqueItems": True}, "'uniqueItems'"),
        ({"type": "object", "patternProperties": {"a": {}}}, "'patternProperties'"),
        ({"not": {"type": "string"}}, "'not'"),
        ({"if": {}, "then": {}}, "'if'"),
        ({"type": "integer", "multipleOf": 3}, "'multipleOf'"),
        ({"type": "string", "format": "iri"}, "no 'format' 'iri': it has date, time"),
        ({"type": "string", "pattern": r"(?=a)"}, "look-ahead"),
        ({"type": "string", "pattern": "a", "maxLength": 3}, "beside 'pattern'"),
        ({"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, "'oneOf' of different types alone"),
        ({"$ref": "https://example.org/s.json"}, r"'\$ref' within a JSON schema alone"),
        ({"properties": {"a": {"$id": "b", "$ref": "#"}}}, r"'\$id' inside"),
        ({"type": "string", "pattern": "^\\t$"}, "accepts no text at all"),
        ({"$ref": "#/$defs/a"}, "which it does not have"),
        ({"anyOf": [{"$ref": "#/anyOf/5"}]}, "which it does not have"),
        ({"type": "object", "maxProperties": 0}, "'maxProperties'"),
        ({"type": "object", "unevaluatedProperties": False}, "'unevaluatedProperties'"),
        ({"type": "object", "propertyNames": False}, "'propertyNames'"),
        ({"type": "array", "unevaluatedItems": False}, "'unevaluatedItems'"),
        ({"type": "array", "contains": {}}, "'contains'"),
        ({"type": "string", "anyOf": [{"type": "integer"}, {"type": "string"}]}, "'type' beside 'anyOf'"),
        ({"type": "string", "pattern": "^(?i:[^a])$"}, "has flags"),
        ({"type": "string", "pattern": "(?i)[^a]"}, "has flags"),
        ({"type": "string", "minLength": 5, "maxLength": 3}, "no JSON text of this depth"),
        ({"type": "text", "enum": [1]}, "is one of string, integer"),
        ({"type": 5, "enum": [1]}, "is one of string, integer"),
        ({"const": float("nan")}, "made of what json.loads returns"),
        ({"type": "integer", "minimum": float("inf")}, "made of what json.loads returns"),
        ({"enum": [{1}]}, "made of what json.loads returns"),
        (nested_arrays(5000), "nested too deeply"),
        ({"oneOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}, "'oneOf' of different types alone"),
        (optional_keys(25, 3), "make fewer keys optional"),
        (each_refers_to_all(6), "or refer less within one another"),
        ({"type": "text"}, "is one of string, integer"),
        ({"type": "number", "minimum": 0.5}, "must be a whole number here, not 0.5"),
        (False, "no JSON text of this depth is valid"),
        ([], "a JSON schema is an object, true or false"),
    ],
)
def test_what_is_refused(schema: Any, what: str) -> None:
    with pytest.raises(UncodeError, match=what):
        constraint(json_schema=schema)


def test_classes_of_a_pattern_are_those_of_all_readers() -> None:
    """ECMAScript knows other spaces and digits than Python does."""
    for pattern, text in (
        (r"^\S$", "\u00a0"),
        (r"^\S$", "\ufeff"),
        ("^.$", "\u2028"),
        (r"^\D$", "\u0663"),
        (r"^[^\d]$", "\u0663"),
        (r"^\d$", "\u0663"),
    ):
        rule = constraint(json_schema={"type": "string", "pattern": pattern})
        assert not rule.accepts(json.dumps(text, ensure_ascii=False))
        assert rule.accepts('"5"' if pattern == r"^\d$" else '"x"')


def test_dates_are_those_of_the_calendar() -> None:
    rule = constraint(json_schema={"type": "string", "format": "date"})
    for year in (0, 1, 4, 100, 400, 1000, 1900, 2000, 2010, 2023, 2024, 9999):
        for day in ("01-31", "02-28", "02-29", "02-30", "04-31", "12-31"):
            text = f"{year:04}-{day}"
            try:
                exists = bool(date.fromisoformat(text))
            except ValueError:
                exists = False
            assert rule.accepts(f'"{text}"') == exists


def test_a_constraint_keeps_a_copy_of_its_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    rule = constraint(json_schema=schema)
    schema["properties"] = {}
    assert rule.to_dict()["json_schema"]["properties"] == {"a": {"type": "null"}}


def test_ranges_of_whole_numbers() -> None:
    random = Random(0)
    for _ in range(40):
        low, high = sorted(random.randrange(-300, 3_000) for _ in range(2))
        found = whole_numbers(low, high)
        assert found is not None
        rule = constraint(regex=found)
        assert [n for n in range(-400, 3_200) if rule.accepts(str(n))] == list(range(low, high + 1))
    at_least, at_most = (constraint(regex=str(whole_numbers(*pair))) for pair in ((17, None), (None, -17)))
    assert [n for n in range(-200, 200) if at_least.accepts(str(n))] == list(range(17, 200))
    assert [n for n in range(-200, 200) if at_most.accepts(str(n))] == list(range(-200, -16))


@pytest.mark.parametrize("key", ["minimum", "exclusiveMinimum"])
@pytest.mark.parametrize("other", ["maximum", "exclusiveMaximum"])
def test_numbers_with_bounds(key: str, other: str) -> None:
    for low, high in ((0, 1), (-2, 3), (-5, -3), (4, 4), (-1, 0), (7, 120)):
        schema = {"type": "number", key: low, other: high}
        if low == high and "exclusive" in key + other:
            continue
        rule, validator = constraint(json_schema=schema), jsonschema.Draft202012Validator(schema)
        for n in range(-600, 600):
            for text in (str(n), f"{n / 4}", f"{n / 100:.2f}"):
                assert (
                    rule.accepts(text) == validator.is_valid(json.loads(text))
                    or text.startswith("-0.0")
                    or text == "-0"
                )


def test_the_parts_of_a_constraint() -> None:
    for wrong in ({}, {"regex": "a", "choices": ["b"]}, {"choices": "a"}, {"choices": []}, {"kind": "xml"}):
        with pytest.raises(UncodeError):
            constraint(**wrong)  # type: ignore[arg-type]
    assert constraint("json").accepts('{"a": [true]}')
    assert constraint(choices=["a|b", "c"]).accepts("a|b")
    assert repr(constraint(regex="a")) == "constraint(regex='a')"
    assert repr(constraint("json")) == "constraint(json=3)"
