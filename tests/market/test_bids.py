from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.auctioneer.select import expand_categories, select_fairly
from adloom.market.bids import BIDS_MAX, NEAR_TOP, SlotBid, check_demand, collect_bids, keep_first
from tests.market.builders import UNIT, a_demand, banner_id, campaign_id, some_slot_terms


def make(
    number: int, cents: int, creatives: tuple[WantedCreative, ...], product: str | None
) -> CampaignDemand:
    return a_demand(number, cpm=cents / 100, creatives=creatives, product_category=product)


demands = st.lists(
    st.builds(
        make,
        st.integers(0, 200),
        st.integers(1, 3_000),
        st.lists(
            st.builds(
                WantedCreative,
                st.integers(0, 50).map(banner_id),
                st.sampled_from([None, 300, 728]),
                st.sampled_from([None, 250, 90]),
                st.sampled_from([None, "shop.test", "bad.test"]),
            ),
            max_size=4,
        ).map(tuple),
        st.sampled_from([None, "1002", "1004"]),
    ),
    max_size=80,
    unique_by=lambda one: one.campaign_id,
)


@given(demands)
def test_bids_are_within_the_terms_and_near_the_top(campaigns: list[CampaignDemand]) -> None:
    slot = some_slot_terms(
        width=300,
        height=250,
        blocked_products=frozenset({"1004"}),
        blocked_domains=frozenset({"bad.test"}),
        approvals=ApprovalRules(ApprovalMode.AUTOMATIC, {banner_id(3): ApprovalState.REJECTED}),
    )

    answer = collect_bids("483", campaigns, slot)

    by_id = {one.campaign_id: one for one in campaigns}
    for bid in answer.bids:
        campaign = by_id[bid.campaign_id]
        assert bid.cpm == campaign.max_cpm >= slot.floor
        assert bid.cpm >= answer.bids[0].cpm * NEAR_TOP
        assert campaign.product_category != "1004"
        assert bid.landing_domain != "bad.test"
        assert bid.banner_id != banner_id(3)
        [*fitting] = [
            one for one in campaign.creatives if one.banner_id == bid.banner_id and one.fits(300, 250)
        ]
        assert fitting
    assert len({bid.campaign_id for bid in answer.bids}) <= BIDS_MAX
    assert [bid.cpm for bid in answer.bids] == sorted((bid.cpm for bid in answer.bids), reverse=True)
    removed = sum(check_demand(one, slot)[0] is not None for one in campaigns)
    near = [one for one in campaigns if not answer.bids or one.max_cpm >= answer.bids[0].cpm * NEAR_TOP]
    assert len({bid.campaign_id for bid in answer.bids}) >= min(BIDS_MAX, len(near) - removed)


def test_what_the_floor_removed_is_said_for_who_sets_it() -> None:
    campaigns = [a_demand(1, cpm=0.2), a_demand(2, cpm=0.4), a_demand(3, cpm=5)]

    answer = collect_bids("483", campaigns, some_slot_terms())

    assert answer.under_floor == (Micros(UNIT // 5), Micros(UNIT * 2 // 5))
    assert [bid.campaign_id for bid in answer.bids] == [campaign_id(3)]


def test_campaigns_that_take_no_part_are_counted_by_reason() -> None:
    campaigns = [
        a_demand(1, cpm=0.1),
        a_demand(2, cpm=0.2),
        a_demand(3, creatives=()),
        a_demand(4, blocked_domains=("magazine.test",)),
        a_demand(5),
    ]

    bids = collect_bids("483", campaigns, some_slot_terms())

    assert bids.removed == {"below_floor": 2, "no_creatives": 1, "site_blocked": 1}
    assert [one.campaign_id for one in bids.bids] == [campaign_id(5)]


def test_only_demand_that_may_be_shown_says_where_a_floor_should_be() -> None:
    campaigns = [a_demand(number, cpm=0.1 * number) for number in (1, 2, 3, 4)]
    approved = {banner_id(number): ApprovalState.APPROVED for number in (1, 2, 3)}
    slot = some_slot_terms(approvals=ApprovalRules(ApprovalMode.MANUAL, approved))

    assert collect_bids("483", campaigns, slot).under_floor == (
        Micros(UNIT // 10),
        Micros(UNIT // 5),
        Micros(UNIT * 3 // 10),
    )


def test_an_advertiser_is_not_shown_on_a_site_that_it_blocks() -> None:
    campaign = a_demand(1, blocked_domains=frozenset({"magazine.test"}))

    assert check_demand(campaign, some_slot_terms()) == ("site_blocked", [])


def test_a_page_is_sold_under_its_best_three_categories_and_what_is_above_them() -> None:
    above = {"539": ("483",), "540": ("483",), "424": ("422",)}
    confidences = [("539", 0.9), ("540", 0.8), ("424", 0.5), ("210", 0.1)]

    scores = expand_categories(confidences, lambda _: 0.5, lambda one: above.get(one, ()))

    assert {one: round(score, 4) for one, score in scores.items()} == {
        "539": 0.45, "540": 0.4, "483": 0.315, "424": 0.25, "422": 0.175,
    }  # fmt: skip


@given(demands, demands)
def test_a_creative_is_on_a_shortlist_once_and_campaigns_are_treated_alike(
    some: list[CampaignDemand], others: list[CampaignDemand]
) -> None:
    slot = some_slot_terms()
    lists = [collect_bids("539", some, slot).bids, collect_bids("483", others, slot).bids]

    chosen = select_fairly(lists)

    best: dict[object, SlotBid] = {}
    for bid in sorted((bid for part in lists for bid in part), key=lambda bid: bid.order):
        best.setdefault((bid.banner_id, bid.campaign_id), bid)
    campaigns: dict[CampaignId, SlotBid] = {}
    for bid in best.values():
        campaigns.setdefault(bid.campaign_id, bid)
    expected = list(campaigns.values())[:3]
    expected += [bid for bid in best.values() if bid not in expected][: 3 - len(expected)]
    assert chosen == expected


@given(demands, demands, st.integers(1, 6))
def test_of_a_list_only_the_first_campaigns_can_be_chosen(
    some: list[CampaignDemand], others: list[CampaignDemand], count_max: int
) -> None:
    slot = some_slot_terms()
    lists = [collect_bids("539", some, slot).bids, collect_bids("483", others, slot).bids]

    kept = [keep_first(bids, count_max) for bids in lists]

    assert all(len({bid.campaign_id for bid in bids}) <= count_max for bids in kept)
    assert select_fairly(kept, count_max=count_max) == select_fairly(lists, count_max=count_max)
