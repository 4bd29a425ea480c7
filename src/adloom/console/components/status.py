"""The state of a thing as a small coloured word, and what a row of a table says about it."""

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.components.format import day
from adloom.console.components.layout import badge

BID_SHOWN: Final = {"cpm": "{amount} CPM", "cpc": "{amount} CPC"}


CAMPAIGN_KINDS: Final = {
    "draft": "",
    "scheduled": "info",
    "active": "good",
    "paused": "warn",
    "ended": "",
    "cancelled": "bad",
}
SCHEDULE_KINDS: Final = {
    "draft": "",
    "evergreen": "good",
    "scheduled": "info",
    "active": "good",
    "expired": "warn",
}

Thing = Mapping[str, Any]


def campaign_badge(campaign: Thing) -> Markup:
    """Show where a campaign is on its way."""
    if campaign.get("deletedAt"):
        return badge("Deleted", "bad")
    status: str = campaign["status"]
    return badge(strings.CAMPAIGN_STATUSES[status], CAMPAIGN_KINDS[status])


def banner_badge(banner: Thing) -> Markup:
    """Show whether a banner can be shown, as far as it says itself."""
    if banner.get("deletedAt"):
        return badge("Deleted", "bad")
    if not banner["isActive"]:
        return badge("Off", "warn")
    status: str = banner["scheduleStatus"]
    return badge(strings.SCHEDULE_STATUSES[status], SCHEDULE_KINDS[status])


def switch_badge(*, is_on: bool) -> Markup:
    """Show whether something is switched on."""
    return badge("On", "good") if is_on else badge("Off", "warn")


def account_badge(account: Thing) -> Markup:
    """Show whether an account is there."""
    return badge("Deleted", "bad") if account.get("deletedAt") else Markup("")


def format_dates(campaign: Thing) -> str:
    """Show from when to when a campaign runs."""
    if not campaign["startsAt"] and not campaign["endsAt"]:
        return "no end"
    return "{first} → {last}".format(
        first=day(campaign["startsAt"]) if campaign["startsAt"] else "…",
        last=day(campaign["endsAt"]) if campaign["endsAt"] else "no end",
    )


def format_bid(campaign: Thing) -> str:
    """Show what a campaign bids."""
    amount = campaign["bidAmount"]
    if amount is None:
        return "none"
    return BID_SHOWN[campaign["bidType"]].format(amount=f"{amount:,.2f}")


def thumbnail(address: str | None, alt: str = "") -> Markup:
    """Show a picture as small as a word; one that does not come leaves its space."""
    if not address:
        return Markup('<span class="al-thumb"></span>')
    return Markup(
        '<img class="al-thumb" src="{}" alt="{}" loading="lazy" referrerpolicy="no-referrer">'
    ).format(address, alt)
