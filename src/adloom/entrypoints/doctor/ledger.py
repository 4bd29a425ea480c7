"""Valkey: whether it answers, its version, whether it keeps what it accepts, how far its readers are."""

from collections.abc import Mapping

import asyncpg

from adloom.core.errors import UnavailableError
from adloom.entrypoints.doctor.finding import Finding, fail, ok, warn
from adloom.ledger.stream import Lag, ValkeyLedger
from adloom.runtime.postgres import Connection
from adloom.runtime.valkey import Valkey

VERSION_MIN = 7
LAG_SECONDS_GOOD = 10.0
LAG_SECONDS_MAX = 300.0

CURSORS = "SELECT projection, entry_id FROM projection_cursors ORDER BY projection"


def unreachable(error: Exception) -> Finding:
    """Find that Valkey does not answer."""
    return fail(
        "Valkey",
        f"does not answer: {error or type(error).__name__}",
        "see that it runs and that REDIS_URL is right; the embedded one logs to valkey/valkey.log",
    )


async def server(valkey: Valkey) -> list[Finding]:
    """Look at the server's version, and at whether it keeps what it accepts."""
    facts: Mapping[str, object] = await valkey.info("everything")
    return [judged_version(facts), judged_durability(facts)]


def judged_version(facts: Mapping[str, object]) -> Finding:
    """Judge the version; a Valkey also tells which Redis it is equal to."""
    name, version = (
        ("Valkey", str(facts["valkey_version"]))
        if "valkey_version" in facts
        else ("Redis", str(facts.get("redis_version", "0")))
    )
    if int(version.partition(".")[0]) < VERSION_MIN:
        return fail("Valkey", f"{name} {version}", "upgrade the server to Valkey, or Redis 7 or newer")
    return ok("Valkey", f"answers, {name} {version}")


def judged_durability(facts: Mapping[str, object]) -> Finding:
    """Judge whether an accepted event survives a crash of the server."""
    if not int(str(facts.get("aof_enabled", 0))):
        return warn("Durability", "appendonly is off: a crash loses accepted events", "set `appendonly yes`")
    if facts.get("aof_last_write_status", "ok") != "ok":
        return fail(
            "Durability", "the last write of the append-only file failed", "see that its disk has room"
        )
    policy = str(facts.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        return warn("Durability", f"maxmemory-policy is {policy}", "set `maxmemory-policy noeviction`")
    return ok("Durability", "append-only file, nothing is evicted")


async def queue_lag(connection: Connection, valkey: Valkey) -> list[Finding]:
    """Look at how far each projection is behind the ledger."""
    try:
        cursors = await connection.fetch(CURSORS)
        ledger = ValkeyLedger(valkey)
        return [judged_lag(row["projection"], await ledger.lag(row["entry_id"])) for row in cursors]
    except (asyncpg.PostgresError, UnavailableError) as error:
        return [fail("Queue lag", str(error), "mend the finding above first")]


def judged_lag(projection: str, lag: Lag) -> Finding:
    """Judge how far a reader is behind."""
    name = f"Queue lag, {projection}"
    detail = f"{lag.entries} entries, the oldest {lag.seconds:.1f} s old"
    if lag.entries == 0:
        return ok(name, "none")
    if lag.seconds > LAG_SECONDS_MAX:
        return fail(name, detail, "see that `adloom worker` runs and what it logs")
    if lag.seconds > LAG_SECONDS_GOOD:
        return warn(name, detail, "look again in a minute; if it grows, see what `adloom worker` logs")
    return ok(name, detail)
