"""The sample as an import document for the catalog, with ids chosen beforehand."""

# pure

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from adloom.sample.content.catalog import (
    ADVERTISERS,
    BANNERS,
    BRANDS,
    CAMPAIGNS,
    SITES,
    SLOTS,
    BannerShape,
    SampleBanner,
    SampleCampaign,
    SampleSlot,
)
from adloom.sample.content.pictures import FREE_PATH, Picture

Item = dict[str, Any]
Ids = Mapping[str, Mapping[str, str]]

TAG: Final = "sample"
ZONE: Final = "Europe/London"
SIZES: Final = {BannerShape.CARD: (600, 400), BannerShape.WIDE: (1200, 300), BannerShape.BAR: (1600, 100)}
PHONE_SIZES: Final = {BannerShape.WIDE: (600, 400), BannerShape.BAR: (600, 120)}
CAP_WINDOW: Final = "Day"
BRAND_IDS_FROM: Final = 1_000_000_000


def choose_ids(new_id: Callable[[], str], kept: Ids) -> dict[str, dict[str, str]]:
    """Choose an id for every item of the document; an item that still exists keeps its own."""
    keys = {
        "advertisers": [advertiser.key for advertiser in ADVERTISERS],
        "publishers": [site.key for site in SITES],
        "sites": [site.key for site in SITES],
        "placements": [slot.slug for slot in SLOTS],
        "banners": [banner.key for banner in BANNERS],
        "campaigns": [campaign.key for campaign in CAMPAIGNS],
        "targetingRules": [
            _name_rule(campaign, at) for campaign in CAMPAIGNS for at in _list_places(campaign)
        ],
        "frequencyCaps": [banner.key for banner in BANNERS if banner.per_user_day_max],
    }
    chosen = {
        kind: {key: kept.get(kind, {}).get(key) or new_id() for key in names} for kind, names in keys.items()
    }
    # A shop that advertises shows its own ads on its own pages: both are one account.
    shops = {advertiser.name: chosen["advertisers"][advertiser.key] for advertiser in ADVERTISERS}
    chosen["publishers"] |= {
        site.key: shops[site.publisher]
        for site in SITES
        if site.publisher in shops and site.key not in kept.get("publishers", {})
    }
    brands = {brand.key: kept.get("brands", {}).get(brand.key) or _take_number(new_id()) for brand in BRANDS}
    return {**chosen, "brands": brands}


def list_pictures() -> list[Picture]:
    """Return the pictures of all banners, each once."""
    found = [picture for banner in BANNERS for picture in (find_picture(banner), find_phone_picture(banner))]
    return list(dict.fromkeys(picture for picture in found if picture is not None))


def build_document(
    ids: Ids, *, delivery_url: str, now: datetime, uploaded: Mapping[str, str] | None = None
) -> dict[str, list[Item]]:
    """Build the document; `uploaded` has the addresses of pictures that were uploaded, by their paths."""
    addresses = _Addresses(delivery_url, uploaded or {})
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
                **site.crawl,
            }
            for site in SITES
        ],
        "brands": [{"id": int(ids["brands"][brand.key]), "label": brand.label} for brand in BRANDS],
        "placements": [_build_placement(slot, ids, delivery_url) for slot in SLOTS],
        "banners": [_build_banner(banner, ids, addresses, now) for banner in BANNERS],
        "campaigns": [_build_campaign(campaign, ids, now) for campaign in CAMPAIGNS],
        "links": [link for campaign in CAMPAIGNS for link in _build_links(campaign, ids)],
        "assignments": [
            assignment for campaign in CAMPAIGNS for assignment in _build_assignments(campaign, ids)
        ],
        "creatives": [
            {"campaignId": ids["campaigns"][campaign.key], "bannerId": ids["banners"][key]}
            for campaign in CAMPAIGNS
            for key in campaign.creatives
        ],
        "targetingRules": [rule for campaign in CAMPAIGNS for rule in _build_rules(campaign, ids)],
        "frequencyCaps": [
            {
                "id": ids["frequencyCaps"][banner.key],
                "adId": ids["banners"][banner.key],
                "maxImpressionsPerUser": banner.per_user_day_max,
                "window": CAP_WINDOW,
            }
            for banner in BANNERS
            if banner.per_user_day_max
        ],
    }


class _Addresses(NamedTuple):
    """Where the sample's pages are, and the pictures that were uploaded."""

    delivery_url: str
    uploaded: Mapping[str, str]

    def find(self, picture: Picture) -> str:
        return self.uploaded.get(picture.path) or f"{self.delivery_url}{picture.path}"


def _build_placement(slot: SampleSlot, ids: Ids, delivery_url: str) -> Item:
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
    elif slot.is_contextual:
        item |= {"delivery": "contextual", "floorCpm": slot.floor_cpm}
    return item


def find_picture(banner: SampleBanner) -> Picture:
    return Picture(banner.subject, banner.palette, *SIZES[banner.shape], is_for_ad=True)


def find_phone_picture(banner: SampleBanner) -> Picture | None:
    """Return the banner's picture for phones, where it is another one."""
    size = PHONE_SIZES.get(banner.shape)
    return None if size is None else Picture(banner.subject, banner.palette, *size, is_for_ad=True)


def _build_banner(banner: SampleBanner, ids: Ids, addresses: _Addresses, now: datetime) -> Item:
    phone = find_phone_picture(banner)
    item: Item = {
        "id": ids["banners"][banner.key],
        "advertiserId": None if banner.advertiser is None else ids["advertisers"][banner.advertiser],
        "title": banner.headline,
        # Feeds show this field; on a page it would repeat the subheadline.
        "description": banner.line if banner.is_for_feeds else None,
        "source": "system",
        "primaryImageUrl": addresses.find(find_picture(banner)),
        "primaryImageAlt": banner.alt,
        "mobileImageUrl": phone and addresses.find(phone),
        "headline": banner.headline,
        "subheadline": None if banner.is_for_feeds else banner.line,
        "ctaLabel": banner.action,
        "ctaUrl": f"{addresses.delivery_url}{banner.page}",
        "utmSource": "hedgerow",
        "utmContent": banner.key,
        "bgColor": find_picture(banner).colour,
        "brandId": None if banner.brand is None else int(ids["brands"][banner.brand]),
        "tags": [TAG],
    }
    if banner.window is not None:
        start, end = banner.window
        item |= {
            "scheduleTimezone": ZONE,
            "recurrenceRule": banner.recurrence,
            "recurrenceWindowStart": start,
            "recurrenceWindowEnd": end,
        }
    if banner.publish_in_days is not None:
        item["publishAt"] = _write_moment(now, banner.publish_in_days)
    if banner.expired_days_ago is not None:
        item["publishAt"] = _write_moment(now, -banner.expired_days_ago - 90)
        item["expiresAt"] = _write_moment(now, -banner.expired_days_ago)
    if banner.is_draft:
        item["scheduleStatus"] = "draft"
    return item


def _build_campaign(campaign: SampleCampaign, ids: Ids, now: datetime) -> Item:
    starts, ends = campaign.days
    return {
        "id": ids["campaigns"][campaign.key],
        "advertiserId": None if campaign.advertiser is None else ids["advertisers"][campaign.advertiser],
        "name": campaign.name,
        "description": campaign.description,
        "source": "system",
        "status": campaign.status,
        "startsAt": _write_moment(now, starts),
        "endsAt": _write_moment(now, ends),
        "bidType": campaign.bid_type,
        "bidAmount": campaign.bid,
        "budgetDailyPaisa": campaign.daily_paisa,
        "budgetTotalPaisa": campaign.total_paisa,
        "impressionCap": campaign.impression_cap,
        "pacingStrategy": campaign.pacing,
        "timezone": ZONE,
        "priority": campaign.priority,
        "categories": list(campaign.categories),
    }


def _build_links(campaign: SampleCampaign, ids: Ids) -> Iterator[Item]:
    for slug in campaign.shows:
        yield {"campaignId": ids["campaigns"][campaign.key], "placementId": ids["placements"][slug]}


def _build_assignments(campaign: SampleCampaign, ids: Ids) -> Iterator[Item]:
    for link, keys in zip(_build_links(campaign, ids), campaign.shows.values(), strict=True):
        for order, key in enumerate(keys):
            yield {
                **link,
                "bannerId": ids["banners"][key],
                "displayOrder": order,
                "isFallback": campaign.is_fallback,
            }


def _build_rules(campaign: SampleCampaign, ids: Ids) -> Iterator[Item]:
    for at in _list_places(campaign):
        rule = campaign.rules[at]
        yield {
            "id": ids["targetingRules"][_name_rule(campaign, at)],
            "campaignId": ids["campaigns"][campaign.key],
            "ruleType": rule.type,
            "operator": rule.operator,
            "value": rule.value,
        }


def _take_number(made_id: str) -> str:
    """Make an id for a record that a shop numbers itself: larger than any of its own."""
    return str(BRAND_IDS_FROM + int(made_id[-7:], 16))


def _list_places(campaign: SampleCampaign) -> range:
    return range(len(campaign.rules))


def _name_rule(campaign: SampleCampaign, at: int) -> str:
    return f"{campaign.key}-{at}"


def _write_moment(now: datetime, days: int | None) -> str | None:
    if days is None:
        return None
    return (now.replace(minute=0, second=0, microsecond=0) + timedelta(days=days)).isoformat()
