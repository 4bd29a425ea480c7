"""How the installation is doing, over HTTP."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec
from fastapi import Depends, Query, status
from pydantic import Field

from adloom.core.caller import Role
from adloom.core.errors import FieldProblem, ForbiddenError, NotFoundError, ValidationFailedError
from adloom.events.log.event import UnreadableEntryError, decode_event
from adloom.events.projections.dead_letters import DeadLetter, DeadLetterQueue, unwrap_redelivery
from adloom.events.projections.status import LogStatusReader
from adloom.resource.changes import read_version
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    CurrentValkey,
    Database,
    Now,
    depend_on,
    make_router,
)
from adloom.runtime.http.api.shapes import Answer, Body, Text100
from adloom.runtime.telemetry.heartbeat import MINUTE, HeartbeatReader, ProcessHeartbeat, TrafficCounts

BYTES_SHOWN_MAX: Final = 2_000
_LETTER_ID: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")  # As many digits as 64 bits have.
LETTERS_MAX: Final = 100
MINUTES: Final = 60
SINCE_START: Final = "Since it was started."


class DeadLetterNotFoundError(NotFoundError):
    """No such dead letter: it was tried again, or forgotten."""

    code = "DEAD_LETTER_NOT_FOUND"


def check_letter_id(letter_id: str, *, field: str = "letterId") -> str:
    """Return the id, or raise ValidationFailedError."""
    if not is_letter_id(letter_id):
        message = "must look like 1794720000000-0"
        raise ValidationFailedError(f"The id {message}.", errors=[FieldProblem(field, message)])
    return letter_id


def render_event(letter: DeadLetter) -> str:
    """Show the event of a dead letter, if it can be decoded."""
    again = unwrap_redelivery(letter.data)
    data = again.data if again is not None else letter.data
    try:
        happening = decode_event(data)
    except UnreadableEntryError:
        return f"unreadable, {len(data)} bytes: {data[:BYTES_SHOWN_MAX]!r}"
    said = {name: value for name, value in msgspec.structs.asdict(happening).items() if value}
    shown = {"kind": type(happening).__name__, **said}
    return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()


def is_letter_id(text: str) -> bool:
    return _LETTER_ID.fullmatch(text) is not None


class ShardsAnswer(Answer):
    """What a worker has of the budget actors that several workers share."""

    held: Annotated[Sequence[int], Field(description="Numbers of its shards, of 0 to 99.")]
    lag: Annotated[
        Mapping[int, int], Field(description="Messages that wait, by shard; none wait for the others.")
    ]
    fenced_writes: Annotated[int, Field(description=f"Refused, as another worker had written. {SINCE_START}")]
    moves: Annotated[int, Field(description=f"Shards that it got. {SINCE_START}")]
    is_connected: Annotated[bool, Field(description="Whether NATS answers.")]


class ProcessAnswer(Answer):
    """A process with a heartbeat in the last 10 seconds."""

    id: str
    process: str
    kind: str
    host: str
    pid: int
    version: str
    started_at: datetime
    told_at: datetime
    requests: Annotated[int, Field(description=SINCE_START)]
    filled: Annotated[int, Field(description=SINCE_START)]
    requests_per_second: float
    index_version: Annotated[int | None, Field(description="Of the catalog that it serves; delivery only.")]
    p50_seconds: Annotated[float | None, Field(description="Half of the answers take no longer.")]
    p99_seconds: float | None
    pending: Annotated[int | None, Field(description="Events that wait for the ledger.")]
    spool_bytes: Annotated[int | None, Field(description="What waits on its disk for the ledger.")]
    shards: Annotated[
        ShardsAnswer | None, Field(description="Of a worker that shares the budget actors with others.")
    ] = None


class ProcessesAnswer(Answer):
    """The processes, and the version that their indexes should have."""

    items: list[ProcessAnswer]
    catalog_version: int


class MinuteAnswer(Answer):
    """Requests for ads of all processes in a minute."""

    begins_at: datetime
    requests: int
    filled: int


class TrafficAnswer(Answer):
    """How much is asked for now; latencies are those of the slowest process."""

    requests_per_second: float
    fill: Annotated[float | None, Field(description="The filled share of the last hour, a fraction.")]
    p50_seconds: float | None
    p99_seconds: float | None
    minutes: list[MinuteAnswer]


class ProjectionAnswer(Answer):
    """How far a projection is behind the event log, and the worker that runs it."""

    name: str
    cursor: str
    behind_entries: int
    behind_seconds: float
    owner: str | None
    failing: int
    dead: int


class LedgerAnswer(Answer):
    """The ledger: how much it holds, and how far it was counted."""

    entries: int
    memory_bytes: int
    dead: int
    projections: list[ProjectionAnswer]


class DeadLetterAnswer(Answer):
    """An entry that a projection gave up."""

    id: str
    projection: str
    entry_id: str
    reason: str
    tries: int
    at: datetime


class DeadLetterDetailAnswer(DeadLetterAnswer):
    """The same, with what lies in it."""

    event: str


class DeadLettersAnswer(Answer):
    """Dead letters, oldest first; `next` is the `after` of the following ones."""

    items: list[DeadLetterAnswer]
    total_count: int
    next: str | None


class DeadLettersQuery(Body):
    """Which dead letters to list."""

    after: Text100 | None = None


class SettingsAnswer(Answer):
    """What a process runs with; secrets, and addresses that carry some, are masked."""

    process: str
    settings: dict[str, str]


class AllSettingsAnswer(Answer):
    """The settings of every process."""

    items: list[SettingsAnswer]


async def _require_staff(caller: CurrentCaller) -> None:
    if not caller.sees_all:
        raise ForbiddenError("Only admins and viewers see how the installation is doing.")


async def _require_admin_alone(caller: CurrentCaller) -> None:
    if caller.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may see and do this.")


Cursors = Annotated[Callable[[], Awaitable[Mapping[str, str]]], depend_on("ledger_cursors")]

router = make_router("/admin/system", "system", 400, 401, 403, 404, 503)


@router.get("/processes", dependencies=[Depends(_require_staff)])
async def list_processes(valkey: CurrentValkey, pool: Database, now: Now) -> ProcessesAnswer:
    """List the running processes of all machines."""
    found = await HeartbeatReader(valkey).list_processes(now=now)
    async with pool.acquire() as connection:
        version = await read_version(connection)
    return ProcessesAnswer(items=[_build_process(one) for one in found], catalog_version=version)


@router.get("/traffic", dependencies=[Depends(_require_staff)])
async def read_traffic(valkey: CurrentValkey, now: Now) -> TrafficAnswer:
    """Return the current request rate, and the requests of each minute of the last hour."""
    reader = HeartbeatReader(valkey)
    serving = [one for one in await reader.list_processes(now=now) if one.reading.index_version is not None]
    minutes = await reader.load_traffic(MINUTE, count=MINUTES, now=now)
    return TrafficAnswer(
        requests_per_second=sum(one.requests_per_second for one in serving),
        fill=_fill(minutes),
        p50_seconds=max((one.reading.p50_seconds or 0.0 for one in serving), default=None),
        p99_seconds=max((one.reading.p99_seconds or 0.0 for one in serving), default=None),
        minutes=[MinuteAnswer.model_validate(one) for one in minutes],
    )


@router.get("/ledger", dependencies=[Depends(_require_staff)])
async def read_ledger(valkey: CurrentValkey, cursors: Cursors) -> LedgerAnswer:
    """Return how far each projection has read the event log."""
    found = await LogStatusReader(valkey).read(await cursors())
    return LedgerAnswer(
        entries=found.size.entries,
        memory_bytes=found.size.memory_bytes,
        dead=found.size.dead,
        projections=[
            ProjectionAnswer(
                behind_entries=one.lag.entries,
                behind_seconds=round(one.lag.seconds, 3) if one.lag.entries else 0.0,
                **msgspec.structs.asdict(one),
            )
            for one in found.projections
        ],
    )


@router.get("/dead-letters", dependencies=[Depends(_require_admin_alone)])
async def list_dead_letters(
    query: Annotated[DeadLettersQuery, Query()], valkey: CurrentValkey
) -> DeadLettersAnswer:
    """List entries that a projection gave up."""
    letters = DeadLetterQueue(valkey)
    page = await letters.list_after(
        check_letter_id(query.after, field="after") if query.after else "-", count_max=LETTERS_MAX
    )
    return DeadLettersAnswer(
        items=[DeadLetterAnswer.model_validate(one) for one in page],
        total_count=await letters.count(),
        next=page[-1].id if len(page) == LETTERS_MAX else None,
    )


@router.get("/dead-letters/{letter_id}", dependencies=[Depends(_require_admin_alone)])
async def read_dead_letter(letter_id: str, valkey: CurrentValkey) -> DeadLetterDetailAnswer:
    """Show a dead letter with its event."""
    letter = await DeadLetterQueue(valkey).get(check_letter_id(letter_id))
    if letter is None:
        raise _make_unknown_error(letter_id)
    return DeadLetterDetailAnswer(event=render_event(letter), **msgspec.structs.asdict(letter))


@router.post(
    "/dead-letters/{letter_id}/retry",
    dependencies=[Depends(_require_admin_alone)],
    status_code=status.HTTP_204_NO_CONTENT,
)
async def retry_dead_letter(letter_id: str, valkey: CurrentValkey) -> None:
    """Append a dead letter to the event log again; nothing is counted twice."""
    if not await DeadLetterQueue(valkey).retry(check_letter_id(letter_id)):
        raise _make_unknown_error(letter_id)


@router.delete(
    "/dead-letters/{letter_id}",
    dependencies=[Depends(_require_admin_alone)],
    status_code=status.HTTP_204_NO_CONTENT,
)
async def forget_dead_letter(letter_id: str, valkey: CurrentValkey) -> None:
    """Delete a dead letter for good: its event is not counted."""
    if not await DeadLetterQueue(valkey).delete(check_letter_id(letter_id)):
        raise _make_unknown_error(letter_id)


@router.get("/settings", dependencies=[Depends(_require_admin_alone)])
async def read_settings(valkey: CurrentValkey, now: Now) -> AllSettingsAnswer:
    """Return the settings of each running process."""
    reader = HeartbeatReader(valkey)
    known = await reader.load_settings()
    return AllSettingsAnswer(
        items=[
            SettingsAnswer(process=one.process, settings=dict(known[one.id]))
            for one in await reader.list_processes(now=now)
            if one.id in known
        ]
    )


def _build_process(heartbeat: ProcessHeartbeat) -> ProcessAnswer:
    facts = msgspec.structs.asdict(heartbeat) | msgspec.structs.asdict(heartbeat.reading)
    return ProcessAnswer(id=heartbeat.id, **facts)


def _fill(minutes: Sequence[TrafficCounts]) -> float | None:
    requests = sum(one.requests for one in minutes)
    return sum(one.filled for one in minutes) / requests if requests else None


def _make_unknown_error(letter_id: str) -> DeadLetterNotFoundError:
    return DeadLetterNotFoundError(f"There is no dead letter {letter_id}.")
