"""The OpenAPI document of the delivery plane: every route, and every field of its bodies."""

from typing import Any

import msgspec

from adloom.app.control import build_openapi_document
from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.core.public_paths import NEUTRAL_NAMES
from adloom.events.ingest.token import TokenKeys
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import Snapshot
from tests.support.answers import at_once
from tests.support.catalogs import NOON
from tests.support.for_each import for_each
from tests.support.rows import a_placement_row, an_assignment_row

ROUTES = {
    "/banners/serve/{slug}": "get",
    "/banners/serve": "post",
    "/banners/events/impression": "post",
    "/banners/events/click": "post",
    "/banners/events/batch": "post",
    "/i/{token}": "get",
    "/c/{token}": "get",
    "/api/v1/ads/serve": "post",
    "/api/v1/ads/events/impression": "post",
    "/api/v1/ads/events/click": "post",
    "/v1/serve/batch": "post",
    "/v1/serve/page": "post",
    "/v1/classify-page": "post",
    "/v1/preview": "post",
    "/tag.js": "get",
    "/tag-{name}.js": "get",
    "/tag-debug.js": "get",
    "/crawler": "get",
    "/serve/{slug}.html": "get",
    "/serve/{slug}.img": "get",
    "/serve/{slug}.go": "get",
}


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    return (
        build_openapi_document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if "$ref" in schema
        else schema
    )


def test_every_route_is_described_and_needs_no_token() -> None:
    for path, method in ROUTES.items():
        operation = build_openapi_document()["paths"][path][method]

        assert operation["security"] == []
        assert operation["responses"]


def test_every_public_route_has_a_neutral_name() -> None:
    public = {
        path.partition("{")[0]
        for path, item in build_openapi_document()["paths"].items()
        for operation in item.values()
        if operation["tags"] == ["delivery"] and operation.get("security") == []
    }

    assert public == set(NEUTRAL_NAMES)


@for_each(
    ("path", "required"),
    [
        ("/banners/serve", {"placements"}),
        ("/banners/events/impression", {"correlationId", "bannerId", "placementId"}),
        ("/banners/events/click", {"correlationId", "bannerId", "placementId"}),
        ("/banners/events/batch", {"events"}),
        ("/v1/serve/batch", {"url", "slots"}),
        ("/v1/classify-page", {"url", "text"}),
        ("/api/v1/ads/serve", {"userId"}),
        ("/api/v1/ads/events/impression", {"adId", "userId"}),
    ],
)
def test_required_fields_of_a_body_are_named(path: str, required: set[str]) -> None:
    body = build_openapi_document()["paths"][path]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]

    assert set(resolve(body)["required"]) == required


def test_an_address_that_is_too_long_for_a_query_is_described() -> None:
    assert "414" in build_openapi_document()["paths"]["/v1/serve"]["get"]["responses"]


def test_both_answers_to_a_text_are_described() -> None:
    answers = build_openapi_document()["paths"]["/v1/classify-page"]["post"]["responses"]

    shapes = [answers[status]["content"]["application/json"]["schema"] for status in ("200", "202")]
    assert shapes[0] == shapes[1] == {"$ref": "#/components/schemas/TextAnswer"}


def test_an_event_of_a_batch_names_its_type() -> None:
    kinds = build_openapi_document()["components"]["schemas"]["BatchBody"]["properties"]["events"]["items"][
        "anyOf"
    ]

    named = [resolve(kind)["properties"]["type"]["enum"] for kind in kinds]
    assert named == [["impression"], ["click"], ["conversion"]]
    assert all("type" in resolve(kind)["required"] for kind in kinds)


def test_a_served_answer_has_exactly_the_described_fields() -> None:
    snapshot = Snapshot(
        version=1,
        placements=[a_placement_row()],
        assignments=[an_assignment_row()],
        banner_ids=[],
        campaign_ids=[],
    )
    index = compile_index(snapshot)
    keys = TokenKeys("s" * 32)
    routes = ServeRoutes(lambda: index, keys.signer, ManualClock(NOON), SystemIds(), public_url="")
    path = b"/banners/serve/" + snapshot.placements[0].slug.encode()

    answer = msgspec.json.decode(at_once(routes.serve(FastRequest(b"GET", path))).body)

    schemas = build_openapi_document()["components"]["schemas"]
    assert answer.keys() == schemas["ServedAnswer"]["properties"].keys()
    assert answer["placement"].keys() == schemas["AnsweredPlacement"]["properties"].keys()
    assert answer["banners"][0].keys() == schemas["ServedBanner"]["properties"].keys()


def test_the_context_may_be_given_in_the_query_and_in_the_body() -> None:
    parameters = build_openapi_document()["paths"]["/banners/serve/{slug}"]["get"]["parameters"]
    context = build_openapi_document()["components"]["schemas"]["ServePageRequest"]["properties"]["context"]

    named = {one["name"] for one in parameters if one["in"] == "query"}
    assert named == resolve(context)["properties"].keys()
    assert {"device", "loggedIn", "userId"} <= named
