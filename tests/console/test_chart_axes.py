from adloom.console.components.charts.chart import find_share_top, has_lone_point
from tests.support.for_each import for_each


@for_each(
    ("shares", "top"),
    [
        ([], 1),
        ([None], 1),
        ([0.0, None], 1),
        ([0.02], None),  # Small shares are seen best on an axis of their own.
        ([0.9, None, 0.3], 1),
        ([1.0], 1),
        ([1.3], None),  # More than the whole is shown as it is.
    ],
)
def test_a_percent_axis_ends_at_100_if_values_come_near_it_or_are_missing(
    shares: list[float | None], top: int | None
) -> None:
    assert find_share_top(shares) == top


@for_each(
    ("values", "is_lone"),
    [
        ([], False),
        ([1.0], True),
        ([1.0, 2.0], False),
        ([None, 0.0, None], True),
        ([1.0, 2.0, None, 3.0], True),
        ([None, 1.0, 2.0, None], False),
        ([None, None], False),
    ],
)
def test_a_point_without_neighbours_is_drawn(values: list[float | None], is_lone: bool) -> None:  # noqa: FBT001 - a case
    assert has_lone_point(values) is is_lone
