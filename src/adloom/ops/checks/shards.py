"""Whether workers that share the budget actors have all of them between them, and keep up."""

from collections.abc import Mapping, Sequence
from typing import Final

from adloom.ops.checks.finding import Finding, fail, grade, warn
from adloom.runtime.actors.actor import SHARDS
from adloom.runtime.telemetry.heartbeat import ProcessHeartbeat, ShardReading

NAME: Final = "Shards"
WAITING_GOOD: Final = 1_000
WAITING_MAX: Final = 100_000
NAMED_MAX: Final = 3


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
