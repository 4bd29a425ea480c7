"""All placements of a page in one request."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adloom.core.clock import ManualClock
from adloom.core.errors import ValidationFailedError
from adloom.core.ids import BannerId, PlacementId, SystemIds
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import AssignmentRow, Snapshot
from adloom.targeting.rules import parse_rule
from tests.support.answers import at_once
from tests.support.rows import a_placement_row, an_assignment_row, an_id

KEYS = TokenKeys("a secret of the tests, long enough to be one")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def a_row(placement: int, banner: int, **fields: Any) -> AssignmentRow:
    return an_assignment_row(
        placement_key=placement,
        banner_key=banner,
        banner_id=BannerId(an_id(banner)),
        title=str(banner),
        display_order=banner,
        **fields,
    )


def routes(*rows: AssignmentRow, placements: int = 2) -> ServeRoutes:
    snapshot = Snapshot(
        version=1,
        placements=[
            a_placement_row(key=number, id=PlacementId(an_id(100 + number)), slug=f"p{number}", max_banners=1)
            for number in range(1, placements + 1)
        ],
        assignments=list(rows),
        banner_ids=[],
        campaign_ids=[],
    )
    index = compile_index(snapshot)
    return ServeRoutes(lambda: index, KEYS.signer, ManualClock(NOON), SystemIds(), public_url="")


def ask(serve: ServeRoutes, *slugs: str, **fields: Any) -> dict[str, Any]:
    body = json.dumps({"placements": slugs, **fields}).encode()
    return json.loads(at_once(serve.serve_page(FastRequest(b"POST", b"/banners/serve", body=body))).body)


def shown(page: dict[str, Any]) -> dict[str, list[str]]:
    return {slug: [one["title"] for one in answer["banners"]] for slug, answer in page["results"].items()}


def test_every_placement_gets_the_answer_that_it_would_get_alone() -> None:
    page = ask(routes(a_row(1, 11), a_row(2, 12)), "p1", "p2")

    assert shown(page) == {"p1": ["11"], "p2": ["12"]}
    assert page["servedAt"] == "2026-11-15T12:00:00.000Z"
    assert page["results"]["p1"]["placement"]["slug"] == "p1"
    token = KEYS.verify(page["results"]["p1"]["banners"][0]["trackingToken"].encode(), now=NOON)
    assert isinstance(token, OfferToken)
    assert str(token.request_id) == page["results"]["p1"]["requestId"] != page["requestId"]


def test_no_banner_is_repeated_if_another_could_take_its_place() -> None:
    page = ask(routes(a_row(1, 11), a_row(1, 12), a_row(2, 11)), "p1", "p2")

    assert shown(page) == {"p1": ["12"], "p2": ["11"]}


def test_an_unknown_placement_is_a_problem_among_the_results() -> None:
    page = ask(routes(a_row(1, 11)), "p1", "nö")

    assert page["results"]["nö"]["errorCode"] == "PLACEMENT_NOT_FOUND"
    assert len(page["results"]["p1"]["banners"]) == 1


def test_a_repeated_slug_is_answered_once() -> None:
    assert shown(ask(routes(a_row(1, 11)), "p1", "p1")) == {"p1": ["11"]}


def test_the_context_of_the_body_applies_to_all_placements() -> None:
    serve = routes(a_row(1, 11, rules=(parse_rule("country", "in", ["DE"]),)))

    assert shown(ask(serve, "p1", context={"country": "DE"}, unknown=1)) == {"p1": ["11"]}
    assert shown(ask(serve, "p1", context={"country": None})) == {"p1": []}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"placements": []}, "placements"),
        ({"placements": ["p"] * 21}, "placements"),
        ({}, "placements"),
        ({"placements": ["p1"], "userId": "me"}, "userId"),
        ({"placements": ["p1"], "context": {"device": "toaster"}}, "context.device"),
    ],
)
def test_an_invalid_page_is_refused(body: dict[str, Any], field: str) -> None:
    request = FastRequest(b"POST", b"/banners/serve", body=json.dumps(body).encode())

    with pytest.raises(ValidationFailedError) as refusal:
        routes().serve_page(request)

    assert [problem.field for problem in refusal.value.errors] == [field]
