"""Stats sync over HTTP: for which seller a client asks, and syncs that are started by hand and followed."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Annotated, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import Depends, Query, status
from pydantic import AfterValidator, Field

from adloom.core.caller import Role
from adloom.core.errors import ConflictError, NotFoundError, ValidationFailedError, make_field_error
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope, require_read, require_write
from adloom.resource.shapes import Day
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Now, depend_on, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.jobs.queue import JobState, ListedJob
from adloom.runtime.listing import Listed
from adloom.sync.jobs import Origin, belongs_to, build_jobs, find_sync, parse_job
from adloom.sync.pipeline.entity_store import load_timezones
from adloom.sync.queue import StatsQueue
from adloom.sync.scheduler import choose_days
from adloom.sync.words import Level

PREFIX: Final = "/api/ads-manager"
FIELD: Final = "sellerId"
YEARS: Final = range(2000, 2100)  # There can be statistics of these.
WHO: Final = "The seller that you ask for: required of an admin, an advertiser asks for itself."
UTC_NAME: Final = "UTC"
# Somewhere it is tomorrow already.
AHEAD_MAX: Final = timedelta(hours=14)
# Each month has its own tables; this bounds how many a client can create.
BACK_MAX: Final = timedelta(days=5 * 366)
DAYS_MAX: Final = 400


class SellerWriter(msgspec.Struct, frozen=True):
    """An authorised client, and the seller in the query of its request."""

    scope: Scope
    named: UUID | None

    def find_scope(self, named: UUID | None = None) -> Scope:
        """Return the scope of one seller; `named` is the seller in the body."""
        names = {name for name in (self.named, named) if name is not None}
        if len(names) > 1:
            raise _make_wrong_error("must be the same in the body and in the address")
        if self.scope.account_id is None and not names:
            raise _make_wrong_error("is required: name the seller")
        if self.scope.account_id is not None and not names <= {self.scope.account_id}:
            # As for everything of another account: it is not said whether there is one.
            raise NotFoundError(
                "There is no such seller: sellerId must be your own account, or left out.",
                code="SELLER_NOT_FOUND",
            )
        return Scope(self.scope.account_id or names.pop())

    def find_owner(self, named: UUID | None = None) -> AdvertiserId:
        seller_id = self.find_scope(named).account_id
        assert seller_id is not None, "a scope of a seller has its account"
        return AdvertiserId(seller_id)


def _make_wrong_error(message: str) -> ValidationFailedError:
    return make_field_error(FIELD, message)


def _check_year(day: date) -> date:
    if day.year not in YEARS:
        raise ValueError(f"must be between the years {YEARS.start} and {YEARS.stop - 1}")
    return day


SyncedDay = Annotated[Day, AfterValidator(_check_year)]
SellerId = Annotated[UUID | None, Field(description=WHO)]
_SellerInAddress = Annotated[UUID | None, Query(alias=FIELD, description=WHO)]


class SellerBody(Body):
    """A body that may name the seller."""

    seller_id: SellerId = None


class SellerListQuery(ListQuery):
    """The query of a list that may name the seller."""

    seller_id: SellerId = None


async def require_seller_read(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> Scope:
    """Return the scope of the seller that a client may read for."""
    return SellerWriter(require_read(caller, Role.ADVERTISER), seller_id).find_scope()


async def require_seller_write(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> SellerWriter:
    """Return for which seller a client may write; the body of its request may name the seller too."""
    return SellerWriter(require_write(caller, Role.ADVERTISER), seller_id)


async def _require_seller_write(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> Scope:
    return (await require_seller_write(caller, seller_id)).find_scope()


SellerReads = Annotated[Scope, Depends(require_seller_read)]
SellerWrites = Annotated[SellerWriter, Depends(require_seller_write)]
# For a write without a body.
SellerActs = Annotated[Scope, Depends(_require_seller_write)]


def _check_reach(field: str, day: date, now: datetime) -> None:
    if day > (now + AHEAD_MAX).date():
        raise make_field_error(field, "must not be in the future")
    if day < (now - BACK_MAX).date():
        raise make_field_error(field, "must not be more than five years ago")


class SyncBody(SellerBody):
    """What to sync: a day, a range of days, or today."""

    day: Annotated[SyncedDay | None, Field(alias="date", description="Without it, today.")] = None
    date_from: Annotated[
        SyncedDay | None, Field(description="The first day of a range, instead of `date`.")
    ] = None
    date_to: Annotated[SyncedDay | None, Field(description="The last day of a range, included.")] = None

    @property
    def is_range(self) -> bool:
        return self.date_from is not None or self.date_to is not None

    def find_days(self, timezones: Iterable[str], *, now: datetime) -> tuple[date, date]:
        """Return the first and the last day; without any, today in the zones of the accounts."""
        if self.is_range:
            return self._check_range(now)
        if self.day is None:
            return choose_days(now, list(timezones) or [UTC_NAME], 0)
        _check_reach("date", self.day, now)
        return self.day, self.day

    def _check_range(self, now: datetime) -> tuple[date, date]:
        if self.day is not None:
            raise make_field_error("date", "cannot be given together with dateFrom and dateTo")
        if self.date_from is None:
            raise make_field_error("dateFrom", "is required where dateTo is given")
        if self.date_to is None:
            raise make_field_error("dateTo", "is required where dateFrom is given")
        if self.date_to < self.date_from:
            raise make_field_error("dateTo", "must not be before dateFrom")
        if (self.date_to - self.date_from).days >= DAYS_MAX:
            raise make_field_error("dateFrom", f"must be less than {DAYS_MAX} days before dateTo")
        _check_reach("dateFrom", self.date_from, now)
        _check_reach("dateTo", self.date_to, now)
        return self.date_from, self.date_to


class SyncAnswer(Answer):
    """The jobs of a sync; `enqueued` counts those that were not waiting or running already."""

    enqueued: int
    job_ids: list[str]


class JobAnswer(Answer):
    """A job; `progress` is the share that is done, `attempts` the number of attempts started."""

    id: str
    seller_id: UUID
    level: Level
    date_from: date
    date_to: date
    origin: Origin
    state: JobState
    attempts: int
    progress: float
    error: str | None
    created_at: datetime
    ended_at: datetime | None


class JobsQuery(SellerListQuery):
    """Filters for the list of jobs."""

    SORTABLE: ClassVar = frozenset({"created_at"})

    state: JobState | None = None


QueueOfTheApp = Annotated[StatsQueue, depend_on("stats_queue")]

router = make_router(PREFIX, "ads manager", 400, 401, 403, 404, 409, 413, 503)


@router.post("/sync", status_code=status.HTTP_202_ACCEPTED)
async def sync_by_hand(
    writer: SellerWrites, pool: Database, queue: QueueOfTheApp, now: Now, body: SyncBody | None = None
) -> SyncAnswer:
    """Fetch the statistics of a seller now, one job per level; a range of days is a backfill.

    Where a job that waits or runs fetches the days anyway, its id is returned and nothing is enqueued.
    """
    body = body or SyncBody()
    seller_id = writer.find_owner(body.seller_id)
    async with pool.acquire() as connection:
        timezones = await load_timezones(connection, seller_id)
    if timezones is None:
        raise _make_wrong_error("names no advertiser")
    first, last = body.find_days(timezones, now=now)
    jobs = build_jobs(seller_id, first, last, Origin.BACKFILL if body.is_range else Origin.MANUAL)
    put = await queue.put_missing(jobs, seller_id)
    return SyncAnswer(enqueued=put.enqueued, job_ids=put.ids)


@router.get("/jobs")
async def list_sync_jobs(
    query: Annotated[JobsQuery, Query()], scope: SellerReads, queue: QueueOfTheApp
) -> Page[JobAnswer]:
    """List the jobs of a seller, in one state or in all."""
    jobs: list[ListedJob] = []
    for state in JobState if query.state is None else (query.state,):
        jobs += await queue.list_jobs(state, seller_id=scope.account_id)
    # A job may change its state between two reads and be listed twice.
    jobs = list({job.id: job for job in jobs if find_sync(job.data) is not None}.values())
    jobs.sort(key=lambda job: (job.put_at, job.id), reverse=query.page_request.is_descending)
    begin = (query.page - 1) * query.page_size
    shown = [_encode_job(job) for job in jobs[begin : begin + query.page_size]]
    return build_page(JobAnswer, Listed(items=shown, total_count=len(jobs)), query)


@router.get("/jobs/{job_id}")
async def read_sync_job(job_id: str, scope: SellerReads, queue: QueueOfTheApp) -> JobAnswer:
    """Return one job."""
    return _encode_job(await _find_job(queue, scope, job_id))


@router.post("/jobs/{job_id}/retry", status_code=status.HTTP_202_ACCEPTED)
async def retry_sync_job(job_id: str, scope: SellerActs, queue: QueueOfTheApp) -> JobAnswer:
    """Retry a failed job, with all its attempts."""
    job = await _find_job(queue, scope, job_id)
    if job.state is not JobState.FAILED or not await queue.retry(job_id):
        raise ConflictError(
            f"The job has not failed: it is {job.state}. There is nothing to retry.",
            code="SYNC_JOB_NOT_FAILED",
        )
    return _encode_job(await _find_job(queue, scope, job_id))


async def _find_job(queue: StatsQueue, scope: Scope, job_id: str) -> ListedJob:
    assert scope.account_id is not None, "a scope of a seller has its account"
    job = await queue.find(job_id) if belongs_to(job_id, scope.account_id) else None
    if job is None or find_sync(job.data) is None:
        raise NotFoundError(
            "There is no job with this id. Only the last 100 finished jobs are kept.",
            code="SYNC_JOB_NOT_FOUND",
        )
    return job


def _encode_job(job: ListedJob) -> JobAnswer:
    sync = msgspec.structs.asdict(parse_job(job.data))
    return JobAnswer.model_validate({**msgspec.structs.asdict(job), **sync, "created_at": job.put_at})
