"""Served events: one for each offer, and none for HEAD requests and empty answers."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, SystemIds
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.events.log.event import Served, decode_event
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.encode import ServedEventPublisher
from adloom.serving.index.compile import compile_index
from tests.support.answers import at_once
from tests.support.rows import a_snapshot, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEYS = TokenKeys("a secret of the tests, long enough to be one")
USER = UUID("01890000-0000-7000-8000-0000000000d1")


class PublishingRoutes:
    """Serve routes that publish their events to a list."""

    def __init__(self, *, banners: int = 1, **placement: Any) -> None:
        rows = [
            an_assignment_row(banner_key=number, banner_id=BannerId(an_id(number)))
            for number in range(banners)
        ]
        index = compile_index(a_snapshot(*rows, **placement))
        self.entries: list[bytes] = []
        self.routes = ServeRoutes(
            lambda: index,
            KEYS.signer,
            ManualClock(NOON),
            SystemIds(),
            public_url="https://ads.example",
            publisher=ServedEventPublisher(self.entries.append),
        )

    def get(self, query: bytes = b"", method: bytes = b"GET") -> dict[str, Any]:
        request = FastRequest(method, b"/banners/serve/home")
        request.query = query
        return json.loads(at_once(self.routes.serve(request)).body)

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        request = FastRequest(b"POST", b"/banners/serve")
        request.body = json.dumps(body).encode()
        return json.loads(at_once(self.routes.serve_page(request)).body)

    @property
    def served(self) -> list[Served]:
        events = [decode_event(entry) for entry in self.entries]
        return [event for event in events if isinstance(event, Served)]


def test_every_offer_is_published_with_the_fields_of_its_token() -> None:
    routes = PublishingRoutes(banners=3, placement_type="feed")

    body = routes.get()

    offers = [KEYS.verify(banner["trackingToken"].encode(), now=NOON) for banner in body["banners"]]
    assert len(offers) == 3
    assert routes.served == [
        Served(
            request_id=offer.request_id,
            slot=offer.slot,
            banner_id=offer.banner_id,
            placement_id=offer.placement_id,
            campaign_id=offer.campaign_id,
            placement_type="feed",
            served_at=NOON,
        )
        for offer in offers
        if isinstance(offer, OfferToken)
    ]
    assert {str(event.request_id) for event in routes.served} == {body["requestId"]}


def test_an_offer_is_published_with_the_user_of_its_request() -> None:
    routes = PublishingRoutes()

    routes.get(b"userId=%b" % str(USER).encode())
    routes.post({"placements": ["home"], "userId": str(USER)})
    routes.post({"placements": ["home"], "context": {"userId": str(USER)}})
    routes.get(b"device=mobile")

    assert [event.user_id for event in routes.served] == [USER, USER, USER, None]


def test_a_head_request_publishes_nothing() -> None:
    routes = PublishingRoutes()

    routes.get(method=b"HEAD")

    assert routes.entries == []


def test_an_empty_answer_publishes_nothing() -> None:
    routes = PublishingRoutes(banners=0)

    assert routes.get()["banners"] == []
    assert routes.entries == []
