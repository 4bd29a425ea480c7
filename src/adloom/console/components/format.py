"""Numbers and times as people read them."""

from datetime import UTC, datetime
from typing import Final, cast

from markupsafe import Markup, escape
from nicegui.slot import Slot

from adloom.console import strings
from adloom.core.currency import NO_CURRENCY, Currency
from adloom.schedule.schedule import find_zone

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
MONTH: Final = 30 * DAY
MILLION: Final = 1_000_000
BILLION: Final = 1_000_000_000
ZONE: Final = "zone"


class _Shown:
    """The currency of this process: NiceGUI is one application a process, so it has one."""

    currency = NO_CURRENCY


def show_money_in(currency: Currency) -> None:
    """Set the currency of all amounts of the console."""
    _Shown.currency = currency


def show_times_in(zone: str | None) -> None:
    """Set the time zone of all full times on the page that is being built, and of what it shows later."""
    Slot.get_stack()[-1].parent.client.storage[ZONE] = zone


def get_shown_zone() -> str:
    """Return the zone of the person who looks at the page; UTC where there is no page."""
    stack = Slot.get_stack()
    zone = cast("str | None", stack[-1].parent.client.storage.get(ZONE)) if stack else None
    return zone or "UTC"


def get_shown_currency() -> Currency:
    return _Shown.currency


def format_money(paisa: float | None) -> str:
    """Format hundredths, with the currency: 123456 is €1,234.56."""
    return strings.NONE if paisa is None else _Shown.currency.write_paisa(paisa)


def format_average(amount: float | None) -> str:
    """Format a price that was computed: its last decimals say nothing."""
    return strings.NONE if amount is None else _Shown.currency.write_paisa(amount * 100)


def format_price(amount: float | None) -> str:
    """Format a price in units of the currency, with up to four decimals."""
    return strings.NONE if amount is None else _Shown.currency.write_price(amount)


def format_quantity(number: float, noun: str) -> str:
    """Write how many of something there are: 1 click, 2 clicks."""
    return f"{format_count(number)} {noun}{'' if number == 1 else 's'}"


def format_count(number: float | None) -> str:
    """Format a number with thousands separators; long ones in M and G."""
    if number is None:
        return strings.NONE
    if abs(number) >= BILLION:
        return f"{number / BILLION:,.2f} G"
    if abs(number) >= 10 * MILLION:
        return f"{number / MILLION:,.1f} M"
    return f"{number:,.0f}"


def format_rate(per_second: float | None) -> str:
    if per_second is None:
        return strings.NONE
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:,.1f}"  # noqa: PLR2004 - three digits are enough


def format_percent(share: float | None, *, places: int = 2) -> str:
    return strings.NONE if share is None else f"{share * 100:,.{places}f}%"


def format_duration(seconds: float | None) -> str:
    """Format seconds in the largest unit: 95 is 2 min."""
    if seconds is None:
        return strings.NONE
    if seconds < 1:
        return f"{seconds * 1000:,.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.2f} ms"  # noqa: PLR2004 - two digits that say something
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"


def format_moment(text: str | datetime | None) -> datetime | None:
    if text is None or isinstance(text, datetime):
        return text
    return datetime.fromisoformat(text)


def format_ago(text: str | datetime | None, *, now: datetime) -> Markup:
    """Format a time relative to now, with the full time as a tooltip."""
    at = format_moment(text)
    if at is None:
        return escape(strings.NONE)
    away = (at - now).total_seconds()
    span = _write_span(abs(away))
    shown = "just now" if not span else ("in {span}" if away > 0 else "{span} ago").format(span=span)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), format_full_moment(at), shown
    )


def format_full_moment(text: str | datetime | None) -> str:
    """Format a time in the person's zone, which it names."""
    at, zone = format_moment(text), get_shown_zone()
    return strings.NONE if at is None else f"{at.astimezone(find_zone(zone) or UTC):%Y-%m-%d %H:%M} {zone}"


def format_day(text: str | datetime | None, zone: str = "UTC") -> str:
    at = format_moment(text)
    return strings.NONE if at is None else f"{at.astimezone(find_zone(zone) or UTC):%Y-%m-%d}"


def _write_span(seconds: float) -> str:
    for size, unit in (
        (365 * DAY, "year"),
        (MONTH, "month"),
        (DAY, "day"),
        (HOUR, "hour"),
        (MINUTE, "minute"),
    ):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 else ''}"
    return ""
