"""The local hour and day of a placement, also when clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from adloom.serving.request.context import LocalTimes
from tests.support.for_each import for_each

ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]


@for_each(
    ("zone", "moment", "expected"),
    [
        ("UTC", "2026-11-15T12:00", (12, 0)),
        ("UTC", "2026-11-16T00:00", (0, 1)),
        ("UTC", "2026-11-21T23:59", (23, 6)),
        ("Asia/Tokyo", "2026-11-15T20:00", (5, 1)),
        ("Asia/Kathmandu", "2026-11-15T00:14", (5, 0)),
        ("Asia/Kathmandu", "2026-11-15T00:15", (6, 0)),
        ("Europe/Berlin", "2026-03-29T00:59", (1, 0)),
        ("Europe/Berlin", "2026-03-29T01:00", (3, 0)),
        ("Europe/Berlin", "2026-10-25T00:59", (2, 0)),
        ("Europe/Berlin", "2026-10-25T01:00", (2, 0)),
        ("Europe/Berlin", "2026-10-25T02:00", (3, 0)),
    ],
)
def test_the_hour_and_day_are_those_of_the_zone(zone: str, moment: str, expected: tuple[int, int]) -> None:
    now = datetime.fromisoformat(moment).replace(tzinfo=UTC)

    assert LocalTimes().get(ZoneInfo(zone), now) == expected


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ZONES),
            st.integers(-7_200, 7_200).map(
                lambda s: datetime(2026, 10, 25, 1, tzinfo=UTC) + timedelta(seconds=s)
            ),
        ),
        max_size=30,
    )
)
def test_cached_local_times_equal_computed_ones(requests: list[tuple[str, datetime]]) -> None:
    local_times = LocalTimes()

    for zone, now in requests:
        local = now.astimezone(ZoneInfo(zone))
        assert local_times.get(ZoneInfo(zone), now) == (local.hour, local.isoweekday() % 7)
