"""The serve route: the whole answer, byte for byte where it matters."""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.core.errors import ValidationFailedError
from adloom.core.ids import BannerId, SystemIds
from adloom.events.ingest.token import SLOT_MAX, OfferToken, TokenKeys
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.encode import MillisecondStamp
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import Caps, Delivery, Snapshot
from adloom.serving.leases.local_leases import LocalLeases
from adloom.targeting.rules import parse_rule
from tests.support.answers import at_once
from tests.support.leases import grant_leases
from tests.support.rows import a_snapshot, an_assignment_row, an_id

KEYS = TokenKeys("a secret of the tests, long enough to be one")
NOON = datetime(2026, 11, 15, 12, 0, 0, 7_999, tzinfo=UTC)


def serve_routes(snapshot: Snapshot, clock: ManualClock | None = None, **parts: Any) -> ServeRoutes:
    index = compile_index(snapshot)
    clock = clock or ManualClock(NOON)
    return ServeRoutes(
        lambda: index, KEYS.signer, clock, SystemIds(), public_url="https://ads.example", **parts
    )


def leased(snapshot: Snapshot, *, impressions: int) -> LocalLeases:
    """The leases of a process that was granted some offers of every campaign that needs them."""
    leases = LocalLeases(1)
    second = int(NOON.timestamp())
    leases.update({1: compile_index(snapshot).by_slug[b"home"].terms}, at=0.0)
    grant_leases(leases, 1_000_000, second=second, impressions=impressions)
    leases.take_changes()
    return leases


def served(routes: ServeRoutes, slug: str = "home") -> tuple[bytes, dict[str, Any]]:
    answer = at_once(routes.serve(FastRequest(b"GET", b"/banners/serve/" + slug.encode())))
    return answer.head, json.loads(answer.body)


def test_a_placement_gets_at_most_as_many_banners_as_a_token_has_slots() -> None:
    rows = [an_assignment_row(banner_id=BannerId(an_id(number)), banner_key=number) for number in range(300)]

    _, body = served(serve_routes(a_snapshot(*rows, max_banners=1_000)))

    assert len({banner["trackingToken"] for banner in body["banners"]}) == SLOT_MAX + 1


def test_the_answer_has_the_published_shape() -> None:
    row = an_assignment_row(
        title="Täglich «neu»", headline="H", media_variants={"de": "https://x/"}, bg_color="#00ff00"
    )

    head, body = served(serve_routes(a_snapshot(row, fallback_placeholder_url="https://cdn/e.png")))

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"cache-control: no-store\r\n" in head
    assert body["placement"] == {
        "id": str(compile_index(a_snapshot()).by_slug[b"home"].id),
        "slug": "home",
        "label": "Home",
        "layoutType": "full_slider",
        "maxBanners": 3,
        "fallbackPlaceholderUrl": "https://cdn/e.png",
    }
    assert body["servedAt"] == "2026-11-15T12:00:00.007Z"
    assert UUID(str(body["requestId"])).version == 7
    [banner] = body["banners"]
    assert (banner["title"], banner["headline"], banner["bgColor"]) == ("Täglich «neu»", "H", "#00ff00")
    assert banner["mediaVariants"] == {"de": "https://x/"}


def test_each_offer_has_its_own_token_that_names_it() -> None:
    row = an_assignment_row()

    _, body = served(serve_routes(a_snapshot(row)))

    [banner] = body["banners"]
    token = KEYS.verify(banner["trackingToken"].encode(), now=NOON)
    assert isinstance(token, OfferToken)
    assert (token.banner_id, token.campaign_id) == (row.banner_id, row.campaign_id)
    assert str(token.request_id) == body["requestId"]
    assert banner["impressionUrl"] == f"https://ads.example/i/{banner['trackingToken']}"
    assert banner["clickUrl"] == f"https://ads.example/c/{banner['trackingToken']}"


def test_request_ids_and_tokens_are_new_in_every_answer() -> None:
    routes = serve_routes(a_snapshot(an_assignment_row()))

    bodies = [served(routes)[1] for _ in range(3)]

    assert len({str(body["requestId"]) for body in bodies}) == 3
    assert len({re.sub(r"[^\w-]", "", str(body["banners"])) for body in bodies}) == 3


@pytest.mark.parametrize("slug", ["nowhere", "", "home/", "HOME", "%68ome"])
def test_an_unknown_slug_is_not_found(slug: str) -> None:
    head, body = served(serve_routes(a_snapshot()), slug)

    assert head.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert body["errorCode"] == "PLACEMENT_NOT_FOUND"


def test_an_inactive_placement_is_not_found() -> None:
    _, body = served(serve_routes(a_snapshot(an_assignment_row(), is_active=False)))

    assert body["errorCode"] == "PLACEMENT_NOT_FOUND"


def test_a_placement_without_banners_answers_with_an_empty_list() -> None:
    routes = serve_routes(a_snapshot())

    _, body = served(routes)

    assert body["banners"] == []
    assert (routes.served, routes.empty) == (0, 1)


def test_a_campaign_starts_and_ends_at_its_second_without_a_new_index() -> None:
    clock = ManualClock(NOON)
    row = an_assignment_row(starts_at=NOON + timedelta(seconds=10), ends_at=NOON + timedelta(seconds=20))
    routes = serve_routes(a_snapshot(row), clock)

    seen: list[int] = []
    for _ in range(4):
        seen.append(len(served(routes)[1]["banners"]))
        clock.advance(timedelta(seconds=10))

    assert seen == [0, 1, 0, 0]


@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis adds it
def test_a_timestamp_has_milliseconds(moment: datetime) -> None:
    stamp, second = MillisecondStamp(), math.floor(moment.timestamp())

    assert stamp.find_second(moment) == stamp.find_second(moment) == second
    assert stamp.format(moment, second) == stamp.format(moment, second)
    assert (
        stamp.format(moment, second).decode()
        == moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    )


def test_targeting_uses_the_headers_and_the_query() -> None:
    row = an_assignment_row(rules=(parse_rule("country", "in", ["DE"]),))
    routes = serve_routes(a_snapshot(row))

    def shown(country: bytes, query: bytes = b"") -> int:
        headers = [(b"x-country-code", country)]
        answer = at_once(routes.serve(FastRequest(b"GET", b"/banners/serve/home", query, headers)))
        return len(json.loads(answer.body)["banners"])

    assert (shown(b"DE"), shown(b"FR"), shown(b"FR", b"country=DE")) == (1, 0, 1)


def test_an_invalid_parameter_is_refused() -> None:
    with pytest.raises(ValidationFailedError) as refusal:
        serve_routes(a_snapshot()).serve(FastRequest(b"GET", b"/banners/serve/home", b"device=toaster"))

    assert [problem.field for problem in refusal.value.errors] == ["device"]


@pytest.mark.parametrize(
    ("delivery", "word"), [("auction", "/api/v1/ads/serve"), ("contextual", "/v1/serve/batch")]
)
def test_a_placement_of_another_route_is_not_found_and_the_error_names_the_route(
    delivery: str, word: str
) -> None:
    head, body = served(serve_routes(a_snapshot(an_assignment_row(), delivery=Delivery(delivery))))

    assert head.startswith(b"HTTP/1.1 404 ")
    assert body["errorCode"] == "PLACEMENT_NOT_FOUND"
    assert word in body["detail"]


def test_a_campaign_with_an_impression_cap_is_offered_as_often_as_its_lease_allows() -> None:
    snapshot = a_snapshot(an_assignment_row(campaign_key=7, caps=Caps(2, None)))
    leases = leased(snapshot, impressions=2)
    routes = serve_routes(snapshot, leases=leases)

    for _ in range(3):
        routes.serve(FastRequest(b"HEAD", b"/banners/serve/home"))  # Takes nothing out of the lease.
    assert [len(served(routes)[1]["banners"]) for _ in range(4)] == [1, 1, 0, 0]
