"""What the console calls the fields of the API, in forms, in the history, in advice and in errors; and devices.

A test compares it with the forms.
"""

# pure

import re
from typing import Final

LABELS: Final = {
    "acceptsFiller": "Pages without a category may show ads that fit any page",
    "accountId": "Account",
    "adId": "Banner",
    "adProductBlocklist": "Products that may not be advertised",
    "adProductCategory": "What it advertises",
    "advertiserContact": "Contact",
    "advertiserId": "Advertiser",
    "advertiserName": "Advertiser's name on the contract",
    "allowPartialRender": "Show fallbacks in slots that stay empty",
    "amountPaisa": "Amount",
    "approvalMode": "Who decides about banners",
    "auctionMode": "Auctions are",
    "auctionScoring": "Predicted clicks",
    "bannerId": "Banner",
    "bgColor": "Background",
    "bidAmount": "Bid",
    "bidAmountMicros": "Bid",
    "bidStrategy": "Bids are",
    "bidType": "Pays for",
    "bidWeight": "Weight of the bid",
    "brandId": "Brand",
    "bidsOnUnmatched": "Also pages that are about nothing clear",
    "blockedDomains": "Domains to which no ad may lead",
    "blockedSites": "Blocked sites",
    "budgetDailyPaisa": "Daily budget",
    "budgetTotalPaisa": "Total budget",
    "campaignId": "Campaign",
    "categoryId": "Category",
    "clickCap": "Maximum clicks in total",
    "contractRef": "Contract",
    "crawlConcurrency": "At once",
    "createdAt": "Made",
    "createdBy": "Made by",
    "cronSchedule": "When it is crawled",
    "ctaLabel": "Button",
    "ctaOpenNewTab": "Opens in a new tab",
    "ctaUrl": "Leads to",
    "currentPassword": "Current password",
    "dailyBudgetPaisa": "Daily budget",
    "deletedAt": "Deleted",
    "delivery": "Filled by",
    "displayOrder": "Order",
    "endsAt": "Ends",
    "excludedCategories": "Not on pages about",
    "expiresAt": "Until",
    "fallbackPlaceholderUrl": "Image when there is no ad",
    "fallbackPriority": "Order among fallbacks",
    "floorCpm": "Floor",
    "floorCpmMicros": "Floor",
    "floorMode": "The floor is",
    "groupBy": "By",
    "hostPattern": "Hosts",
    "impressionCap": "Maximum impressions in total",
    "isActive": "On",
    "isAskedFor": "Asked for by its advertiser",
    "isCompared": "Compare with the period before",
    "isEvergreenFallback": "Shown where a placement has nothing else at all",
    "isFallback": "Fallback",
    "isOpen": "Advertisers may use it without asking",
    "isRefused": "Refused",
    "isSuspended": "Suspended",
    "layoutType": "Layout",
    "maxBanners": "Slots",
    "maxDepth": "Links deep",
    "maxImpressionsPerUser": "Impressions at most",
    "maxPages": "Pages at most",
    "mediaVariants": "Variants of the picture",
    "minFloorCpm": "Lowest floor",
    "minFloorCpmMicros": "Lowest floor",
    "mobileImageUrl": "Picture on phones",
    "newPassword": "New password",
    "overrideCtaLabel": "Button here",
    "overrideCtaUrl": "Leads here to",
    "overrideHeadline": "Headline here",
    "overrideSubheadline": "Subheadline here",
    "pacingStrategy": "Pacing",
    "pageContext": "Page",
    "passesClickId": "Landing pages get the id of the click",
    "placementId": "Placement",
    "placementType": "Type",
    "primaryImageAlt": "What the picture shows",
    "primaryImageUrl": "Address of the picture",
    "productId": "Product",
    "publishAt": "From",
    "publisherId": "Publisher",
    "recommendedAspectRatio": "Aspect ratio",
    "recommendedHeight": "Height of images",
    "recommendedWidth": "Width of images",
    "recurrenceRule": "Recurrence rule",
    "recurrenceWindowEnd": "Every day until",
    "recurrenceWindowStart": "Every day from",
    "revenueSharePercent": "Its share of what is charged, in percent",
    "ruleType": "What it is about",
    "scheduleStatus": "Schedule",
    "scheduleTimezone": "Time zone",
    "seedUrl": "First page",
    "seoId": "Search entry",
    "sendEvery": "How often",
    "sendHour": "At",
    "sendWeekday": "On",
    "siteId": "Site",
    "sortOrder": "Position in lists",
    "startsAt": "Starts",
    "subheadline": "Subheadline",
    "targetCpa": "What a conversion should cost",
    "targetCpaMicros": "What a conversion should cost",
    "timeZone": "Time zone",
    "timezone": "Time zone",
    "transitionDurationMs": "Slides in within milliseconds",
    "updatedAt": "Changed",
    "userId": "User",
    "verifiedAt": "Verified",
    "verifiedHost": "Verified for",
    "videoUrl": "Video",
}
UNIT: Final = re.compile(r"(Paisa|Micros)$")
HUMP: Final = re.compile(r"([A-Z])")
# Only names that no sentence has by chance: "delivery" and "timezone" are words.
FIELD_IN_TEXT: Final = re.compile(
    r"`?\b(" + "|".join(name for name in LABELS if any(sign.isupper() for sign in name)) + r")\b`?"
)


def label_field(name: str) -> str:
    """Return what the console calls a field; one without a label as words, without its unit."""
    return LABELS.get(name) or HUMP.sub(r" \1", UNIT.sub("", name)).capitalize()


def name_fields(text: str) -> str:
    """Write a sentence of the API with the names that fields and devices have in the console."""
    return FIELD_IN_TEXT.sub(lambda found: f"“{LABELS[found[1]]}”", name_devices(text))


DEVICE_NAMES: Final = {"mobile": "Phone", "tablet": "Tablet", "desktop": "Computer"}
_ABOUT_DEVICES: Final = "the device to be"
_CODE: Final = re.compile(rf"\b({'|'.join(DEVICE_NAMES)})\b")


def name_device(code: str) -> str:
    """Return what a device is called; other words stay as they are."""
    return DEVICE_NAMES.get(code, code)


def name_devices(sentence: str) -> str:
    """Write a sentence of the API about devices with their names; others may have such words by chance."""
    if _ABOUT_DEVICES not in sentence:
        return sentence
    return _CODE.sub(lambda found: DEVICE_NAMES[found[1]].lower(), sentence)
