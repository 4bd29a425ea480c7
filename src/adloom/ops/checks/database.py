"""PostgreSQL: whether it answers, its version, its clock, its schema."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from adloom.core.clock import Clock
from adloom.core.errors import describe_error
from adloom.ops.checks.finding import Finding, fail, grade, report_ok, warn
from adloom.resource.changes import read_version
from adloom.runtime.failover.primary import PrimaryConnector
from adloom.runtime.postgres import Connection
from adloom.runtime.schema import describe_database, read_current_revision, read_newest_revision

CONNECT_SECONDS_MAX = 5.0
VERSION_MIN = 150_000
CLOCK_GOOD = timedelta(seconds=1)
CLOCK_MAX = timedelta(seconds=30)


async def connect(database_url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """Open a connection, or raise one of `POSTGRES_AWAY`."""
    return await PrimaryConnector(database_url).connect(command_timeout=CONNECT_SECONDS_MAX)


def report_unreachable(database_url: str, error: Exception) -> Finding:
    return fail(
        "PostgreSQL",
        f"{describe_database(database_url)} does not answer: {describe_error(error)}",
        "see that it runs and that DATABASE_URL is right; the embedded one logs to logs/postgres.log",
    )


async def check_version(connection: Connection) -> Finding:
    number = int(await connection.fetchval("SHOW server_version_num"))
    return judge_version(number, await connection.fetchval("SHOW server_version"))


def judge_version(number: int, name: str) -> Finding:
    """Judge the server's version: `NULLS NOT DISTINCT` came with 15."""
    if number < VERSION_MIN:
        return fail("PostgreSQL", f"version {name}", "upgrade the server to PostgreSQL 15 or newer")
    return report_ok("PostgreSQL", f"answers, version {name}")


async def check_clock(connection: Connection, clock: Clock) -> Finding:
    """Compare the server's clock with ours, allowing for half the round trip."""
    asked_at = clock.now()
    answered_at: datetime = await connection.fetchval("SELECT clock_timestamp()")
    return judge_clock(answered_at - (asked_at + (clock.now() - asked_at) / 2))


def judge_clock(difference: timedelta) -> Finding:
    """Judge how far two clocks are apart: schedules and days depend on both."""
    detail = f"the database is {difference.total_seconds():+.3f} s from this machine"
    remedy = "have both machines keep time by NTP (`timedatectl set-ntp true`)"
    away = abs(difference)
    return grade("Clock", detail, remedy, is_bad=away > CLOCK_MAX, is_good=away <= CLOCK_GOOD)


async def check_schema(connection: Connection) -> Finding:
    return judge_schema(await read_current_revision(connection), read_newest_revision())


def judge_schema(current: str | None, newest: str) -> Finding:
    if current == newest:
        return report_ok("Migrations", f"revision {current}")
    if current is not None and current > newest:
        return fail(
            "Migrations", f"revision {current} is newer than this program's {newest}", "upgrade adloom"
        )
    return fail("Migrations", f"revision {current or 'none'}, newest is {newest}", "run `adloom migrate`")


def judge_stopped_schema(current: str, known: Sequence[str]) -> Finding:
    """Judge the schema of a database that does not run, by what the last start has noted."""
    if current > known[-1]:
        return judge_schema(current, known[-1])
    pending = [revision for revision in known if revision > current]
    if not pending:
        return report_ok("Migrations", f"revision {current}")
    return warn(
        "Migrations",
        f"revision {current}; not applied yet: {', '.join(pending)}",
        "back up, then start `adloom up`, which applies them",
    )


async def read_catalog_version(connection: Connection) -> int | None:
    """Return None if there is no catalog yet."""
    try:
        return await read_version(connection)
    except asyncpg.UndefinedTableError:
        return None
