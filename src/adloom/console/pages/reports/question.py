"""The question of a report, read from its address; its rows as a page; and its chart, over time or of the largest values."""

import calendar
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

import msgspec
from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.charts.chart import Chart, Series, Unit
from adloom.core.clock import parse_day
from adloom.schedule.schedule import find_zone
from adloom.stats.saved_report.period import (
    Days,
    ReportPeriod,
    find_days,
    find_days_before,
    find_period,
)

ADDRESS: Final = "/console/reports"
UTC: Final = "UTC"
PERIODS: Final = {
    ReportPeriod.TODAY.value: "Today",
    ReportPeriod.YESTERDAY.value: "Yesterday",
    ReportPeriod.LAST_7_DAYS.value: "Last 7 days",
    ReportPeriod.LAST_30_DAYS.value: "Last 30 days",
    ReportPeriod.LAST_90_DAYS.value: "Last 90 days",
    ReportPeriod.LAST_WEEK.value: "Last week",
    ReportPeriod.THIS_MONTH.value: "This month",
    ReportPeriod.LAST_MONTH.value: "Last month",
}
# Columns of the table, as saved reports name them.
COLUMNS: Final = {
    "impressions": "Impressions",
    "clicks": "Clicks",
    "ctr": "CTR",
    "spend": "Spend",
    "overBudgetClicks": "Over budget",
    "conversions": "Conversions",
    "conversionValue": "Conversion value",
    "invalid": "Invalid",
    "unbound": "Without token",
}
SPEND: Final = ("spend", "spendPaisa")  # As saved reports and as statistics name it.

DAYS_DEFAULT: Final = 7
BY_DEFAULT: Final = ("day",)
FILTERS: Final = ("campaignId", "placementId", "bannerId", "country", "device")
OF_READERS: Final = frozenset({"country", "device"})
# The field of each dimension in the answer.
FIELDS: Final = {
    "day": "date",
    "week": "week",
    "month": "month",
    "hour": "hour",
    "campaign": "campaignId",
    "banner": "bannerId",
    "placement": "placementId",
    "advertiser": "advertiserId",
    "publisher": "publisherId",
    "site": "siteId",
    "delivery": "delivery",
    "country": "country",
    "device": "device",
}
DAYS_DRAWN_MAX: Final = 400  # Of a longer period, those from the first day with data on.
GREATEST_MAX: Final = 15
PARTS_MAX: Final = 5
OF_TIME: Final = ("hour", "day", "week", "month")  # The finest first.
UNITS: Final[dict[str, Unit]] = {"ctr": "percent", "spendPaisa": "money"}


class ReportFilters(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of a report; both days are included. Without columns the table has all of them."""

    first: date
    last: date
    period: ReportPeriod | None = None  # What the days are called today.
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = BY_DEFAULT
    metric: str = "impressions"
    filters: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    is_compared: bool = False  # With the period before.
    zone: str = UTC
    is_of_publisher: bool = False  # What advertisers spend is its revenue.

    def get_label(self, metric: str) -> str:
        """Return what a metric of statistics, or a column of the table, is called."""
        if self.is_of_publisher and metric in SPEND:
            return strings.REVENUE
        return strings.METRICS.get(metric) or COLUMNS[metric]

    @property
    def query(self) -> dict[str, str]:
        return {
            "from": str(self.first),
            "to": str(self.last),
            "groupBy": ",".join(self.by),
            "timeZone": self.zone,
            **self.filters,
        }

    @property
    def saved(self) -> dict[str, object]:
        """What a saved report keeps of it, without its name and its period."""
        return {
            "groupBy": self.by,
            "isCompared": self.is_compared,
            "metric": _rename(self.metric, SPEND[1], SPEND[0]),
            "timeZone": self.zone,
            **self.filters,
        }

    @property
    def before(self) -> "ReportFilters":
        """The same question about the period before."""
        first, last = find_days_before((self.first, self.last))
        return msgspec.structs.replace(self, first=first, last=last)

    @property
    def has_spend(self) -> bool:
        """Whether the spend is known: charges are not counted by country or device."""
        return OF_READERS.isdisjoint((*self.by, *self.filters))

    def split_by(self, dimensions: Sequence[str]) -> "ReportFilters":
        """Return the same question by other dimensions."""
        return msgspec.structs.replace(self, by=tuple(dimensions) or BY_DEFAULT)

    def build_address(self, **changes: object) -> str:
        """Return the address with some changes; None removes a parameter."""
        asked: dict[str, object] = {
            "from": self.first,
            "to": self.last,
            "by": ",".join(self.by),
            "metric": self.metric,
            "compare": "1" if self.is_compared else None,
            "zone": self.zone,
            "columns": ",".join(self.columns),
            **self.filters,
            **changes,
        }
        return urlencode({name: value for name, value in asked.items() if value})


def parse_query(query: Mapping[str, str], *, today: date, zone: str = UTC) -> ReportFilters:
    """Parse an address; invalid values become defaults, and `zone` is that of the person."""
    last = _parse_day(query.get("to")) or today
    first = _parse_day(query.get("from")) or last - timedelta(days=DAYS_DEFAULT - 1)
    by = tuple(dict.fromkeys(one for one in query.get("by", "").split(",") if one in FIELDS))
    metric = query.get("metric", "")
    filters = {name: query[name] for name in FILTERS if query.get(name)}
    named = query.get("zone", "")
    asked = ReportFilters(
        first=min(first, last),
        last=last,
        by=by or BY_DEFAULT,
        filters=filters,
        is_compared=query.get("compare") == "1",
        zone=named if find_zone(named) else zone,
        period=find_period((min(first, last), last), today=today),
        columns=tuple(one for one in query.get("columns", "").split(",") if one in COLUMNS),
    )
    return _with_metric(asked, metric)


def _with_metric(asked: ReportFilters, metric: str) -> ReportFilters:
    """Return the question with a chart of a metric, if there is one of it."""
    is_known = metric in strings.METRICS and (metric != "spendPaisa" or asked.has_spend)
    return msgspec.structs.replace(asked, metric=metric if is_known else "impressions")


def open_saved(report: Json, *, now: datetime, zone: str) -> ReportFilters:
    """Return the question of a saved report, about the days that its period has now."""
    days_of: str = report["timeZone"] or zone
    period = ReportPeriod(report["period"])
    first, last = find_days(period, today=now.astimezone(find_zone(days_of)).date())
    asked = ReportFilters(
        first=first,
        last=last,
        period=period,
        by=tuple(report["groupBy"]),
        filters={name: report[name] for name in FILTERS if report[name]},
        is_compared=report["isCompared"],
        zone=days_of,
        columns=tuple(report["columns"]),
    )
    return _with_metric(asked, _rename(report["metric"], *SPEND))


def _rename(name: str, before: str, after: str) -> str:
    return after if name == before else name


def add_period_field(days: Days, today: date, ask: Callable[[dict[str, object]], None]) -> None:
    """Show a choice of named periods."""

    def choose(event: ValueChangeEventArguments[str]) -> None:
        if event.value:
            first, last = find_days(ReportPeriod(event.value), today=today)
            ask({"from": first, "to": last})

    ui.select(PERIODS, label="Period", value=find_period(days, today=today)).props(
        'outlined dense options-dense data-field="period"'
    ).on_value_change(choose)


def _parse_day(text: str | None) -> date | None:
    try:
        return parse_day(text) if text else None
    except ValueError:
        return None


def describe_change(now: float | None, before: float | None, period: ReportFilters) -> str:
    """Say by how much a figure has changed since the period before."""
    days = f"{period.first:%-d %b}" + (f" to {period.last:%-d %b}" if period.last > period.first else "")
    if now is None or before is None:
        return ""
    if not before:
        return f"nothing in {days}"
    return f"{(now - before) / before:+.0%} against {days}"


def paginate(rows: Sequence[Json], query: Mapping[str, str]) -> Json:
    """Sort and cut rows into a page in the form of the API's lists; unknown values come last."""
    sort = query.get("sort", "")
    field = sort.removeprefix("-")
    ordered = list(rows)
    if rows and field in rows[0]:
        # Unknown values come last in either order.
        known = [row for row in ordered if row[field] is not None]
        known.sort(key=lambda row: row[field], reverse=sort.startswith("-"))
        ordered = [*known, *(row for row in ordered if row[field] is None)]
    size = int(query.get("pageSize", "25"))
    pages = max(1, -(-len(ordered) // size))
    number = min(max(1, int(query["page"])) if query.get("page", "").isdigit() else 1, pages)
    begin = (number - 1) * size
    return {
        "items": ordered[begin : begin + size],
        "totalCount": len(ordered),
        "page": number,
        "pageSize": size,
        "totalPages": pages,
    }


Label = Callable[[str, object], str]


def build_report_chart(
    question: ReportFilters,
    rows: Sequence[Json],
    label: Label,
    *,
    now: datetime,
    earlier: Sequence[Json] = (),
) -> None:
    """Draw rows; over time also those of the period before, moment beside moment."""
    time, other = _find_dimensions(question)
    axis = time or other
    assert axis is not None, "a report has a dimension"
    field = FIELDS[axis]
    now = now.astimezone(find_zone(question.zone))
    moments: list[object] = [*list_moments(question, time, [row[field] for row in rows], now)] if time else []
    skipped = count_empty_start(moments, {row[field] for row in rows})
    keys = moments[skipped:] or _find_greatest(rows, field, question.metric, GREATEST_MAX)
    series = _build_series(question, rows, field, keys, label)
    if time and keys and is_unfinished(time, str(keys[-1]), now):
        series = [msgspec.structs.replace(one, is_last_unfinished=True) for one in series]
    if time and other is None and earlier:
        series.append(_build_series_before(question, time, earlier, slice(skipped, len(moments)), now))
    Chart(
        [label(axis, key) for key in keys],
        series,
        classes="tall",
        description=f"{question.get_label(question.metric)} by {', '.join(question.by)}",
    )


def list_moments(question: ReportFilters, time: str, found: Sequence[str], now: datetime) -> list[str]:
    """List the moments of an axis: every day, also one without data; of hours, weeks and months those with data."""
    if time != "day":
        return sorted(set(found))
    last = min(question.last, now.date())
    days = (last - question.first).days + 1
    return sorted({*found, *(str(question.first + timedelta(days=number)) for number in range(days))})


def count_empty_start(moments: Sequence[object], found: Set[object]) -> int:
    """Count the days without data at the beginning of a period that is too long to draw them all."""
    if len(moments) <= DAYS_DRAWN_MAX:
        return 0
    return next((number for number, moment in enumerate(moments) if moment in found), len(moments))


def is_unfinished(time: str, moment: str, now: datetime) -> bool:
    """Return whether an hour, a day, a week or a month goes on, so that its figure is no fall."""
    if time == "hour":
        return datetime.fromisoformat(moment) + timedelta(hours=1) > now
    begins = date.fromisoformat(moment)
    days = {"day": 1, "week": 7, "month": calendar.monthrange(begins.year, begins.month)[1]}[time]
    return begins + timedelta(days=days) > now.date()


def _build_series_before(
    question: ReportFilters, time: str, rows: Sequence[Json], drawn: slice, now: datetime
) -> Series:
    """Make the line of the period before, its first moment under the first."""
    field, before = FIELDS[time], question.before
    by_moment = {row[field]: row for row in rows}
    moments = list_moments(before, time, list(by_moment), now)[drawn]
    values = [
        _compute_value([by_moment[one]], question.metric) if one in by_moment else None for one in moments
    ]
    return Series(
        name="The period before",
        values=values,
        unit=UNITS.get(question.metric, "number"),
        is_dashed=True,
        colour=6,
    )


def _build_series(
    question: ReportFilters, rows: Sequence[Json], field: str, keys: Sequence[object], label: Label
) -> list[Series]:
    """Make lines over time or bars; another dimension splits them into parts."""
    time, other = _find_dimensions(question)
    metric, unit = question.metric, UNITS.get(question.metric, "number")
    is_stacked = metric != "ctr"  # A share of a whole cannot be stacked.
    part = other if time else next(iter(question.by[1:]), None)

    def list_values(some: Sequence[Json]) -> list[float | None]:
        by_key: dict[object, list[Json]] = {}
        for row in some:
            by_key.setdefault(row[field], []).append(row)
        return [
            None if time and one not in by_key else _compute_value(by_key.get(one, []), metric)
            for one in keys
        ]

    if part is None or not (time or is_stacked):
        is_line = time is not None and len(keys) > 1
        kind = "line" if is_line else "bar"
        return [
            Series(
                name=question.get_label(metric),
                values=list_values(rows),
                unit=unit,
                kind=kind,
                has_area=is_line,
            )
        ]
    shown = _find_greatest(rows, FIELDS[part], metric, PARTS_MAX)
    found = [
        Series(
            name=label(part, key),
            values=list_values([row for row in rows if row[FIELDS[part]] == key]),
            unit=unit,
            kind="bar" if is_stacked else "line",
            is_stacked=is_stacked,
        )
        for key in shown
    ]
    rest = [row for row in rows if row[FIELDS[part]] not in shown]
    if rest and is_stacked and time:
        found.append(
            Series(name="Others", values=list_values(rest), unit=unit, kind="bar", is_stacked=True, colour=6)
        )
    return found


def _find_dimensions(question: ReportFilters) -> tuple[str | None, str | None]:
    """Return the time dimension and the first other one."""
    time = next((one for one in OF_TIME if one in question.by), None)
    return time, next((one for one in question.by if one not in OF_TIME), None)


def _find_greatest(rows: Sequence[Json], field: str, metric: str, most: int) -> list[object]:
    sums: dict[object, float] = {}
    for row in rows:
        weight = row["impressions"] if metric == "ctr" else row[metric] or 0
        sums[row[field]] = sums.get(row[field], 0) + weight
    return sorted(sums, key=lambda key: -sums[key])[:most]


def _compute_value(rows: Sequence[Json], metric: str) -> float | None:
    if metric == "ctr":
        impressions = sum(row["impressions"] for row in rows)
        return sum(row["clicks"] for row in rows) / impressions if impressions else None
    return sum(row[metric] or 0 for row in rows)
