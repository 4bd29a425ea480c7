"""The product's own processes: whether they are ready, how old the index is that they serve, and which workers run the actors."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from adloom.core.errors import describe_error
from adloom.ops.checks.finding import Finding, fail, grade, report_ok, warn
from adloom.ops.checks.machine import judge_space
from adloom.runtime.actors.actor import SHARDS
from adloom.runtime.http.probe import fetch
from adloom.runtime.telemetry.heartbeat import FrozenProcess, ProcessHeartbeat, ShardReading
from adloom.serving.health import DeliveryHealthReport, IndexCheck

# Delivery looks at the catalog's version twice a second.
INDEX_SECONDS_GOOD = 5.0
INDEX_SECONDS_MAX = 60.0
NAME: Final = "Shards"
WAITING_GOOD: Final = 1_000
WAITING_MAX: Final = 100_000
NAMED_MAX: Final = 3


async def check_health(name: str, host: str, port: int, path: str) -> tuple[Finding, bytes]:
    """Ask a process for its health, and return its answer, too."""
    remedy = f"see what `adloom up` has logged about {name.lower()}"
    try:
        status, body = await fetch(host, port, path)
    except (OSError, TimeoutError, ValueError) as error:
        return fail(name, f"port {port} does not answer: {describe_error(error)}", remedy), b""
    if status != HTTPStatus.OK:
        return fail(name, f"answers {status}: {body.decode(errors='replace')[:200]}", remedy), body
    return report_ok(name, f"ready on port {port}"), body


def parse_index(body: bytes) -> IndexCheck | None:
    """Parse what a delivery process reports of its index; None if it is no health answer."""
    try:
        return msgspec.json.decode(body, type=DeliveryHealthReport).checks.index
    except msgspec.MsgspecError:
        return None


def judge_index(index: IndexCheck | None, *, catalog_version: int | None) -> Finding:
    """Judge the age of the index that is served."""
    if index is None or index.version is None or index.age_seconds is None:
        return fail("Index", "delivery has none", "see what delivery has logged; it needs the database once")
    detail = (
        f"version {index.version}, checked {index.age_seconds:.1f} s ago; the catalog is at {catalog_version}"
    )
    remedy = "see what delivery has logged: it cannot read the catalog"
    age = index.age_seconds
    return grade("Index", detail, remedy, is_bad=age > INDEX_SECONDS_MAX, is_good=age <= INDEX_SECONDS_GOOD)


def judge_heartbeats(processes: Sequence[ProcessHeartbeat]) -> list[Finding]:
    """Judge whether every kind of process that must run does."""
    kinds = {one.kind for one in processes}
    return [
        fail("Processes", f"no {kind} process runs", "start one, or see what it has logged")
        for kind in ("delivery", "worker")
        if kind not in kinds
    ]


def judge_frozen(frozen: FrozenProcess) -> Finding:
    """Judge a process that was frozen and replaced within the last day."""
    detail = (
        f"{frozen.process} on {frozen.host} gave no sign of life for {int(frozen.silent_seconds)} s"
        f" and was replaced at {frozen.at:%Y-%m-%d %H:%M:%S} UTC"
    )
    remedy = "look for what stops processes there: a debugger, too little memory, a disk that hangs"
    return warn("Frozen", detail, remedy)


def judge_served_version(process: ProcessHeartbeat, *, catalog_version: int) -> Finding:
    version = process.reading.index_version
    if version is None or version >= catalog_version:
        return report_ok("Index", f"{process.process} serves the newest catalog")
    detail = f"{process.process} serves version {version} of the catalog, which is at {catalog_version}"
    return warn("Index", detail, "look again in a second; if it stays, see what delivery has logged")


def judge_peers(process: ProcessHeartbeat) -> Finding:
    """Judge whether the addresses of visitors are seen: without them floods and data centres are not."""
    peer = process.reading.only_peer
    if peer is None:
        return report_ok("Visitors", f"{process.process} sees the addresses of visitors")
    detail = f"all events of {process.process} come from {peer}: no flood and no data centre is marked"
    remedy = f"if {peer} is a proxy, let it send X-Forwarded-For and set ADLOOM_TRUSTED_PROXIES={peer}"
    return warn("Visitors", detail, remedy)


def judge_weights(process: ProcessHeartbeat) -> Finding:
    """Judge whether a worker uses the bid weights in its settings."""
    problem = process.reading.weights_problem
    if problem is None:
        return report_ok("Bid weights", f"{process.process} has those that it is to use")
    detail = f"{process.process} uses the weights of the package, because of {problem}"
    remedy = (
        "let ADLOOM_FLEET_WEIGHTS name a fleet.weights of `adloom learn fleet`, or take it out; then restart"
    )
    return warn("Bid weights", detail, remedy)


def judge_ledger_comparison(process: ProcessHeartbeat) -> Finding:
    """Judge what a worker found when it last compared the money ledger with campaigns and advertisers."""
    problem = process.reading.books_problem
    if problem is None:
        return report_ok("Money", f"{process.process} has found nothing wrong")
    return fail(
        "Money", problem, "run `adloom doctor --money --day DAY`, and do not bill that day until they agree"
    )


def judge_spooled_bytes(process: ProcessHeartbeat) -> Finding:
    spooled = process.reading.spool_bytes or 0
    if not spooled:
        return report_ok("Spool", f"{process.process} has nothing on its disk")
    detail = f"{process.process} keeps {spooled:,} bytes of events on its disk: Valkey was away"
    return warn("Spool", detail, "delivery drains them when Valkey is back")


def judge_disks(processes: Sequence[ProcessHeartbeat]) -> list[Finding]:
    """Judge the disk with the least room: processes of one machine share it."""
    rooms = [
        (one.reading.disk_free_bytes, one.process)
        for one in processes
        if one.reading.disk_free_bytes is not None
    ]
    if not rooms:
        return []
    free_bytes, process = min(rooms)
    return [judge_space(free_bytes, of=process)]


def judge_shards(processes: Sequence[ProcessHeartbeat]) -> list[Finding]:
    """Judge the shards of all workers; nothing if no worker shares its actors."""
    found = {one.id: one.reading.shards for one in processes if one.reading.shards is not None}
    if not found:
        return []
    findings = [
        fail(NAME, f"{name} has lost its connection to NATS", "see that NATS runs where ADLOOM_NATS_URL says")
        for name, one in found.items()
        if not one.is_connected
    ]
    owned = {shard for one in found.values() for shard in one.held}
    if len(owned) < SHARDS:
        detail = f"{SHARDS - len(owned)} of {SHARDS} have no worker: their campaigns get no leases"
        findings.append(
            warn(NAME, detail, "look again in 5 seconds; then start `adloom worker --nats … --roles entity`")
        )
    return findings or [_judge_lag(found)]


def name_longest(lag: Mapping[int, int] | Mapping[str, int]) -> str:
    """Name the shards where most messages wait; nothing if none waits."""
    longest = sorted(lag.items(), key=lambda one: (-one[1], int(one[0])))[:NAMED_MAX]
    named = ", ".join(f"{shard}: {waiting:,}" for shard, waiting in longest if waiting)
    return f" (shard {named})" if named else ""


def _judge_lag(found: dict[str, ShardReading]) -> Finding:
    lag = {shard: waiting for one in found.values() for shard, waiting in one.lag.items()}
    waiting = sum(sum(one.lag.values()) for one in found.values())
    shares = ", ".join(f"{name.partition('@')[0]} {len(one.held)}" for name, one in found.items())
    detail = (
        f"{shares}; {waiting:,} messages wait{name_longest(lag)}, {sum(one.fenced_writes for one in found.values()):,} late writes"
        f" were refused, {sum(one.moves for one in found.values()):,} moves"
    )
    remedy = "start more workers with the role entity, or see whether PostgreSQL is slow"
    return grade(NAME, detail, remedy, is_bad=waiting > WAITING_MAX, is_good=waiting <= WAITING_GOOD)
