"""Charts that the server draws: axes that hold their values, lines with gaps, and names that are no HTML."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.console.components.charts.chart import Series, Unit
from adloom.console.components.charts.svg_chart import draw, find_top, write_briefly


@given(st.lists(st.none() | st.floats(0, 1e12), max_size=30), st.sampled_from(("number", "money", "percent")))
def test_no_value_is_above_the_end_of_its_axis(values: list[float | None], unit: Unit) -> None:
    top = find_top([Series(name="Any", values=values, unit=unit)])

    most = max((value for value in values if value is not None), default=0)
    assert top > 0
    assert most <= top * (1 + 1e-6)


@pytest.mark.parametrize(
    ("most", "top"), [(0, 4), (1, 4), (9, 12), (950, 1_000), (1_150, 2_000), (10_061, 20_000)]
)
def test_the_steps_of_an_axis_are_round(most: float, top: float) -> None:
    assert find_top([Series(name="Any", values=[most])]) == top


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1_200, "number", "1.2K"), (0, "number", "0"), (250, "money", "2.5"), (0.025, "percent", "2.5%")],
)
def test_figures_of_an_axis_are_brief(value: float, unit: Unit, text: str) -> None:
    assert write_briefly(value, unit) == text


def test_a_line_has_gaps_and_an_hour_that_goes_on_is_a_dot_beside_it() -> None:
    series = Series(name="Clicks", values=[1, 2, None, 3, 4, 1], is_last_unfinished=True)

    drawn = draw(["a", "b", "c", "d", "e", "f"], [series])

    assert drawn.count('class="line"') == 2
    assert drawn.count('class="dot open"') == 1


def test_two_series_of_bars_stand_side_by_side_and_names_are_no_html() -> None:
    bars = [Series(name=name, values=[1, 0, 2], kind="bar") for name in ("<b>", "Second")]

    drawn = draw(["x", "y", "z"], bars)

    assert drawn.count("<rect") == 4
    assert "<b>" not in drawn.replace("<b data-figures", "")
    assert "&lt;b&gt;: 2" in drawn


def test_the_only_bar_of_a_chart_is_no_block() -> None:
    alone, of_eight = (
        str(draw(["a"] * count, [Series(name="Spend", values=[1.0] * count, kind="bar")])) for count in (1, 8)
    )

    [width] = re.findall(r'width="([\d.]+)"', alone)
    assert set(re.findall(r'width="([\d.]+)"', of_eight)) == {width}


def test_a_chart_of_nothing_is_drawn() -> None:
    assert "<svg" in draw([], [Series(name="Clicks", values=[])])
