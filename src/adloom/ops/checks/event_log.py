"""The event log: Valkey's version and durability, the projections, and what waits on this machine's disk."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from redis.exceptions import NoPermissionError

from adloom.core.errors import UnavailableError, describe_error
from adloom.events.log.permissions import find_refused
from adloom.events.log.spool.inspect import SpoolFileInfo, list_spool_files
from adloom.events.log.stream import EventLogSize, Lag
from adloom.events.projections.dead_letters import LETTERS_MAX
from adloom.events.projections.status import LogStatusReader
from adloom.ops.checks.finding import Finding, fail, grade, report_ok, warn
from adloom.ops.projections import list_projections, read_cursors
from adloom.runtime.postgres import POSTGRES_AWAY, open_pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

VERSION_MIN = 7
LAG_SECONDS_GOOD = 10.0
LAG_SECONDS_MAX = 300.0
MEMORY_SHARE_GOOD = 0.75
MEMORY_SHARE_MAX = 0.95  # Beyond the limit events are refused.
MEGABYTE = 1_000_000
DRAINED_AFTER = timedelta(minutes=1)  # Delivery processes look for files of dead ones twice a minute.


def report_unreachable(error: Exception) -> Finding:
    return fail(
        "Valkey",
        f"does not answer: {describe_error(error)}",
        "see that it runs and that REDIS_URL is right; the embedded one logs to valkey/valkey.log",
    )


async def check_server(valkey: Valkey) -> list[Finding]:
    """Check the server's version and durability, and what it allows us."""
    refused = judge_permissions(await find_refused(valkey))
    try:
        facts: Mapping[str, object] = await valkey.info("everything")
    except NoPermissionError:
        return [refused]
    return [judge_version(facts), judge_durability(facts), refused]


def judge_permissions(refused: Sequence[str]) -> Finding:
    """Judge the permissions of the user of REDIS_URL."""
    if refused:
        return fail(
            "Permissions",
            f"Valkey refuses {', '.join(refused)} to the user of REDIS_URL: events are not accepted, or not counted",
            "grant it `~* &* +@all -@dangerous +info` by `ACL SETUSER`; see docs/guide/connections.md",
        )
    return report_ok("Permissions", "Valkey allows the commands that were tried")


def judge_version(facts: Mapping[str, object]) -> Finding:
    """Judge the version; Valkey also reports the Redis version that it is compatible with."""
    name, version = (
        ("Valkey", str(facts["valkey_version"]))
        if "valkey_version" in facts
        else ("Redis", str(facts.get("redis_version", "0")))
    )
    if int(version.partition(".")[0]) < VERSION_MIN:
        return fail("Valkey", f"{name} {version}", "upgrade the server to Valkey, or Redis 7 or newer")
    return report_ok("Valkey", f"answers, {name} {version}")


def judge_durability(facts: Mapping[str, object]) -> Finding:
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
    return report_ok("Durability", "append-only file, nothing is evicted")


async def check_projections(database_url: str, valkey: Valkey) -> list[Finding]:
    """Check the lag and owner of each projection, the dead letters and the memory."""
    try:
        async with open_pool(database_url, size_max=1) as pool:
            status = await LogStatusReader(valkey).read(
                await read_cursors(list_projections(pool, valkey), pool)
            )
        memory: Mapping[str, object] = await valkey.info("memory")
    except (*POSTGRES_AWAY, *VALKEY_AWAY, UnavailableError) as error:
        return [fail("Queue lag", describe_error(error), "mend the finding above first")]
    return [
        *(judge_lag(one.name, one.lag) for one in status.projections),
        judge_owners({one.name: one.owner for one in status.projections}),
        judge_dead(status.size.dead),
        judge_memory(status.size, memory),
    ]


def judge_owners(owners: Mapping[str, str | None]) -> Finding:
    without = [name for name, owner in owners.items() if owner is None]
    if without:
        return warn(
            "Owners", f"no worker runs {', '.join(without)}", "start `adloom worker`, or see what it logs"
        )
    return report_ok("Owners", ", ".join(sorted({owner for owner in owners.values() if owner is not None})))


def judge_dead(dead: int) -> Finding:
    if dead >= LETTERS_MAX:
        return fail(
            "Dead letters",
            f"{dead:,}: no room for more, counting stands still",
            "see `adloom ledger dead list`",
        )
    if dead:
        return warn("Dead letters", f"{dead:,} entries were given up", "see `adloom ledger dead list`")
    return report_ok("Dead letters", "none")


def judge_memory(size: EventLogSize, memory: Mapping[str, object]) -> Finding:
    used, limit = int(str(memory.get("used_memory", 0))), int(str(memory.get("maxmemory", 0)))
    detail = f"{size.entries:,} entries in about {size.memory_bytes / MEGABYTE:,.0f} MB"
    if not limit:
        return report_ok("Ledger memory", f"{detail}; Valkey has no limit")
    detail += f"; Valkey uses {used / MEGABYTE:,.0f} of {limit / MEGABYTE:,.0f} MB"
    remedy = "raise `maxmemory`, or lower ADLOOM_LEDGER_RETENTION_DAYS"
    share = used / limit
    return grade(
        "Ledger memory", detail, remedy, is_bad=share >= MEMORY_SHARE_MAX, is_good=share < MEMORY_SHARE_GOOD
    )


def judge_lag(projection: str, lag: Lag) -> Finding:
    name = f"Queue lag, {projection}"
    detail = f"{lag.entries} entries, the oldest {lag.seconds:.1f} s old"
    if lag.entries == 0:
        return report_ok(name, "none")
    if lag.seconds > LAG_SECONDS_MAX:
        return fail(name, detail, "see that `adloom worker` runs and what it logs")
    if lag.seconds > LAG_SECONDS_GOOD:
        return warn(name, detail, "look again in a minute; if it grows, see what `adloom worker` logs")
    return report_ok(name, detail)


def judge_failed_jobs(failed: int) -> Finding:
    if failed:
        return warn("Jobs", f"{failed:,} jobs have failed", "see `adloom jobs list`, and retry them")
    return report_ok("Jobs", "none has failed")


def judge_failed_mail(failed: int) -> Finding:
    if failed:
        return warn(
            "E-mail",
            f"{failed:,} e-mails could not be sent, however often it was tried",
            "see the queue mail under Jobs for the reason, and retry them there",
        )
    return report_ok("E-mail", "none has failed")


def check_spool(folder: Path, *, has_ledger: bool, now: datetime) -> Finding:
    try:
        files = list_spool_files(folder)
    except OSError as error:
        return fail("Spool", f"{folder}: {error.strerror}", "run doctor as the user who runs delivery")
    return judge_spool(files, has_ledger=has_ledger, now=now)


def judge_spool(files: Sequence[SpoolFileInfo], *, has_ledger: bool, now: datetime) -> Finding:
    damaged = [file.name for file in files if file.is_damaged]
    if damaged:
        return fail(
            "Spool",
            f"could not be read whole: {', '.join(damaged)}",
            "all that could be read was drained; look at the disk, then remove these files",
        )
    waiting = sum(file.size_bytes for file in files)
    detail = f"{waiting:,} bytes in {len(files)} files"
    if not files:
        return report_ok("Spool", "nothing waits for the ledger")
    if not has_ledger:
        return warn("Spool", f"{detail} wait for Valkey", "repair Valkey; delivery drains them then")
    if now - max(file.written_at for file in files) > DRAINED_AFTER:
        return fail(
            "Spool",
            f"{detail} are not drained",
            "start delivery on this machine with this spool; if it runs, see what it logs",
        )
    return warn("Spool", f"{detail} are being drained", "look again in a minute")
