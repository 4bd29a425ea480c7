"""What needs attention, over HTTP."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Request

from adloom.core.actor import Role
from adloom.events.projections.status import LogStatusReader
from adloom.ops.attention import store
from adloom.ops.attention.model import (
    EACH_MAX,
    Attention,
    AttentionKind,
    AttentionLevel,
    of_budgets,
    of_credentials,
    of_ends,
    of_ledger,
    of_processes,
)
from adloom.resource.access import Scope
from adloom.resource.changes import read_version
from adloom.runtime.http.api.dependencies import CurrentActor, Database, GuardedRoute, Now
from adloom.runtime.http.api.openapi import problems
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import HeartbeatReader


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


router = APIRouter(
    prefix="/admin/attention", tags=["statistics"], route_class=GuardedRoute, responses=problems(401, 503)
)


@router.get("")
async def read_attention(request: Request, actor: CurrentActor, pool: Database, now: Now) -> AttentionAnswer:
    """Tell what needs attention: an account's is its own, the house's is admins' and viewers'."""
    found: list[Attention] = []
    if actor.sees_all:
        found += await _house(request, pool, now)
    if actor.sees_all or actor.role is Role.ADVERTISER:
        scope = Scope(actor.account_id)
        async with pool.acquire() as connection:
            found += of_credentials(await store.locked_out(connection, scope))
            found += of_budgets(await store.running_budgets(connection, scope, now=now), now=now)
            found += of_ends(await store.ending(connection, scope, now=now))
    counts = {kind: sum(one.kind is kind for one in found) for kind in AttentionKind}
    shown = [one for kind in AttentionKind for one in [one for one in found if one.kind is kind][:EACH_MAX]]
    return AttentionAnswer(
        items=[
            AttentionItem.model_validate(one)
            for one in sorted(shown, key=lambda one: list(AttentionLevel).index(one.level))
        ],
        counts={kind: count for kind, count in counts.items() if count},
    )


async def _house(request: Request, pool: Pool, now: datetime) -> list[Attention]:
    valkey = request.app.state.valkey
    cursors: Callable[[], Awaitable[Mapping[str, str]]] = request.app.state.ledger_cursors
    count_failed: Callable[[], Awaitable[int]] = request.app.state.failed_jobs
    processes = await HeartbeatReader(valkey).processes(now=now)
    async with pool.acquire() as connection:
        version = await read_version(connection)
    ledger = await LogStatusReader(valkey).read(await cursors())
    lags = {one.name: one.lag.seconds for one in ledger.projections if one.lag.entries}
    return [
        *of_processes(processes, catalog_version=version),
        *of_ledger(lags, dead=ledger.size.dead, failed_jobs=await count_failed()),
    ]
