"""Who sets the price of a contextual slot: only those that could have been shown to this visitor now."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.auction.creative_choice import ChoiceMethod
from adloom.auction.site_modes import AuctionMode
from adloom.budgets.messages import UNHELD_LEASE, BudgetVerdict, LeaseAnswer
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.events.ingest.token import TokenSigner
from adloom.market.results.window import NO_RESULTS
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.contextual.fill import FilledSlot, SlotFiller
from adloom.serving.contextual.prepare import prepare_slot
from adloom.serving.contextual.record import SlotRecord
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import Caps, FrequencyLimit
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.registry import collect_terms
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.serving.request.overrides import Overrides
from adloom.targeting.rules import parse_rule
from simulation.loop import make_random
from tests.support.contextual_site import NOON, Site, a_creative, banner, campaign
from tests.support.leases import LEASE
from tests.support.rows import an_id

TOMORROW = NOON + timedelta(days=1)
PLENTY = 10**9
CONTEXTS = ContextParser()
DESKTOP = (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0")


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What the budget service answers a campaign."""

    amount: int = PLENTY
    impressions: int = 5
    throttle: float = 0.0


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what campaigns have for it; a campaign without a grant gets plenty."""

    is_unheld: bool = False
    seen: frozenset[int] = frozenset()
    grants: dict[CampaignId, Grant] = {}
    multipliers: dict[int, float] = {}
    auction_mode: AuctionMode = AuctionMode.SECOND_PRICE
    method: ChoiceMethod = ChoiceMethod.INFORMED


class Slot:
    """A slot of a known page, with leases for the campaigns of its candidates."""

    def __init__(self, rows: Sequence[CreativeRow], visitor: Visitor, draw: Random | None = None) -> None:
        site = Site(*rows, floor=Micros(1), auction_mode=visitor.auction_mode)
        index = site.index()
        found = index.find_slot(b"top")
        assert found is not None
        self.prepared = prepare_slot(index, *found, site.page(), site.listed())
        self.visitor = visitor
        self.states = PlacementStates()
        self.leases = LocalLeases(1, draw=draw.random if draw else lambda: 0.5)
        self.leases.update(collect_terms(index), at=0.0)
        self._grant()
        self.states.mark_changed(self.leases.take_changes())
        self.states.set_multipliers(visitor.multipliers)
        self.filler = SlotFiller(
            self.states,
            Reserver(self.states, self.leases),
            TokenSigner("a secret of tests"),
            public_url="http://ads.test",
            chance=make_random(1, "slots"),
            read_results=lambda _site_id: NO_RESULTS,
            method=visitor.method,
        )

    def _grant(self) -> None:
        second = int(NOON.timestamp())
        for terms, usage in self.leases.collect_reports(
            second=second, at=1.0, most=100, is_wanted=lambda _: True
        ):
            grant = self.visitor.grants.get(terms.campaign_id, Grant())
            answer = LeaseAnswer(
                campaign_id=terms.campaign_id,
                session=1,
                report=usage.report,
                lease=LEASE,
                granted=Micros(grant.amount),
                given=Micros(0),
                impressions_granted=grant.impressions,
                ends_at=TOMORROW,
                verdict=BudgetVerdict.GRANTED,
                throttle=grant.throttle,
            )
            self.leases.on_answer(answer, second=second, at=1.0)

    def fill(self, record: SlotRecord | None = None) -> FilledSlot | str:
        visit = SlotVisit(
            FastRequest(b"GET", b"/v1/serve", headers=[DESKTOP]),
            Overrides({}),
            CONTEXTS.parse,
            NOON,
            int(NOON.timestamp()),
            an_id(1).bytes,
            b"",
            b"",
            seen=self.visitor.seen,
            is_unheld=self.visitor.is_unheld,
        )
        [filled] = self.filler.fill_all((self.prepared,), visit, (0,), set(), [record])
        return filled


def sold(rows: Sequence[CreativeRow], visitor: Visitor) -> tuple[UUID, Micros, Micros] | str:
    """Return the winner's banner, the price and what it costs; or why the slot stays empty."""
    filled = Slot(rows, visitor).fill()
    if isinstance(filled, str):
        return filled
    assert filled.lease == UNHELD_LEASE or not visitor.is_unheld
    return filled.winner.candidate.banner_id, filled.price, filled.cost


PHONES = (parse_rule("device", "in", ["mobile"]),)
OFTEN = (FrequencyLimit(Window.DAY, 1),)


def draw_creatives(chance: Random) -> list[CreativeRow]:
    """Draw creatives of some campaigns, of which the first may have several."""
    rows: list[CreativeRow] = []
    for number in range(1, chance.randint(3, 6)):
        frequency = chance.choice(((), OFTEN))
        if rows and chance.random() < 0.3:
            rows.append(another_creative(rows[0], number, frequency=frequency))
        else:
            rows.append(draw_campaign(number, chance, frequency=frequency))
    return rows


def draw_campaign(number: int, chance: Random, **fields: Any) -> CreativeRow:
    return a_creative(
        number,
        cpm=chance.choice((1, 4, 5, 9)),
        rules=chance.choice(((), (), (), (), PHONES)),
        starts_at=chance.choice((None, None, None, None, TOMORROW)),
        is_limited=chance.random() < 0.5,
        caps=chance.choice((None, Caps(9, None))),
        **fields,
    )


def another_creative(row: CreativeRow, number: int, **fields: Any) -> CreativeRow:
    """Return another creative of the same campaign."""
    ids = {"banner_key": number, "banner_id": banner(number)}
    return CreativeRow(msgspec.structs.replace(row.assignment, **ids, **fields), row.terms)


def draw_visitor(chance: Random) -> Visitor:
    return Visitor(
        is_unheld=chance.random() < 0.5,
        seen=frozenset(number for number in range(1, 6) if chance.random() < 0.2),
        grants={
            campaign(number): Grant(
                amount=chance.choice((0, PLENTY, PLENTY, PLENTY)),
                impressions=chance.choice((0, 5, 5)),
                throttle=chance.choice((0.0, 0.0, 0.0, 0.2, 0.9)),
            )
            for number in range(1, 6)
        },
        multipliers={number: chance.choice((1.0, 0.5)) for number in range(1, 6)},
        auction_mode=chance.choice(tuple(AuctionMode)),
        method=chance.choice(tuple(ChoiceMethod)),
    )


@settings(max_examples=300)
@given(st.integers(0, 10**9).map(Random))
def test_the_price_is_that_of_an_auction_among_those_that_could_be_shown_now(chance: Random) -> None:
    rows = draw_creatives(chance)
    visitor = draw_visitor(chance)

    able = [row for row in rows if not isinstance(sold([row], visitor), str)]

    if able:
        assert sold(rows, visitor) == sold(able, visitor)
    else:
        assert isinstance(sold(rows, visitor), str)


@pytest.mark.parametrize("is_unheld", [False, True])
def test_a_capped_bid_sets_no_price_for_a_sender_that_holds_nothing(*, is_unheld: bool) -> None:
    """A campaign with a cap is not shown to it: its bid is nobody's rival there."""
    rows = [a_creative(1, cpm=9, is_limited=True), a_creative(2, cpm=5, caps=Caps(9, None))]
    slot, record = Slot(rows, Visitor(is_unheld=is_unheld)), SlotRecord()

    filled = slot.fill(record)

    assert isinstance(filled, FilledSlot)
    assert [one.reason for one in record.removed] == (["budget"] if is_unheld else [])
    if is_unheld:
        assert (filled.winner.creative.banner_key, filled.price) == (1, 1)
    else:
        assert filled.price > 1
    only = Slot(rows[1:], Visitor(is_unheld=is_unheld)).fill()
    assert (only == "budget") is is_unheld


def test_the_pace_of_a_campaign_is_drawn_once_however_many_creatives_it_has() -> None:
    first = a_creative(1, is_limited=True)
    rows = [first, another_creative(first, 2), another_creative(first, 3)]
    visitor = Visitor(grants={campaign(1): Grant(amount=10**12, throttle=0.6)})
    slot = Slot(rows, visitor, Random(3))  # noqa: S311 - seeded

    shown = sum(isinstance(slot.fill(), FilledSlot) for _ in range(2_000))

    assert shown / 2_000 == pytest.approx(0.4, abs=0.04)
    [lease] = slot.leases.registry.leases.values()
    assert lease.requests == pytest.approx(2_000, rel=0.1)
    assert slot.leases.left_out == 2_000 - shown
