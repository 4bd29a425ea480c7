"""The doctor's checks of stats sync: accounts to reconnect, and outdated figures."""

from datetime import timedelta

from adloom.core.clock import ManualClock
from adloom.ops.checks.finding import FindingState
from adloom.ops.checks.sync import check_sync
from adloom.runtime.postgres import Pool
from adloom.sync.words import Level
from tests.sync.shop import NOW, a_job, a_processor, a_seller


async def test_an_installation_without_ad_accounts_is_well(pool: Pool) -> None:
    async with pool.acquire() as connection:
        found = await check_sync(connection, ManualClock(NOW))

    assert [one.state for one in found] == [FindingState.OK, FindingState.OK]
    assert found[1].detail == "no seller has campaigns to sync"


async def test_expired_credentials_are_reported_with_account_and_remedy(pool: Pool) -> None:
    problem = "Meta no longer takes the access token."
    expired = {"platform": "meta", "credentials_expired_at": NOW, "credentials_problem": problem}
    seller = await a_seller(pool, account={"name": "Shoes", **expired})

    async with pool.acquire() as connection:
        accounts, _ = await check_sync(connection, ManualClock(NOW))

    assert accounts.state is FindingState.WARN
    assert "Shoes (meta" in accounts.detail
    assert problem in accounts.detail
    assert str(seller.id) in accounts.detail
    assert "PATCH /api/ads-manager/accounts/{id}" in accounts.remedy


async def test_figures_older_than_an_hour_are_reported_by_seller(pool: Pool) -> None:
    seller = await a_seller(pool)
    for level in Level:
        await a_processor(pool).sync(a_job(seller, level))

    async with pool.acquire() as connection:
        *_, fresh = await check_sync(connection, ManualClock(NOW + timedelta(minutes=59)))
        *_, stale = await check_sync(connection, ManualClock(NOW + timedelta(minutes=61)))

    assert fresh.state is FindingState.OK
    assert fresh.detail == "1 seller, all synced within the hour"
    assert stale.state is FindingState.WARN
    assert stale.detail == f"1 of 1 seller with figures older than an hour: {seller.id}"
