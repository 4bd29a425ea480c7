"""An account on Meta: connected, expired and connected again, with a local server."""

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import structlog

from adloom.runtime.encryption import SecretCipher
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import SYNC_STATS
from adloom.sync.processor import SyncProcessor
from adloom.sync.providers.http_client import open_http_client
from adloom.sync.providers.meta import MetaProvider
from adloom.sync.words import Platform
from tests.sync.providers.meta_server import TOKEN, MetaServer, running_meta
from tests.sync.shop import DAY, Seller, a_job, a_processor, a_seller, daily

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
    await pool.execute("UPDATE sync.ad_accounts SET credentials = $1", sealed)


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
