"""An offer that cannot be reserved gives its slot to the next candidate, then to fallbacks."""

import json
from typing import Any

import msgspec

from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import AssignmentRow, Caps
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.request.sender_limits import SenderCheck
from tests.serving.test_reserve import COST, SECOND, a_row, leased_row
from tests.serving.test_serve import serve_routes
from tests.support.answers import at_once
from tests.support.leases import grant_leases
from tests.support.rows import a_snapshot

CLIENT = "203.0.113.7"


class LeasedRoutes:
    """The serve routes of one placement whose campaigns have leases that just ran out elsewhere."""

    def __init__(self, *rows: AssignmentRow, **placement: Any) -> None:
        snapshot = a_snapshot(*rows, **placement)
        self.states, self.leases = PlacementStates(), LocalLeases(1, draw=lambda: 0.0)
        self.senders = SenderCheck(TrafficDetector(lambda _: False).identify_sender, holds_max=6)
        self.routes: ServeRoutes = serve_routes(
            snapshot, states=self.states, leases=self.leases, senders=self.senders
        )
        self._placement = compile_index(snapshot).by_slug[b"home"]
        self.leases.update({1: self._placement.terms}, at=0.0)
        self._mark()

    def grant(self, offers: int, throttle: float = 0.0) -> None:
        grant_leases(self.leases, offers * COST, second=SECOND, impressions=offers, throttle=throttle)
        self._mark()

    def spend(self, campaign: int, offers: int) -> None:
        """Spend as an auction in the same moment does: exclusions are applied with the next reservation."""
        for _ in range(offers):
            self.leases.reserve(campaign, COST, SECOND)

    def served(self) -> list[str]:
        answer = at_once(self.routes.serve(FastRequest(b"GET", b"/banners/serve/home", client=CLIENT)))
        return [banner["title"] for banner in json.loads(answer.body)["banners"]]

    def served_page(self) -> list[str]:
        body = json.dumps({"placements": ["home"]}).encode()
        request = FastRequest(b"POST", b"/banners/serve", body=body, client=CLIENT)
        answer = at_once(self.routes.serve_page(request))
        return [banner["title"] for banner in json.loads(answer.body)["results"]["home"]["banners"]]

    def _mark(self) -> None:
        self.states.mark_changed(self.leases.take_changes())


def named(row: AssignmentRow, title: str, **fields: Any) -> AssignmentRow:
    return msgspec.structs.replace(row, title=title, **fields)


def test_a_slot_whose_offer_cannot_be_held_goes_to_the_next_candidate() -> None:
    rows = (named(leased_row(1, 7), "first", display_order=1), named(a_row(2, 8), "second", display_order=2))
    routes = LeasedRoutes(*rows, max_banners=1)
    routes.grant(3)

    assert routes.served() == ["first"]
    routes.spend(7, 2)

    assert routes.served() == ["second"]


def test_beyond_the_bound_of_an_address_the_slot_of_a_capped_campaign_goes_to_the_next_candidate() -> None:
    rows = (
        named(leased_row(1, 7, caps=Caps(99, None)), "capped", display_order=1),
        named(leased_row(2, 8), "second", display_order=2),
    )
    routes = LeasedRoutes(*rows, max_banners=1)
    routes.grant(3)

    assert [routes.served(), routes.served_page()] == [["capped"], ["capped"]]
    routes.senders.may_hold(FastRequest(b"GET", b"/", client=CLIENT), 9, SECOND)

    assert [routes.served(), routes.served_page()] == [["second"], ["second"]]
    assert routes.leases.registry.leases[8].left == 3 * COST, "nothing is held"


def test_a_banner_that_one_campaign_cannot_hold_is_shown_by_the_next() -> None:
    rows = (
        named(leased_row(1, 7), "leaves", display_order=1),
        named(a_row(1, 8), "leaves of the house", display_order=2),
    )
    routes = LeasedRoutes(*rows, max_banners=1)
    routes.grant(100, throttle=0.5)

    assert [routes.served(), routes.served_page()] == [["leaves of the house"], ["leaves of the house"]]


def test_after_the_candidates_come_the_fallbacks() -> None:
    rows = (
        named(leased_row(1, 7), "first", display_order=1),
        named(a_row(2, 8), "fallback", is_fallback=True),
    )
    routes = LeasedRoutes(*rows, max_banners=1, allow_partial_render=True)
    routes.grant(3)
    assert routes.served() == ["first"]
    routes.spend(7, 2)

    assert routes.served() == ["fallback"]


def test_evergreens_stand_in_only_where_nothing_else_is_left() -> None:
    rows = (
        named(leased_row(1, 7), "first", display_order=1),
        named(a_row(2, 8), "second", display_order=2),
        named(a_row(3, 9), "evergreen", is_fallback=True, is_evergreen_fallback=True),
    )
    two_slots = LeasedRoutes(*rows, max_banners=2, allow_partial_render=False)
    two_slots.grant(3)
    assert two_slots.served() == ["first", "second"]
    two_slots.spend(7, 2)
    assert two_slots.served() == ["second"]

    alone = LeasedRoutes(rows[0], rows[2], max_banners=2, allow_partial_render=False)
    alone.grant(3)
    assert alone.served() == ["first"]
    alone.spend(7, 2)
    assert alone.served() == ["evergreen"]


def test_an_evergreen_fills_the_slot_of_a_campaign_that_its_pace_leaves_out() -> None:
    rows = (
        named(leased_row(1, 7), "first", display_order=1),
        named(leased_row(2, 7), "its second banner", display_order=2),
        named(a_row(3, 9), "evergreen", is_fallback=True, is_evergreen_fallback=True),
    )
    routes = LeasedRoutes(*rows, max_banners=1)
    routes.grant(100, throttle=0.5)

    assert [routes.served(), routes.served()] == [["evergreen"], ["evergreen"]]


def test_the_slots_of_a_page_are_refilled_too() -> None:
    rows = (named(leased_row(1, 7), "first", display_order=1), named(a_row(2, 8), "second", display_order=2))
    routes = LeasedRoutes(*rows, max_banners=1)
    routes.grant(3)
    assert routes.served_page() == ["first"]
    routes.spend(7, 2)

    assert routes.served_page() == ["second"]


def test_a_candidate_that_is_offered_already_does_not_get_a_second_slot() -> None:
    rows = (
        named(a_row(1, 8), "first", display_order=1),
        named(leased_row(2, 7), "second", display_order=2),
        named(a_row(3, 9), "third", display_order=3),
    )
    routes = LeasedRoutes(*rows, max_banners=2)
    routes.grant(1)
    assert routes.served() == ["first", "second"]

    assert routes.served() == ["first", "third"]


def test_offers_that_are_not_made_do_not_count_for_the_bound_of_an_address() -> None:
    routes = LeasedRoutes(*(leased_row(number, 7) for number in range(1, 4)), max_banners=3)
    routes.grant(99, throttle=1.0)  # Its pace leaves all of them out.

    for serve in (routes.served, routes.served_page):
        assert [serve() for _ in range(5)] == [[]] * 5

    assert routes.senders.free["open_holds"] == 0
