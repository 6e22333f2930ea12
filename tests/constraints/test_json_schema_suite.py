"""The official JSON Schema test suite, which the source distribution of `jsonschema` carries; `make verify` unpacks it.

`json_schema_suite.json` records how many cases of each of its files are within the subset. `python -m
tests.constraints.test_json_schema_suite` writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.constraints.test_json_schema import texts
from uncode import UncodeError, constraint

ROOT = Path(__file__).parents[2]
SUITE = Path(os.environ.get("JSON_SCHEMA_SUITE", ROOT / ".venv" / "json-schema-suite" / "json" / "tests"))
DRAFT = "draft2020-12"
DRAFTS = {
    DRAFT: jsonschema.Draft202012Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft7": jsonschema.Draft7Validator,
}
SUMMARY = Path(__file__).parent / "json_schema_suite.json"
NESTED = 3
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SUITE.is_dir(), reason="`make verify` unpacks the JSON Schema test suite"),
]


@cache
def cases(draft: str) -> dict[str, list[dict[str, Any]]]:
    """The cases of each file."""
    folder = SUITE / draft
    return {str(file.relative_to(folder))[:-5]: json.loads(file.read_text()) for file in sorted(folder.rglob("*.json"))}


def made(schema: Any) -> Any:
    """The constraint of a schema; None where it is refused by the name of one of its keywords."""
    try:
        return constraint(json_schema=schema)
    except UncodeError as error:
        why = str(error)
    known = {"the pattern ", "False", "schema {", "accepts no text", *(f"'{one}'" for one in keys_of(schema))}
    assert any(name in why for name in known), why
    return None


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_of(one)


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_schema_is_held_to_or_refused_by_name(draft: str) -> None:
    """What is generated is valid, what is invalid is not accepted, and what the docs promise is."""
    known = set(jsonschema.FormatChecker.checkers) - {"time"}  # its times have no offset
    checker = jsonschema.FormatChecker(known)
    for name, all_cases in cases(draft).items():
        for case in all_cases:
            schema, what = case["schema"], f"{name}: {case['description']}"
            rule = made(schema)
            if rule is None:
                continue
            validator = DRAFTS[draft](schema, format_checker=checker)
            for text in texts(rule.expression, 20 if draft == DRAFT else 5):
                assert validator.is_valid(json.loads(text)), (what, text)
            for test in case["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False)
                assert test["valid"] or not rule.accepts(text), (what, text)
                if test["valid"] and name != "vocabulary" and is_promised(schema, test["data"], schema):
                    assert rule.accepts(text), (what, text)


def is_promised(schema: Any, value: Any, root: Any, nested: int = NESTED) -> bool:
    """Whether docs/constraints.md promises that a valid document is accepted."""
    if isinstance(schema, bool):
        return schema and depth(value) <= nested
    if "$ref" in schema:
        part = root
        for name in [] if schema["$ref"] == "#" else schema["$ref"].removeprefix("#/").split("/"):
            part = part[int(name)] if isinstance(part, list) else part.get(name)
        return nested > 0 and part is not None and is_promised(part, value, root, nested - 1)
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return any(is_promised(one, value, root, nested) for one in schema[name])
    if "const" in schema or "enum" in schema:
        return json.dumps(value) in map(json.dumps, schema.get("enum", [schema.get("const")]))
    kinds = schema.get("type") or next((kind for kind, its in KEYWORDS.items() if its & schema.keys()), None)
    if kinds is None:
        return depth(value) <= nested
    if not any(isinstance(value, PYTHON[kind]) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if isinstance(value, dict):
        named, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        parts = named | {name: others for name in schema.get("required", []) if name not in named}
        if parts and list(value) != [name for name in parts if name in value]:
            return False
        return all(is_promised(parts.get(name, others), one, root, nested - 1) for name, one in value.items())
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        pairs = zip(value, first or [schema.get("items", True)] * len(value), strict=False)
        fits = not first or len(value) <= len(first)
        return fits and all(is_promised(of, one, root, nested - 1) for one, of in pairs)
    if isinstance(value, str):
        return "format" not in schema and ("pattern" not in schema or (value.isprintable() and value.isascii()))
    return not isinstance(value, float) or "e" not in repr(value)


KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
}
PYTHON: dict[str, Any] = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int}
PYTHON |= {"boolean": bool, "null": type(None)}


def depth(value: Any) -> int:
    """Objects and arrays within one another."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


def summary() -> dict[str, Any]:
    """How many cases a file has, and how many are within the subset."""
    counts = {name: [len(of), sum(made(one["schema"]) is not None for one in of)] for name, of in cases(DRAFT).items()}
    return {"jsonschema": version("jsonschema"), "draft": DRAFT, "files": counts}


def test_the_summary_is_that_of_the_suite() -> None:
    recorded = json.loads(SUMMARY.read_text())
    if recorded["jsonschema"] != version("jsonschema"):
        pytest.skip(f"recorded with jsonschema {recorded['jsonschema']}")
    assert summary() == recorded


if __name__ == "__main__":
    found = summary()
    lines = ",\n".join(f"  {json.dumps(name)}: {of}" for name, of in found.pop("files").items())
    SUMMARY.write_text(json.dumps(found)[:-1] + f', "files": {{\n{lines}\n}}}}\n')
