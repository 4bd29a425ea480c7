"""Jobs of stats sync: what is fetched, what is kept when an account fails, and what is logged."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
import structlog

from adloom.core.clock import ManualClock
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import SYNC_STATS, Origin, SyncJob
from adloom.sync.processor import choose_backoff
from adloom.sync.providers.mock import MockProvider
from adloom.sync.providers.protocol import (
    CredentialsExpiredError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
    StatRow,
    StatsRequest,
    ThrottledError,
)
from adloom.sync.words import Level, Platform, Semantics
from tests.sync.builders import a_row
from tests.sync.shop import DAY, NOW, Seller, a_job, a_processor, a_seller, daily, insert, tables

TOKEN = "a-token-that-nobody-may-see"
AN_HOUR = timedelta(hours=1)


class Failing:
    """Returns a page, and then fails."""

    platform = Platform.META
    semantics = Semantics.SNAPSHOT

    def __init__(self, error: ProviderError | None) -> None:
        self.error = error
        self.asked: list[StatsRequest] = []

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        self.asked.append(request)
        yield [a_row(entity, request.first, spend=Decimal(1)) for entity in request.entities]
        if self.error is not None:
            raise self.error


class Hourly:
    """Returns each part of a day once more, as a delta."""

    platform = Platform.MOCK
    semantics = Semantics.DELTA

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        for hour in ("00", "01"):
            yield [a_row(entity, request.first, part=hour, spend=Decimal(2)) for entity in request.entities]


async def with_meta_account(pool: Pool, seller: Seller, **fields: Any) -> Any:
    key = await pool.fetchval("SELECT id FROM advertisers WHERE public_id = $1", seller.id)
    given = {"advertiser_id": key, "name": "meta", "platform": "meta"} | fields
    account, account_id = await insert(pool, "sync.ad_accounts", **given)
    page = await pool.fetchval("SELECT id FROM sync.sellpages WHERE advertiser_id = $1", key)
    campaign = {"advertiser_id": key, "ad_account_id": account, "sellpage_id": page, "name": "m", "budget": 1}
    _, campaign_id = await insert(pool, "sync.campaigns", **campaign)
    return account_id, campaign_id


def as_attempt(job: SyncJob, attempt: int = 1, **given: Any) -> JobAttempt:
    return JobAttempt(name=SYNC_STATS, id=job.id, data=job.payload, attempt=attempt, **given)


async def test_a_job_logs_the_line_of_the_specification(pool: Pool) -> None:
    seller = await a_seller(pool)
    job = a_job(seller)

    with structlog.testing.capture_logs() as logs:
        await a_processor(pool).handle(as_attempt(job))

    assert logs == [
        {
            "event": "stats-sync-complete",
            "log_level": "info",
            "jobId": f"sync_{seller.id}_2026-02-19_2026-02-19_CAMPAIGN",
            "sellerId": str(seller.id),
            "statLevel": "CAMPAIGN",
            "date": "2026-02-19",
            "rawInserted": 2,
            "dailyUpserted": 2,
            "sellpageUpserted": 1,
            "durationMs": 0,
        }
    ]


async def test_a_failure_is_logged_and_retried(pool: Pool) -> None:
    seller = await a_seller(pool, account={"platform": "meta"})
    failing = Failing(ProviderUnavailableError("Connection timeout"))
    processor = a_processor(pool, providers={Platform.META: failing})

    with structlog.testing.capture_logs() as logs, pytest.raises(ProviderUnavailableError):
        await processor.handle(as_attempt(a_job(seller), attempt=2))

    (line,) = logs
    assert line == {
        "event": "stats-sync-failed",
        "log_level": "error",
        "jobId": f"sync_{seller.id}_2026-02-19_2026-02-19_CAMPAIGN",
        "sellerId": str(seller.id),
        "attempt": 2,
        "error": "Connection timeout",
    }
    assert processor.tally.providers[Platform.META].outcomes["unavailable"] == 1


async def test_rows_fetched_before_a_failure_count(pool: Pool) -> None:
    seller = await a_seller(pool, campaigns=1, account={"platform": "meta"})
    processor = a_processor(pool, providers={Platform.META: Failing(ProviderUnavailableError("away"))})

    with pytest.raises(ProviderUnavailableError):
        await processor.sync(a_job(seller))

    row = await daily(pool, seller.campaigns[0])
    assert row is not None
    assert row["spend"] == 1


class Corrected(Failing):
    """Returns the given spend of each day, and leaves out days without any, as Meta does."""

    def __init__(self, *spends: Sequence[int], error: ProviderError | None = None) -> None:
        super().__init__(error)
        self.spends = iter(spends)

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        spends = next(self.spends)
        for entity in request.entities:
            days = (request.first + timedelta(days=number) for number in range(len(spends)))
            yield [
                a_row(entity, day, spend=Decimal(spend), impressions=1)
                for day, spend in zip(days, spends, strict=True)
                if spend
            ]
        if self.error is not None:
            raise self.error


class ByExternalId(Failing):
    """Returns the same spend for each external id, once, as Meta does."""

    def __init__(self, spend: int) -> None:
        super().__init__(None)
        self.spend = Decimal(spend)

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        entities = {entity.external_id: entity for entity in request.entities}
        yield [a_row(entity, request.first, spend=self.spend) for entity in entities.values()]


@pytest.mark.parametrize(("error", "kept"), [(None, 0), (ProviderUnavailableError("away"), 4)])
async def test_what_a_platform_leaves_out_after_a_correction_is_nothing(
    pool: Pool, error: ProviderError | None, kept: int
) -> None:
    seller = await a_seller(
        pool, campaigns=1, account={"platform": "meta"}, campaign={"external_campaign_id": "c1"}
    )
    provider = Corrected((3, 4), (5, 0), (5, 0))
    clock = ManualClock(NOW)
    processor = a_processor(pool, providers={Platform.META: provider}, clock=clock)
    two_days = a_job(seller, date_to=DAY + timedelta(days=1))
    await processor.sync(two_days)
    outcomes: list[int] = []

    provider.error = error
    for _ in range(2):
        clock.advance(timedelta(minutes=5))
        with contextlib.suppress(ProviderUnavailableError):
            outcomes.append((await processor.sync(two_days)).raw_inserted)

    found = [await daily(pool, seller.campaigns[0], day) for day in (DAY, DAY + timedelta(days=1))]
    assert [None if one is None else one["spend"] for one in found] == [5, kept]
    # The second time there is nothing left to correct.
    assert outcomes == ([] if error else [2, 1])


async def test_what_is_not_linked_any_more_keeps_its_figures(pool: Pool) -> None:
    fields = {"external_campaign_id": "c1"}
    seller = await a_seller(pool, campaigns=1, account={"platform": "meta"}, campaign=fields)
    processor = a_processor(pool, providers={Platform.META: Corrected((3,), (0,))})
    await processor.sync(a_job(seller))
    await pool.execute("UPDATE sync.campaigns SET external_campaign_id = NULL")

    await processor.sync(a_job(seller))

    row = await daily(pool, seller.campaigns[0])
    assert row is not None
    assert row["spend"] == 3


async def test_what_is_entered_twice_for_a_platform_counts_once(pool: Pool) -> None:
    """An ad set has moved to another campaign here, and was not deleted in the one before."""
    with_id = {"external_campaign_id": "c1"}
    seller = await a_seller(pool, campaigns=1, adsets=0, account={"platform": "meta"}, campaign=with_id)
    before = await pool.fetchrow("SELECT * FROM sync.campaigns")
    assert before is not None
    own = {"advertiser_id": before["advertiser_id"], "name": "a"}
    campaign = {**own, "ad_account_id": before["ad_account_id"], "sellpage_id": before["sellpage_id"]}
    other, _ = await insert(pool, "sync.campaigns", **campaign, budget=1, external_campaign_id="c2")
    clock, job = ManualClock(NOW), a_job(seller, level=Level.ADSET)
    processor = a_processor(pool, providers={Platform.META: ByExternalId(7)}, clock=clock)

    for campaign_id in (before["id"], other):
        await insert(pool, "sync.adsets", **own, campaign_id=campaign_id, external_adset_id="x")
        clock.advance(timedelta(minutes=5))
        await processor.sync(job)

        assert await pool.fetchval("SELECT sum(spend) FROM sync.ad_stats_daily") == 7


async def test_a_failing_account_does_not_block_the_others(pool: Pool) -> None:
    seller = await a_seller(pool)
    await with_meta_account(pool, seller)
    providers = {Platform.MOCK: MockProvider(), Platform.META: Failing(ProviderUnavailableError("away"))}

    with pytest.raises(ProviderUnavailableError):
        await a_processor(pool, providers=providers).sync(a_job(seller))

    assert await daily(pool, seller.campaigns[0]) is not None
    assert await pool.fetchval("SELECT count(*) FROM sync.freshness") == 0


async def test_expired_credentials_mark_the_account_and_are_not_retried(pool: Pool) -> None:
    seller = await a_seller(pool, account={"platform": "meta"})
    failing = Failing(CredentialsExpiredError("Meta rejects the access token."))
    processor = a_processor(pool, providers={Platform.META: failing})

    with pytest.raises(PermanentJobError):
        await processor.handle(as_attempt(a_job(seller)))

    row = await pool.fetchrow("SELECT * FROM sync.ad_accounts")
    assert row is not None
    assert row["credentials_expired_at"] == NOW
    assert row["credentials_problem"] == "Meta rejects the access token."


async def test_the_schedule_skips_accounts_with_expired_credentials(pool: Pool) -> None:
    seller = await a_seller(pool)
    await with_meta_account(pool, seller, credentials_expired_at=NOW, credentials_problem="expired")
    failing = Failing(None)
    providers = {Platform.MOCK: MockProvider(), Platform.META: failing}

    outcome = await a_processor(pool, providers=providers).sync(a_job(seller, origin=Origin.SCHEDULE))

    assert failing.asked == []
    assert outcome.raw_inserted == 2


async def test_a_manual_sync_tries_expired_credentials_and_clears_the_mark_if_they_work(pool: Pool) -> None:
    expired = {"platform": "meta", "credentials_expired_at": NOW, "credentials_problem": "expired"}
    seller = await a_seller(pool, account=expired)

    await a_processor(pool, providers={Platform.META: Failing(None)}).sync(a_job(seller))

    assert await pool.fetchval("SELECT credentials_expired_at FROM sync.ad_accounts") is None


async def test_credentials_replaced_during_a_sync_are_not_marked(pool: Pool) -> None:
    seller = await a_seller(pool, account={"platform": "meta"})

    class Replacing(Failing):
        async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
            await pool.execute("UPDATE sync.ad_accounts SET credentials = 'others'")
            async for page in super().fetch(request):
                yield page

    processor = a_processor(pool, providers={Platform.META: Replacing(CredentialsExpiredError("old"))})

    with pytest.raises(CredentialsExpiredError):
        await processor.sync(a_job(seller))

    assert await pool.fetchval("SELECT credentials_expired_at FROM sync.ad_accounts") is None


async def test_credentials_are_decrypted_only_for_the_provider(pool: Pool) -> None:
    cipher = SecretCipher(["a-secret-of-the-tests-that-is-long-enough"])
    seller = await a_seller(pool, account={"platform": "meta"})
    encrypted = cipher.encrypt(TOKEN, belongs_to=str(seller.accounts[0]))
    await pool.execute("UPDATE sync.ad_accounts SET credentials = $1", encrypted)
    failing = Failing(ProviderRefusedError("no"))
    processor = a_processor(pool, providers={Platform.META: failing}, cipher=cipher)

    with structlog.testing.capture_logs() as logs, pytest.raises(PermanentJobError) as raised:
        await processor.handle(as_attempt(a_job(seller)))

    assert failing.asked[0].account.credentials == TOKEN
    assert TOKEN not in repr(failing.asked) + repr(logs) + repr(raised.value)
    assert TOKEN.encode() not in encrypted


@pytest.mark.parametrize("cipher", [None, SecretCipher(["another-secret-of-the-tests-long-enough"])])
async def test_undecryptable_credentials_are_not_retried(pool: Pool, cipher: SecretCipher | None) -> None:
    seller = await a_seller(pool, account={"platform": "meta", "credentials": b"\x01" + bytes(80)})
    processor = a_processor(pool, providers={Platform.META: Failing(None)}, cipher=cipher)

    with pytest.raises(PermanentJobError, match="ADLOOM_SECRET"):
        await processor.handle(as_attempt(a_job(seller)))


async def test_a_seller_without_entities_is_done_immediately(pool: Pool) -> None:
    seller = await a_seller(pool, campaigns=0)

    outcomes = [await a_processor(pool).sync(a_job(seller, level)) for level in Level]

    assert all(one.raw_inserted == 0 for one in outcomes)


async def test_an_inactive_account_is_not_fetched(pool: Pool) -> None:
    seller = await a_seller(pool, account={"is_active": False})

    assert (await a_processor(pool).sync(a_job(seller))).raw_inserted == 0


async def test_one_seller_never_writes_the_figures_of_another(pool: Pool) -> None:
    one, other = await a_seller(pool), await a_seller(pool)

    await a_processor(pool).sync(a_job(one))

    assert await daily(pool, other.campaigns[0]) is None
    assert {row[0] for row in (await tables(pool))["raw"]} == {one.id}


async def test_repeated_deltas_change_nothing(pool: Pool) -> None:
    seller = await a_seller(pool, campaigns=1)
    clock = ManualClock(NOW)
    processor = a_processor(pool, clock=clock, mock=Hourly())

    await processor.sync(a_job(seller))
    clock.advance(timedelta(minutes=5))
    again = await processor.sync(a_job(seller))

    row = await daily(pool, seller.campaigns[0])
    assert row is not None
    assert row["spend"] == 4
    assert (again.raw_inserted, again.daily_upserted) == (2, 0)


async def test_a_long_range_reports_its_progress(pool: Pool) -> None:
    seller = await a_seller(pool, campaigns=1)
    reported: list[float] = []

    async def report(share: float) -> None:
        reported.append(share)

    job = a_job(seller, date_from=DAY - timedelta(days=19))
    await a_processor(pool).handle(as_attempt(job, report_progress=report))

    assert reported == [7 / 20, 14 / 20, 1.0]


async def test_an_old_range_does_not_update_a_sellers_freshness(pool: Pool) -> None:
    seller = await a_seller(pool)
    processor = a_processor(pool)

    await processor.sync(a_job(seller, date_from=date(2025, 1, 1), date_to=date(2025, 1, 2)))
    assert await pool.fetchval("SELECT count(*) FROM sync.freshness") == 0

    await processor.sync(a_job(seller))
    assert await pool.fetchval("SELECT newest_day FROM sync.freshness") == DAY


def test_retries_wait_one_five_and_fifteen_minutes() -> None:
    error = ProviderUnavailableError("away")

    assert [choose_backoff(attempt, error) for attempt in (1, 2, 3)] == [
        timedelta(minutes=n) for n in (1, 5, 15)
    ]


def test_a_throttled_job_waits_as_long_as_the_platform_asks() -> None:
    error = ThrottledError("patience", retry_after=timedelta(minutes=19))

    assert choose_backoff(1, error) == timedelta(minutes=19)


@pytest.mark.parametrize(
    ("other", "minutes"),
    [
        (None, 1),
        (ProviderUnavailableError("u"), 1),
        (ThrottledError("t", retry_after=timedelta(minutes=9)), 9),
        (CredentialsExpiredError("e"), 60),
    ],
)
async def test_a_throttled_account_does_not_hold_up_those_that_can_be_asked(
    pool: Pool, other: ProviderError | None, minutes: int
) -> None:
    seller = await a_seller(pool)
    await with_meta_account(pool, seller)
    throttled = Failing(ThrottledError("t", retry_after=AN_HOUR))
    processor = a_processor(pool, providers={Platform.MOCK: Failing(other), Platform.META: throttled})

    with pytest.raises(ProviderError) as raised:
        await processor.sync(a_job(seller))

    assert choose_backoff(1, raised.value) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((CredentialsExpiredError("e"), ProviderUnavailableError("u")), ProviderUnavailableError),
        ((CredentialsExpiredError("e"), ThrottledError("t", retry_after=AN_HOUR)), ThrottledError),
        ((ThrottledError("t", retry_after=AN_HOUR), ProviderUnavailableError("u")), ProviderUnavailableError),
    ],
)
async def test_a_job_is_retried_while_one_account_may_recover(
    pool: Pool, errors: tuple[ProviderError, ProviderError], expected: type[ProviderError]
) -> None:
    seller = await a_seller(pool)
    await with_meta_account(pool, seller)
    providers = {Platform.MOCK: Failing(errors[0]), Platform.META: Failing(errors[1])}

    with pytest.raises(expected):
        await a_processor(pool, providers=providers).sync(a_job(seller))
