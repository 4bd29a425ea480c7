"""The sample as a document of an import: everything that the catalog keeps of it, with ids chosen before."""

# pure

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from adloom.sample.advertisers import ADVERTISERS, BRANDS
from adloom.sample.campaigns import CAMPAIGNS, Campaign
from adloom.sample.creative import Creative, Shape
from adloom.sample.creatives import CREATIVES
from adloom.sample.pictures import FREE_PATH, Picture
from adloom.sample.places import SITES, SLOTS, Slot

Item = dict[str, Any]
Ids = Mapping[str, Mapping[str, str]]

TAG: Final = "sample"
ZONE: Final = "Europe/London"
SIZES: Final = {Shape.CARD: (600, 400), Shape.WIDE: (1200, 300), Shape.BAR: (1600, 100)}
PHONE_SIZES: Final = {Shape.WIDE: (600, 400), Shape.BAR: (600, 120)}
CAP_WINDOW: Final = "Day"
BRAND_IDS_FROM: Final = 1_000_000_000


def chosen_ids(new_id: Callable[[], str], kept: Ids) -> dict[str, dict[str, str]]:
    """Choose an id for every thing of the document; one that is still there keeps its own."""
    keys = {
        "advertisers": [advertiser.key for advertiser in ADVERTISERS],
        "publishers": [site.key for site in SITES],
        "sites": [site.key for site in SITES],
        "placements": [slot.slug for slot in SLOTS],
        "banners": [creative.key for creative in CREATIVES],
        "campaigns": [campaign.key for campaign in CAMPAIGNS],
        "targetingRules": [_rule_key(campaign, at) for campaign in CAMPAIGNS for at in _places(campaign)],
        "frequencyCaps": [creative.key for creative in CREATIVES if creative.per_user_day_max],
    }
    chosen = {
        kind: {key: kept.get(kind, {}).get(key) or new_id() for key in names} for kind, names in keys.items()
    }
    brands = {brand.key: kept.get("brands", {}).get(brand.key) or _number(new_id()) for brand in BRANDS}
    return {**chosen, "brands": brands}


def document(ids: Ids, *, delivery_url: str, now: datetime) -> dict[str, list[Item]]:
    """Say all that the catalog is told."""
    return {
        "advertisers": [
            {
                "id": ids["advertisers"][advertiser.key],
                "name": advertiser.name,
                "dailyBudgetPaisa": advertiser.daily_budget_paisa,
                "timezone": advertiser.timezone,
            }
            for advertiser in ADVERTISERS
        ],
        "publishers": [{"id": ids["publishers"][site.key], "name": site.publisher} for site in SITES],
        "sites": [
            {
                "id": ids["sites"][site.key],
                "domain": site.domain,
                "name": site.name,
                "timezone": ZONE,
                "publisherId": ids["publishers"][site.key],
            }
            for site in SITES
        ],
        "brands": [{"id": int(ids["brands"][brand.key]), "label": brand.label} for brand in BRANDS],
        "placements": [_placement(slot, ids, delivery_url) for slot in SLOTS],
        "banners": [_banner(creative, ids, delivery_url, now) for creative in CREATIVES],
        "campaigns": [_campaign(campaign, ids, now) for campaign in CAMPAIGNS],
        "links": [link for campaign in CAMPAIGNS for link in _links(campaign, ids)],
        "assignments": [assignment for campaign in CAMPAIGNS for assignment in _assignments(campaign, ids)],
        "targetingRules": [rule for campaign in CAMPAIGNS for rule in _rules(campaign, ids)],
        "frequencyCaps": [
            {
                "id": ids["frequencyCaps"][creative.key],
                "adId": ids["banners"][creative.key],
                "maxImpressionsPerUser": creative.per_user_day_max,
                "window": CAP_WINDOW,
            }
            for creative in CREATIVES
            if creative.per_user_day_max
        ],
    }


def _placement(slot: Slot, ids: Ids, delivery_url: str) -> Item:
    width, height = slot.size
    item: Item = {
        "id": ids["placements"][slot.slug],
        "slug": slot.slug,
        "label": slot.label,
        "layoutType": slot.layout,
        "maxBanners": slot.banners_max,
        "recommendedWidth": width,
        "recommendedHeight": height,
        "isActive": slot.is_active,
        "allowPartialRender": True,
        "fallbackPlaceholderUrl": f"{delivery_url}{FREE_PATH}" if slot.is_free else None,
        "timezone": ZONE,
        "siteId": ids["sites"][slot.site],
        "publisherId": ids["publishers"][slot.site],
        "pageContext": TAG,
        "notes": slot.notes or "A part of the sample.",
    }
    if slot.auction_type is not None:
        item |= {
            "delivery": "auction",
            "placementType": slot.auction_type,
            "floorCpm": slot.floor_cpm,
            "auctionScoring": slot.scoring,
        }
    return item


def picture_of(creative: Creative) -> Picture:
    """Tell which picture a banner has."""
    return Picture(creative.subject, creative.palette, *SIZES[creative.shape], is_for_ad=True)


def phone_picture_of(creative: Creative) -> Picture | None:
    """Tell which picture a banner has on a phone, where it is another."""
    size = PHONE_SIZES.get(creative.shape)
    return None if size is None else Picture(creative.subject, creative.palette, *size, is_for_ad=True)


def _banner(creative: Creative, ids: Ids, delivery_url: str, now: datetime) -> Item:
    phone = phone_picture_of(creative)
    item: Item = {
        "id": ids["banners"][creative.key],
        "advertiserId": None if creative.advertiser is None else ids["advertisers"][creative.advertiser],
        "title": creative.headline,
        # Feeds have their text there; on a page it would stand beside the other.
        "description": creative.line if creative.is_for_feeds else None,
        "source": "system",
        "primaryImageUrl": f"{delivery_url}{picture_of(creative).path}",
        "primaryImageAlt": creative.alt,
        "mobileImageUrl": phone and f"{delivery_url}{phone.path}",
        "headline": creative.headline,
        "subheadline": None if creative.is_for_feeds else creative.line,
        "ctaLabel": creative.action,
        "ctaUrl": f"{delivery_url}{creative.page}",
        "utmSource": "hedgerow",
        "utmContent": creative.key,
        "bgColor": picture_of(creative).colour,
        "brandId": None if creative.brand is None else int(ids["brands"][creative.brand]),
        "tags": [TAG],
    }
    if creative.window is not None:
        start, end = creative.window
        item |= {
            "scheduleTimezone": ZONE,
            "recurrenceRule": creative.recurrence,
            "recurrenceWindowStart": start,
            "recurrenceWindowEnd": end,
        }
    if creative.publish_in_days is not None:
        item["publishAt"] = _moment(now, creative.publish_in_days)
    if creative.expired_days_ago is not None:
        item["publishAt"] = _moment(now, -creative.expired_days_ago - 90)
        item["expiresAt"] = _moment(now, -creative.expired_days_ago)
    if creative.is_draft:
        item["scheduleStatus"] = "draft"
    return item


def _campaign(campaign: Campaign, ids: Ids, now: datetime) -> Item:
    starts, ends = campaign.days
    return {
        "id": ids["campaigns"][campaign.key],
        "advertiserId": None if campaign.advertiser is None else ids["advertisers"][campaign.advertiser],
        "name": campaign.name,
        "description": campaign.why,
        "source": "system",
        "status": campaign.status,
        "startsAt": _moment(now, starts),
        "endsAt": _moment(now, ends),
        "bidType": campaign.bid_type,
        "bidAmount": campaign.bid,
        "budgetDailyPaisa": campaign.daily_paisa,
        "budgetTotalPaisa": campaign.total_paisa,
        "impressionCap": campaign.impression_cap,
        "pacingStrategy": campaign.pacing,
        "timezone": ZONE,
        "priority": campaign.priority,
    }


def _links(campaign: Campaign, ids: Ids) -> Iterator[Item]:
    for slug in campaign.shows:
        yield {"campaignId": ids["campaigns"][campaign.key], "placementId": ids["placements"][slug]}


def _assignments(campaign: Campaign, ids: Ids) -> Iterator[Item]:
    for link, creatives in zip(_links(campaign, ids), campaign.shows.values(), strict=True):
        for order, key in enumerate(creatives):
            yield {
                **link,
                "bannerId": ids["banners"][key],
                "displayOrder": order,
                "isFallback": campaign.is_fallback,
            }


def _rules(campaign: Campaign, ids: Ids) -> Iterator[Item]:
    for at in _places(campaign):
        rule = campaign.rules[at]
        yield {
            "id": ids["targetingRules"][_rule_key(campaign, at)],
            "campaignId": ids["campaigns"][campaign.key],
            "ruleType": rule.type,
            "operator": rule.operator,
            "value": rule.value,
        }


def _number(made_id: str) -> str:
    """Make an id for a record that the shop would number: so large that none of the shop's own is the same."""
    return str(BRAND_IDS_FROM + int(made_id[-7:], 16))


def _places(campaign: Campaign) -> range:
    return range(len(campaign.rules))


def _rule_key(campaign: Campaign, at: int) -> str:
    return f"{campaign.key}-{at}"


def _moment(now: datetime, days: int | None) -> str | None:
    if days is None:
        return None
    return (now.replace(minute=0, second=0, microsecond=0) + timedelta(days=days)).isoformat()
