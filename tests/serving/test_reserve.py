"""Offers are reserved before they are sent: against their caps and out of leases, both or neither."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from adloom.budgets.messages import COUNTED_LEASE
from adloom.core.ids import BannerId, CampaignId
from adloom.core.money import Micros
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import AssignmentRow, Caps, OfferPrice
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from tests.support.contexts import a_context
from tests.support.leases import grant_leases
from tests.support.rows import a_snapshot, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND = int(NOON.timestamp())
COST = Micros(1_000)


def a_row(number: int, campaign: int, **fields: Any) -> AssignmentRow:
    return msgspec.structs.replace(
        an_assignment_row(
            banner_id=BannerId(an_id(number)),
            banner_key=number,
            campaign_id=CampaignId(an_id(100 + campaign)),
            campaign_key=campaign,
        ),
        **fields,
    )


def leased_row(number: int, campaign: int, **fields: Any) -> AssignmentRow:
    return a_row(number, campaign, price=OfferPrice(COST), is_limited=True, **fields)


class PlacementServer:
    """Decides and reserves the offers of one placement."""

    def __init__(self, *rows: AssignmentRow) -> None:
        self._placement = compile_index(a_snapshot(*rows, max_banners=10)).by_slug[b"home"]
        self.states, self.leases = PlacementStates(), LocalLeases(1)
        self._reserver = Reserver(self.states, self.leases)
        self.states.get(self._placement, NOON)
        self.leases.update({1: self._placement.terms}, at=0.0)
        self.states.mark_changed(self.leases.take_changes())

    def grant(self, offers: int, impressions: int = 0) -> None:
        grant_leases(self.leases, offers * COST, second=SECOND, impressions=impressions)
        self.states.mark_changed(self.leases.take_changes())

    def ask(self) -> list[tuple[int, int]]:
        state = self.states.get(self._placement, NOON)
        offers, leases = self._reserver.reserve_all(
            self.states.decide_offers(state, a_context(), SECOND), SECOND
        )
        banners = [offer.candidate.banner_key for offer in offers]
        return list(zip(banners, leases, strict=True))


def test_each_offer_names_the_lease_that_pays_for_it() -> None:
    server = PlacementServer(leased_row(1, 7), a_row(2, 8), a_row(3, 9, price=OfferPrice(COST)))

    server.grant(5)

    assert server.ask() == [(1, 9), (2, 0), (3, 0)]


def test_a_campaign_that_needs_a_lease_and_has_none_is_not_offered() -> None:
    server = PlacementServer(leased_row(1, 7), a_row(2, 8))

    assert server.ask() == [(2, 0)]


def test_a_second_offer_of_the_same_campaign_that_cannot_be_reserved_is_left_out() -> None:
    server = PlacementServer(leased_row(1, 7), a_row(2, 8), leased_row(3, 7))

    server.grant(1)

    assert server.ask() == [(1, 9), (2, 0)]
    assert server.ask() == [(2, 0)]


def test_an_offer_that_cannot_be_paid_does_not_count_against_its_cap() -> None:
    server = PlacementServer(leased_row(1, 7, caps=Caps(2, None)), leased_row(2, 7, caps=Caps(2, None)))

    server.grant(1, impressions=2)

    assert server.ask() == [(1, 9 | COUNTED_LEASE)]
    [(_, usage)] = server.leases.collect_reports(second=SECOND, at=2.0, most=9, is_wanted=lambda _: True)
    assert usage.impressions == ((SECOND, 1),)


def test_an_offer_that_can_be_paid_is_withheld_by_its_cap() -> None:
    server = PlacementServer(leased_row(1, 7, caps=Caps(1, None)))

    server.grant(5, impressions=1)

    assert [server.ask(), server.ask()] == [[(1, 9 | COUNTED_LEASE)], []]


def test_a_free_campaign_with_a_cap_needs_a_lease_too() -> None:
    server = PlacementServer(a_row(1, 7, caps=Caps(1, None)), a_row(2, 8, caps=Caps(None, 1)))

    assert server.ask() == [(2, 0)]
    server.grant(5, impressions=1)

    assert [server.ask(), server.ask()] == [[(1, 9 | COUNTED_LEASE), (2, 0)], [(2, 0)]]


def test_without_lease_terms_no_campaign_that_needs_a_lease_is_offered() -> None:
    placement = compile_index(a_snapshot(leased_row(1, 7))).by_slug[b"home"]
    states = PlacementStates()
    offers = states.decide_offers(states.get(placement, NOON), a_context(), SECOND)

    assert Reserver(states, LocalLeases()).reserve_all(offers, SECOND) == ([], [])
