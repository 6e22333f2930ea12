"""JSON schemas: what the expression accepts is valid, and what is outside the subset is refused by its name."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.constraints.schemas import SCHEMAS
from uncode import UncodeError, constraint
from uncode.constraints.compiled import byte_dfa
from uncode.constraints.json_schema import whole_numbers


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
        ({"type": "string", "format": "iri"}, "no format 'iri': it has date, time"),
        ({"type": "string", "pattern": r"(?=a)"}, "look-ahead"),
        ({"type": "string", "pattern": "a", "maxLength": 3}, "beside 'pattern'"),
        ({"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, "'oneOf' of different types alone"),
        ({"$ref": "https://example.org/s.json"}, "references within a JSON schema alone"),
        ({"$ref": "#/$defs/a"}, "which it does not have"),
        ({"type": "text"}, "is one of string, integer"),
        ({"type": "number", "minimum": 0.5}, "must be a whole number here, not 0.5"),
        (False, "no JSON text of this depth is valid"),
        ([], "a JSON schema is an object, true or false"),
    ],
)
def test_what_is_refused(schema: Any, what: str) -> None:
    with pytest.raises(UncodeError, match=what):
        constraint(json_schema=schema)


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
