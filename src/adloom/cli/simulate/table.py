"""The table of a simulated market: what campaigns have on an average day, without and with the change."""

from collections.abc import Sequence

from rich.table import Table

from adloom.forecast.comparison import DayEstimate, Estimate
from adloom.forecast.market import NamedCampaign
from adloom.forecast.result import MarketResult

HEADINGS = ("impressions", "clicks", "conversions", "spend", "price")
WHOLE_FROM = 10  # Smaller numbers have a place.
NO_PRICE = "-"


def build_table(result: MarketResult) -> Table:
    """Show the changed campaigns and all others together; without a change, those that spend most."""
    table = Table(title="On an average day, with 90 % intervals", title_justify="left")
    table.add_column("campaign")
    if result.outcome.after is not None:
        table.add_column("")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    shown = result.choose_shown()
    for campaign in shown:
        _add_rows(table, campaign.name, [campaign], result)
    keys = {one.key for one in shown}
    others = [one for one in result.market.campaigns if one.key not in keys]
    if others:
        _add_rows(table, f"{len(others)} other campaigns", others, result)
    _add_rows(table, f"all {len(result.market.campaigns)} campaigns", result.market.campaigns, result)
    return table


def _add_rows(table: Table, name: str, campaigns: Sequence[NamedCampaign], result: MarketResult) -> None:
    compared = result.compare(campaigns)
    if compared.after is None or compared.difference is None:
        table.add_row(name, *_format_day(compared.before))
        return
    table.add_row(name, "before", *_format_day(compared.before))
    table.add_row("", "after", *_format_day(compared.after))
    table.add_row("", "change", *_format_day(compared.difference, is_signed=True), end_section=True)


def _format_day(day: DayEstimate, *, is_signed: bool = False) -> list[str]:
    counts = [
        format_estimate(one, places=0 if abs(one.mean) >= WHOLE_FROM else 1, is_signed=is_signed)
        for one in (day.impressions, day.clicks, day.conversions)
    ]
    price = NO_PRICE if day.price is None else format_estimate(day.price, places=3, is_signed=is_signed)
    return [*counts, format_estimate(day.spend, places=2, is_signed=is_signed), price]


def format_estimate(one: Estimate, *, places: int, is_signed: bool = False) -> str:
    """Write a mean, and the ends of its interval."""
    sign = "+" if is_signed else ""
    mean = f"{one.mean:{sign},.{places}f}"
    if one.low is None or one.high is None:
        return mean
    return f"{mean} ({one.low:{sign},.{places}f} … {one.high:{sign},.{places}f})"
