"""Charts in the colours of the theme: series over labels, the spend of a day, and two figures by group."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import format_moment
from adloom.console.components.layout import set_attributes

COLOURS: Final = 6
NEARLY_WHOLE: Final = 0.6
QUARTER: Final = 0.25
TICK_SECONDS: Final = 3 * 3_600
POINT_SIZE_MIN: Final = 8
POINT_SIZE_MAX: Final = 48

QUIET: Final = {":color": "adloom.ink('quiet')"}
RULE: Final = {"lineStyle": {":color": "adloom.ink('line')"}}
FONT: Final = {"fontFamily": "system-ui, sans-serif"}
TOOLTIP: Final = {
    "confine": True,
    ":backgroundColor": "adloom.ink('card')",
    ":borderColor": "adloom.ink('line')",
    "textStyle": {":color": "adloom.ink('ink')", "fontSize": 13},
}
BRIEF_MONEY: Final = "(value) => adloom.briefMoney(value)"

Unit = Literal["number", "percent", "money", "millis"]
Point = tuple[float, float, str]  # x, y, name.


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A line or a set of bars; `axis` 1 is on the right."""

    name: str
    values: Sequence[float | None]
    kind: Literal["line", "bar"] = "line"
    unit: Unit = "number"
    axis: int = 0
    colour: int = 0  # 1 to 6; 0 takes the next.
    is_stacked: bool = False
    is_dashed: bool = False
    has_area: bool = False
    is_last_unfinished: bool = (
        False  # The last value is of an hour or a day that goes on: a point without a line.
    )


class ThemedChart:
    """An ECharts element in the colours of the theme; `redraw` replaces its options without a flash."""

    def __init__(
        self,
        options: dict[str, Any],
        *,
        classes: str = "tall",
        description: str = "",
        on_point_click: Callable[[Any], object] | None = None,
    ) -> None:
        self._element = ui.echart(options, on_point_click=on_point_click).classes(f"al-chart {classes}")
        set_attributes(self._element, role="img", aria_label=description)
        # Colours are read when the chart is painted, so a new theme needs a repaint.
        ui.on("adloom_theme", self._element.update)

    def redraw(self, options: dict[str, Any]) -> None:
        self._element.options.clear()
        self._element.options.update(options)
        self._element.update()


class Chart(ThemedChart):
    """A chart of series over labels."""

    def __init__(
        self, labels: Sequence[str], series: Sequence[Series], *, classes: str = "", description: str = ""
    ) -> None:
        super().__init__(build_chart_options(labels, series), classes=classes, description=description)

    def update(self, labels: Sequence[str], series: Sequence[Series]) -> None:
        self.redraw(build_chart_options(labels, series))


def _build_options(
    *,
    top: int,
    trigger: str = "axis",
    tooltip: str | None = None,
    **parts: Any,  # noqa: ANN401 - as ECharts takes them
) -> dict[str, Any]:
    return {
        "animation": False,
        "textStyle": FONT,
        "grid": {"left": 8, "right": 20, "top": top, "bottom": 4, "containLabel": True},
        "legend": {
            "type": "scroll", "left": 0, "top": 0, "icon": "roundRect", "itemWidth": 12, "itemHeight": 4, "textStyle": QUIET,
        },
        "tooltip": {
            **TOOLTIP, "trigger": trigger, **({":formatter": tooltip} if tooltip else {}),
            "axisPointer": {"label": {"show": False}},
        },
        **parts,
    }  # fmt: skip


def _build_value_axis(formatter: str = "", **parts: Any) -> dict[str, Any]:  # noqa: ANN401 - as ECharts takes them
    label = QUIET | ({":formatter": formatter} if formatter else {})
    return {"type": "value", "axisTick": {"show": False}, "axisLabel": label, "splitLine": RULE, **parts}


def _build_line_style(colour: str, *, is_dashed: bool, has_area: bool) -> dict[str, Any]:
    return {
        "itemStyle": {":color": f"adloom.ink('{colour}')"},
        "lineStyle": {"width": 2, "type": "dashed" if is_dashed else "solid"},
        "areaStyle": {":color": f"adloom.wash('{colour}', 0.12)"} if has_area else None,
    }


def build_chart_options(labels: Sequence[str], series: Sequence[Series]) -> dict[str, Any]:
    has_bars = any(one.kind == "bar" for one in series)
    # A line begins and ends at the edges: labels in the middle below its ends would be cut there.
    ends = {} if has_bars else {"alignMinLabel": "left", "alignMaxLabel": "right"}
    units: dict[int, Unit] = {one.axis: one.unit for one in reversed(series)}
    options = _build_options(
        top=36 if len(series) > 1 else 14,
        animation=True,
        animationDuration=300,
        xAxis={
            "type": "category",
            "data": list(labels),
            "boundaryGap": has_bars,
            "axisTick": {"show": False},
            "axisLine": RULE,
            "axisLabel": {**QUIET, "hideOverlap": True, **ends},
        },
        yAxis=[
            _build_value_axis(
                _write_axis_formatter(units.get(axis, "number")),
                splitNumber=4,
                max=_find_top(series, axis),
                interval=QUARTER if _find_top(series, axis) else None,
                minInterval=1 if units.get(axis, "number") == "number" else None,
                splitLine={"show": axis == 0, **RULE},
            )
            for axis in range(max(units, default=0) + 1)
        ],
        series=[part for index, one in enumerate(series) for part in _build_series_parts(one, index)],
    )
    options["legend"]["show"] = len(series) > 1
    return options


def _build_series_parts(series: Series, index: int) -> list[dict[str, Any]]:
    """Return a series; the last value of a line apart if it goes on, because the line would fall to it."""
    if not series.is_last_unfinished or series.kind != "line" or not series.values:
        return [_build_series(series, index)]
    *values, last = series.values
    ended = msgspec.structs.replace(series, values=[*values, None])
    goes_on = msgspec.structs.replace(series, values=[*[None] * len(values), last], has_area=False)
    return [
        _build_series(ended, index),
        _build_series(goes_on, index) | {"symbol": "emptyCircle", "symbolSize": 8},
    ]


def _build_series(series: Series, index: int) -> dict[str, Any]:
    colour = f"c{series.colour or index % COLOURS + 1}"
    look = _build_line_style(colour, is_dashed=series.is_dashed, has_area=series.has_area)
    look["itemStyle"]["borderRadius"] = [3, 3, 0, 0] if series.kind == "bar" else 0
    return {
        "name": series.name,
        "type": series.kind,
        "data": list(series.values),
        "yAxisIndex": series.axis,
        "stack": f"stack-{series.axis}" if series.is_stacked else None,
        # A point without neighbours makes no line; show it as a dot.
        "showSymbol": has_lone_point(series.values),
        "symbolSize": 6,
        "barMaxWidth": 28,
        "tooltip": {":valueFormatter": f"(value) => value == null ? '' : adloom.{series.unit}(value)"},
        **look,
    }


def has_lone_point(values: Sequence[float | None]) -> bool:
    """Return whether a value has no neighbour: a line would not show it."""
    known = [False, *(value is not None for value in values), False]
    return any(
        is_known and not before and not after
        for before, is_known, after in zip(known, known[1:], known[2:], strict=False)
    )


def _find_top(series: Sequence[Series], axis: int) -> int | None:
    shares = [one.values for one in series if one.axis == axis and one.unit == "percent"]
    return find_share_top([value for values in shares for value in values]) if shares else None


def find_share_top(shares: Sequence[float | None]) -> int | None:
    """Return 1 as the top of an axis whose shares come near 1 or are all zero: there is no 120 %."""
    most = max((value for value in shares if value is not None), default=0)
    return 1 if most == 0 or NEARLY_WHOLE < most <= 1 else None


def _write_axis_formatter(unit: Unit) -> str:
    match unit:
        case "money":
            return BRIEF_MONEY
        case "percent":
            return "(value) => adloom.percent(value)"
        case _:
            return "(value) => adloom.brief(value)"


def build_day_options(day: Json, *, now: datetime) -> dict[str, Any]:
    """Draw the spend of a day over its hours, next to the plan."""
    starts, ends = _parse_time(day["startsAt"]), _parse_time(day["endsAt"])
    length = (ends - starts).total_seconds()
    present = min(max(0.0, (now - starts).total_seconds()), length)
    clock = _write_clock_formatter(starts, day["timezone"])
    time_axis = _build_value_axis(clock, min=0, max=length, interval=TICK_SECONDS, axisLine=RULE)
    time_axis["axisLabel"]["hideOverlap"] = True
    return _build_options(
        top=56,
        tooltip=(
            f"(lines) => {{ const clock = {clock}; return `<b>${{clock(lines[0].value[0])}}</b><br>` + "
            "lines.map((line) => `${line.marker} ${adloom.text(line.seriesName)}: ${adloom.money(line.value[1])}`).join('<br>'); }"
        ),
        xAxis=time_axis | {"splitLine": {"show": False}},
        yAxis=_build_value_axis(BRIEF_MONEY, min=0, splitNumber=4, axisLine={"show": False}),
        series=_build_day_series(day, starts, length, present),
    )


def _build_day_series(day: Json, starts: datetime, length: float, present: float) -> list[dict[str, Any]]:
    def list_points(field: str) -> list[list[float]]:
        known = [one for one in day["points"] if one[field] is not None]
        return [[(_parse_time(one["at"]) - starts).total_seconds(), one[field]] for one in known]

    spent = _build_day_line("Spent", list_points("spentPaisa"), "c1", has_area=True)
    spent["markLine"] = {
        "silent": True, "symbol": "none", "label": {"formatter": "now", **QUIET},
        "lineStyle": RULE["lineStyle"] | {"type": "solid"}, "data": [{"xAxis": present}],
    }  # fmt: skip
    ahead = [[present, day["spentPaisa"]], [length, day["projectedPaisa"]]]
    lines = [spent, _build_day_line("If it goes on like this", ahead, "c1", is_dashed=True)]
    if plan := list_points("linePaisa"):
        lines.append(_build_day_line("May be spent by then", plan, "c2"))
    budget = day["dailyBudgetPaisa"]
    if budget is not None:
        lines.append(_build_day_line("Daily budget", [[0, budget], [length, budget]], "c6", is_dashed=True))
    return lines


def _build_day_line(
    name: str, data: list[list[float]], colour: str, *, is_dashed: bool = False, has_area: bool = False
) -> dict[str, Any]:
    look = _build_line_style(colour, is_dashed=is_dashed, has_area=has_area)
    return {"name": name, "type": "line", "data": data, "showSymbol": False, **look}


def _parse_time(text: str) -> datetime:
    found = format_moment(text)
    assert found is not None
    return found


def _write_clock_formatter(starts: datetime, timezone: str) -> str:
    """Return JavaScript that formats a second of the day as local time; it ignores a clock change in the day."""
    try:
        local = starts.astimezone(ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError):
        local = starts
    return (
        f"(value) => {{ const minutes = Math.floor(value / 60) + {local.hour * 60 + local.minute}; "
        "return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`; }"
    )


def build_scatter_options(groups: Mapping[str, Sequence[Point]], *, across: str, up: str) -> dict[str, Any]:
    """Draw two figures by group, one series a group, with the line where both are equal."""
    most = max((max(one[:2]) for points in groups.values() for one in points), default=1)
    equal = {
        "type": "line", "silent": True, "symbol": "none", "data": [[0, 0], [most, most]],
        "lineStyle": {**QUIET, "type": "dashed", "width": 1},
    }  # fmt: skip
    options = _build_options(
        top=56,
        trigger="item",
        tooltip=(
            f"(one) => adloom.lines(one.value[2], {_write_js_label(across)} + adloom.number(one.value[0]), "
            f"{_write_js_label(up)} + adloom.number(one.value[1]), one.value[3] > 1 && `\u00d7 ${{one.value[3]}}`)"
        ),
        xAxis=_scatter_axis(across, nameLocation="middle", nameGap=24, nameTextStyle=QUIET),
        yAxis=_scatter_axis(up, nameLocation="end", nameGap=10, nameTextStyle={**QUIET, "align": "left"}),
        series=[_group(name, points, index) for index, (name, points) in enumerate(groups.items())] + [equal],
    )
    options["grid"] |= {"left": 12, "right": 24, "bottom": 24}
    options["legend"] |= {"data": list(groups), "icon": "circle", "itemWidth": 8, "itemHeight": 8}
    return options


def _group(name: str, points: Sequence[Point], index: int) -> dict[str, Any]:
    # Points at the same place become one larger point.
    return {
        "name": name,
        "type": "scatter",
        ":symbolSize": f"(value) => Math.min({POINT_SIZE_MAX}, {POINT_SIZE_MIN} + 3 * Math.sqrt(value[3] - 1))",
        "data": [[*point, count] for point, count in Counter(points).items()],
        "itemStyle": {":color": f"adloom.wash('c{index % COLOURS + 1}', 0.6)"},
    }


def _scatter_axis(name: str, **parts: Any) -> dict[str, Any]:  # noqa: ANN401 - as ECharts takes them
    return _build_value_axis(min=0, name=name, axisLine=RULE, **parts)


def _write_js_label(label: str) -> str:
    return msgspec.json.encode(f"{label}: ").decode()
