"""The question of a report, read from its address; its rows as a page; and its chart, over time or of the largest values."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final
from urllib.parse import urlencode

import msgspec

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.charts.chart import Chart, Series, Unit

DAYS_DEFAULT: Final = 7
FILTERS: Final = ("campaignId", "placementId", "bannerId", "country", "device")
OF_READERS: Final = frozenset({"country", "device"})
# The field of each dimension in the answer.
FIELDS: Final = {
    "day": "date",
    "hour": "hour",
    "campaign": "campaignId",
    "banner": "bannerId",
    "placement": "placementId",
    "country": "country",
    "device": "device",
}
GREATEST_MAX: Final = 15
PARTS_MAX: Final = 5
OF_TIME: Final = ("day", "hour")
UNITS: Final[dict[str, Unit]] = {"ctr": "percent", "spendPaisa": "money"}


class ReportFilters(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of a report; both days are included."""

    first: date
    last: date
    by: tuple[str, ...] = ("day",)
    metric: str = "impressions"
    filters: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def query(self) -> dict[str, str]:
        return {"from": str(self.first), "to": str(self.last), "groupBy": ",".join(self.by), **self.filters}

    @property
    def has_spend(self) -> bool:
        """Whether the spend is known: charges are not counted by country or device."""
        return OF_READERS.isdisjoint((*self.by, *self.filters))

    def address(self, **changes: object) -> str:
        """Return the address with some changes; None removes a parameter."""
        asked: dict[str, object] = {
            "from": self.first,
            "to": self.last,
            "by": ",".join(self.by),
            "metric": self.metric,
            **self.filters,
            **changes,
        }
        return urlencode({name: value for name, value in asked.items() if value})


def parse_query(query: Mapping[str, str], *, today: date) -> ReportFilters:
    """Parse an address; invalid values become defaults."""
    last = _day(query.get("to")) or today
    first = _day(query.get("from")) or last - timedelta(days=DAYS_DEFAULT - 1)
    by = tuple(dict.fromkeys(one for one in query.get("by", "").split(",") if one in FIELDS))
    metric = query.get("metric", "")
    filters = {name: query[name] for name in FILTERS if query.get(name)}
    asked = ReportFilters(first=min(first, last), last=last, by=by or ("day",), filters=filters)
    known = metric in strings.METRICS and (metric != "spendPaisa" or asked.has_spend)
    return msgspec.structs.replace(asked, metric=metric if known else "impressions")


def find_period(question: ReportFilters, *, today: date) -> str | None:
    """Return the named period that the days form, if any."""
    if question.last != today:
        return None
    length = str((question.last - question.first).days + 1)
    return length if length in strings.PERIODS else None


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


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


def list_keys(question: ReportFilters, rows: Sequence[Json]) -> list[tuple[str, object]]:
    """List the keys that the chart will name, as dimension and value."""
    time, other = _dimensions(question)
    if other is None:
        return []
    most = PARTS_MAX if time else GREATEST_MAX
    named = [(other, key) for key in _greatest(rows, FIELDS[other], question.metric, most)]
    if time is None and len(question.by) > 1:
        second = question.by[1]
        named += [(second, key) for key in _greatest(rows, FIELDS[second], question.metric, PARTS_MAX)]
    return named


def report_chart(question: ReportFilters, rows: Sequence[Json], label: Label) -> None:
    time, other = _dimensions(question)
    axis = time or other
    assert axis is not None, "a report has a dimension"
    field = FIELDS[axis]
    moments: list[object] = sorted({row[field] for row in rows}) if time else []
    keys = moments or _greatest(rows, field, question.metric, GREATEST_MAX)
    Chart(
        [label(axis, key) for key in keys],
        _series(question, rows, field, keys, label),
        classes="tall",
        description=f"{strings.METRICS[question.metric]} by {', '.join(question.by)}",
    )


def _series(
    question: ReportFilters, rows: Sequence[Json], field: str, keys: Sequence[object], label: Label
) -> list[Series]:
    """Make lines over time or bars; another dimension splits them into parts."""
    time, other = _dimensions(question)
    metric, unit = question.metric, UNITS.get(question.metric, "number")
    is_stacked = metric != "ctr"  # A share of a whole cannot be stacked.
    part = other if time else next(iter(question.by[1:]), None)

    def values(some: Sequence[Json]) -> list[float | None]:
        by_key: dict[object, list[Json]] = {}
        for row in some:
            by_key.setdefault(row[field], []).append(row)
        return [None if time and one not in by_key else _value(by_key.get(one, []), metric) for one in keys]

    if part is None or not (time or is_stacked):
        is_line = time is not None and len(keys) > 1
        kind = "line" if is_line else "bar"
        return [
            Series(name=strings.METRICS[metric], values=values(rows), unit=unit, kind=kind, has_area=is_line)
        ]
    shown = _greatest(rows, FIELDS[part], metric, PARTS_MAX)
    found = [
        Series(
            name=label(part, key),
            values=values([row for row in rows if row[FIELDS[part]] == key]),
            unit=unit,
            kind="bar" if is_stacked else "line",
            is_stacked=is_stacked,
        )
        for key in shown
    ]
    rest = [row for row in rows if row[FIELDS[part]] not in shown]
    if rest and is_stacked and time:
        found.append(
            Series(name="Others", values=values(rest), unit=unit, kind="bar", is_stacked=True, colour=6)
        )
    return found


def _dimensions(question: ReportFilters) -> tuple[str | None, str | None]:
    """Return the time dimension and the first other one."""
    time = next((one for one in question.by if one in OF_TIME), None)
    if "hour" in question.by:
        time = "hour"
    return time, next((one for one in question.by if one not in OF_TIME), None)


def _greatest(rows: Sequence[Json], field: str, metric: str, most: int) -> list[object]:
    sums: dict[object, float] = {}
    for row in rows:
        weight = row["impressions"] if metric == "ctr" else row[metric] or 0
        sums[row[field]] = sums.get(row[field], 0) + weight
    return sorted(sums, key=lambda key: -sums[key])[:most]


def _value(rows: Sequence[Json], metric: str) -> float | None:
    if metric == "ctr":
        impressions = sum(row["impressions"] for row in rows)
        return sum(row["clicks"] for row in rows) / impressions if impressions else None
    return sum(row[metric] or 0 for row in rows)
