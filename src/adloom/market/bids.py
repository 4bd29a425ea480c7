"""The bids of a category for a slot: pure, from what the bidder holds."""

# pure

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeVar

import msgspec

from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative
from adloom.core.ids import AdvertiserId, BannerId, CampaignId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.targeting.values import is_below

BIDS_MAX: Final = 50
# Sets of excluded categories in a list. Beyond, the lowest bids with others are left out; those without stay.
EXCLUSIONS_MAX: Final = 200
# Bids from this share of the highest on: wide, so that a better creative of a lower bid has its chance.
NEAR_TOP: Final = 0.20
BELOW_FLOOR: Final = "below_floor"
REFUSED: Final = frozenset({ApprovalState.REJECTED, ApprovalState.FLAGGED})


class SlotTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of bids for a slot."""

    width: int | None
    height: int | None
    floor: Micros
    domain: str
    blocked_products: frozenset[str] = frozenset()
    blocked_domains: frozenset[str] = frozenset()
    approvals: ApprovalRules = ApprovalRules(ApprovalMode.AUTOMATIC)


class SlotBid(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A creative that a campaign bids with; `category` is the bidder's."""

    banner_id: BannerId
    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    category: str
    cpm: Micros
    bid_now: Micros | None = None  # By its campaign's strategy, where that is less.
    landing_domain: str | None
    product_category: str | None
    excluded_categories: frozenset[str] = frozenset()  # Of its campaign.
    order: tuple[int, bytes, bytes]  # Highest price first, then the older campaign.


class BidPrice(msgspec.Struct, frozen=True, gc=False):
    """What a campaign bids, and on which pages it does not."""

    campaign_id: CampaignId
    cpm: Micros
    excluded_categories: frozenset[str] = frozenset()


AnyBid = TypeVar("AnyBid", SlotBid, BidPrice)


class CategoryBids(msgspec.Struct, frozen=True, kw_only=True):
    """What a bidder answers, the best first: bids whose banners may be shown, bids whose banners wait for a decision.

    And what only the floor removed.
    """

    category: str
    bids: tuple[SlotBid, ...]
    pending: tuple[SlotBid, ...] = ()
    # May be shown at some requests: others are left out by pace, targeting or frequency caps, or by what is bid now.
    restricted: tuple[SlotBid, ...] = ()
    spent: tuple[SlotBid, ...] = ()  # May be shown, once their campaigns can be again.
    # Of bids that only the floor keeps away: the two highest and the lowest of any page, for who sets the floor.
    under_floor: tuple[Micros, ...] = ()
    under_floor_limited: tuple[BidPrice, ...] = ()  # The same of campaigns that exclude categories.
    removed: Mapping[str, int] = {}  # All campaigns that take no part, by reason.


def collect_bids(category: str, campaigns: Iterable[CampaignDemand], slot: SlotTerms) -> CategoryBids:
    """Return the creatives of the highest bids, those that may be shown apart from those that wait.

    Else a high bid without approval could push approved ones off the list.
    """
    under: list[BidPrice] = []
    removed: dict[str, int] = {}
    shown: list[SlotBid] = []
    pending: list[SlotBid] = []
    restricted: list[SlotBid] = []
    spent: list[SlotBid] = []
    judge = slot.approvals.judge
    for one in campaigns:
        reason, creatives = check_demand(one, slot)
        if reason is not None:
            removed[reason] = removed.get(reason, 0) + 1
        if reason == BELOW_FLOOR and _could_be_shown(one, slot):
            under.append(BidPrice(one.campaign_id, one.max_cpm, one.excluded_categories))
        for creative in creatives:
            is_pending = judge(creative.banner_id, one.advertiser_id) is ApprovalState.PENDING
            is_out = one.is_spent or creative.is_closed
            is_low = one.bid_now is not None and one.bid_now < slot.floor
            is_restricted = one.is_paced or one.is_restricted or is_low
            listed = pending if is_pending else spent if is_out else restricted if is_restricted else shown
            listed.append(_build_bid(category, one, creative))
    extremes = _list_extremes(under)
    return CategoryBids(
        category=category,
        bids=_keep_top(shown),
        pending=_keep_top(pending),
        restricted=_keep_top(restricted),
        spent=_keep_top(spent),
        under_floor=tuple(dict.fromkeys(one.cpm for one in extremes if not one.excluded_categories)),
        under_floor_limited=tuple(one for one in extremes if one.excluded_categories),
        removed=removed,
    )


def _list_extremes(prices: list[BidPrice]) -> list[BidPrice]:
    """Return the lowest and the two highest of any page, which are all that its floor depends on."""
    prices.sort(key=operator.attrgetter("cpm"))
    extremes = {*keep_first(prices, 1), *keep_first(reversed(prices), 2)}
    return [one for one in prices if one in extremes]


def _could_be_shown(one: CampaignDemand, slot: SlotTerms) -> bool:
    """Whether a lower floor would be enough: only demand that may be shown says where a floor should be."""
    if one.is_spent:
        return False
    _, creatives = check_demand(one, msgspec.structs.replace(slot, floor=Micros(0)))
    return any(
        not creative.is_closed
        and slot.approvals.judge(creative.banner_id, one.advertiser_id) is ApprovalState.APPROVED
        for creative in creatives
    )


def _build_bid(category: str, one: CampaignDemand, creative: WantedCreative) -> SlotBid:
    return SlotBid(
        banner_id=creative.banner_id,
        campaign_id=one.campaign_id,
        advertiser_id=one.advertiser_id,
        category=category,
        cpm=one.max_cpm,
        bid_now=one.bid_now,
        landing_domain=creative.landing_domain,
        product_category=one.product_category,
        excluded_categories=one.excluded_categories,
        order=(-one.max_cpm, one.campaign_id.bytes, creative.banner_id.bytes),
    )


def check_demand(one: CampaignDemand, slot: SlotTerms) -> tuple[str | None, list[WantedCreative]]:
    """Return the reason that removes a campaign, or its creatives that may fill the slot."""
    if one.blocked_domains and is_below(slot.domain, one.blocked_domains):
        return "site_blocked", []
    if one.product_category is not None and one.product_category in slot.blocked_products:
        return "ad_product_blocked", []
    if one.max_cpm < slot.floor:
        return BELOW_FLOOR, []
    reason = "no_creatives"
    fitting: list[WantedCreative] = []
    for creative in one.creatives:
        if not creative.fits(slot.width, slot.height):
            reason = "size_mismatch"
        elif creative.landing_domain is not None and is_below(creative.landing_domain, slot.blocked_domains):
            reason = "domain_blocked"
        elif slot.approvals.judge(creative.banner_id, one.advertiser_id) in REFUSED:
            reason = "rejected"
        else:
            fitting.append(creative)
    return (None, fitting) if fitting else (reason, [])


def _keep_top(found: list[SlotBid]) -> tuple[SlotBid, ...]:
    """Keep the bids near the top, of the first campaigns of any page; ties go to the older campaign."""
    found.sort(key=operator.attrgetter("order"))
    least = next((bid.cpm * NEAR_TOP for bid in found if not bid.excluded_categories), 0)
    return keep_first(takewhile(lambda bid: bid.cpm >= least, found), BIDS_MAX)


def keep_first(bids: Iterable[AnyBid], count_max: int) -> tuple[AnyBid, ...]:
    """Keep the bids of the first campaigns of any page; `bids` are in order.

    A campaign is left out where enough before it exclude no more than it does: they are on all pages that it is on.
    """
    campaigns: dict[frozenset[str], set[CampaignId]] = {}
    enough: set[frozenset[str]] = set()
    kept: list[AnyBid] = []
    for bid in bids:
        own = bid.excluded_categories
        listed = campaigns.get(own)
        if listed is None or bid.campaign_id not in listed:
            if own in enough or (own and listed is None and len(campaigns) >= EXCLUSIONS_MAX):
                continue
            if sum([len(others) for excluded, others in campaigns.items() if excluded <= own]) >= count_max:
                enough.add(own)
                continue
            if listed is None:
                listed = campaigns[own] = set()
            listed.add(bid.campaign_id)
        kept.append(bid)
    return tuple(kept)


def list_allowed(bids: Sequence[AnyBid], page: Collection[str]) -> Sequence[AnyBid]:
    """Return the bids near the top of those for a page, of which `page` are the categories that bids exclude."""
    allowed = [bid for bid in bids if bid.excluded_categories.isdisjoint(page)]
    return [bid for bid in allowed if bid.cpm >= allowed[0].cpm * NEAR_TOP]
