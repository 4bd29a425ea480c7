"""Incidents 10 to 18 of the system that contextual delivery follows: none of them happens here."""

from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

import adloom.market
from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative
from adloom.core.clock import SystemClock
from adloom.core.ids import AdvertiserId, SiteId
from adloom.core.money import Micros
from adloom.events.ingest.token import TokenKeys, TokenRejection, pack_terms
from adloom.market.approval import ApprovalState
from adloom.market.auctioneer.auctioneer import make_auctioneer, make_step
from adloom.market.auctioneer.state import (
    REAUCTION_EVERY,
    AuctionSlot,
    LoadShortlists,
    PagesClassified,
    WrittenShortlists,
    build_slot_terms,
)
from adloom.market.messages import DemandVersions
from adloom.market.routing import STRIPES, make_auctioneer_address, make_bidder_address
from adloom.market.store import StoredDemand
from simulation.market import START, Campaigns, Network
from tests.market.builders import SITE, UNIT, a_demand, a_page, a_site, banner_id

HOUSE = make_auctioneer_address(SITE)
URL = "magazine.test/a"


class OneSite(Network):
    """A network with one site of one page."""

    def __init__(self, **site: Any) -> None:
        super().__init__(1)
        self.campaigns = Campaigns(self)
        self.step(HOUSE, a_site(**site))
        self.step(HOUSE, PagesClassified((a_page(URL, "483"),)))

    def banners(self) -> list[int]:
        row = self.shortlists.get(URL)
        return [one.banner_id.int - 2_000 for one in row.slots[0].candidates] if row and row.slots else []

    def deploy(self, **site: Any) -> None:
        """Restart everything; the auctioneer finds what it wrote, its site, and its pages."""
        written = {
            url: WrittenShortlists(row.slots, row.expires_at)
            for url, row in self.shortlists.items()
            if row.slots
        }
        version = max((row.version for row in self.shortlists.values()), default=0)
        self.restart_all()
        self.step(HOUSE, LoadShortlists(written, version))
        self.step(HOUSE, a_site(**site))
        self.step(HOUSE, PagesClassified((a_page(URL, "483"),), is_all=True))


def test_incident_10_a_registration_that_is_lost_before_the_directory_is_up() -> None:
    market = OneSite()
    market.loss = 1.0
    market.campaigns.put(a_demand(1, "483"))
    market.run(10)
    assert market.banners() == []

    market.loss = 0.0
    market.campaigns.repeat()  # As every minute.
    market.run(2)

    assert market.banners() == [1]


@pytest.mark.parametrize("stripe", range(STRIPES))
def test_incident_10_a_bidder_that_missed_a_push_is_not_dark_for_long(stripe: int) -> None:
    market = OneSite()
    market.campaigns.put(a_demand(1, "483"))
    market.run(1)

    market.states[make_bidder_address("483", stripe)] = msgspec.structs.replace(
        market.states[make_bidder_address("483", stripe)], campaigns=(), version=0
    )
    market.run(60)

    assert [one.campaign_id for one in market.states[make_bidder_address("483", stripe)].campaigns] == list(
        market.campaigns.active
    )


def test_a_site_that_a_moved_bidder_does_not_know_is_told_by_the_versions_of_categories() -> None:
    market = OneSite()
    market.campaigns.put(a_demand(1, "483"))
    market.run(5)
    assert market.banners() == [1]
    for stripe in range(STRIPES):
        market.restart(make_bidder_address("483", stripe))  # It forgets which sites have asked it.
    market.campaigns.put(a_demand(2, "483"))
    market.run(5)
    assert market.banners() == [1]

    market.step(HOUSE, DemandVersions(dict(market.versions)))
    market.run(2)
    assert sorted(market.banners()) == [1, 2]

    rounds = market.states[HOUSE].rounds
    for _ in range(10):
        market.step(HOUSE, DemandVersions(dict(market.versions)))
        market.run(2)
    assert market.states[HOUSE].rounds == rounds  # What is known is not asked again.


def test_incident_11_boot_registrations_evict_nothing_and_auction_nothing() -> None:
    market = OneSite()
    for number in range(3):
        market.campaigns.put(a_demand(number, "483", cpm=number + 1))
    market.run(5)
    rows, before = len(market.rows), market.banners()

    market.deploy(approvals={banner_id(number): ApprovalState.APPROVED for number in range(3)})
    for demand in list(market.campaigns.active.values()):
        market.campaigns.put(demand)
    market.campaigns.repeat()
    market.run(120)

    assert market.banners() == before == [2, 1, 0]
    assert [row for row in market.rows[rows:] if not hasattr(row, "slots")] == []


def test_incident_12_a_deploy_wipes_no_approval() -> None:
    approved = {banner_id(1): ApprovalState.APPROVED, banner_id(2): ApprovalState.REJECTED}
    site: dict[str, Any] = {"mode": ApprovalMode.MANUAL, "approvals": approved}
    market = OneSite(**site)
    market.campaigns.put(a_demand(1, "483"))
    market.campaigns.put(a_demand(2, "483"))
    market.run(5)

    market.deploy(**site)
    market.run(5)

    assert market.banners() == [1]
    assert not market.shortlists[URL].slots[0].candidates[0].is_pending
    assert market.approvals == []  # Nothing is asked about again.


def test_incident_13_what_has_expired_is_not_restored_and_removed_for_ever() -> None:
    market = OneSite()
    market.campaigns.put(a_demand(1, "483"))
    market.run(49 * 3_600)
    assert market.states[HOUSE].pages == {}
    rows = len(market.rows)

    for _ in range(5):
        market.deploy()
        market.run(600)

    assert market.states[HOUSE].pages == {}
    assert len(market.rows) == rows


def test_incident_14_floors_are_never_multiplied() -> None:
    slots = tuple(AuctionSlot(f"slot-{floor}", None, None, Micros(floor)) for floor in (0, 2 * UNIT))
    configured = a_site(slots=slots, floor=Micros(UNIT))

    terms = build_slot_terms(configured.terms, configured.approvals, "483")

    assert [slot.floor for slot in terms] == [UNIT, 2 * UNIT]


def test_incident_15_the_same_floor_again_auctions_nothing() -> None:
    market = OneSite()
    market.campaigns.put(a_demand(1, "483"))
    market.run(5)
    # What the auctions saw is on record by then.
    market.step(HOUSE, a_site(version=2, approvals={banner_id(1): ApprovalState.APPROVED}))
    market.run(2)
    rounds = market.states[HOUSE].rounds

    for version in range(3, 50):
        market.step(HOUSE, a_site(version=version, approvals={banner_id(1): ApprovalState.APPROVED}))
        market.run(0.1)

    assert market.states[HOUSE].rounds == rounds


def test_incident_16_sites_do_not_repeat_their_auctions_at_once() -> None:
    step = make_step(lambda _: ())
    repeats: list[float] = []
    for number in range(200):
        state = make_auctioneer(str(SiteId(UUID(int=number))), START)
        state = step(state, PagesClassified(()), START, Network(1).chance).state
        assert state.repeat_at is not None
        repeats.append((state.repeat_at - START).total_seconds())

    assert min(repeats) >= 0
    assert max(repeats) < REAUCTION_EVERY.total_seconds()
    in_a_minute = [sum(60 * part <= one < 60 * part + 60 for one in repeats) for part in range(5)]
    assert max(in_a_minute) < 2 * 200 / 5


def test_incident_17_a_repeated_or_broken_report_is_an_answer_and_never_an_error() -> None:
    keys, now = TokenKeys("a secret of tests"), SystemClock().now()
    token = keys.signer.sign(pack_terms(bytes(32), bytes(16)), bytes(16), int(now.timestamp()), 0)

    assert keys.verify(token, now=now) == keys.verify(token, now=now)
    assert keys.verify(token[:-1] + b"!", now=now) in set(TokenRejection)
    assert keys.verify(b"", now=now) in set(TokenRejection)


@pytest.mark.parametrize("advertiser_id", [None, AdvertiserId(UUID(int=5))], ids=["nobody's", "somebody's"])
def test_incident_18_what_is_stored_is_read_again_with_nothing_in_it(
    advertiser_id: AdvertiserId | None,
) -> None:
    demand = a_demand(
        1, advertiser_id=advertiser_id, creatives=(WantedCreative(banner_id(1), None, None, None),)
    )

    stored = msgspec.json.encode(StoredDemand(demand, ()))

    read = msgspec.json.decode(stored, type=StoredDemand).demand
    assert isinstance(read, CampaignDemand)
    assert read == demand


def test_no_actor_of_the_market_waits_for_another() -> None:
    """An answer is a message of its own: nothing in the market's package asks and waits."""
    sources = [path.read_text(encoding="utf-8") for path in Path(adloom.market.__path__[0]).rglob("*.py")]

    assert len(sources) > 20
    assert not [text for text in sources if ".ask(" in text or "Reply(" in text]
