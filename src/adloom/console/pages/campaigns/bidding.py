"""How a campaign bids: its multiplier over the day, the guard, reasons in words, and what other strategies would do."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final

from adloom.bidding.window import NAMES, BidStrategy
from adloom.console.client import Json
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.format import (
    format_ago,
    format_count,
    format_moment,
    format_money,
    format_percent,
)
from adloom.console.components.layout import (
    add_card,
    add_empty_state,
    add_hint,
    add_html,
    add_notice,
    add_tiles,
)
from adloom.console.components.table import Column, build_plain_table, make_number_column
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
from adloom.schedule.schedule import find_zone

DECISIONS_SHOWN_MAX: Final = 16


async def show_bidding(visit: PageVisit, campaign: Json, _: Reload) -> None:
    may_write = visit.may_write and not campaign["deletedAt"]
    if not campaign["bidAmount"]:
        add_empty_state(
            "gavel",
            "It has no bid",
            "In auctions and contextual slots the highest bid wins. Direct placements have fixed prices and need none.",
            action="Set a bid" if may_write else "",
            href=f"{visit.path}?tab=settings" if may_write else "",
        )
        return
    found = await visit.api.get(f"/admin/campaigns/{campaign['id']}/bidding")
    zone = find_zone(visit.choose_zone(campaign["timezone"])) or UTC
    _show_now(visit, found)
    history: Sequence[Json] = found["history"]
    if found["plan"]:
        _show_pacing(found, zone)
    if not history:
        add_hint(
            "Its multipliers are shown here from its first decision on: once it is offered, every quarter of an hour."
        )
        return
    _show_multipliers(history, zone)
    if found["shadows"]:
        _show_shadows(found)
    _show_decisions(history, zone)


def _show_now(visit: PageVisit, found: Json) -> None:
    multiplier, guard, decided, pace = add_tiles(
        "Bids are multiplied by", "The guard allows", "Last decision", "Left out to keep pace"
    )
    strategy = NAMES[BidStrategy(found["strategy"])]
    multiplier.update(f"{found['multiplier']:.2f}", note=strategy, kind="warn" if found["fallback"] else "")
    limit = found["guard"]["limit"]
    guard.update("—" if limit is None else f"{limit:.2f}", note=found["guard"]["reason"] or "")
    decided.update(
        "—" if found["decidedAt"] is None else format_ago(found["decidedAt"], now=visit.now),
        note="every 15 minutes, when it is offered",
    )
    pace.update(format_percent(found["throttle"], places=0), note="of its offers, by smooth pacing")
    add_notice(found["explanation"], kind="warn" if found["fallback"] else "info", title="Why")
    if found["note"]:
        said = found["note"]
        add_notice(f"{said[0].upper()}{said[1:]}.", kind="warn", title="What you should know")


def _show_pacing(found: Json, zone: tzinfo) -> None:
    """Show spend along the usual traffic of a day."""
    plan: Sequence[Json] = found["plan"]
    with add_card("Spend along the day", note="The plan follows the usual traffic"):
        Chart(
            [name_time(point["at"], zone) for point in plan],
            [
                Series(
                    name="Plan",
                    values=[point["expectedPaisa"] for point in plan],
                    unit="money",
                    is_dashed=True,
                ),
                Series(
                    name="Spent",
                    values=find_spent(found["history"], [point["at"] for point in plan]),
                    unit="money",
                    has_area=True,
                ),
            ],
            classes="low",
            description="What was spent by each hour of the day, against the plan",
        )


def _show_multipliers(history: Sequence[Json], zone: tzinfo) -> None:
    shadows = collect_shadows(history)
    with add_card("Multiplier over the day", note="Dashed: what other strategies would have bid"):
        Chart(
            [name_time(one["at"], zone) for one in history],
            [
                Series(name="Bid", values=[one["multiplier"] for one in history], has_area=True),
                *(
                    Series(name=NAMES[BidStrategy(name)], values=values, is_dashed=True)
                    for name, values in shadows.items()
                ),
            ],
            description="The multiplier of each decision of the day, beside those of other strategies",
        )


def _show_shadows(found: Json) -> None:
    means = {
        name: [value for value in values if value is not None]
        for name, values in collect_shadows(found["history"]).items()
    }
    rows = [
        {**one, "mean": sum(means[one["strategy"]]) / len(means[one["strategy"]])} for one in found["shadows"]
    ]
    with add_card("What other strategies would have bid", note="They change nothing", classes="flush"):
        add_html(build_plain_table(SHADOW_COLUMNS, rows))
    if found["totals"]:
        _show_totals(found)
    add_hint("What one of them would bring in the next days: try it as “Bids are” on the tab What if.")


def _show_totals(found: Json) -> None:
    """Show what the day's windows brought, and would have brought."""
    own = found["history"][-1]["strategy"]
    rows = [{**one["brought"], **one, "isOwn": one["strategy"] == own} for one in found["totals"]]
    with add_card(
        "What the day has brought, and would have brought",
        note="In the windows that are over; estimated, but for the strategy that bids. In brackets: 90% of chances",
        classes="flush",
    ):
        add_html(build_plain_table(TOTAL_COLUMNS, rows))
    if not found["isMeasured"]:
        add_hint(
            "The campaign has bid nearly the same all the time, so how much more a higher bid brings is assumed and"
            " not measured."
        )


def _show_decisions(history: Sequence[Json], zone: tzinfo) -> None:
    rows = [{**one, "time": name_time(one["at"], zone)} for one in history[-DECISIONS_SHOWN_MAX:][::-1]]
    with add_card("The last decisions", classes="flush"):
        add_html(build_plain_table(DECISION_COLUMNS, rows))


def collect_shadows(history: Sequence[Json]) -> Mapping[str, list[float | None]]:
    """Return what each other strategy would have bid, by decision; at most 1, as every bid."""
    names = dict.fromkeys(shadow["strategy"] for one in history for shadow in one["shadows"])
    by_decision = [{shadow["strategy"]: shadow["multiplier"] for shadow in one["shadows"]} for one in history]
    return {
        name: [None if (value := one.get(name)) is None else min(1.0, value) for one in by_decision]
        for name in names
    }


def find_spent(history: Sequence[Json], moments: Sequence[str]) -> list[float | None]:
    """Return what was spent by each moment, as far as decisions say it; None after the last."""
    known = [(_parse(one["at"]), one["spentPaisa"]) for one in history]
    if not known:
        return [None] * len(moments)
    found: list[float | None] = []
    for at in map(_parse, moments):
        before = [spent for when, spent in known if when <= at]
        found.append(None if at > known[-1][0] else before[-1] if before else 0)
    return found


def add_range(row: Json, field: str, write: Callable[[float], str]) -> str:
    """Write a figure, and where it is estimated between what it lies."""
    value, low, high = write(row[field]), row["low"], row["high"]
    return value if low is None else f"{value} ({write(low[field])} to {write(high[field])})"


def name_whole(value: float) -> str:
    return format_count(round(value))


def name_part(value: float) -> str:
    return f"{value:,.1f}"


def name_time(text: str, zone: tzinfo) -> str:
    return f"{_parse(text).astimezone(zone):%H:%M}"


def _parse(text: str) -> datetime:
    found = format_moment(text)
    assert found is not None
    return found


SHADOW_COLUMNS: Final = (
    Column("Strategy", lambda row: NAMES[BidStrategy(row["strategy"])]),
    Column("Last window", lambda row: f"{row['multiplier']:.2f}", is_number=True),
    Column("Mean of the day", lambda row: f"{row['mean']:.2f}", is_number=True),
    Column("Why", "reason"),
)
TOTAL_COLUMNS: Final = (
    Column("Strategy", lambda row: NAMES[BidStrategy(row["strategy"])] + (" (bids)" if row["isOwn"] else "")),
    Column("Impressions", lambda row: add_range(row, "impressions", name_whole), is_number=True),
    Column("Clicks", lambda row: add_range(row, "clicks", name_part), is_number=True),
    Column("Conversions", lambda row: add_range(row, "conversions", name_part), is_number=True),
    Column("Spent", lambda row: add_range(row, "spentPaisa", format_money), is_number=True),
    make_number_column("Windows", "windows", is_wide_only=True),
)
DECISION_COLUMNS: Final = (
    Column("At", "time"),
    Column("Multiplier", lambda row: f"{row['multiplier']:.2f}", is_number=True),
    Column("Why", "explanation"),
    make_number_column("Spent", "spentPaisa", format_money),
    make_number_column("Impressions", "impressions", is_wide_only=True),
    make_number_column("Clicks", "clicks", is_wide_only=True),
    make_number_column("Conversions", "conversions", is_wide_only=True),
)
