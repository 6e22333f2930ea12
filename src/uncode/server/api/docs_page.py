"""The page at /docs: the OpenAPI document as plain HTML. It loads nothing from elsewhere, and needs no script."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse

OpenApi = dict[str, Any]
"""An OpenAPI document, or a part of one."""
STYLE = """:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{margin-top:2.5rem}code{font:0.9em ui-monospace,monospace}table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884}"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def docs_routes(app: FastAPI) -> APIRouter:
    """The route of the page."""
    routes = APIRouter()

    @routes.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()), headers={"Content-Security-Policy": POLICY})

    return routes


def docs_page(document: OpenApi) -> str:
    """All endpoints of an OpenAPI document, with the fields of their bodies."""
    about = "".join(f"<p>{_text(part)}</p>" for part in document["info"]["description"].split("\n\n"))
    parts = [
        _operation(document, path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    title = f"{escape(document['info']['title'])} {escape(document['info']['version'])}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}: API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><h1>{title}</h1>{about}"
        f'<p>For programs: <a href="openapi.json">openapi.json</a>.</p>{"".join(parts)}</html>'
    )


def _operation(document: OpenApi, path: str, method: str, operation: OpenApi) -> str:
    head = f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{_text(operation.get('summary', ''))}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is None:
        return head
    schema = _resolved(document, body)
    required = set(schema.get("required", ()))
    rows = "".join(_field(name, field, name in required) for name, field in schema["properties"].items())
    return f"{head}<table><tr><th>field<th>type<th>meaning</tr>{rows}</table>"


def _field(name: str, field: OpenApi, is_required: bool) -> str:
    meaning = _text(field.get("description", "")) + (" <b>Required.</b>" if is_required else "")
    return f"<tr><td><code>{escape(name)}</code><td>{escape(_type(field))}<td>{meaning}</tr>"


def _type(field: OpenApi) -> str:
    """The type of a field in words."""
    members = field.get("anyOf") or field.get("oneOf")
    if members:
        return " or ".join(dict.fromkeys(one for part in members if (one := _type(part)) != "null"))
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "enum" in field or "const" in field:
        return ", ".join(map(str, field.get("enum", [field.get("const")])))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "anything"))


def _resolved(document: OpenApi, schema: OpenApi) -> OpenApi:
    """A schema, or the component that it names."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def _text(text: str) -> str:
    """Words in backticks are code."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
