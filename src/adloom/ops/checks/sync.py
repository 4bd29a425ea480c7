"""Stats sync: accounts with expired credentials, and figures that are too old."""

from typing import Final

import asyncpg

from adloom.core.clock import Clock
from adloom.ops.checks.finding import Finding, report_ok, warn
from adloom.runtime.postgres import Connection
from adloom.sync.scheduler import STALE_AFTER, ExpiredAccount, SyncAges, load_ages, load_expired_accounts

NAMED_MAX: Final = 5


async def check_sync(connection: Connection, clock: Clock) -> list[Finding]:
    """Check the credentials of ad accounts, and the age of their figures."""
    try:
        expired = await load_expired_accounts(connection, count_max=NAMED_MAX + 1)
        found = await load_ages(connection, stale_before=clock.now() - STALE_AFTER)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return [warn("Stats sync", "there are no ad accounts yet", "run `adloom migrate`")]
    return [judge_accounts(expired), judge_ages(found)]


def judge_accounts(expired: list[ExpiredAccount]) -> Finding:
    if not expired:
        return report_ok("Ad accounts", "none has expired credentials")
    named = [
        f"{one.name} ({one.platform}, seller {one.seller_id}, since {one.expired_at:%Y-%m-%d %H:%M} UTC): {one.problem}"
        for one in expired[:NAMED_MAX]
    ]
    more = " …" if len(expired) > NAMED_MAX else ""
    return warn(
        "Ad accounts",
        f"credentials are no longer taken: {'; '.join(named)}{more}",
        "enter new ones: PATCH /api/ads-manager/accounts/{id} with `credentials`",
    )


def judge_ages(found: SyncAges) -> Finding:
    if not found.sellers:
        return report_ok("Stats sync", "no seller has campaigns to sync")
    sellers = "1 seller" if found.sellers == 1 else f"{found.sellers} sellers"
    if not found.stale:
        return report_ok("Stats sync", f"{sellers}, all synced within the hour")
    named = ", ".join(str(one) for one in found.stalest[:NAMED_MAX])
    more = " …" if found.stale > NAMED_MAX else ""
    return warn(
        "Stats sync",
        f"{found.stale} of {sellers} with figures older than an hour: {named}{more}",
        "see that a worker runs, and `adloom jobs list --queue stats-sync`",
    )
