import pytest

from adloom.console.components.chart import share_top


@pytest.mark.parametrize(
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
def test_an_axis_of_shares_ends_at_the_whole_where_they_come_near_it_or_there_are_none(
    shares: list[float | None], top: int | None
) -> None:
    assert share_top(shares) == top
