"""A scatter chart of two figures by group, with the line where both are equal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from adloom.console.components.charts.chart import TOOLTIP, ThemedChart

SIZE_MIN: Final = 8
SIZE_MAX: Final = 48

Point = tuple[float, float, str]  # x, y, name.


class Scatter(ThemedChart):
    """A scatter chart with one series a group."""

    def __init__(
        self, groups: Mapping[str, Sequence[Point]], *, across: str, up: str, description: str
    ) -> None:
        self._across, self._up = across, up
        super().__init__(make_options(groups, across=across, up=up), description=description)

    def update(self, groups: Mapping[str, Sequence[Point]]) -> None:
        self.redraw(make_options(groups, across=self._across, up=self._up))


def make_options(groups: Mapping[str, Sequence[Point]], *, across: str, up: str) -> dict[str, Any]:
    most = max((max(one[:2]) for points in groups.values() for one in points), default=1)
    series = [_series(name, points, index) for index, (name, points) in enumerate(groups.items())]
    series.append(
        {
            "type": "line", "silent": True, "symbol": "none", "data": [[0, 0], [most, most]],
            "lineStyle": {":color": "adloom.ink('quiet')", "type": "dashed", "width": 1},
        }
    )  # fmt: skip
    return {
        "animation": False,
        "textStyle": {"fontFamily": "system-ui, sans-serif"},
        "grid": {"left": 12, "right": 24, "top": 36, "bottom": 24, "containLabel": True},
        "legend": {"data": list(groups), "left": 0, "top": 0, "icon": "circle", "itemWidth": 8, "itemHeight": 8,
                   "textStyle": {":color": "adloom.ink('quiet')"}},
        "tooltip": {**TOOLTIP, "trigger": "item", ":formatter": _tooltip(across, up)},
        "xAxis": _axis(across, name_gap=24),
        "yAxis": _axis(up, name_gap=10) | {"nameLocation": "end", "nameTextStyle": {":color": "adloom.ink('quiet')", "align": "left"}},
        "series": series,
    }  # fmt: skip


def _series(name: str, points: Sequence[Point], index: int) -> dict[str, Any]:
    # Points at the same place become one larger point.
    return {
        "name": name,
        "type": "scatter",
        ":symbolSize": f"(value) => Math.min({SIZE_MAX}, {SIZE_MIN} + 3 * Math.sqrt(value[3] - 1))",
        "data": [[*point, count] for point, count in Counter(points).items()],
        "itemStyle": {":color": f"adloom.wash('c{index % 6 + 1}', 0.6)"},
    }


def _tooltip(across: str, up: str) -> str:
    return (
        f"(one) => adloom.lines(one.value[2], {_to_js_label(across)} + adloom.number(one.value[0]), "
        f"{_to_js_label(up)} + adloom.number(one.value[1]), one.value[3] > 1 && `\u00d7 ${{one.value[3]}}`)"
    )


def _to_js_label(label: str) -> str:
    return msgspec.json.encode(f"{label}: ").decode()


def _axis(name: str, *, name_gap: int) -> dict[str, Any]:
    quiet = "adloom.ink('quiet')"
    return {
        "type": "value",
        "min": 0,
        "name": name,
        "nameLocation": "middle",
        "nameGap": name_gap,
        "nameTextStyle": {":color": quiet},
        "axisTick": {"show": False},
        "axisLine": {"lineStyle": {":color": "adloom.ink('line')"}},
        "axisLabel": {":color": quiet},
        "splitLine": {"lineStyle": {":color": "adloom.ink('line')"}},
    }
