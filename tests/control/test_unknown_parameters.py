"""A parameter that a route does not know is refused by its name: a misspelt filter must not answer as if it were none."""

import re

from adloom.app.control import build_openapi_document
from adloom.serving.request.overrides import PARAMETERS
from tests.support.builders import UNKNOWN_ID
from tests.support.control import Client, error_fields, problem

VISITOR = {
    "device": "mobile",
    "country": "DE",
    "language": "de",
    "loggedIn": "true",
    "newVisitor": "false",
    "referrer": "news.example.com",
    "segment": "sport",
    "userId": str(UNKNOWN_ID),
    "at": "2026-12-24T18:00:00Z",
}
KNOWN_PARTS = {"kind": "brand", "queue_name": "banners"}


def guarded_operations() -> list[tuple[str, str]]:
    return [
        (method.upper(), path)
        for path, item in build_openapi_document()["paths"].items()
        for method, described in item.items()
        if described.get("security")
    ]


def fill_in(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: KNOWN_PARTS.get(found[1], str(UNKNOWN_ID)), path)


async def name_refused(client: Client, method: str, path: str) -> set[str]:
    answer = await client.request(method, path, params={"nonsense": 1})
    return error_fields(answer.json()) if answer.status_code == 400 else set()


async def test_every_route_names_the_parameter_that_it_does_not_know(admin: Client) -> None:
    ignored = [
        f"{method} {path}"
        for method, path in guarded_operations()
        if "nonsense" not in await name_refused(admin, method, fill_in(path))
    ]

    assert ignored == []
    assert len(guarded_operations()) > 200


async def test_an_explanation_takes_the_parameters_of_the_serve_route(admin: Client) -> None:
    placement = await admin.make_placement()
    path = f"/banners/explain/{placement['slug']}"

    assert set(PARAMETERS) < set(VISITOR)
    answer = await admin.get(path, params=VISITOR)
    assert answer.status_code == 200, answer.text
    assert error_fields(
        problem(await admin.get(path, params={"coutry": "DE"}), 400, "VALIDATION_FAILED")
    ) == {"coutry"}


async def test_an_explanation_of_a_contextual_slot_takes_them_too(admin: Client) -> None:
    question = {"slot": "no-such-slot", "url": "https://news.example.com/"}
    visitor = {name: value for name, value in VISITOR.items() if name != "at"}

    answer = await admin.post("/v1/explain", json=question, params=visitor)

    problem(answer, 404, "PLACEMENT_NOT_FOUND")
