"""Status badges, and short texts for table cells."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.components.format import format_day, format_price
from adloom.console.components.layout import build_badge
from adloom.console.words.campaign_words import STATUSES, describe_campaign_status

SCHEDULE_KINDS: Final = {"evergreen": "good", "scheduled": "info", "active": "good", "expired": "warn"}

Thing = Mapping[str, Any]


class _Shown:
    """Where uploaded files are."""

    files = ""


def show_files_of(delivery_url: str) -> None:
    """Set the address of delivery: pictures that were uploaded are there."""
    _Shown.files = f"{delivery_url.rstrip('/')}/p/"


def build_campaign_badge(campaign: Thing, now: datetime | None = None, zone: str | None = None) -> Markup:
    """Show what a campaign does now; without a moment, only its status."""
    if now is None:
        return build_badge(*STATUSES[campaign["status"]])
    return build_badge(*describe_campaign_status(campaign, now=now, zone=zone))


def build_banner_badge(banner: Thing) -> Markup:
    """Show the status that the banner itself has; its campaigns have their own."""
    if banner.get("deletedAt"):
        return build_badge("Deleted", "bad")
    if not banner["isActive"]:
        return build_badge("Off", "warn")
    status: str = banner["scheduleStatus"]
    return build_badge(strings.SCHEDULE_STATUSES[status], SCHEDULE_KINDS.get(status, ""))


def build_switch_badge(*, is_on: bool) -> Markup:
    return build_badge("On", "good") if is_on else build_badge("Off", "warn")


def build_account_badge(account: Thing) -> Markup:
    return build_badge("Deleted", "bad") if account.get("deletedAt") else Markup("")


def build_account_name(account: Thing) -> Markup:
    return Markup("{} {}").format(account["name"], build_account_badge(account))


def format_dates(campaign: Thing) -> str:
    if not campaign["startsAt"] and not campaign["endsAt"]:
        return "no end"
    zone = campaign["timezone"]
    if not campaign["startsAt"]:
        return f"until {format_day(campaign['endsAt'], zone)}"
    first = format_day(campaign["startsAt"], zone)
    last = format_day(campaign["endsAt"], zone) if campaign["endsAt"] else "no end"
    return f"{first} → {last}"


def format_bid(campaign: Thing) -> str:
    amount = campaign["bidAmount"]
    return "none" if amount is None else f"{format_price(amount)} {campaign['bidType'].upper()}"


def format_size(banner: Thing) -> str:
    width, height = banner["width"], banner["height"]
    return f"{width} × {height}" if width and height else "fits any slot"


def build_thumbnail(address: str | None) -> Markup:
    """Show an uploaded image; for one elsewhere a button that loads it: its owner would learn who looks when."""
    if not address:
        return Markup('<span class="al-thumb"></span>')
    if _Shown.files and address.startswith(_Shown.files):
        return Markup('<img class="al-thumb" src="{}" alt="" loading="lazy">').format(address)
    return Markup(
        '<button type="button" class="al-thumb" data-picture="{}" data-alt="" aria-label="Load the picture"'
        ' title="Load the picture from the advertiser"></button>'
    ).format(address)
