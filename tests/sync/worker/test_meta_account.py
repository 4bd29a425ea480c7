"""An account on Meta: connected, expired and connected again, with a local server."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
import structlog

from adloom.core.clock import ManualClock
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.postgres import Pool, open_pool
from adloom.sync.jobs import SYNC_STATS
from adloom.sync.processor import SyncProcessor
from adloom.sync.providers.http_client import open_http_client
from adloom.sync.providers.meta import MetaProvider
from adloom.sync.scheduler import SyncScheduler
from adloom.sync.words import Level, Platform
from tests.support.for_each import for_each
from tests.sync.providers.meta_server import TOKEN, MetaServer, running_meta
from tests.sync.shop import DAY, Seller, a_job, a_processor, a_seller, daily
from tests.sync.worker.test_sync_scheduler import TICK, FakeQueue

CIPHER = SecretCipher(["a-secret-of-the-tests-that-is-long-enough"])
EXPIRED_AT = "SELECT credentials_expired_at FROM sync.ad_accounts"


@pytest.fixture
async def seller(pool: Pool) -> Seller:
    account = {"platform": "meta", "external_id": "77"}
    return await a_seller(pool, campaigns=1, account=account, campaign={"external_campaign_id": "c1"})


@pytest.fixture
async def meta_and_processor(pool: Pool) -> AsyncIterator[tuple[MetaServer, SyncProcessor]]:
    with running_meta() as meta:
        async with open_http_client() as http:
            provider = MetaProvider(http, url=meta.url, requests_per_second=1_000)
            yield meta, a_processor(pool, providers={Platform.META: provider}, cipher=CIPHER)


async def connect(pool: Pool, seller: Seller, token: str) -> None:
    sealed = CIPHER.encrypt(token, belongs_to=str(seller.accounts[0]))
    await pool.execute(
        "UPDATE sync.ad_accounts SET credentials = $1 WHERE public_id = $2", sealed, seller.accounts[0]
    )


async def test_an_expired_account_is_marked_and_fetched_again_when_reconnected(
    pool: Pool, seller: Seller, meta_and_processor: tuple[MetaServer, SyncProcessor]
) -> None:
    meta, processor = meta_and_processor
    meta.has("campaign", "c1", DAY, spend="12.34", impressions="1000", account_currency="USD")
    job = a_job(seller)
    attempt = JobAttempt(name=SYNC_STATS, id=job.id, data=job.payload, attempt=1)
    with structlog.testing.capture_logs() as logs:
        await connect(pool, seller, TOKEN)
        await processor.handle(attempt)
        row = await daily(pool, seller.campaigns[0])
        assert row is not None
        assert (row["spend"], row["impressions"]) == (Decimal("12.34"), 1000)

        await connect(pool, seller, "a-token-that-was-revoked")
        with pytest.raises(PermanentJobError):
            await processor.handle(attempt)
        assert await pool.fetchval(EXPIRED_AT) is not None
        assert await daily(pool, seller.campaigns[0]) == row

        await connect(pool, seller, TOKEN)
        await processor.handle(attempt)
        assert await pool.fetchval(EXPIRED_AT) is None

    assert TOKEN not in repr(logs)
    assert "a-token-that-was-revoked" not in repr(logs)
    assert processor.tally.providers[Platform.META].outcomes | {"done": 2, "expired": 1} == (
        processor.tally.providers[Platform.META].outcomes
    )


@for_each(
    ("zone", "now"),
    [
        ("Pacific/Auckland", "2026-09-26T12:30"),  # It is tomorrow there; an hour is left out that night.
        ("Pacific/Auckland", "2026-04-04T11:30"),  # Just tomorrow; an hour comes twice.
        ("Pacific/Honolulu", "2026-11-02T09:30"),  # It is yesterday there.
        ("America/New_York", "2026-11-01T04:30"),  # An hour comes twice.
        ("America/Santiago", "2026-09-09T12:30"),  # The first of the days has no midnight.
    ],
)
async def test_the_days_of_an_account_are_those_of_its_zone(zone: str, now: str, database_url: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    today = moment.astimezone(ZoneInfo(zone)).date()
    recent = [today + timedelta(days=number) for number in range(-5, 3)]
    queue, clock = FakeQueue(), ManualClock(moment)
    # As on a server that is in this zone, too.
    async with open_pool(f"{database_url}?timezone={zone}", size_max=3) as pool, open_http_client() as http:
        account = {"platform": "meta", "external_id": "77", "timezone": zone}
        seller = await a_seller(pool, campaigns=1, account=account, campaign={"external_campaign_id": "c1"})
        await connect(pool, seller, TOKEN)
        await SyncScheduler(pool, queue, clock, lookback_days=3).handle(TICK)
        [job] = [one for one in queue.jobs if one.seller_id == seller.id and one.level is Level.CAMPAIGN]
        with running_meta() as meta:
            for day in recent:
                meta.has("campaign", "c1", day, spend=str(day.day))
            provider = MetaProvider(http, url=meta.url, requests_per_second=1_000)
            await a_processor(pool, clock=clock, providers={Platform.META: provider}, cipher=CIPHER).sync(job)

        by_day = "SELECT stat_date, spend FROM sync.ad_stats_daily WHERE seller_id = $1 ORDER BY 1"
        pages = "SELECT stat_date, ad_spend FROM sync.sellpage_stats_daily WHERE seller_id = $1 ORDER BY 1"
        found = [[tuple(row) for row in await pool.fetch(asked, seller.id)] for asked in (by_day, pages)]

    assert found == [[(day, day.day) for day in recent[2:6]]] * 2
