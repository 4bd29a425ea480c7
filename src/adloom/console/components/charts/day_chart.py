"""The spend of a day over its hours, next to the plan."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.charts.chart import TOOLTIP, ThemedChart
from adloom.console.components.format import moment

MINUTE = 60
HOUR = 3_600
TICK = 3 * HOUR


class DayChart(ThemedChart):
    """The chart of a day's spend."""

    def __init__(self, day: Json, *, now: datetime) -> None:
        super().__init__(_options(day, now), description=strings.AGAINST_PLAN)

    def update(self, day: Json, *, now: datetime) -> None:
        self.redraw(_options(day, now))


def _options(day: Json, now: datetime) -> dict[str, Any]:
    starts, ends = _parse_time(day["startsAt"]), _parse_time(day["endsAt"])
    length = (ends - starts).total_seconds()
    present = min(max(0.0, (now - starts).total_seconds()), length)
    quiet = "adloom.ink('quiet')"
    clock = _clock(starts, day["timezone"])
    return {
        "animation": False,
        "textStyle": {"fontFamily": "system-ui, sans-serif"},
        "grid": {"left": 8, "right": 16, "top": 56, "bottom": 4, "containLabel": True},
        "legend": {"left": 0, "top": 0, "icon": "roundRect", "itemWidth": 12, "itemHeight": 4,
                   "textStyle": {":color": quiet}},
        "tooltip": {
            **TOOLTIP, "trigger": "axis", "axisPointer": {"label": {"show": False}}, ":formatter": _tooltip(clock),
        },
        "xAxis": {
            "type": "value", "min": 0, "max": length, "interval": TICK,
            "axisTick": {"show": False}, "splitLine": {"show": False},
            "axisLine": {"lineStyle": {":color": "adloom.ink('line')"}},
            "axisLabel": {":color": quiet, "hideOverlap": True, ":formatter": clock},
        },
        "yAxis": {
            "type": "value", "min": 0, "splitNumber": 4, "axisLine": {"show": False}, "axisTick": {"show": False},
            "axisLabel": {":color": quiet, ":formatter": "(value) => adloom.brief(value / 100)"},
            "splitLine": {"lineStyle": {":color": "adloom.ink('line')"}},
        },
        "series": _series(day, starts, length, present),
    }  # fmt: skip


def _series(day: Json, starts: datetime, length: float, present: float) -> list[dict[str, Any]]:
    spent = _points(day["points"], starts, "spentPaisa")
    ahead = [[present, day["spentPaisa"]], [length, day["projectedPaisa"]]]
    lines = [
        _line("Spent", spent, "c1", has_area=True)
        | {
            "markLine": {
                "silent": True, "symbol": "none", "label": {"formatter": "now", ":color": "adloom.ink('quiet')"},
                "lineStyle": {":color": "adloom.ink('line')", "type": "solid"}, "data": [{"xAxis": present}],
            }
        },
        _line("If it goes on like this", ahead, "c1", is_dashed=True),
    ]  # fmt: skip
    plan = _points(day["points"], starts, "linePaisa")
    if plan:
        lines.append(_line("May be spent by then", plan, "c2"))
    if day["dailyBudgetPaisa"] is not None:
        budget = day["dailyBudgetPaisa"]
        lines.append(_line("Daily budget", [[0, budget], [length, budget]], "c6", is_dashed=True))
    return lines


def _line(
    name: str,
    data: Sequence[Sequence[float]],
    colour: str,
    *,
    is_dashed: bool = False,
    has_area: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "type": "line",
        "data": list(data),
        "showSymbol": False,
        "itemStyle": {":color": f"adloom.ink('{colour}')"},
        "lineStyle": {"width": 2, "type": "dashed" if is_dashed else "solid"},
        "areaStyle": {":color": f"adloom.wash('{colour}', 0.12)"} if has_area else None,
    }


def _points(points: Sequence[Json], starts: datetime, field: str) -> list[list[float]]:
    return [
        [(_parse_time(one["at"]) - starts).total_seconds(), one[field]]
        for one in points
        if one[field] is not None
    ]


def _parse_time(text: str) -> datetime:
    found = moment(text)
    assert found is not None
    return found


def _clock(starts: datetime, timezone: str) -> str:
    """Return JavaScript that formats a second of the day as local time; it ignores a clock change in the day."""
    try:
        offset = starts.astimezone(ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError):
        offset = starts
    begin = offset.hour * HOUR + offset.minute * MINUTE
    return (
        f"(value) => {{ const minutes = Math.floor((value + {begin}) / 60); "
        "return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`; }"
    )


def _tooltip(clock: str) -> str:
    return (
        f"(lines) => {{ const clock = {clock}; return `<b>${{clock(lines[0].value[0])}}</b><br>` + "
        "lines.map((line) => `${line.marker} ${adloom.text(line.seriesName)}: ${adloom.money(line.value[1])}`).join('<br>'); }"
    )
