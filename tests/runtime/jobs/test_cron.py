"""Cron expressions, and the jobs that a schedule puts into a queue."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis.exceptions import ConnectionError as ValkeyConnectionError

from adloom.core.clock import ManualClock
from adloom.runtime.jobs.cron import Cron, CronError
from adloom.runtime.jobs.schedule import CronJob, CronSchedule
from adloom.runtime.settings import SettingsError, read_worker_settings
from tests.support.for_each import for_each


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@for_each(
    ("expression", "moment", "last", "following"),
    [
        ("* * * * *", "2026-11-15T12:00:30", "2026-11-15T12:00", "2026-11-15T12:01"),
        ("* * * * *", "2026-11-15T12:00:00", "2026-11-15T12:00", "2026-11-15T12:01"),
        ("* * * * *", "2026-11-15T11:59:59.999999", "2026-11-15T11:59", "2026-11-15T12:00"),
        ("*/5 * * * *", "2026-12-31T23:57:00", "2026-12-31T23:55", "2027-01-01T00:00"),
        ("0 1 * * *", "2026-11-15T00:59:00", "2026-11-14T01:00", "2026-11-15T01:00"),
        # In Berlin 02:30 does not exist on this night, and comes twice on the other.
        ("30 2 * * *", "2026-03-29T00:00:00", "2026-03-28T02:30", "2026-03-29T02:30"),
        ("30 2 * * *", "2026-10-25T02:30:00", "2026-10-25T02:30", "2026-10-26T02:30"),
        ("0 0 29 2 *", "2026-11-15T00:00:00", "2024-02-29T00:00", "2028-02-29T00:00"),
    ],
)
def test_a_cron_expression_lists_times_in_utc(
    expression: str, moment: str, last: str, following: str
) -> None:
    cron = Cron(expression)

    assert cron.find_latest_until(utc(moment)) == utc(last)
    assert cron.find_next_after(utc(moment)) == utc(following)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "it has 0 fields instead of 5"),
        ("every minute", "it has 2 fields instead of 5"),
        ("* * * * * *", "it has 6 fields instead of 5"),
        ("61 * * * *", "bad minute"),
        ("* * 31 2 *", "bad day-of-month"),
        ("* * * 2 MON#6", "bad day-of-week"),
    ],
)
def test_an_invalid_cron_expression_is_refused(expression: str, says: str) -> None:
    with pytest.raises(CronError, match=says):
        Cron(expression)


class Recorder:
    """A queue that records what was put, and may be away for a while."""

    def __init__(self, *, away: int = 0) -> None:
        self.put_ids: list[str] = []
        self._away = away

    async def put(self, name: str, *, job_id: str) -> None:
        assert name == "work"
        if self._away:
            self._away -= 1
            raise ValkeyConnectionError
        self.put_ids.append(job_id)


class Timeline:
    """Time that passes only during pauses, until the end, at which the schedule is stopped."""

    def __init__(self, start: str, end: str) -> None:
        self.clock = ManualClock(utc(start))
        self.pauses: list[timedelta] = []
        self._end = utc(end)

    async def pause(self, length: timedelta, stop: asyncio.Event) -> None:
        self.pauses.append(length)
        self.clock.advance(length)
        if self.clock.now() >= self._end:
            stop.set()

    async def run(self, expression: str, queue: Recorder) -> list[str]:
        job = CronJob(name="work", cron=Cron(expression), job_id=lambda moment: f"{moment:%m-%dT%H%M}")
        await CronSchedule(job, queue, clock=self.clock, pause=self.pause).run(asyncio.Event())
        return queue.put_ids


async def test_a_job_is_put_at_each_time_without_polling_between() -> None:
    timeline = Timeline("2026-11-15T23:58:20", "2026-11-16T00:01:30")

    put = await timeline.run("* * * * *", Recorder())

    assert put == ["11-15T2358", "11-15T2359", "11-16T0000", "11-16T0001"]
    assert timeline.pauses == [timedelta(seconds=40), *[timedelta(minutes=1)] * 3]


async def test_a_nightly_job_wakes_about_once_an_hour() -> None:
    timeline = Timeline("2026-11-15T12:00:00", "2026-11-16T01:30:00")

    put = await timeline.run("0 1 * * *", Recorder())

    assert put == ["11-15T0100", "11-16T0100"]
    assert len(timeline.pauses) == 14


@pytest.mark.parametrize(("start", "end"), [("2026-03-28", "2026-03-31"), ("2026-10-24", "2026-10-27")])
async def test_a_nightly_job_is_put_once_a_night_despite_daylight_saving_time(start: str, end: str) -> None:
    put = await Timeline(f"{start}T03:00:00", f"{end}T03:00:00").run("30 2 * * *", Recorder())

    assert len(put) == len(set(put)) == 4


async def test_a_job_missed_while_the_machine_slept_is_put_once() -> None:
    timeline = Timeline("2026-11-15T12:00:00", "2026-11-15T16:00:00")
    sleep = timeline.pause

    async def deep_sleep(length: timedelta, stop: asyncio.Event) -> None:
        await sleep(max(length, timedelta(hours=2, seconds=7)) if not timeline.pauses else length, stop)

    timeline.pause = deep_sleep
    put = await timeline.run("*/30 * * * *", Recorder())

    assert put == ["11-15T1200", "11-15T1400", "11-15T1430", "11-15T1500", "11-15T1530"]


async def test_a_job_that_could_not_be_put_is_put_when_valkey_is_back() -> None:
    timeline = Timeline("2026-11-15T12:00:00", "2026-11-15T12:02:00")

    put = await timeline.run("* * * * *", Recorder(away=70))

    assert put == ["11-15T1201"]


SERVICES = {"DATABASE_URL": "postgresql://db/adloom", "REDIS_URL": "redis://cache"}


def test_the_schedule_is_synced_every_minute_by_default() -> None:
    assert read_worker_settings(SERVICES).schedule_sync_cron.expression == "* * * * *"
    other = read_worker_settings({**SERVICES, "BANNER_SCHEDULE_SYNC_CRON": "*/5 * * * *"})
    assert other.schedule_sync_cron.expression == "*/5 * * * *"


def test_an_invalid_cron_setting_is_named_with_what_was_expected() -> None:
    with pytest.raises(SettingsError) as raised:
        read_worker_settings({**SERVICES, "BANNER_SCHEDULE_SYNC_CRON": "61 * * * *"})

    assert str(raised.value) == (
        "BANNER_SCHEDULE_SYNC_CRON is '61 * * * *': "
        "expected a cron expression of five fields like '*/5 * * * *', but bad minute."
    )
