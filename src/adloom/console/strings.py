"""Texts that several pages of the console share; a text that one page uses is written there."""

from typing import Final

from adloom.catalog.campaign.model import CampaignStatus
from adloom.console.theme import find_asset

APPROVAL_MODES: Final = {
    "manual": "I decide about every banner",
    "trusted": "Banners of advertisers that I have approved before are shown at once",
    "automatic": "Every banner is shown at once",
}
AUCTION_FUNNEL: Final = "From all candidates to the winner"
AUCTION_MODES: Final = {
    "second_price": "Second price: a winner pays what was needed to win",
    "first_price": "First price: a winner pays its bid",
}
BID_STRATEGIES: Final = {
    "fixed": "Fixed: always its bid",
    "pacer": "Pacer: so much of its bid that the daily budget lasts until midnight",
    "fleet": "Fleet: by what was learned from all campaigns",
    "dqn": "DQN: by an agent that was trained on past auctions",
}
COULD_NOT_LOAD: Final = "This could not be loaded"
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
DELIVERIES: Final = {"direct": "Direct", "auction": "Auction", "contextual": "Context"}
DEVICES: Final = {"mobile": "phones", "tablet": "tablets", "desktop": "computers"}
FLOOR_MODES: Final = {
    "fixed": "Fixed: as it is set here",
    "sweep": "Moving: tried up and down, and kept where it earns most",
}
LAYOUTS: Final = {
    "full_slider": "Slider across the page",
    "full_static": "Across the page",
    "half_pair": "Two side by side",
    "quarter_grid": "Four in a grid",
    "sidebar_stack": "Several in the sidebar",
    "sidebar_single": "One in the sidebar",
    "interstitial": "Over the whole page",
    "popup": "Popup",
    "inline_card": "Card in the text",
    "sticky_bar": "Bar at the bottom",
}
METRICS: Final = {
    "impressions": "Impressions",
    "clicks": "Clicks",
    "ctr": "CTR",
    "spendPaisa": "Spend",
    "conversions": "Conversions",
    "conversionValue": "Conversion value",
}
NEXT_WEEKS: Final = "The next four weeks"
NONE: Final = "–"
NOTHING_CHANGED: Final = "Nothing has changed."
NO_ADVERTISERS: Final = "There are no advertisers yet"
NO_COUNTRIES: Final = (
    "No reader's country is known here, so nobody would see the campaign, unless requests name the country themselves. "
    "The operator can set ADLOOM_GEOIP_FILE, or ADLOOM_TRUSTED_PROXIES to a proxy that sends the country."
)
REVENUE: Final = "Revenue"
ORDER_AND_WEIGHT: Final = "order {order} · weight {weight}"
BID_TYPES: Final = {"cpm": "A thousand impressions (CPM)", "cpc": "A click (CPC)"}
PACINGS: Final = {"Smooth": "Smooth: over the whole day", "Accelerated": "Accelerated: as fast as it can"}
PRIORITY_HINT: Final = "With equal order and weight, the higher priority comes first."
ROTATIONS: Final = {
    "weighted": "Take turns, by weight",
    "ordered": "The highest weight first, always",
    "best": "The better one wins, by its clicks",
}
SCORINGS: Final = {"heuristic": "By fixed rules", "learned": "Learned from clicks"}
ROLES: Final = {
    "admin": "Admin: everything",
    "viewer": "Viewer: reads everything",
    "advertiser": "Advertiser: its own campaigns",
    "publisher": "Publisher: its own placements",
}
SCHEDULE_STATUSES: Final = {
    "draft": "Draft",
    "evergreen": "Always",
    "scheduled": "Scheduled",
    "active": "In its dates",
    "expired": "Expired",
}
SHOWN_TO: Final = "Shown {parts}."
SOURCES: Final = {"internal": "Own", "sponsored": "Sponsored", "affiliate": "Affiliate", "system": "System"}
CAMPAIGN_STATUSES: Final = {status.value: status.value.capitalize() for status in CampaignStatus}
TO_ADVERTISERS: Final = "To the advertisers"
WHY_NOT_DELIVERING: Final = "Why does it not deliver?"
WINNER_ECPM: Final = "eCPM of the winner"
THE_HOUSE: Final = "House"


def _read_names(file: str) -> dict[str, str]:
    pairs = (line.split(" ", 1) for line in find_asset(file).decode().splitlines())
    return dict(sorted(((code, name) for code, name in pairs), key=lambda pair: pair[1]))


COUNTRIES: Final = _read_names("countries.txt")  # By ISO 3166-1 alpha-2.
LANGUAGES: Final = _read_names("languages.txt")  # By ISO 639; those that browsers send most.
