"""The jobs of stats sync: one per seller and level, for a range of days. Their names, payloads and limits."""

# pure

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.sync.words import Level

QUEUE: Final = "stats-sync"
SYNC_STATS: Final = "stats.sync"
ID_PREFIX: Final = "sync"
# BullMQ separates its keys by colons; dates and ids contain dashes.
SEPARATOR: Final = "_"
ATTEMPTS_MAX: Final = 3
BACKOFF: Final = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15))
CONCURRENCY: Final = 5
DONE_KEPT: Final = 100
FAILED_KEPT: Final = 50


class Origin(StrEnum):
    """What started a sync."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"


# A person waits for a manual sync, nobody for a scheduled one; a long backfill must delay neither.
# BullMQ runs jobs without a priority first, then those with the lowest number.
PRIORITIES: Final = {Origin.MANUAL: 0, Origin.SCHEDULE: 1, Origin.BACKFILL: 2}


class SyncJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Fetch and add up the statistics of one seller and level, for a range of days (inclusive)."""

    seller_id: UUID
    date_from: date
    date_to: date
    level: Level
    origin: Origin = Origin.MANUAL

    def __post_init__(self) -> None:
        assert self.date_from <= self.date_to, "a range has at least one day"

    @property
    def id(self) -> str:
        """The same seller, days and level give the same id, whatever started the job."""
        parts = (ID_PREFIX, self.seller_id, self.date_from, self.date_to, self.level)
        return SEPARATOR.join(str(part) for part in parts)

    @property
    def payload(self) -> dict[str, str]:
        return msgspec.to_builtins(self)


def build_jobs(seller_id: UUID, first: date, last: date, origin: Origin) -> list[SyncJob]:
    return [
        SyncJob(seller_id=seller_id, date_from=first, date_to=last, level=level, origin=origin)
        for level in Level
    ]


def parse_job(payload: Mapping[str, str]) -> SyncJob:
    return msgspec.convert(payload, SyncJob, strict=False)


def find_sync(payload: Mapping[str, str]) -> SyncJob | None:
    """Return what a listed job fetches; None if another program has put it."""
    try:
        return parse_job(payload)
    except msgspec.ValidationError:
        return None


def find_covering(job: SyncJob, in_hand: Iterable[SyncJob]) -> SyncJob | None:
    """Return a job that fetches the days of another one anyway."""
    return next(
        (
            other
            for other in in_hand
            if (other.seller_id, other.level) == (job.seller_id, job.level)
            and other.date_from <= job.date_from
            and job.date_to <= other.date_to
        ),
        None,
    )


def belongs_to(job_id: str, seller_id: UUID) -> bool:
    return job_id.startswith(f"{ID_PREFIX}{SEPARATOR}{seller_id}{SEPARATOR}")


def compute_backoff(attempt: int, retry_after: timedelta) -> timedelta:
    """Return the wait after an attempt (the first is 1); at least what the platform asks for."""
    return max(BACKOFF[min(attempt, len(BACKOFF)) - 1], retry_after)


def list_days(first: date, last: date) -> Iterator[date]:
    """Yield the days of a range, both ends included."""
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def split_days(first: date, last: date, *, days_max: int) -> Iterator[tuple[date, date]]:
    """Split a range into parts of at most `days_max` days."""
    for start in range(0, (last - first).days + 1, days_max):
        begin = first + timedelta(days=start)
        yield begin, min(last, begin + timedelta(days=days_max - 1))
