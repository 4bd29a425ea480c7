"""When a site is crawled by the clock."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import SiteId
from adloom.pages.crawl.schedule import SPREAD, ScheduledSite, is_due, spread

SITE = SiteId(UUID(int=7))


def a_site(
    cron: str = "0 2 * * *", zone: str = "UTC", *, since: datetime, site_id: SiteId = SITE
) -> ScheduledSite:
    return ScheduledSite(id=site_id, cron_schedule=cron, timezone=zone, since=since)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "since", "wanted"),
    [
        (at(17, 1, 59), at(16, 12), False),
        (at(17, 3, 0), at(16, 12), True),
        (at(17, 3, 0), at(17, 2, 45), False),
        (at(19, 12), at(10, 12), True),
        (at(17, 12), at(17, 11), False),
    ],
    ids=["before", "after", "crawled since", "made up for", "made after it"],
)
def test_a_crawl_is_due_once_after_its_moment(now: datetime, since: datetime, wanted: bool) -> None:  # noqa: FBT001 - a table
    assert is_due(a_site(since=since), now=now) is wanted


def test_the_moment_is_in_the_sites_zone() -> None:
    tokyo = a_site(zone="Asia/Tokyo", since=at(16, 12))

    assert not is_due(tokyo, now=at(16, 16, 59))
    assert is_due(tokyo, now=at(16, 17, 31))


def test_a_zone_that_is_no_longer_known_is_utc() -> None:
    nowhere = a_site(zone="Nowhere/Gone", since=at(16, 12))

    assert is_due(nowhere, now=at(17, 12))


def test_a_day_without_this_hour_has_no_trouble() -> None:
    """At 02:30 on 28 March 2027 clocks in Berlin go forward."""
    berlin = a_site("30 2 * * *", "Europe/Berlin", since=datetime(2027, 3, 27, 12, tzinfo=UTC))

    assert is_due(berlin, now=datetime(2027, 3, 28, 12, tzinfo=UTC))


@given(st.uuids(), st.integers(1, 60 * 24))
def test_a_site_starts_at_its_own_moment_within_the_spread(site_id: UUID, minutes: int) -> None:
    width = timedelta(minutes=minutes)

    assert timedelta() <= spread(site_id, width) < width
    assert spread(site_id, width) == spread(site_id, width)


def test_sites_of_the_same_hour_are_spread_over_it() -> None:
    starts = [spread(UUID(int=number), SPREAD) for number in range(1_000)]

    for part in range(6):
        begin = SPREAD * part / 6
        assert 100 < sum(begin <= one < begin + SPREAD / 6 for one in starts) < 240


@given(
    st.uuids(),
    st.sampled_from(["* * * * *", "*/5 * * * *", "0 2 * * *", "15 3 * * 0", "0 0 1 1 *"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - the zone is beside
)
def test_after_a_crawl_the_same_moment_is_not_due_again(
    site_id: UUID, cron: str, zone: str, now: datetime
) -> None:
    crawled = a_site(cron, zone, since=now, site_id=SiteId(site_id))

    assert not is_due(crawled, now=now)


@pytest.mark.parametrize("cron", ["", "x", "61 * * * *", "0 0 31 2 *"])
def test_a_schedule_that_cannot_be_read_is_never_due(cron: str) -> None:
    assert not is_due(a_site(cron, since=at(1, 0)), now=at(17, 12))
