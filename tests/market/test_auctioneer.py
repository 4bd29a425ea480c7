"""What an auctioneer writes, on virtual time with real bidders, rankers, directory and distributors."""

import time
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.campaign.demand import DIRECTORY, CampaignReady, WantedCreative
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.auctioneer.state import (
    PAGES_MAX,
    AuctionSlot,
    LoadShortlists,
    PageForSale,
    PagesClassified,
    WrittenShortlists,
)
from adloom.market.bids import CategoryBids
from adloom.market.messages import AllDemand, BidAnswer, DemandChanged
from adloom.market.routing import make_auctioneer_address
from adloom.market.shortlist.model import ShortlistCandidate
from simulation.market import Campaigns, Network
from tests.market.builders import SITE, a_demand, a_page, a_site, banner_id, campaign_id
from tests.support.for_each import for_each, seeds

HOUSE = make_auctioneer_address(SITE)
ABOVE = {"539": ("483",), "540": ("483",), "424": ("422",)}
URL = "magazine.test/a"


class Market(Network):
    """A network with one site."""

    def __init__(self, seed: int = 1, **site: Any) -> None:
        super().__init__(seed, ancestors=ABOVE)
        self.campaigns = Campaigns(self)
        self.configure(**site)

    def configure(self, *slots: str, **fields: Any) -> None:
        self.step(HOUSE, a_site(*slots, **fields))

    def classify(self, *categories: str, url: str = URL, **fields: Any) -> None:
        self.step(HOUSE, PagesClassified((a_page(url, *categories, **fields),)))

    def candidates(self, url: str = URL, slot: int = 0) -> tuple[ShortlistCandidate, ...]:
        row = self.shortlists.get(url)
        return row.slots[slot].candidates if row and row.slots else ()

    def banners(self, url: str = URL, slot: int = 0) -> list[int]:
        return [one.banner_id.int - 2_000 for one in self.candidates(url, slot)]


def a_filler_page(url: str) -> PageForSale:
    return msgspec.structs.replace(a_page(url), categories=())


def test_a_classified_page_has_its_shortlist_at_once() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483", cpm=5))
    market.run(1)

    market.classify("539")
    market.run(0.1)

    [candidate] = market.candidates()
    assert (candidate.banner_id, candidate.category, candidate.is_pending) == (banner_id(1), "483", False)
    assert 0 < candidate.category_score <= 0.9 * 0.7


def test_a_new_campaign_is_on_the_shortlists_of_its_pages_within_a_second() -> None:
    market = Market()
    market.classify("483")
    market.run(10)
    assert market.banners() == []

    market.campaigns.put(a_demand(1, "483"))
    market.run(0.2)

    assert market.banners() == [1]


def test_a_clock_that_is_set_back_keeps_no_campaign_from_its_pages() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483")
    market.run(10)
    market.step(HOUSE, DemandChanged("483", 2))  # A round is under way.

    market.now -= timedelta(hours=1)
    market.campaigns.put(a_demand(2, "483"))
    market.run(10)

    assert market.banners() == [1, 2]


def test_a_category_that_was_not_taken_is_told_again_although_the_clock_was_set_back() -> None:
    market = Market()
    market.classify("483")
    market.run(10)
    market.loss = 1.0
    market.step(DIRECTORY, CampaignReady(a_demand(1, "483", version=1)))
    market.run(1)

    market.now -= timedelta(hours=1)
    market.loss = 0.0
    market.step(DIRECTORY, AllDemand(1, (a_demand(1, "483", version=1),)))  # As each minute.
    market.run(10)

    assert market.banners() == [1]


def test_a_campaign_does_not_bid_on_what_is_above_its_category() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "424"))
    market.campaigns.put(a_demand(2, "422"))

    market.classify("422")
    market.run(1)

    assert market.banners() == [2]


def test_edits_within_a_second_are_auctioned_together() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483")
    market.run(5)
    rows = len(market.rows)
    rounds = market.states[HOUSE].rounds

    for cpm in range(2, 12):
        market.campaigns.put(a_demand(1, "483", cpm=cpm))
        market.run(0.05)
    market.run(3)

    assert market.states[HOUSE].rounds - rounds <= 3
    assert market.candidates()[0].cpm == 11_000_000
    assert len(market.rows) - rows <= 10 * 2 + 3


def test_a_change_during_a_round_is_not_lost() -> None:
    market = Market()
    market.classify("483")
    market.delay = timedelta(milliseconds=300)
    for number in range(6):
        market.campaigns.put(a_demand(number, "483", cpm=number + 1))
        market.run(0.25)

    market.run(5)

    assert market.banners() == [5, 4, 3]


def test_a_bidder_that_does_not_answer_is_asked_again() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.run(1)
    market.loss = 1.0
    market.classify("483")
    market.run(2)
    assert market.banners() == []

    market.loss = 0.0
    market.run(3)

    assert market.banners() == [1]


@pytest.mark.parametrize("delay", [0.5, 2.0, 5.0])
def test_where_messages_are_always_slow_the_market_sells_later_and_is_right_in_the_end(delay: float) -> None:
    market = Market()
    market.delay = timedelta(seconds=delay)
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483")
    market.run(10 * delay)
    assert market.banners() == [1]

    market.campaigns.put(a_demand(2, "483", cpm=9))
    market.run(10 * delay)
    assert market.banners() == [2, 1]

    market.configure(floor=Micros(7_000_000), version=2)
    market.run(10 * delay)

    assert market.banners() == [2]


def test_nothing_is_written_again_where_nothing_has_changed() -> None:
    market = Market()
    for number in range(5):
        market.campaigns.put(a_demand(number, "483", cpm=number + 1))
    market.classify("539", "483")
    market.run(5)
    written = len(market.rows)

    market.run(3_600)

    assert len(market.rows) == written


def test_a_restart_writes_only_what_has_changed() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483")
    market.run(5)
    before = market.shortlists[URL]

    market.restart(HOUSE)
    market.configure(approvals={banner_id(1): ApprovalState.APPROVED})
    market.step(
        HOUSE, LoadShortlists({URL: WrittenShortlists(before.slots, before.expires_at)}, before.version)
    )
    market.classify("483")
    market.run(5)

    after = market.shortlists[URL]
    assert [one.banner_id for one in after.slots[0].candidates] == [banner_id(1)]
    assert after.version >= before.version


@pytest.mark.parametrize(
    ("mode", "trusted", "expected"),
    [
        (ApprovalMode.MANUAL, "nobody", ApprovalState.PENDING),
        (ApprovalMode.TRUSTED, "nobody", ApprovalState.PENDING),
        (ApprovalMode.TRUSTED, "its advertiser", ApprovalState.APPROVED),
        (ApprovalMode.AUTOMATIC, "nobody", ApprovalState.APPROVED),
    ],
)
def test_a_banner_that_was_never_seen_waits_for_its_approval(
    mode: ApprovalMode, trusted: str, expected: ApprovalState
) -> None:
    demand = a_demand(1, "483")
    market = Market()
    market.configure(
        mode=mode, trusted=frozenset({demand.advertiser_id} if trusted != "nobody" else ()), version=2
    )
    market.campaigns.put(demand)
    market.classify("483")
    market.run(2)

    assert [one.is_pending for one in market.candidates()] == [expected is ApprovalState.PENDING]
    assert [seen.state for seen in market.approvals] == [expected]


def test_a_banner_that_waits_is_approved_when_the_site_changes_to_approve_all_unless_it_was_revoked() -> None:
    market = Market()
    market.configure(mode=ApprovalMode.MANUAL, version=2)
    for number in (1, 2):
        market.campaigns.put(a_demand(number, "483"))
    market.classify("483")
    market.run(2)
    assert [one.is_pending for one in market.candidates()] == [True, True]
    waiting = {banner_id(number): ApprovalState.PENDING for number in (1, 2)}

    rules = ApprovalRules(ApprovalMode.AUTOMATIC, waiting, revoked=frozenset({banner_id(2)}))
    market.step(HOUSE, msgspec.structs.replace(a_site(version=3), approvals=rules))
    market.run(2)

    assert {one.banner_id: one.is_pending for one in market.candidates()} == {
        banner_id(1): False,
        banner_id(2): True,
    }
    seen = [(one.banner_id, one.state) for one in market.approvals[2:]]
    assert seen == [(banner_id(1), ApprovalState.APPROVED)]


def test_pending_banners_do_not_displace_approved_ones() -> None:
    approved = {banner_id(number): ApprovalState.APPROVED for number in (1, 2)}
    market = Market()
    market.configure(mode=ApprovalMode.MANUAL, approvals=approved, version=2)
    for number in range(1, 10):
        market.campaigns.put(a_demand(number, "483", cpm=number if number < 3 else 1_000))

    market.classify("483")
    market.run(2)

    assert [one.banner_id.int - 2_000 for one in market.candidates() if not one.is_pending] == [2, 1]
    assert [one.banner_id.int - 2_000 for one in market.candidates() if one.is_pending] == [3, 4, 5]


def test_a_rejected_banner_gives_its_place_to_the_next() -> None:
    market = Market()
    for number in range(1, 6):
        market.campaigns.put(a_demand(number, "483", cpm=number))
    market.classify("483")
    market.run(2)
    assert market.banners() == [5, 4, 3]

    market.configure(approvals={banner_id(5): ApprovalState.REJECTED}, version=2)
    market.run(2)

    assert market.banners() == [4, 3, 2]


def test_filler_is_for_pages_without_a_category_where_the_site_wants_it() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483", takes_filler=True))
    market.campaigns.put(a_demand(2, "483"))
    market.step(HOUSE, PagesClassified((a_filler_page("magazine.test/b"),)))
    market.run(2)

    [candidate] = market.candidates("magazine.test/b")
    assert (candidate.banner_id, candidate.category) == (banner_id(1), None)

    market.configure(accepts_filler=False, version=2)
    market.run(2)
    assert market.candidates("magazine.test/b") == ()


def test_a_floor_that_rises_removes_what_is_under_it() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483", cpm=5))
    market.classify("483")
    market.run(2)

    market.configure(floor=5_010_000, version=2)
    market.run(2)

    assert market.candidates() == ()


def test_an_expired_page_loses_its_shortlist() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483", hours=1)
    market.run(10)
    assert market.banners() == [1]

    market.run(3_600 + 301)

    assert market.shortlists[URL].slots == ()
    assert market.states[HOUSE].pages == {}


def test_a_site_has_ten_thousand_pages_at_most_and_keeps_those_that_last_longest() -> None:
    market = Market(is_suspended=True)
    pages = [a_page(f"magazine.test/{number}", hours=1 + number / PAGES_MAX) for number in range(PAGES_MAX)]
    market.step(HOUSE, PagesClassified(tuple(pages)))
    market.step(HOUSE, PagesClassified((a_page("magazine.test/new", hours=48),)))

    kept = market.states[HOUSE].pages
    assert len(kept) == PAGES_MAX
    assert "magazine.test/new" in kept
    assert "magazine.test/0" not in kept


def test_an_empty_auction_is_tried_again_three_times_and_then_with_the_others() -> None:
    market = Market()
    market.classify("483")
    market.run(0.5)
    before = market.states[HOUSE].rounds

    market.run(29)
    assert market.states[HOUSE].rounds == before
    market.run(95)

    assert market.states[HOUSE].rounds == before + 3


def test_pages_of_an_older_version_are_dropped() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.campaigns.put(a_demand(2, "210"))
    market.classify("483", version=5)
    market.run(2)

    market.classify("210", version=4)
    market.run(2)

    assert market.banners() == [1]


def test_a_suspended_site_has_no_auctions() -> None:
    market = Market()
    market.configure(is_suspended=True, version=2)
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483")
    market.run(10)

    assert market.states[HOUSE].rounds == 0


@for_each("seed", seeds(12))
def test_after_any_history_shortlists_are_what_the_catalog_says(seed: int) -> None:
    """Within 60 s of calm: right categories, right prices, nobody who ended, nothing under the floor."""
    market = Market(seed)
    chance = market.chance
    market.loss, market.repetition = 0.3, 0.2
    pages: dict[str, tuple[str, ...]] = {f"magazine.test/{number}": ("483",) for number in range(10)}
    for step in range(60):
        if chance.random() < 0.5:
            url = chance.choice(list(pages))
            pages[url] = tuple(chance.sample(("539", "540", "424", "422", "210"), chance.randint(1, 3)))
            market.classify(*pages[url], url=url, version=step + 2)
        number = chance.randrange(8)
        if chance.random() < 0.25 and campaign_id(number) in market.campaigns.active:
            market.campaigns.end(campaign_id(number))
        else:
            wanted = chance.sample(("483", "539", "422", "210"), 2)
            market.campaigns.put(a_demand(number, *wanted, cpm=chance.choice((0, *range(3, 10)))))
        if chance.random() < 0.2:
            market.campaigns.repeat()
        market.run(chance.random() * 5)
    market.loss = market.repetition = 0.0
    market.campaigns.repeat()
    market.run(REPEATED_WITHIN)

    active = market.campaigns.active
    for url, page in market.states[HOUSE].pages.items():
        sold_under = {one for category, _ in page.categories for one in (category, *ABOVE.get(category, ()))}
        for candidate in market.candidates(url):
            campaign = active[candidate.campaign_id]
            assert candidate.category in sold_under
            assert candidate.category in campaign.categories
            assert candidate.cpm == campaign.max_cpm >= 500_000
        wanted = [
            one for one in active.values() if one.max_cpm >= 500_000 and sold_under & set(one.categories)
        ]
        assert len(market.candidates(url)) == min(3, len(wanted)), url


# The directory's repetition, and the site's own, staggered.
REPEATED_WITHIN = 60 + 300 + 5


def test_a_banner_of_another_size_is_not_on_the_shortlist() -> None:
    market = Market()
    market.configure(slots=(AuctionSlot("top", 300, 250, Micros(0)),), version=2)
    market.campaigns.put(a_demand(1, "483", creatives=(WantedCreative(banner_id(1), 728, 90),)))
    market.campaigns.put(a_demand(2, "483", creatives=(WantedCreative(banner_id(2), 300, 250),)))
    market.campaigns.put(a_demand(3, "483"))
    market.classify("483")
    market.run(2)

    assert market.banners() == [2, 3]


def test_a_page_that_is_checked_again_is_sold_for_longer_although_nothing_else_has_changed() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483", hours=48)
    market.run(2)
    before = market.shortlists[URL]

    market.classify("483", hours=72, version=2)
    market.run(2)

    after = market.shortlists[URL]
    assert after.slots == before.slots
    assert after.expires_at == before.expires_at + timedelta(hours=24)
    assert after.version > before.version


def test_bidders_that_are_silent_after_a_restart_take_no_ad_off_a_page() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483"))
    market.classify("483")
    market.run(5)
    before = market.shortlists[URL]

    market.restart(HOUSE)
    market.loss = 1.0
    market.step(
        HOUSE, LoadShortlists({URL: WrittenShortlists(before.slots, before.expires_at)}, before.version)
    )
    market.configure()
    market.classify("483")
    market.run(5)
    assert market.shortlists[URL] is before

    market.loss = 0.0
    market.campaigns.put(a_demand(2, "483"))
    market.run(5)
    assert market.banners() == [1, 2]


def test_an_answer_to_a_question_of_before_a_restart_is_not_taken() -> None:
    market = Market()
    market.loss = 1.0
    market.classify("483")
    late = market.states[HOUSE].round.number

    market.run(1)
    market.restart(HOUSE)
    market.configure("top", "side")
    market.classify("483")
    market.step(HOUSE, BidAnswer("483", late, 9, (CategoryBids(category="483", bids=()),)))

    assert market.states[HOUSE].bids == {}


def test_a_setting_says_how_many_campaigns_a_shortlist_has() -> None:
    market = Market()
    market.states[HOUSE] = msgspec.structs.replace(market.states[HOUSE], campaigns_max=5)
    for number in range(8):
        market.campaigns.put(a_demand(number, "483", cpm=number + 3))
    market.classify("483")
    market.run(2)

    assert market.banners() == [7, 6, 5, 4, 3]


def test_a_page_with_many_slots_has_a_campaign_for_each() -> None:
    market = Market()
    market.configure("top", "side", "middle", "bottom", "end")
    for number in range(8):
        market.campaigns.put(a_demand(number, "483", cpm=number + 3))
    market.classify("483")
    market.run(2)

    assert market.banners(slot=4) == [7, 6, 5, 4, 3]

    market.configure("top", version=9)
    market.run(2)
    assert market.banners() == [7, 6, 5]


def test_campaigns_that_have_spent_their_budgets_take_no_place_of_those_who_can_pay() -> None:
    market = Market()
    for number in range(1, 4):
        market.campaigns.put(a_demand(number, "483", cpm=9 - number, is_spent=True))
    market.campaigns.put(a_demand(4, "483", cpm=2))
    market.classify("483")
    market.run(2)

    assert market.banners() == [4, 1, 2, 3]  # Kept, for when they have budget again.

    market.campaigns.put(a_demand(2, "483", cpm=7))
    market.run(2)
    assert market.banners() == [2, 4, 1, 3]


@pytest.mark.parametrize("before", [True, False])
def test_a_site_that_changes_its_mind_about_filler_goes_on_selling(*, before: bool) -> None:
    market = Market(accepts_filler=before)
    market.campaigns.put(a_demand(1, "483"))
    for number in range(3):
        market.step(HOUSE, PagesClassified((a_filler_page(f"magazine.test/{number}"),)))
    market.run(5)
    market.configure(version=2, accepts_filler=not before)
    market.run(5)

    market.step(HOUSE, PagesClassified((), gone=("magazine.test/0",)))
    market.step(HOUSE, PagesClassified((a_page("magazine.test/1", "483", version=2),)))
    market.campaigns.put(a_demand(2, "999", takes_filler=True))
    market.run(3)

    assert market.banners("magazine.test/0") == []
    assert market.banners("magazine.test/1") == [1]
    assert market.banners("magazine.test/2") == ([] if before else [2])


def test_the_pages_of_a_large_site_are_taken_in_time_that_grows_with_their_number() -> None:
    spent: list[float] = []
    for count in (1_000, 8_000):
        market = Market(is_suspended=True)
        pages = tuple(a_page(f"magazine.test/{number}", "539") for number in range(count))
        began = time.process_time()
        market.step(HOUSE, PagesClassified(pages, is_all=True))
        spent.append(time.process_time() - began)

    assert spent[1] < 40 * spent[0]


def test_creatives_whose_schedule_is_closed_take_no_place_of_those_that_can_be_shown() -> None:
    market = Market()
    for number in range(1, 4):
        later = WantedCreative(banner_id(number), is_closed=True)
        market.campaigns.put(a_demand(number, "483", cpm=50, creatives=(later,)))
    both = (WantedCreative(banner_id(4), is_closed=True), WantedCreative(banner_id(5)))
    market.campaigns.put(a_demand(4, "483", cpm=2, creatives=both))
    market.classify("483")
    market.run(2)

    assert market.banners() == [5, 1, 2, 3]


@pytest.mark.parametrize(
    "reason",
    [{"is_paced": True}, {"is_restricted": True}, {"bid_now": Micros(400_000)}],
    ids=["paced", "restricted", "under the floor now"],
)
def test_campaigns_that_are_shown_at_some_requests_leave_a_place_to_others_and_keep_their_own(
    reason: dict[str, Any],
) -> None:
    market = Market()
    for number in range(1, 5):
        market.campaigns.put(a_demand(number, "483", cpm=50 + number, **reason))
    market.campaigns.put(a_demand(5, "483", cpm=20))
    market.classify("483")
    market.run(2)

    assert market.banners() == [5, 4, 3, 2]

    market.campaigns.put(a_demand(1, "483", cpm=51))
    market.run(2)
    assert market.banners() == [1, 5, 4, 3, 2]
