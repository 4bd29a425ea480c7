"""Runs the jobs of stats sync: fetch from the platforms, store, add up.

The accounts of a seller are fetched one after another. If one fails, the others are still fetched and added up; the job
then fails at the end, and is retried if that can help. A crash loses nothing: the next run recomputes every step.
"""

import bisect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import describe_error
from adloom.runtime.encryption import DecryptionError, SecretCipher
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import Secret
from adloom.sync.figures import Figures
from adloom.sync.jobs import Origin, SyncJob, compute_backoff, find_sync, list_days, split_days
from adloom.sync.pipeline import entity_store, store
from adloom.sync.pipeline.entity_store import SyncAccount
from adloom.sync.pipeline.store import FetchSource, SyncKey
from adloom.sync.providers.protocol import (
    REASON_LENGTH_MAX,
    CredentialsExpiredError,
    Entity,
    ProviderError,
    ProviderRefusedError,
    StatProvider,
    StatRow,
    StatsRequest,
    ThrottledError,
)
from adloom.sync.words import Level, Platform

OUTCOMES: Final[tuple[str, ...]] = ("done", "expired", "throttled", "unavailable", "refused", "failed")
# Fetches of one account: from the mock in this process to a platform with many pages.
SECONDS_BOUNDS: Final = (0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0)


class ProviderTally:
    """Fetches of one provider: results, rows and durations."""

    def __init__(self) -> None:
        self.rows = 0
        self.outcomes: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
        self.seconds_sum = 0.0
        # A histogram: fetches up to each bound, and last those above all bounds.
        self.within = [0] * (len(SECONDS_BOUNDS) + 1)

    def record_seconds(self, seconds: float) -> None:
        self.seconds_sum += seconds
        self.within[bisect.bisect_left(SECONDS_BOUNDS, seconds)] += 1


class SyncTally:
    """Counters of the syncs in this process."""

    def __init__(self, platforms: Iterable[Platform]) -> None:
        self.providers = {platform: ProviderTally() for platform in platforms}
        self.daily_changed = 0
        self.sellpages_changed = 0


# After each part the job reports progress and frees memory.
PART_DAYS_MAX: Final = 7
# Account time zones differ from ours by up to a day: a range that ends yesterday may be up to date.
ONE_DAY: Final = timedelta(days=1)

log: structlog.stdlib.BoundLogger = structlog.get_logger()

ReportProgress = Callable[[float], Awaitable[None]]


class SyncOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows a sync has written."""

    raw_inserted: int = 0
    daily_upserted: int = 0
    sellpage_upserted: int = 0


class SyncProcessor:
    """Runs sync jobs."""

    def __init__(
        self,
        pool: Pool,
        providers: Mapping[Platform, StatProvider],
        *,
        clock: Clock,
        cipher: SecretCipher | None = None,
    ) -> None:
        self._pool = pool
        self._providers = providers
        self._clock = clock
        self._cipher = cipher
        self.tally = SyncTally(providers)

    async def handle(self, job: JobAttempt) -> None:
        """Run a job, and log one line about it."""
        if (sync := find_sync(job.data)) is None:
            log.error("stats-sync-failed", jobId=job.id, error="no data of a sync")
            raise PermanentJobError("The job has no data of a sync: another program has put it.")
        started_at = self._clock.now()
        try:
            outcome = await self.sync(sync, report=job.report_progress)
        except Exception as error:
            reason = _describe(error)
            log.error(  # noqa: TRY400 - one line; the worker leaves the trace of what is buried
                "stats-sync-failed",
                jobId=job.id,
                sellerId=str(sync.seller_id),
                attempt=job.attempt,
                error=reason,
            )
            if isinstance(error, ProviderError) and not error.is_worth_retrying:
                raise PermanentJobError(reason) from None
            raise
        log.info(
            "stats-sync-complete",
            jobId=job.id,
            sellerId=str(sync.seller_id),
            statLevel=sync.level.value,
            date=_format_days(sync),
            rawInserted=outcome.raw_inserted,
            dailyUpserted=outcome.daily_upserted,
            sellpageUpserted=outcome.sellpage_upserted,
            durationMs=round((self._clock.now() - started_at).total_seconds() * 1000),
        )

    async def sync(self, job: SyncJob, *, report: ReportProgress | None = None) -> SyncOutcome:
        """Fetch and add up; raise at the end if an account could not be fetched."""
        accounts = await self._load_accounts(job)
        await store.ensure_months(self._pool, list(list_days(job.date_from, job.date_to)))
        errors: dict[UUID, ProviderError] = {}
        raw = daily = sellpages = 0
        for first, last in split_days(job.date_from, job.date_to, days_max=PART_DAYS_MAX):
            key = msgspec.structs.replace(build_key(job), first=first, last=last)
            for account in accounts:
                if account.id not in errors:
                    try:
                        raw += await self._fetch(key, account)
                    except ProviderError as error:
                        errors[account.id] = error
            daily += await store.add_up_days(self._pool, key, now=self._clock.now())
            if job.level is Level.CAMPAIGN:
                sellpages += await store.add_up_sellpages(self._pool, key, now=self._clock.now())
            if report is not None:
                await report((last - job.date_from + ONE_DAY) / (job.date_to - job.date_from + ONE_DAY))
        self.tally.daily_changed += daily
        self.tally.sellpages_changed += sellpages
        if errors:
            raise _choose_error(list(errors.values()), is_all=len(errors) == len(accounts))
        if job.date_to >= self._clock.now().date() - ONE_DAY:
            await store.record_freshness(self._pool, build_key(job), now=self._clock.now())
        return SyncOutcome(raw_inserted=raw, daily_upserted=daily, sellpage_upserted=sellpages)

    async def _load_accounts(self, job: SyncJob) -> list[SyncAccount]:
        """Return the accounts to fetch; scheduled jobs skip accounts whose credentials have expired."""
        found = await entity_store.load_accounts(self._pool, job.seller_id)
        if job.origin is Origin.SCHEDULE:
            return [account for account in found if account.credentials_expired_at is None]
        return found

    async def _fetch(self, key: SyncKey, account: SyncAccount) -> int:
        """Fetch the rows of an account and append them, page by page."""
        entities = await entity_store.load_entities(self._pool, account.id, key.level)
        if not entities:
            return 0
        provider = self._providers.get(account.platform)
        if provider is None:
            raise ProviderRefusedError(f"There is no provider for the platform {account.platform}.")
        tally = self.tally.providers[account.platform]
        fetched = FetchSource(provider=provider.platform, semantics=provider.semantics, at=self._clock.now())
        count, outcome = 0, "failed"
        try:
            request = StatsRequest(
                seller_id=key.seller_id,
                account=msgspec.structs.replace(account, credentials=self._decrypt_credentials(account)),
                level=key.level,
                entities=entities,
                first=key.first,
                last=key.last,
            )
            seen: set[tuple[str, date]] = set()
            async for rows in provider.fetch(request):
                count += await store.append_raw(self._pool, key, fetched, rows)
                seen.update((row.external_entity_id, row.date_start) for row in rows)
            if account.platform is Platform.META:  # It leaves out days without any figures.
                count += await self._append_left_out(key, fetched, entities, seen)
            outcome = "done"
        except ProviderError as error:
            outcome = error.outcome
            if isinstance(error, CredentialsExpiredError):
                await self._mark_expired(account, error)
            raise
        finally:
            tally.rows += count
            tally.outcomes[outcome] += 1
            tally.record_seconds((self._clock.now() - fetched.at).total_seconds())
        if account.credentials_expired_at is not None:
            await entity_store.unmark_expired(self._pool, account, now=self._clock.now())
        return count

    async def _append_left_out(
        self, key: SyncKey, fetched: FetchSource, entities: Sequence[Entity], seen: set[tuple[str, date]]
    ) -> int:
        """Append zeros where there were figures, and a whole fetch has none any more.

        An external id may be entered twice. What was fetched by it is the other entity's, and not nothing.
        """
        names = {entity.id: entity.external_id for entity in entities if entity.external_id}
        rows = [
            StatRow(
                entity_id=entity_id,
                external_entity_id=names[entity_id],
                date_start=day,
                date_stop=day,
                figures=Figures(),
            )
            for entity_id, day in sorted(await store.load_days_with_figures(self._pool, key))
            if entity_id in names and (names[entity_id], day) not in seen
        ]
        return await store.append_raw(self._pool, key, fetched, rows) if rows else 0

    async def _mark_expired(self, account: SyncAccount, error: CredentialsExpiredError) -> None:
        log.warning(
            "ad_account_credentials_expired", account=str(account.id), platform=account.platform.value
        )
        problem = str(error)[:REASON_LENGTH_MAX]
        await entity_store.mark_expired(self._pool, account, problem, now=self._clock.now())

    def _decrypt_credentials(self, account: SyncAccount) -> Secret | None:
        if account.encrypted_credentials is None:
            return None
        if self._cipher is None:
            raise ProviderRefusedError("ADLOOM_SECRET is not set, so the credentials cannot be read.")
        try:
            return Secret(self._cipher.decrypt(account.encrypted_credentials, belongs_to=str(account.id)))
        except DecryptionError as error:
            raise ProviderRefusedError(str(error)) from None


def build_key(job: SyncJob) -> SyncKey:
    return SyncKey(seller_id=job.seller_id, level=job.level, first=job.date_from, last=job.date_to)


def choose_backoff(attempt: int, error: Exception) -> timedelta:
    return compute_backoff(attempt, error.retry_after if isinstance(error, ThrottledError) else timedelta())


def _choose_error(errors: list[ProviderError], *, is_all: bool) -> ProviderError:
    """Choose the error that the job fails with, by the account that can be asked first; `is_all` if none was fetched.

    A provider does not ask for a throttled account before its time, so the others need not wait for it.
    """
    retried = [error for error in errors if error.is_worth_retrying]
    waiting = [error for error in retried if isinstance(error, ThrottledError)]
    if not waiting or len(waiting) < len(retried):
        return next((error for error in retried if not isinstance(error, ThrottledError)), errors[0])
    first = min(waiting, key=lambda error: error.retry_after)
    return first if is_all else ThrottledError(str(first), retry_after=timedelta())


def _describe(error: Exception) -> str:
    return describe_error(error)[:REASON_LENGTH_MAX]


def _format_days(job: SyncJob) -> str:
    """Return one day, or an ISO 8601 interval."""
    return str(job.date_from) if job.date_from == job.date_to else f"{job.date_from}/{job.date_to}"
