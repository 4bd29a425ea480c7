"""Where a campaign's contextual bids reach, and in which words a campaign is told."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.bid import BidType
from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative
from adloom.catalog.campaign.model import Campaign
from adloom.core.ids import CampaignId, SiteId
from adloom.core.money import Micros
from adloom.explain.campaign.check import CheckState
from adloom.explain.campaign.contextual import check_contextual
from adloom.market.approval import ApprovalState
from adloom.market.auctioneer.state import AuctionSlot, build_slot_terms
from adloom.market.bids import collect_bids
from adloom.market.report.reach import (
    CampaignReach,
    OfferedSite,
    PageGroup,
    find_reach,
    group_pages,
    sum_up_demand,
)
from adloom.taxonomy.topics import FILLER
from tests.market.builders import UNIT, a_demand, a_site, banner_id

TENNIS, GOLF = "539", "512"


def a_reach(demand: CampaignDemand | None = None, *sites: OfferedSite) -> CampaignReach:
    return find_reach(demand or a_demand(1, TENNIS, cpm=2), sites)


def an_offered_site(
    number: int = 1, *groups: PageGroup, mode: ApprovalMode = ApprovalMode.AUTOMATIC, **fields: Any
) -> OfferedSite:
    values: dict[str, Any] = {"domain": f"site{number}.test", **fields}
    configured = a_site(mode=mode, **values)
    return OfferedSite(
        site_id=SiteId(UUID(int=number)),
        terms=configured.terms,
        approvals=configured.approvals,
        groups=groups or (PageGroup((TENNIS,), 12),),
    )


def sentences(reach: CampaignReach, **fields: Any) -> dict[str, tuple[CheckState, str]]:
    values: dict[str, Any] = {"bid_amount_micros": 2 * UNIT, "categories": (TENNIS,), **fields}
    campaign = Campaign(
        id=CampaignId(UUID(int=1)),
        advertiser_id=None,
        name="Rackets",
        created_at=datetime(2026, 11, 15, tzinfo=UTC),
        updated_at=datetime(2026, 11, 15, tzinfo=UTC),
        deleted_at=None,
        **values,
    )
    checks = check_contextual(campaign, reach, is_only=True)
    return {one.name: (one.state, one.sentence) for one in checks}


def test_a_bid_under_the_floor_is_told_with_the_amount_and_the_pages() -> None:
    reach = a_reach(None, an_offered_site(floor=Micros(2_400_000)))

    assert (reach.pages, reach.reached) == (12, 0)
    assert sentences(reach)["contextual_floor"] == (
        CheckState.STOPS,
        "Its bid is 0.40 under the floor of 12 pages of site1.test.",
    )


def test_a_floor_of_the_category_counts_instead_of_the_sites() -> None:
    reach = a_reach(None, an_offered_site(category_floors={TENNIS: Micros(2_000_100)}))

    assert sentences(reach)["contextual_floor"][1] == (
        "Its bid is 0.0001 under the floor of 12 pages of site1.test."
    )


def test_sites_that_wait_for_approval_are_counted_and_named() -> None:
    manual = [an_offered_site(number, mode=ApprovalMode.MANUAL) for number in range(1, 6)]
    reach = a_reach(None, *manual, an_offered_site(9))

    assert sentences(reach)["approvals"] == (
        CheckState.LIMITS,
        "5 sites wait for approval, with 60 pages: site1.test, site2.test, site3.test and 2 more.",
    )


@pytest.mark.parametrize(
    ("demand", "site", "name", "sentence"),
    [
        (
            a_demand(1, TENNIS, blocked_domains=frozenset({"site1.test"})),
            {},
            "sites",
            "12 pages cannot be reached: its advertiser blocks site1.test.",
        ),
        (
            a_demand(1, TENNIS, product_category="1002"),
            {"blocked_products": frozenset({"1002"})},
            "sites",
            "12 pages cannot be reached: its product is blocked by site1.test.",
        ),
        (
            a_demand(1, TENNIS, creatives=(WantedCreative(banner_id(1), None, None, "shop.test"),)),
            {"blocked_domains": frozenset({"shop.test"})},
            "sites",
            "12 pages cannot be reached: its landing page is blocked by site1.test.",
        ),
        (
            a_demand(1, TENNIS),
            {"approvals": {banner_id(1): ApprovalState.REJECTED}},
            "sites",
            "12 pages cannot be reached: its banners were rejected by site1.test.",
        ),
        (
            a_demand(1, TENNIS),
            {"is_suspended": True},
            "sites",
            "12 pages cannot be reached: no ads are shown at the moment by site1.test.",
        ),
        (
            a_demand(1, TENNIS, creatives=(WantedCreative(banner_id(1), 728, 90),)),
            {"slots": (AuctionSlot("top", 300, 250, Micros(0)),)},
            "sizes",
            "None of its banners has the size of a slot on 12 pages of site1.test.",
        ),
    ],
    ids=["blocked site", "blocked product", "blocked domain", "rejected", "suspended", "size"],
)
def test_what_keeps_a_campaign_from_pages_is_told(
    demand: CampaignDemand, site: dict[str, Any], name: str, sentence: str
) -> None:
    assert sentences(a_reach(demand, an_offered_site(**site)))[name] == (CheckState.STOPS, sentence)


def test_categories_without_pages_are_named() -> None:
    reach = a_reach(a_demand(1, TENNIS, GOLF), an_offered_site())

    assert sentences(reach)["categories"] == (CheckState.LIMITS, "No page is about Golf.")


def test_a_campaign_without_pages_or_with_a_bid_by_click_is_stopped() -> None:
    assert sentences(a_reach(), bid_type=BidType.CPC)["contextual_bid"][0] is CheckState.STOPS
    assert sentences(a_reach())["categories"] == (CheckState.STOPS, "No page is about Tennis.")


def test_pages_are_grouped_by_the_categories_that_they_fit() -> None:
    wanted = {TENNIS: [TENNIS, "483"], "483": ["483"], FILLER: [FILLER]}
    found: Sequence[tuple[Sequence[str], int, bool]] = [
        ([TENNIS], 2, False),
        ([TENNIS, "483"], 3, False),
        (["483"], 5, False),
        (["483"], 4, True),
        (["1"], 7, False),
    ]

    assert set(group_pages(found, wanted)) == {
        PageGroup(("483", TENNIS), 5),
        PageGroup(("483",), 5),
        PageGroup(("483",), 4, is_excluded=True),
    }


def test_pages_that_it_excludes_are_counted_apart() -> None:
    reach = a_reach(
        None, an_offered_site(1, PageGroup((TENNIS,), 12), PageGroup((TENNIS,), 3, is_excluded=True))
    )

    assert (reach.pages, reach.reached, reach.count_removed("category_excluded")) == (15, 12, 3)
    assert sentences(reach)["sites"] == (
        CheckState.LIMITS,
        "3 pages cannot be reached: it excludes what pages are about on site1.test.",
    )


def test_a_campaign_does_not_bid_for_a_category_that_it_excludes_or_one_below() -> None:
    demands = [
        a_demand(1, "483", cpm=9, excluded_categories=frozenset({TENNIS})),
        a_demand(2, "483", cpm=2, excluded_categories=frozenset({"424"})),
    ]
    above = {TENNIS: ("483",), GOLF: ("483",)}

    found = sum_up_demand([TENNIS, GOLF], demands, a_site(), lambda one: above.get(one, ()))

    shown = {name: (one.campaigns, one.bidding, one.highest, one.removed) for name, one in found.items()}
    assert shown == {TENNIS: (2, 1, 2 * UNIT, {"category_excluded": 1}), GOLF: (2, 2, 9 * UNIT, {})}


def test_a_campaign_whose_budget_is_spent_is_not_one_that_may_be_shown() -> None:
    demands = [a_demand(1, TENNIS, cpm=9, is_spent=True), a_demand(2, TENNIS, cpm=2)]

    found = sum_up_demand([TENNIS], demands, a_site(), lambda _: ())[TENNIS]

    assert (found.campaigns, found.bidding, found.highest) == (2, 1, 2 * UNIT)
    assert found.removed == {"campaign_inactive": 1}


@given(
    bid=st.integers(0, 4 * UNIT),
    floors=st.lists(st.integers(0, 4 * UNIT), min_size=1, max_size=3),
    mode=st.sampled_from(ApprovalMode),
    decided=st.none() | st.sampled_from(ApprovalState),
)
def test_a_reach_agrees_with_the_bids_of_the_auction(
    bid: int, floors: list[int], mode: ApprovalMode, decided: ApprovalState | None
) -> None:
    demand = a_demand(1, TENNIS, cpm=bid / UNIT)
    slots = tuple(AuctionSlot(f"s{n}", None, None, Micros(floor)) for n, floor in enumerate(floors))
    approvals = {} if decided is None else {banner_id(1): decided}
    configured = a_site(mode=mode, slots=slots, approvals=approvals, floor=Micros(0))
    site = OfferedSite(
        site_id=SiteId(UUID(int=1)),
        terms=configured.terms,
        approvals=configured.approvals,
        groups=(PageGroup((TENNIS,), 1),),
    )

    reach = find_reach(demand, [site])

    answers = [
        collect_bids(TENNIS, [demand], one)
        for one in build_slot_terms(configured.terms, configured.approvals, TENNIS)
    ]
    assert bool(reach.reached) == any(one.bids for one in answers)
    assert (reach.count_removed("not_approved") > 0) == (
        not reach.reached and any(one.pending for one in answers)
    )
