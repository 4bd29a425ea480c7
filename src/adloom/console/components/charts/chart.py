"""Line and bar charts in the colours of the theme."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from nicegui import ui

from adloom.console.components.attributes import set_attributes

COLOURS: Final = 6
NEARLY_WHOLE: Final = 0.6
QUARTER: Final = 0.25

TOOLTIP: Final = {
    "confine": True,
    ":backgroundColor": "adloom.ink('card')",
    ":borderColor": "adloom.ink('line')",
    "textStyle": {":color": "adloom.ink('ink')", "fontSize": 13},
}

Unit = Literal["number", "percent", "money", "millis"]


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


class ThemedChart:
    """An ECharts element in the colours of the theme; `redraw` replaces its options without a flash."""

    def __init__(self, options: dict[str, Any], *, classes: str = "tall", description: str = "") -> None:
        self._element = ui.echart(options).classes(f"al-chart {classes}")
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
        super().__init__(_options(labels, series), classes=classes, description=description)

    def update(self, labels: Sequence[str], series: Sequence[Series]) -> None:
        self.redraw(_options(labels, series))


def _options(labels: Sequence[str], series: Sequence[Series]) -> dict[str, Any]:
    axes = sorted({one.axis for one in series})
    units: dict[int, Unit] = {one.axis: one.unit for one in reversed(series)}
    quiet = "adloom.ink('quiet')"
    return {
        "animationDuration": 300,
        "textStyle": {"fontFamily": "system-ui, sans-serif"},
        "grid": {"left": 8, "right": 20, "top": 36 if len(series) > 1 else 14, "bottom": 4, "containLabel": True},
        "legend": {
            "type": "scroll", "show": len(series) > 1, "left": 0, "top": 0, "icon": "roundRect", "itemWidth": 12, "itemHeight": 4,
            "textStyle": {":color": quiet},
        },
        "tooltip": {"trigger": "axis", **TOOLTIP},
        "xAxis": {
            "type": "category",
            "data": list(labels),
            "boundaryGap": any(one.kind == "bar" for one in series),
            "axisTick": {"show": False},
            "axisLine": {"lineStyle": {":color": "adloom.ink('line')"}},
            "axisLabel": {":color": quiet, "hideOverlap": True},
        },
        "yAxis": [
            {
                "type": "value",
                "splitNumber": 4,
                "max": _top(series, axis),
                "interval": QUARTER if _top(series, axis) else None,
                "minInterval": 1 if units.get(axis, "number") == "number" else None,
                "axisLabel": {":color": quiet, ":formatter": _axis_formatter(units.get(axis, "number"))},
                "splitLine": {"show": axis == 0, "lineStyle": {":color": "adloom.ink('line')"}},
            }
            for axis in range(max(axes, default=0) + 1)
        ],
        "series": [_series(one, index) for index, one in enumerate(series)],
    }  # fmt: skip


def _series(series: Series, index: int) -> dict[str, Any]:
    colour = f"c{series.colour or index % COLOURS + 1}"
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
        "itemStyle": {
            ":color": f"adloom.ink('{colour}')",
            "borderRadius": [3, 3, 0, 0] if series.kind == "bar" else 0,
        },
        "lineStyle": {"width": 2, "type": "dashed" if series.is_dashed else "solid"},
        "areaStyle": {":color": f"adloom.wash('{colour}', 0.12)"} if series.has_area else None,
        "tooltip": {":valueFormatter": f"(value) => value == null ? '' : adloom.{series.unit}(value)"},
    }


def has_lone_point(values: Sequence[float | None]) -> bool:
    """Return whether a value has no neighbour: a line would not show it."""
    known = [False, *(value is not None for value in values), False]
    return any(
        is_known and not before and not after
        for before, is_known, after in zip(known, known[1:], known[2:], strict=False)
    )


def _top(series: Sequence[Series], axis: int) -> int | None:
    shares = [one.values for one in series if one.axis == axis and one.unit == "percent"]
    return share_top([value for values in shares for value in values]) if shares else None


def share_top(shares: Sequence[float | None]) -> int | None:
    """Return 1 as the top of an axis whose shares come near 1 or are all zero: there is no 120 %."""
    most = max((value for value in shares if value is not None), default=0)
    return 1 if most == 0 or NEARLY_WHOLE < most <= 1 else None


def _axis_formatter(unit: Unit) -> str:
    match unit:
        case "money":
            return "(value) => adloom.brief(value / 100)"
        case "percent":
            return "(value) => adloom.percent(value)"
        case _:
            return "(value) => adloom.brief(value)"
