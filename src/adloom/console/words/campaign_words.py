"""What a campaign does now, and when its money is gone, in words."""

# pure

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from adloom.schedule.schedule import find_zone

# Further away a day says more than a number of days.
COUNTED_DAYS_MAX: Final = 14
NAMED_MAX: Final = 5
Kind = Literal["", "good", "info", "warn", "bad"]
STATUSES: Final[Mapping[str, tuple[str, Kind]]] = {
    "draft": ("Draft", ""),
    "scheduled": ("Scheduled", "info"),
    "active": ("Active", "good"),
    "paused": ("Paused", "warn"),
    "ended": ("Ended", ""),
    "cancelled": ("Cancelled", "bad"),
}
WAITING: Final = frozenset({"scheduled", "active"})

Thing = Mapping[str, Any]


class StatusWords(NamedTuple):
    """A few words, and the colour of their badge."""

    text: str
    kind: Kind


def describe_campaign_status(campaign: Thing, *, now: datetime, zone: str | None = None) -> StatusWords:
    """Say what a campaign does now: an active one may still wait for its start, or be over.

    Times are those of a zone, or of the campaign's own.
    """
    zone_name: str = zone or campaign.get("timezone") or "UTC"
    if campaign.get("deletedAt"):
        return StatusWords("Deleted", "bad")
    status: str = campaign["status"]
    starts_at, ends_at = _parse(campaign.get("startsAt")), _parse(campaign.get("endsAt"))
    if status in WAITING and starts_at is not None and starts_at > now:
        return StatusWords(f"Starts {describe_moment(starts_at, zone_name, now)}", "info")
    if status == "active" and ends_at is not None:
        if ends_at <= now:
            return StatusWords("Over", "")
        if ends_at - now < timedelta(days=1):
            return StatusWords(f"Ends {describe_moment(ends_at, zone_name, now)}", "good")
    return StatusWords(*STATUSES[status])


def describe_missing(assignments: Iterable[Thing], *, creatives: int) -> str:
    """Say what a campaign lacks before anything of it can be shown; empty if it lacks nothing.

    An assignment without a banner is a placement that the campaign may use, and does not use yet.
    """
    rows = list(assignments)
    if creatives or any(row["bannerId"] for row in rows):
        return ""
    if rows:
        return "It has a placement, but no banner on it, so there is nothing to show."
    return "It has no placement and no banner yet, so there is nothing to show."


def describe_missing_bid(campaign: Thing) -> str:
    """Say that an advertiser's campaign bids nothing; empty if it bids, or is one of the house."""
    if campaign["bidAmount"] or campaign["advertiserId"] is None:
        return ""
    return "It has no bid. The placements of publishers show an advertiser's campaign only for one."


def describe_empty(names: Sequence[str]) -> str:
    """Say which of several campaigns have nothing to show; empty if there are none."""
    if not names:
        return ""
    listed = ", ".join(f"“{name}”" for name in names[:NAMED_MAX])
    more = f" and {len(names) - NAMED_MAX:,} more" if len(names) > NAMED_MAX else ""
    verb = "has" if len(names) == 1 else "have"
    return f"{listed}{more} {verb} no banner yet, so there is nothing to show."


def describe_moment(at: datetime, zone: str, now: datetime) -> str:
    """Say when, as briefly as it can be said: "today at 14:00", "tomorrow", "in 3 days", "on 25 November"."""
    local, today = _convert_to_local(at, zone), _convert_to_local(now, zone)
    days = (local.date() - today.date()).days
    if days == 0:
        return f"today at {local:%H:%M}"
    if days == 1:
        return "tomorrow"
    if 1 < days <= COUNTED_DAYS_MAX:
        return f"in {days} days"
    year = "" if local.year == today.year else f" {local.year}"
    return f"on {local.day} {local:%B}{year}"


def describe_spent(figures: Thing, *, zone: str, now: datetime) -> list[str]:
    """Say when the budgets are spent, a sentence each; nothing for one that lasts."""
    found: list[str] = []
    daily, total = _parse(figures["dailySpentAt"]), _parse(figures["totalSpentAt"])
    if daily is not None:
        found.append(
            "The day's budget is spent."
            if daily <= now
            else f"The day's budget is spent by about {_describe_hour(daily, zone, now)}."
        )
    if total is not None:
        found.append(
            "The total budget is spent."
            if total <= now
            else f"The total budget is spent by about {_describe_near(total, zone, now)}."
        )
    return found


def _describe_hour(at: datetime, zone: str, now: datetime) -> str:
    """Say at what time; a day of the budget may end tomorrow where somebody else looks at it."""
    local, today = _convert_to_local(at, zone), _convert_to_local(now, zone)
    return f"{local:%H:%M} {'today' if local.date() == today.date() else 'tomorrow'}"


def _describe_near(at: datetime, zone: str, now: datetime) -> str:
    local, today = _convert_to_local(at, zone), _convert_to_local(now, zone)
    if local.date() == today.date():
        return f"{local:%H:%M} today"
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%B}{year}"


def _parse(text: str | datetime | None) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else text


def _convert_to_local(at: datetime, zone: str) -> datetime:
    return at.astimezone(find_zone(zone) or UTC)
