"""One client that asks for offers and shows none cannot take a campaign off the air, nor make its ads free."""

import json
from datetime import timedelta

import pytest

from adloom.budgets.messages import UNHELD_LEASE, ChargeKind, LeaseAnswer
from adloom.core.clock import ManualClock
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.token import OfferToken
from adloom.events.log.event import ChargedBy
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import OfferPrice
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.request.sender_limits import SenderCheck
from tests.budgets.builders import CAMPAIGN_ID, NOON, UNIT, CampaignBench, a_campaign, a_confirm
from tests.serving.test_serve import KEYS, serve_routes
from tests.support.answers import at_once
from tests.support.rows import a_snapshot, an_assignment_row

BUDGET = Micros(100 * UNIT)
ASKED_A_SECOND = 10
SECONDS = 900


class Process:
    """A delivery process with a real budget actor behind it, whose messages take no time."""

    def __init__(self, price: OfferPrice, senders: SenderCheck) -> None:
        self.clock = ManualClock(NOON)
        self.campaign = CampaignBench(a_campaign(daily_budget=BUDGET))
        row = an_assignment_row(campaign_id=CampaignId(CAMPAIGN_ID), price=price, is_limited=True)
        snapshot = a_snapshot(row)
        self.states, self.leases = PlacementStates(), LocalLeases(1)
        self.routes = serve_routes(
            snapshot, self.clock, states=self.states, leases=self.leases, senders=senders
        )
        self.leases.update({1: compile_index(snapshot).by_slug[b"home"].terms}, at=0.0)
        self._mark()
        self.talk()

    @property
    def at(self) -> float:
        return (self.clock.now() - NOON).total_seconds()

    def talk(self) -> None:
        """Report to the actor, and take its answers."""
        second = int(self.clock.now().timestamp())
        self.campaign.wait(max(0.0, (self.clock.now() - self.campaign.now).total_seconds()))
        for _ in range(3):
            for _, usage in self.leases.collect_reports(
                second=second, at=self.at, most=9, is_wanted=lambda _: True
            ):
                self.campaign.take(usage)
                for answer in self.campaign.published(LeaseAnswer):
                    self.leases.on_answer(answer, second=second, at=self.at)
        self._mark()

    def ask(self, client: str) -> OfferToken | None:
        request = FastRequest(b"GET", b"/banners/serve/home", headers=[], client=client)
        banners = json.loads(at_once(self.routes.serve(request)).body)["banners"]
        token = KEYS.verify(banners[0]["trackingToken"].encode(), now=self.clock.now()) if banners else None
        assert token is None or isinstance(token, OfferToken)
        return token

    def _mark(self) -> None:
        self.states.mark_changed(self.leases.take_changes())


@pytest.mark.parametrize("charged_by", list(ChargedBy))
def test_a_campaign_stays_on_the_air_while_one_client_asks_and_shows_nothing(charged_by: ChargedBy) -> None:
    detector = TrafficDetector(lambda _: False)
    senders = SenderCheck(
        detector.identify_sender, requests=MinuteCounts(600), holds_max=300, hold_seconds=300
    )
    cost = UNIT if charged_by is ChargedBy.CLICK else Micros(UNIT // 10)
    process = Process(OfferPrice(cost, charged_by), senders)
    missed = 0

    for second in range(SECONDS):
        for _ in range(ASKED_A_SECOND):
            process.ask("203.0.113.66")
        # A reader of another address every few seconds; all of them see what they are offered.
        if second % 5 == 0:
            offer = process.ask(f"203.0.113.{second // 5 % 60}")
            missed += offer is None or offer.charge != cost or offer.lease == 0
        process.clock.advance(timedelta(seconds=1))
        process.talk()

    assert missed == 0
    assert process.campaign.state.held < BUDGET // 2

    # What a reader at the same address sees is paid: the requests may be of a script in a rival's ad.
    spent = process.campaign.state.spent_today
    for number in range(5):
        offer = process.ask("203.0.113.66")
        assert offer is not None
        assert (offer.charge, offer.lease) == (cost, UNHELD_LEASE)
        kind = ChargeKind(charged_by)
        process.campaign.take(a_confirm(number, kind=kind, lease=offer.lease, amount=offer.charge))
    process.talk()

    assert process.campaign.state.spent_today - spent == 5 * cost
