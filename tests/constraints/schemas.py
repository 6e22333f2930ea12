"""Schemas like those that programs send: function calls, invoices, lists in lists, enums, bounds and formats."""

from __future__ import annotations

from typing import Any


def strict(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def some(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


TEXT, WORD, NUMBER = {"type": "string"}, {"type": "string", "maxLength": 32}, {"type": "number"}
FLAG, COUNT = {"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 1000}
DATE, MAIL = {"type": "string", "format": "date"}, {"type": "string", "format": "email"}


def several(items: Any, most: int | None = None) -> dict[str, Any]:
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})


SCHEMAS: dict[str, dict[str, Any]] = {
    "weather call": strict(location=TEXT, unit={"enum": ["celsius", "fahrenheit"]}),
    "tool call": strict(name={"enum": ["search", "open", "close"]}, arguments=some(["query"], query=TEXT, top=COUNT)),
    "search call": some(["query"], query=WORD, site=TEXT, pages=several(COUNT, 5), safe=FLAG),
    "invoice": strict(
        number={"type": "string", "pattern": r"^INV-\d{6}$"},
        date=DATE,
        lines=several(strict(item=WORD, amount=COUNT, price={"type": "number", "minimum": 0}), 4),
        total={"type": "number", "minimum": 0},
    ),
    "contact": some(["name", "email"], name=WORD, email=MAIL, phone={"type": ["string", "null"], "maxLength": 20}),
    "event": strict(title=WORD, starts={"type": "string", "format": "date-time"}, guests=several(MAIL, 8)),
    "person": some(
        ["name", "age"], name=TEXT, age={"type": "integer", "minimum": 0, "maximum": 130}, tags=several(WORD)
    ),
    "matrix": several(several(NUMBER, 4), 4),
    "bounding boxes": several(strict(label=WORD, box={"type": "array", "prefixItems": [COUNT] * 4, "minItems": 4}), 6),
    "sentiment": strict(
        label={"enum": ["positive", "neutral", "negative"]}, score={"type": "number", "minimum": 0, "maximum": 1}
    ),
    "answer with reasons": strict(steps=several(strict(thought=TEXT, result=TEXT)), answer=TEXT),
    "multiple choice": strict(answer={"enum": ["A", "B", "C", "D"]}),
    "address": some(
        ["street", "city"],
        street=WORD,
        city=WORD,
        zip={"type": "string", "pattern": "^[0-9]{5}$"},
        country={"const": "DE"},
    ),
    "product": some(
        ["sku", "price"],
        sku={"type": "string", "format": "uuid"},
        price={"type": "number", "exclusiveMinimum": 0},
        stock=COUNT,
    ),
    "server": strict(
        host={"type": "string", "format": "ipv4"}, port={"type": "integer", "minimum": 1, "maximum": 65535}, tls=FLAG
    ),
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {"node": some(["value"], value=COUNT, children=several({"$ref": "#/$defs/node"}, 2))},
    },
    "union": strict(value={"anyOf": [{"type": "integer"}, WORD, {"type": "null"}]}),
    "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 16}},
    "range": strict(low={"type": "integer", "maximum": 5}, high={"type": "integer", "exclusiveMinimum": -17}),
    "article": some(
        ["title"],
        title={"type": "string", "minLength": 3, "maxLength": 60},
        url={"type": "string", "format": "uri"},
        keywords=several(WORD, 6),
    ),
    "patch": several(strict(op={"enum": ["add", "remove"]}, path={"type": "string", "pattern": "^(/[a-z0-9]+)+$"}), 3),
    "schedule": strict(
        day={"enum": ["mon", "tue"]},
        at={"type": "string", "format": "time"},
        every={"type": ["integer", "null"], "minimum": 1},
    ),
}
