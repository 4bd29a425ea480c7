"""What needs attention, over HTTP."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Request
from pydantic import Field

from adloom.core.caller import Role
from adloom.events.ctr.store import read_calibrations
from adloom.events.projections.status import LogStatusReader
from adloom.ops.attention import store
from adloom.ops.attention.model import (
    EACH_MAX,
    Attention,
    AttentionKind,
    AttentionLevel,
    describe_findings,
    describe_things,
    judge_budgets,
    judge_calibrations,
    judge_caps,
    list_unknown_slugs,
)
from adloom.ops.attention.store import knows_countries
from adloom.ops.checks.event_log import (
    judge_dead,
    judge_failed_jobs,
    judge_failed_mail,
    judge_lag,
    report_unreachable,
)
from adloom.ops.checks.processes import (
    judge_disks,
    judge_frozen,
    judge_heartbeats,
    judge_ledger_comparison,
    judge_peers,
    judge_served_version,
    judge_shards,
    judge_spooled_bytes,
    judge_weights,
)
from adloom.resource.access import Scope
from adloom.resource.changes import read_version
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.mail.send import QUEUE as MAIL_QUEUE
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import HeartbeatReader, read_frozen
from adloom.runtime.valkey import ANYTHING_AWAY


class AttentionItem(Answer):
    """One thing to look at; where it is about something, `noun`, `id` and `name` say of what."""

    kind: AttentionKind
    level: AttentionLevel
    message: str
    noun: str | None
    id: UUID | None
    name: str | None
    at: datetime | None


class AttentionAnswer(Answer):
    """What needs attention, the worst first; of each kind only some, and `counts` has how many."""

    items: list[AttentionItem]
    counts: dict[AttentionKind, int]
    knows_countries: Annotated[
        bool,
        Field(description="Whether delivery can tell a reader's country, which rules about countries need."),
    ]


router = make_router("/admin/attention", "statistics", 401, 503)


@router.get("")
async def read_attention(
    request: Request, caller: CurrentCaller, pool: Database, now: Now
) -> AttentionAnswer:
    """Return what needs attention: accounts see their own, admins and viewers also the installation's."""
    found: list[Attention] = []
    knows = True
    try:
        knows = await knows_countries(HeartbeatReader(request.app.state.valkey), now=now)
        found += await _check_installation(request, pool, now) if caller.sees_all else ()
    except ANYTHING_AWAY as error:
        if caller.sees_all:
            found += describe_findings(AttentionKind.PROCESSES, [report_unreachable(error)])
    if caller.sees_all:
        found += judge_calibrations((await read_calibrations(pool)).reports)
    if caller.sees_all or caller.role is Role.ADVERTISER:
        scope = Scope(caller.account_id)
        async with pool.acquire() as connection:
            locked_out = await store.read_things(connection, scope, "adAccount", store.LOCKED_OUT)
            found += describe_things(AttentionKind.CREDENTIALS, locked_out)
            running = await store.read_running_budgets(connection, scope, now=now)
            found += judge_budgets(running, now=now, currency=request.app.state.currency)
            found += judge_caps(await store.read_capped(connection, scope))
            if not knows:
                by_country = await store.read_by_country(connection, scope, now=now)
                found += describe_things(AttentionKind.COUNTRIES, by_country)
            ending = await store.read_ending(connection, scope, now=now)
            found += describe_things(AttentionKind.EXPIRING, ending)
    if caller.sees_all or caller.role is Role.PUBLISHER:
        async with pool.acquire() as connection:
            scope = Scope(caller.account_id)
            withdrawn = await store.read_things(connection, scope, "site", store.WITHDRAWN)
            found += describe_things(AttentionKind.VERIFICATION, withdrawn)
            stale = await store.read_things(connection, scope, "site", store.STALE, now=now)
            found += describe_things(AttentionKind.STALE_PAGES, stale)
    counts = {kind: sum(one.kind is kind for one in found) for kind in AttentionKind}
    shown = [one for kind in AttentionKind for one in [one for one in found if one.kind is kind][:EACH_MAX]]
    return AttentionAnswer(
        items=[
            AttentionItem.model_validate(one)
            for one in sorted(shown, key=lambda one: list(AttentionLevel).index(one.level))
        ],
        counts={kind: count for kind, count in counts.items() if count},
        knows_countries=knows,
    )


async def _count_failed_mail(request: Request) -> int:
    queue: JobQueue = request.app.state.job_queues[MAIL_QUEUE]
    await queue.refresh_counts()
    return queue.counts.dead


async def _check_installation(request: Request, pool: Pool, now: datetime) -> list[Attention]:
    valkey = request.app.state.valkey
    cursors: Callable[[], Awaitable[Mapping[str, str]]] = request.app.state.ledger_cursors
    count_failed: Callable[[], Awaitable[int]] = request.app.state.failed_jobs
    processes = await HeartbeatReader(valkey).list_processes(now=now)
    frozen = await read_frozen(valkey, now=now)
    async with pool.acquire() as connection:
        version = await read_version(connection)
    log_status = await LogStatusReader(valkey).read(await cursors())
    return [
        *describe_findings(
            AttentionKind.PROCESSES,
            [
                *judge_heartbeats(processes),
                *judge_shards(processes),
                *judge_disks(processes),
                *(judge_served_version(one, catalog_version=version) for one in processes),
                *(judge_peers(one) for one in processes),
                *(judge_weights(one) for one in processes),
                *(judge_ledger_comparison(one) for one in processes),
                *(judge_frozen(one) for one in frozen),
            ],
        ),
        *describe_findings(
            AttentionKind.LEDGER,
            [
                *(judge_spooled_bytes(one) for one in processes),
                *(judge_lag(one.name, one.lag) for one in log_status.projections),
                judge_dead(log_status.size.dead),
            ],
        ),
        *describe_findings(
            AttentionKind.JOBS,
            [judge_failed_jobs(await count_failed()), judge_failed_mail(await _count_failed_mail(request))],
        ),
        *list_unknown_slugs(
            {slug: host for one in processes for slug, host in one.reading.unknown_slugs.items()}
        ),
    ]
