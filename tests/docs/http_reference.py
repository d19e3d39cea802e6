"""The reference of the HTTP API, made from its OpenAPI document."""

from __future__ import annotations

from typing import Any

from holdfast import Holdfast
from holdfast.http import asgi
from holdfast.http.problems import KINDS

_HEAD = """\
# HTTP API

Every route, made from the OpenAPI document, which a server has at `/openapi.json`. Paths are below where the API is
mounted. [The guide](../http.md) says how to use them; each route names the scope that its key needs.
"""


def http_reference() -> str:
    """The whole page."""
    document = asgi(Holdfast(":memory:")).openapi()
    schemas = document["components"]["schemas"]
    parts = [_HEAD]
    for tag, operations in _by_tag(document).items():
        parts.append(f"## {tag.capitalize()}\n")
        parts += [_operation(method, path, told, schemas) for method, path, told in operations]
    parts.append("## Problems\n")
    parts.append("`type` is `urn:holdfast:problem:` and the name.\n")
    rows = [f"| `{kind.name}` | {kind.status} | {kind.title} | {kind.remedy} |" for kind in KINDS]
    parts.append("\n".join(["| name | status | what | what to do |", "|---|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, item in document["paths"].items():
        for method, told in item.items():
            found.setdefault(told["tags"][0], []).append((method.upper(), path, told))
    return found


def _operation(method: str, path: str, told: dict[str, Any], schemas: dict[str, Any]) -> str:
    lines = [f"### {method} {path}", "", told["description"], ""]
    parameters = [each for each in told.get("parameters", ()) if each["in"] != "path"]
    fields = [_field(each["name"], each["in"], each["schema"], each.get("description", "")) for each in parameters]
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    for schema in _schemas(body, schemas):
        required = schema.get("required", ())
        for name, each in schema.get("properties", {}).items():
            where = "body, required" if name in required else "body"
            fields.append(_field(name, where, each, each.get("description", "")))
    if fields:
        lines += ["| field | where | type | |", "|---|---|---|---|", *fields, ""]
    good = {status: each for status, each in told["responses"].items() if int(status) < 400}
    bad = [status for status in told["responses"] if int(status) >= 400]
    answers = [f"{status}: {_answer(each)}" for status, each in good.items()]
    return "\n".join([*lines, f"Answers: {'; '.join(answers)}. Refusals: {', '.join(bad)}.", ""])


def _schemas(body: dict[str, Any] | None, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if body is None:
        return []
    options = body.get("anyOf", [body])
    return [schemas[each["$ref"].rpartition("/")[2]] for each in options if "$ref" in each]


def _field(name: str, where: str, schema: dict[str, Any], description: str) -> str:
    return f"| `{name}` | {where} | {_type(schema)} | {description} |"


def _type(schema: dict[str, Any]) -> str:
    options = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return " or ".join(_one_type(each) for each in options)


def _one_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _answer(told: dict[str, Any]) -> str:
    for kind, content in told.get("content", {}).items():
        reference = content.get("schema", {}).get("$ref", "")
        return f"`{reference.rpartition('/')[2]}`" if reference else f"`{kind}`"
    return "nothing"
