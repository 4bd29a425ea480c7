"""Compares answers with the description of the API: their status, and every field of their body."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import httpx

from adloom.app.control import build_openapi_document

Json = dict[str, Any]

KINDS: Final[dict[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def list_deviations(answer: httpx.Response) -> list[str]:
    """Say where an answer is not as described; an address that is not described has no deviations."""
    operation = _find_operation(answer.request.method.lower(), answer.request.url.path)
    if operation is None:
        return []
    described = operation["responses"].get(str(answer.status_code))
    if described is None:
        return [f"the status {answer.status_code} is not described"]
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if not answer.content or not kind.endswith("json"):
        return []
    if kind not in described.get("content", {}):
        return [f"a body of {kind} is not described"]
    return list(_compare(answer.json(), described["content"][kind]["schema"], "body"))


@cache
def _document() -> Json:
    return build_openapi_document()


@cache
def _operations() -> list[tuple[re.Pattern[str], Json]]:
    # An address without parameters comes before one that they could spell.
    paths = sorted(_document()["paths"], key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), _document()["paths"][path]) for path in paths]


def _find_operation(method: str, path: str) -> Json | None:
    found = (item[method] for pattern, item in _operations() if method in item and pattern.fullmatch(path))
    return next(found, None)


def _compare(value: Any, schema: Json, where: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = _document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        yield from min((list(_compare(value, one, where)) for one in schema["anyOf"]), key=len)
        return
    kind = schema.get("type")
    is_flag = isinstance(value, bool) and kind != "boolean"
    if kind is not None and (is_flag or not isinstance(value, KINDS[kind])):
        yield f"{where} is {value!r}, no {kind}"
    elif value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where} is {value!r}, which is not described"
    elif isinstance(value, list):
        for one in value:  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from _compare(one, schema.get("items", {}), f"{where}[]")
    elif isinstance(value, dict):
        yield from _compare_fields(value, schema, where)  # pyright: ignore[reportUnknownArgumentType] - JSON


def _compare_fields(value: Json, schema: Json, where: str) -> Iterator[str]:
    fields: Json = schema.get("properties", {})
    others: Any = schema.get("additionalProperties", not fields)
    yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, inner in value.items():
        if name in fields:
            yield from _compare(inner, fields[name], f"{where}.{name}")
        elif isinstance(others, dict):
            yield from _compare(inner, others, f"{where}.{name}")  # pyright: ignore[reportUnknownArgumentType] - JSON
        elif not others:
            yield f"{where}.{name} is not described"
