"""Law 10 for texts that PostgreSQL cannot store: the error names the field, on every route.

The walk takes its routes from the API's own description, so a new route is walked as soon as it is there.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from adloom.app.control import openapi_document
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane

PARAMETER = re.compile(r"\{(\w+)\}")
NUL = "a\0b"
HALF_A_SURROGATE = "a\ud800b"
# Parameters that are not ids; they are tested separately.
TEXTS_IN_PATHS = {"slug", "reference_id", "queue_name", "job_id", "letter_id"}
KNOWN = {"kind": "brand", "queue_name": "banners", "slug": "home", "letter_id": "1-0"}

DOCUMENT = openapi_document()
# What a rule's value may be depends on its type, and an import has documents: they are walked in
# `test_hostile_input.py` and `catalog/transfer/test_hostile_documents.py`.
LOOKED_AT_LATER = {("/admin/targeting-rules", "value"), ("/admin/targeting-rules/{rule_id}", "value")}
ELSEWHERE = (
    "/admin/import",
    *("/banners/serve", "/banners/events", "/api/v1/ads/serve", "/api/v1/ads/events"),  # On delivery.
    *("/i/", "/c/", "/tag", "/serve/", "/v1/serve", "/v1/classify-page", "/events/conversion"),
)
OPERATIONS: list[tuple[str, str, Json]] = [
    (method.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if not path.startswith(ELSEWHERE)
]


# An admin asks for a seller, and names it.
SELLER = {"sellerId": str(UNKNOWN_ID)}


@pytest.fixture
async def person(control: ControlPlane, admin: Client) -> Client:
    """An admin who has logged in, and may use every route."""
    name, password = "ann@example.com", "a good password"
    await admin.made("/admin/accounts", {"email": name, "password": password, "role": "admin"})
    tokens = (await admin.post("/auth/login", json={"email": name, "password": password})).json()
    return control.client(Authorization=f"Bearer {tokens['accessToken']}")


def filled(path: str, **texts: str) -> str:
    return PARAMETER.sub(lambda found: texts.get(found[1]) or KNOWN.get(found[1], str(UNKNOWN_ID)), path)


def resolved(schema: Json) -> Json:
    for one in schema.get("anyOf", ()):
        if "$ref" in one:
            schema = one
    name = schema.get("$ref", "").rpartition("/")[2]
    return DOCUMENT["components"]["schemas"][name] if name else schema


def fields_of(operation: Json) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return list(resolved(content.get("schema", {})).get("properties", ()))


def parameters_of(operation: Json, place: str) -> list[str]:
    return [one["name"] for one in operation.get("parameters", ()) if one["in"] == place]


def hidden_in(field: str, text: str) -> Iterator[Json]:
    """Insert a text where a field may have one; both texts are looked for together, so one is enough inside."""
    yield {field: text}
    if text == NUL:
        yield from ({field: [text]}, {field: {"k": text}}, {field: {text: "v"}})


def is_named(field: str, answer: httpx.Response) -> bool:
    if answer.status_code != 400:
        return False
    problems: list[Json] = answer.json().get("errors", [])
    return any(re.split(r"[.\[]", str(one["field"]))[0] == field for one in problems)


@pytest.mark.parametrize("text", [NUL, HALF_A_SURROGATE], ids=["NUL", "half a surrogate"])
async def test_no_body_field_accepts_a_text_that_cannot_be_stored(text: str, person: Client) -> None:
    taken: list[tuple[Any, ...]] = []

    for method, path, operation in OPERATIONS:
        for field in fields_of(operation):
            if (path, field) in LOOKED_AT_LATER:
                continue
            for body in hidden_in(field, text):
                answer = await person.request(
                    method,
                    filled(path),
                    params=SELLER if path.startswith("/api/ads-manager") else None,
                    content=json.dumps(body),
                    headers={"content-type": "application/json"},
                )
                if not is_named(field, answer):
                    taken.append((method, path, body, answer.status_code, answer.text[:200]))

    assert taken == []


async def test_no_parameter_accepts_a_text_that_cannot_be_stored(person: Client) -> None:
    taken: list[tuple[Any, ...]] = []

    for method, path, operation in OPERATIONS:
        for name in parameters_of(operation, "query"):
            seller = SELLER if path.startswith("/api/ads-manager") else {}
            answer = await person.request(method, filled(path), params={**seller, name: NUL})
            if not is_named(name, answer):
                taken.append((method, path, name, answer.status_code, answer.text[:200]))

    assert taken == []


async def test_a_path_that_cannot_be_stored_is_not_found(person: Client) -> None:
    found: list[tuple[Any, ...]] = []

    for method, path, operation in OPERATIONS:
        for name in TEXTS_IN_PATHS.intersection(parameters_of(operation, "path")):
            for text in ("a%00b", "a%ed%a0%80b"):
                answer = await person.request(method, filled(path, **{name: text}))
                if answer.status_code not in {400, 404, 409}:
                    found.append((method, path, name, text, answer.status_code, answer.text[:200]))

    assert found == []
