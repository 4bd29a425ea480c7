"""What keeps a campaign from contextual slots: its bid, its banners, its categories, sites, floors and approvals."""

# pure

from collections.abc import Iterable, Mapping
from typing import Final

from adloom.auction.bid import BidType
from adloom.catalog.campaign.model import Campaign
from adloom.core.money import Micros, decimal_from_micros
from adloom.explain.campaign.check import CampaignCheck, count_passing, judge
from adloom.explain.reasons import Reason
from adloom.market.report.reach import CampaignReach, SiteReach
from adloom.taxonomy.iab import load_content

NAMES_MAX: Final = 3  # Further ones are counted.

BY_CLICK: Final = Reason(
    "contextual_bid",
    "It bids by click, and contextual slots are sold by thousand impressions.",
    "Set bidType of the campaign to cpm, and give it a bidAmount.",
)
NO_BID: Final = Reason("contextual_bid", "The campaign bids nothing.", "Give the campaign a bidAmount.")
NO_CREATIVES: Final = Reason(
    "creatives",
    "It has no active banner for contextual slots.",
    "Add a banner to the campaign's creatives.",
)
# What keeps it from sites, as auctions name it, and what would have to change.
BLOCKED: Final[Mapping[str, tuple[str, str]]] = {
    "site_blocked": ("its advertiser blocks", "Take the domain out of the advertiser's blockedSites"),
    "ad_product_blocked": (
        "its product is blocked by",
        "Ask the publisher to take the product out of the site's adProductBlocklist",
    ),
    "domain_blocked": (
        "its landing page is blocked by",
        "Use another destination, or ask the publisher to take it out of the site's blockedDomains",
    ),
    "category_excluded": (
        "it excludes what pages are about on",
        "Take categories out of excludedCategories of the campaign, if it may be on such pages",
    ),
    "rejected": ("its banners were rejected by", "Show another banner, or ask the publisher to approve it"),
    "site_suspended": ("no ads are shown at the moment by", "Wait for the publisher"),
    "no_slots": ("there are no contextual slots on", "Wait for the publisher"),
}


def check_contextual(
    campaign: Campaign, reach: CampaignReach, *, is_only: bool, multiplier: float = 1.0
) -> list[CampaignCheck]:
    """Judge the steps between a campaign and contextual slots; with `is_only` it has no other placements.

    Pages are counted. A campaign with other placements is limited by what keeps it from pages, and never stopped.
    """
    checks = [_check_bid(campaign), _check_creatives(reach), _check_categories(reach)]
    if reach.pages:
        checks += [
            _check_sites(reach),
            _check_sizes(reach),
            # What is bid by click is no price of a thousand impressions.
            *([_check_floor(reach, multiplier)] if campaign.bid_type is BidType.CPM else []),
            _check_approvals(reach),
        ]
    return checks if is_only else [one.limited() for one in checks]


def _check_bid(campaign: Campaign) -> CampaignCheck:
    if campaign.bid_type is not BidType.CPM:
        return judge("contextual_bid", BY_CLICK)
    return judge("contextual_bid", None if campaign.bid_amount_micros else NO_BID)


def _check_creatives(reach: CampaignReach) -> CampaignCheck:
    return count_passing("creatives", None if reach.creatives else NO_CREATIVES, reach.creatives, None)


def _check_categories(reach: CampaignReach) -> CampaignCheck:
    """Count categories; a campaign that takes filler reaches pages without any."""
    empty = [one.id for one in reach.categories if not one.pages]
    if not empty:
        return count_passing("categories", None, len(reach.categories), len(reach.categories))
    names = _list_names(load_content().find_name(one) for one in empty)
    reason = Reason(
        "categories",
        f"No page is about {names}.",
        "Choose categories with pages, or those above them; pages come with sites that are crawled.",
    )
    passed = len(reach.categories) - len(empty)
    check = count_passing("categories", reason, passed, len(reach.categories))
    return check.limited() if reach.pages else check


def _check_sites(reach: CampaignReach) -> CampaignCheck:
    parts: list[str] = []
    changes: list[str] = []
    for name, (words, change) in BLOCKED.items():
        if sites := reach.list_sites(name):
            parts.append(f"{words} {_list_names(one.domain for one in sites)}")
            changes.append(change)
    if not parts:
        return count_passing("sites", None, reach.pages, reach.pages)
    count = reach.count_removed(*BLOCKED)
    sentence = f"{_count(count, 'page')} cannot be reached: {'; '.join(parts)}."
    return count_passing(
        "sites", Reason("sites", sentence, f"{'. '.join(changes)}."), reach.pages - count, reach.pages
    )


def _check_sizes(reach: CampaignReach) -> CampaignCheck:
    sites = reach.list_sites("size_mismatch")
    reason = Reason(
        "size_mismatch",
        f"None of its banners has the size of a slot on {_describe(sites, 'size_mismatch')}.",
        "Add a banner of the slots' size, or one without a size.",
    )
    return _count_pages("sizes", reason, reach, "size_mismatch")


def _check_floor(reach: CampaignReach, multiplier: float) -> CampaignCheck:
    sites = reach.list_sites("below_floor")
    missing = min((one.bid_missing for one in sites if one.bid_missing is not None), default=Micros(0))
    most = max((one.bid_missing for one in sites if one.bid_missing is not None), default=Micros(0))
    amounts = (
        _write_amount(missing) if missing == most else f"{_write_amount(missing)} to {_write_amount(most)}"
    )
    floor = f"{amounts} under the floor of {_describe(sites, 'below_floor')}"
    reason = Reason(
        "below_floor",
        f"Its bid is {floor}.",
        f"Raise bidAmount of the campaign by {_write_amount(missing)} or more.",
    )
    if multiplier < 1:
        reason = Reason(
            "below_floor",
            f"Its strategy bids {multiplier:.0%} of its bid now, which is {floor}.",
            "Wait for its next decision, raise bidAmount of the campaign, or choose another bidStrategy.",
        )
    return _count_pages("contextual_floor", reason, reach, "below_floor")


def _check_approvals(reach: CampaignReach) -> CampaignCheck:
    sites = reach.list_sites("not_approved")
    verb = "waits" if len(sites) == 1 else "wait"
    pages = _count(reach.count_removed("not_approved"), "page")
    reason = Reason(
        "not_approved",
        f"{_count(len(sites), 'site')} {verb} for approval, with {pages}: {_list_names(one.domain for one in sites)}.",
        "Ask the publishers to decide about the campaign's banners.",
    )
    return _count_pages("approvals", reason, reach, "not_approved")


def _count_pages(name: str, reason: Reason, reach: CampaignReach, removed_by: str) -> CampaignCheck:
    removed = reach.count_removed(removed_by)
    return count_passing(name, reason if removed else None, reach.pages - removed, reach.pages)


def _describe(sites: list[SiteReach], name: str) -> str:
    pages = sum(one.removed[name] for one in sites)
    return f"{_count(pages, 'page')} of {_list_names(one.domain for one in sites)}"


def _list_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMES_MAX
    return ", ".join(listed[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _write_amount(amount: Micros) -> str:
    """Write an amount with two digits, or with as many as it has."""
    value = decimal_from_micros(amount).normalize()
    return f"{value:.2f}" if value == round(value, 2) else f"{value:f}"
