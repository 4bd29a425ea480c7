"""A chart that the server draws: a page with such charts only does without ECharts, which is half of its weight.

chart = SvgChart(["00:00", "01:00"], [Series(name="Clicks", values=[3, 4])], description="Clicks")
chart.update(labels, series)
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from adloom.console.components.charts.chart import COLOURS, Series, Unit, find_share_top, has_lone_point
from adloom.console.components.format import format_count, format_money, format_percent
from adloom.console.components.layout import add_html, set_attributes

WIDTH: Final = 1_000
HEIGHT: Final = 100
STEPS: Final = 4  # Of an axis.
SMALLEST: Final = 1e-6  # What is less is nothing.
NICE: Final = (1, 2, 2.5, 5, 10)
LABELS_MAX: Final = 8
BAR_SHARE: Final = 0.6  # Of the room of a label.
BARS_MIN: Final = 8  # Fewer are no wider: the first hour of a day is no block.
BRIEF: Final = ((1e9, "G"), (1e6, "M"), (1e3, "K"))


class SvgChart:
    """Lines and bars over labels; the figures of a label appear where the pointer is."""

    def __init__(self, labels: Sequence[str], series: Sequence[Series], *, description: str) -> None:
        self._element = add_html("").classes("al-drawn")
        set_attributes(self._element, role="img", aria_label=description)
        self.update(labels, series)

    def update(self, labels: Sequence[str], series: Sequence[Series]) -> None:
        content = draw(labels, series)
        if self._element.content != content:
            self._element.content = content


def draw(labels: Sequence[str], series: Sequence[Series]) -> Markup:
    """Return the HTML of a chart: the legend, the axes, and the picture between them."""
    tops = {axis: find_top([one for one in series if one.axis == axis]) for axis in (0, 1)}
    coloured = [(one, f"var(--c{one.colour or index % COLOURS + 1})") for index, one in enumerate(series)]
    bars = [one for one in series if one.kind == "bar"]
    shapes, dots = Markup(""), Markup("")
    for one, colour in coloured:
        top = tops[one.axis]
        if one.kind == "bar":
            shapes += _draw_bars(one, colour, top, place=bars.index(one), places=len(bars))
        else:
            shapes += _draw_line(one, colour, top)
            dots += _draw_dots(one, colour, top)
    keys = Markup("").join(
        Markup('<span class="al-key" style="--colour: {}">{}</span>').format(colour, one.name)
        for one, colour in coloured
    )
    return Markup(
        '<div class="keys">{}</div><div class="ticks">{}</div><div class="plot">'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none">{}{}</svg>{}{}</div>'
        '<div class="ticks right">{}</div><div class="labels">{}</div>'
    ).format(
        keys if len(series) > 1 else "",
        _draw_ticks(series, 0, tops[0]),
        WIDTH,
        HEIGHT,
        _draw_rules(),
        shapes,
        dots,
        _draw_columns(labels, series),
        _draw_ticks(series, 1, tops[1]),
        _draw_labels(labels),
    )


def find_top(series: Sequence[Series]) -> float:
    """Return the end of an axis: the first that is not below any value, and whose steps are round."""
    most = max((value for one in series for value in one.values if value is not None), default=0)
    unit: Unit = series[0].unit if series else "number"
    if unit == "percent" and (whole := find_share_top([most])):
        return whole
    if most < SMALLEST:
        return STEPS
    size = 10 ** math.floor(math.log10(most / STEPS))
    step = next(one * size for one in NICE if one * size * STEPS >= most * (1 - 1e-9))
    # Half an impression is no step.
    return STEPS * (max(1, math.ceil(step)) if unit == "number" else step)


def write_briefly(value: float, unit: Unit) -> str:
    """Write a figure of an axis in few characters."""
    match unit:
        case "percent":
            return f"{value * 100:.4g}%"
        case "money":
            return write_briefly(value / 100, "number")
        case _:
            for size, letter in BRIEF:
                if abs(value) >= size:
                    return f"{value / size:.3g}{letter}"
            return f"{value:.3g}"


def _write(value: float | None, unit: Unit) -> str:
    match unit:
        case "percent":
            return format_percent(value)
        case "money":
            return format_money(value)
        case _:
            return format_count(value)


def _place_across(index: int, number: int) -> float:
    """Return where a label is, as a share of the width."""
    return (index + 0.5) / max(1, number)


def _place_up(value: float, top: float) -> float:
    return HEIGHT - value / top * HEIGHT


def _is_apart(series: Series, index: int) -> bool:
    """Return whether a value is a dot beside the line: a line would fall to what has only begun."""
    return series.is_last_unfinished and index == len(series.values) - 1


def _list_runs(series: Series) -> Iterator[list[tuple[int, float]]]:
    """Yield values without a gap between them."""
    run: list[tuple[int, float]] = []
    for index, value in enumerate(series.values):
        if value is None or _is_apart(series, index):
            if run:
                yield run
            run = []
        else:
            run.append((index, value))
    if run:
        yield run


def _draw_line(series: Series, colour: str, top: float) -> Markup:
    drawn = Markup("")
    number = len(series.values)
    for run in _list_runs(series):
        points = [
            f"{_place_across(index, number) * WIDTH:.1f},{_place_up(value, top):.2f}" for index, value in run
        ]
        line = "L".join(points)
        if series.has_area:
            first, last = (_place_across(run[end][0], number) * WIDTH for end in (0, -1))
            drawn += Markup(
                '<path class="area" style="fill: {}" d="M{:.1f},{}L{}L{:.1f},{}Z"/>'
            ).format(colour, first, HEIGHT, line, last, HEIGHT)  # fmt: skip
        drawn += Markup('<path class="line{}" style="stroke: {}" d="M{}"/>').format(
            " dashed" if series.is_dashed else "", colour, line
        )
    return drawn


def _draw_dots(series: Series, colour: str, top: float) -> Markup:
    """Show values that no line leads to."""
    number = len(series.values)
    lone = [run[0] for run in _list_runs(series) if len(run) == 1 and has_lone_point(series.values)]
    last = series.values[-1] if series.values else None
    apart = [(number - 1, last)] if last is not None and series.is_last_unfinished else []
    return Markup("").join(
        Markup('<i class="dot{}" style="left: {:.2f}%; top: {:.2f}%; color: {}"></i>').format(
            " open" if _is_apart(series, index) else "",
            _place_across(index, number) * 100,
            _place_up(value, top),
            colour,
        )
        for index, value in [*lone, *apart]
    )


def _draw_bars(series: Series, colour: str, top: float, *, place: int, places: int) -> Markup:
    """Draw the bars of one of several series, which stand side by side."""
    number = max(1, len(series.values))
    wide = BAR_SHARE / max(number, BARS_MIN) / places * WIDTH
    return Markup("").join(
        Markup('<rect style="fill: {}" x="{:.1f}" y="{:.2f}" width="{:.1f}" height="{:.2f}"/>').format(
            colour,
            _place_across(index, number) * WIDTH + (place - places / 2) * wide,
            _place_up(value, top),
            wide,
            HEIGHT - _place_up(value, top),
        )
        for index, value in enumerate(series.values)
        if value
    )


def _draw_rules() -> Markup:
    return Markup("").join(
        Markup('<path class="rule" d="M0,{0}H{1}"/>').format(HEIGHT * step / STEPS, WIDTH)
        for step in range(STEPS + 1)
    )


def _draw_ticks(series: Sequence[Series], axis: int, top: float) -> Markup:
    units: list[Unit] = [one.unit for one in series if one.axis == axis]
    if not units:
        return Markup("")
    values = (top * step / STEPS for step in range(STEPS, -1, -1))
    return Markup("").join(
        Markup("<span>{}</span>").format(write_briefly(value, units[0])) for value in values
    )


def _draw_columns(labels: Sequence[str], series: Sequence[Series]) -> Markup:
    """Lay a column over each label that says its figures."""
    return Markup('<div class="columns">{}</div>').format(
        Markup("").join(
            Markup('<b data-figures="{}"></b>').format(
                "\n".join([label, *(f"{one.name}: {_write(one.values[index], one.unit)}" for one in series)])
            )
            for index, label in enumerate(labels)
        )
    )


def _draw_labels(labels: Sequence[str]) -> Markup:
    every = math.ceil(len(labels) / LABELS_MAX) if labels else 1
    return Markup("").join(
        Markup('<span style="left: {:.2f}%">{}</span>').format(_place_across(index, len(labels)) * 100, label)
        for index, label in enumerate(labels)
        if index % every == 0
    )
