"""Which creative fills a contextual slot, and at what price: a pure function of page, shortlist and site.

Every candidate that is removed has the name of what removed it. What depends on the visitor's history or on money is
not decided here: frequency caps are looked up before, for the whole shortlist, and of those that are left the best
wins whose price can be held.
"""

# pure

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from adloom.auction.creative_choice import ChoicePolicy, Contender, DrawnScores, rank, share_bid
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.serving.index.contextual import ContextualCreative
from adloom.targeting.values import is_below

CATEGORY_MISMATCH: Final = "category_mismatch"
CATEGORY_EXCLUDED: Final = "category_excluded"
SIZE_MISMATCH: Final = "size_mismatch"
NOT_APPROVED: Final = "not_approved"
REJECTED: Final = "rejected"
AD_PRODUCT_BLOCKED: Final = "ad_product_blocked"
DOMAIN_BLOCKED: Final = "domain_blocked"
SITE_BLOCKED: Final = "site_blocked"
CAMPAIGN_INACTIVE: Final = "campaign_inactive"
BELOW_FLOOR: Final = "below_floor"
BUDGET: Final = "budget"
PACING: Final = "pacing"
FREQUENCY: Final = "frequency"
TARGETING: Final = "targeting"
ON_PAGE_ALREADY: Final = "on_page_already"
NO_DEMAND: Final = "no_demand"
NOT_SHOWN: Final = (0, 0)


class SlotRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a site asks of an ad in one of its slots; blocked products have their descendants with them."""

    domain: str
    width: int | None
    height: int | None
    floor: Micros  # Of the slot and the site, where floors are fixed;
    floor_min: Micros = Micros(0)  # of the slot, and the least of the site, where they move by category.
    is_sweeping: bool = False
    accepts_filler: bool
    blocked_products: frozenset[str] = frozenset()
    blocked_domains: frozenset[str] = frozenset()
    approvals: ApprovalRules = ApprovalRules()
    bid_weight: float = 0.5
    is_first_price: bool = False

    def find_floor(self, candidate: ShortlistCandidate) -> Micros:
        """Return the least that a candidate pays; where floors move, its category's is on the shortlist."""
        if not self.is_sweeping or not candidate.floor:
            return self.floor
        return max(self.floor_min, candidate.floor)


class EligibleCandidate(Protocol):
    """A candidate that may fill the slot, as prices need to know it."""

    @property
    def candidate(self) -> ShortlistCandidate: ...

    @property
    def creative(self) -> ContextualCreative: ...

    @property
    def payer(self) -> bytes: ...


class Eligible(msgspec.Struct, frozen=True, gc=False):
    """A candidate that may fill the slot."""

    candidate: ShortlistCandidate
    creative: ContextualCreative

    @property
    def payer(self) -> bytes:
        return name_payer(self.candidate)


def name_payer(candidate: ShortlistCandidate) -> bytes:
    """Return the bytes of the id of who pays, which compare faster: a campaign of the house counts as its own."""
    return (candidate.advertiser_id or candidate.campaign_id).bytes


def find_removal(
    candidate: ShortlistCandidate, creative: ContextualCreative, page: Collection[str], rules: SlotRules
) -> str | None:
    """Return the name of what keeps a candidate from this slot of this page, if anything does.

    `page` are the page's categories and all above them.
    """
    category = candidate.category
    if category is None:
        is_fitting = not page and rules.accepts_filler and creative.takes_filler
    else:
        is_fitting = category in page and category in creative.categories
    if not is_fitting:
        return CATEGORY_MISMATCH
    if not creative.excluded_categories.isdisjoint(page):
        return CATEGORY_EXCLUDED
    sizes = (creative.width, creative.height, rules.width, rules.height)
    if None not in sizes and sizes[:2] != sizes[2:]:
        return SIZE_MISMATCH
    refusal = _find_refusal(creative, candidate, rules)
    return refusal or (BELOW_FLOOR if creative.bid < rules.find_floor(candidate) else None)


def _find_refusal(
    creative: ContextualCreative, candidate: ShortlistCandidate, rules: SlotRules
) -> str | None:
    """Return what the publisher or the advertiser has against it."""
    if creative.product_category is not None and creative.product_category in rules.blocked_products:
        return AD_PRODUCT_BLOCKED
    if creative.landing_domain is not None and is_below(creative.landing_domain, rules.blocked_domains):
        return DOMAIN_BLOCKED
    if creative.blocked_sites and is_below(rules.domain, creative.blocked_sites):
        return SITE_BLOCKED
    approval = rules.approvals.judge(creative.banner_id, candidate.advertiser_id)
    if approval is ApprovalState.APPROVED:
        return None
    return NOT_APPROVED if approval is ApprovalState.PENDING else REJECTED


def draw_eligible(
    eligible: Sequence[EligibleCandidate],
    policy: ChoicePolicy,
    results: Mapping[int, tuple[int, int]],
    chance: Chance,
) -> DrawnScores:
    """Draw scores of what is left; `results` are the impressions and clicks of banners on this site in the last hour."""
    contenders = [
        Contender(
            one.creative.bid, one.candidate.category_score, *results.get(one.creative.banner_key, NOT_SHOWN)
        )
        for one in eligible
    ]
    ranked = rank(contenders, policy, chance)
    by_position = sorted(ranked)
    return DrawnScores(
        [one.engagement for one in by_position],
        [one.score for one in by_position],
        [one.position for one in ranked],
    )


def price_winner(
    position: int,
    scores: list[float],
    eligible: Sequence[EligibleCandidate],
    rules: SlotRules,
    left: list[float] | None = None,
) -> Micros:
    """Return what a thousand impressions cost: the bid, or the lowest bid that would still have won.

    Bids of who pays for the winner do not raise its price, nor do those that were tried before it: where `left` is
    given, their scores and its own are negative there. Others may have a higher score, where the ladder ranks by
    something else: they set no price either.
    """
    own = eligible[position]
    bid = own.creative.bid
    if rules.is_first_price:
        return bid
    if left is None:
        left = scores.copy()
        left[position] = -1.0
    score, payer, rival = scores[position], own.payer, max(left)
    if rival > score or (rival > 0.0 and eligible[left.index(rival)].payer == payer):
        rival = max(
            (
                other
                for one, other in zip(eligible, left, strict=True)
                if other <= score and one.payer != payer
            ),
            default=0.0,
        )
    floor = rules.find_floor(own.candidate) if rules.is_sweeping else rules.floor
    return share_bid(rival / score, bid, floor, rules.bid_weight) if rival > 0.0 else floor
