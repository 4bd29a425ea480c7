"""The jobs of stats sync: one a seller and level, for a range of days; what they are called and carry. Pure."""

# pure

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.sync.words import Level

QUEUE: Final = "stats-sync"
SYNC_STATS: Final = "stats.sync"
ID_PREFIX: Final = "sync"
# BullMQ parts its keys by colons, and dates and ids have dashes.
SEPARATOR: Final = "_"
ATTEMPTS_MAX: Final = 3
BACKOFF: Final = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15))
CONCURRENCY: Final = 5
DONE_KEPT: Final = 100
FAILED_KEPT: Final = 50


class Origin(StrEnum):
    """Who asked for a sync."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"


# Somebody waits for a sync by hand, and the clock for nobody; a backfill of years must hold up neither.
# Those without a priority go first, then those with the lowest.
PRIORITIES: Final = {Origin.MANUAL: 0, Origin.SCHEDULE: 1, Origin.BACKFILL: 2}


class SyncJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Fetch the statistics of a seller on a level, for some days, both included; and add them up."""

    seller_id: UUID
    date_from: date
    date_to: date
    level: Level
    origin: Origin = Origin.MANUAL

    def __post_init__(self) -> None:
        assert self.date_from <= self.date_to, "a range has at least one day"

    @property
    def id(self) -> str:
        """Name the job: the same seller, days and level are the same job, whoever asks."""
        parts = (ID_PREFIX, self.seller_id, self.date_from, self.date_to, self.level)
        return SEPARATOR.join(str(part) for part in parts)

    @property
    def payload(self) -> dict[str, str]:
        """Give what the queue carries."""
        return msgspec.to_builtins(self)


def build_jobs(seller_id: UUID, first: date, last: date, origin: Origin) -> list[SyncJob]:
    """List the jobs of a range: one a level."""
    return [
        SyncJob(seller_id=seller_id, date_from=first, date_to=last, level=level, origin=origin)
        for level in Level
    ]


def parse_job(payload: Mapping[str, str]) -> SyncJob:
    """Read a job as the queue carries it."""
    return msgspec.convert(payload, SyncJob, strict=False)


def belongs_to(job_id: str, seller_id: UUID) -> bool:
    """Tell whether a job is a seller's."""
    return job_id.startswith(f"{ID_PREFIX}{SEPARATOR}{seller_id}{SEPARATOR}")


def compute_backoff(attempt: int, retry_after: timedelta = timedelta()) -> timedelta:
    """Tell how long to wait after an attempt, the first being 1; at least as long as the platform asks for."""
    return max(BACKOFF[min(attempt, len(BACKOFF)) - 1], retry_after)


def list_days(first: date, last: date) -> Iterator[date]:
    """List days, both included."""
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def split_days(first: date, last: date, *, days_max: int) -> Iterator[tuple[date, date]]:
    """Cut a range of days into stretches that are not too long."""
    for start in range(0, (last - first).days + 1, days_max):
        begin = first + timedelta(days=start)
        yield begin, min(last, begin + timedelta(days=days_max - 1))
