"""A parameter that a route does not know, or that is repeated, is refused by its name: a filter is not ignored."""

import re

from adloom.app.control import build_openapi_document
from adloom.serving.request.overrides import PARAMETERS
from tests.support.builders import UNKNOWN_ID, Json
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


TAKE_SEVERAL = {("/admin/stats/banners", "groupBy"), ("/admin/stats/campaigns", "campaignId")}


def describe_guarded_operations() -> list[tuple[str, str, Json]]:
    return [
        (method.upper(), path, described)
        for path, item in build_openapi_document()["paths"].items()
        for method, described in item.items()
        if described.get("security")
    ]


def guarded_operations() -> list[tuple[str, str]]:
    return [(method, path) for method, path, _ in describe_guarded_operations()]


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


async def test_every_route_names_the_parameter_that_is_repeated(admin: Client) -> None:
    asked = [
        (method, path, parameter["name"])
        for method, path, described in describe_guarded_operations()
        for parameter in described.get("parameters", ())
        if parameter["in"] == "query" and (path, parameter["name"]) not in TAKE_SEVERAL
    ]
    ignored: list[tuple[str, str, str]] = []
    for method, path, name in asked:
        answer = await admin.request(method, f"{fill_in(path)}?{name}=1&{name}=1")
        if answer.status_code != 400 or name not in error_fields(answer.json()):
            ignored.append((method, path, name))

    assert ignored == []
    assert len(asked) > 300


async def test_what_takes_several_values_may_be_repeated(admin: Client) -> None:
    days = {"from": "2026-11-15", "to": "2026-11-15"}

    answer = await admin.get("/admin/stats/banners", params=days | {"groupBy": ["day", "banner"]})

    assert answer.status_code == 200, answer.text


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
