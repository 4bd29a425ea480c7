"""The chart of a report: over time, or the largest values of a dimension."""

from collections.abc import Callable, Sequence
from typing import Final

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.charts.chart import Chart, Series, Unit
from adloom.console.pages.reports.question import FIELDS, ReportFilters

GREATEST_MAX: Final = 15
PARTS_MAX: Final = 5
OF_TIME: Final = ("day", "hour")
UNITS: Final[dict[str, Unit]] = {"ctr": "percent", "spendPaisa": "money"}

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
    metric = question.metric
    title = "{metric} by {dimension}".format(
        metric=strings.METRICS[metric],
        dimension=", ".join(strings.DIMENSIONS[one].lower() for one in question.by),
    )
    if time is None:
        assert other is not None
        keys = _greatest(rows, FIELDS[other], metric, GREATEST_MAX)
        Chart(
            [label(other, key) for key in keys],
            _by_parts(question, rows, keys, label),
            classes="tall",
            description=title,
        )
        return
    moments = sorted({row[FIELDS[time]] for row in rows})
    labels = [label(time, one) for one in moments]
    Chart(labels, _over_time(question, rows, moments, label), classes="tall", description=title)


def _by_parts(
    question: ReportFilters, rows: Sequence[Json], keys: Sequence[object], label: Label
) -> list[Series]:
    """Make the bars; a second dimension splits them into parts, except for CTR, which does not add up."""
    metric, unit = question.metric, UNITS.get(question.metric, "number")
    first, *more = question.by
    if not more or metric == "ctr":
        values = [_value([row for row in rows if row[FIELDS[first]] == key], metric) for key in keys]
        return [Series(name=strings.METRICS[metric], values=values, kind="bar", unit=unit)]
    field = FIELDS[more[0]]
    parts = _greatest(rows, field, metric, PARTS_MAX)
    return [
        Series(
            name=label(more[0], part),
            values=[
                _value([row for row in rows if (row[FIELDS[first]], row[field]) == (key, part)], metric)
                for key in keys
            ],
            kind="bar",
            unit=unit,
            is_stacked=True,
        )
        for part in parts
    ]


def _over_time(
    question: ReportFilters, rows: Sequence[Json], moments: Sequence[str], label: Label
) -> list[Series]:
    time, other = _dimensions(question)
    assert time is not None
    moment_field = FIELDS[time]
    metric, unit = question.metric, UNITS.get(question.metric, "number")
    # A share of a whole cannot be stacked.
    is_stacked = other is not None and metric != "ctr"

    def values(some: Sequence[Json]) -> list[float | None]:
        by_moment: dict[str, list[Json]] = {}
        for row in some:
            by_moment.setdefault(row[moment_field], []).append(row)
        return [_value(by_moment[one], metric) if one in by_moment else None for one in moments]

    if other is None:
        return [
            Series(name=strings.METRICS[metric], values=values(rows), unit=unit, has_area=True, kind="line")
            if len(moments) > 1
            else Series(name=strings.METRICS[metric], values=values(rows), unit=unit, kind="bar")
        ]
    field = FIELDS[other]
    keys = _greatest(rows, field, metric, PARTS_MAX)
    found = [
        Series(
            name=label(other, key),
            values=values([row for row in rows if row[field] == key]),
            unit=unit,
            kind="bar" if is_stacked else "line",
            is_stacked=is_stacked,
        )
        for key in keys
    ]
    rest = [row for row in rows if row[field] not in keys]
    if rest and is_stacked:
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
