"""Law 10 for texts that PostgreSQL cannot store: the error names the field, on every route.

The walk takes its routes from the API's own description, so a new route is walked as soon as it is there.
"""

import json
import re
from typing import Any

import httpx
import pytest

from adloom.app.control import build_openapi_document
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane

PARAMETER = re.compile(r"\{(\w+)\}")
NUL = "a\0b"
HALF_A_SURROGATE = "a\ud800b"
# Parameters that are not ids; they are tested separately.
TEXTS_IN_PATHS = {"slug", "reference_id", "queue_name", "job_id", "letter_id"}
KNOWN = {"kind": "brand", "queue_name": "banners", "slug": "home", "letter_id": "1-0"}

# What a rule's value may be depends on its type, and an import has documents: they are walked in
# `test_hostile_input.py` and `catalog/transfer/test_hostile_documents.py`.
LOOKED_AT_LATER = {("/admin/targeting-rules", "value"), ("/admin/targeting-rules/{rule_id}", "value")}
ELSEWHERE = (
    "/admin/import",
    *("/banners/serve", "/banners/events", "/api/v1/ads/serve", "/api/v1/ads/events"),  # On delivery.
    *("/i/", "/c/", "/tag", "/serve/", "/v1/serve", "/v1/classify-page", "/v1/preview", "/events/conversion"),
)
# An admin asks for a seller, and names it.
SELLER = {"sellerId": str(UNKNOWN_ID)}


def operations() -> list[tuple[str, str, Json]]:
    return [
        (method.upper(), path, operation)
        for path, described in build_openapi_document()["paths"].items()
        for method, operation in described.items()
        if not path.startswith(ELSEWHERE)
    ]


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
    return build_openapi_document()["components"]["schemas"][name] if name else schema


def fields_of(operation: Json) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return list(resolved(content.get("schema", {})).get("properties", ()))


def parameters_of(operation: Json, place: str) -> list[str]:
    return [one["name"] for one in operation.get("parameters", ()) if one["in"] == place]


def hidden_in(text: str) -> list[Any]:
    """Insert a text where a field may have one; both texts are looked for together, so one is enough inside."""
    return [text, [text], {"k": text}, {text: "v"}] if text == NUL else [text]


def named_fields(answer: httpx.Response) -> set[str]:
    """Return the fields that an error names."""
    if answer.status_code != 400:
        return set()
    problems: list[Json] = answer.json().get("errors", [])
    return {re.split(r"[.\[]", str(one["field"]))[0] for one in problems}


async def send(person: Client, method: str, path: str, body: Json) -> httpx.Response:
    return await person.request(
        method,
        filled(path),
        params=SELLER if path.startswith("/api/ads-manager") else None,
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )


@pytest.mark.parametrize("text", [NUL, HALF_A_SURROGATE], ids=["NUL", "half a surrogate"])
async def test_no_body_field_accepts_a_text_that_cannot_be_stored(text: str, person: Client) -> None:
    taken: list[tuple[Any, ...]] = []

    for method, path, operation in operations():
        fields = {field for field in fields_of(operation) if (path, field) not in LOOKED_AT_LATER}
        for value in hidden_in(text) if fields else ():
            # All fields at once; those that the error does not name are sent again, each by itself.
            together = await send(person, method, path, dict.fromkeys(fields, value))
            for field in fields - named_fields(together):
                answer = await send(person, method, path, {field: value})
                if field not in named_fields(answer):
                    taken.append((method, path, field, value, answer.status_code, answer.text[:200]))

    assert taken == []


async def test_no_parameter_accepts_a_text_that_cannot_be_stored(person: Client) -> None:
    taken: list[tuple[Any, ...]] = []

    for method, path, operation in operations():
        names = set(parameters_of(operation, "query"))
        if not names:
            continue
        seller = SELLER if path.startswith("/api/ads-manager") else {}
        together = await person.request(method, filled(path), params={**seller, **dict.fromkeys(names, NUL)})
        for name in names - named_fields(together):
            answer = await person.request(method, filled(path), params={**seller, name: NUL})
            if name not in named_fields(answer):
                taken.append((method, path, name, answer.status_code, answer.text[:200]))

    assert taken == []


async def test_a_path_that_cannot_be_stored_is_not_found(person: Client) -> None:
    found: list[tuple[Any, ...]] = []

    for method, path, operation in operations():
        for name in TEXTS_IN_PATHS.intersection(parameters_of(operation, "path")):
            for text in ("a%00b", "a%ed%a0%80b"):
                answer = await person.request(method, filled(path, **{name: text}))
                if answer.status_code not in {400, 404, 409}:
                    found.append((method, path, name, text, answer.status_code, answer.text[:200]))

    assert found == []
