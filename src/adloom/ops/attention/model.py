"""What needs attention, judged from figures. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.status import BudgetStatus
from adloom.runtime.telemetry.heartbeat import ProcessHeartbeat

SOON: Final = timedelta(days=3)
# Behind its line by a third, it will hardly catch up: the line itself runs a fifth ahead of the clock.
PACE_GOOD: Final = 0.66
# Who has only just begun has spent nothing yet.
SETTLED_AFTER: Final = timedelta(hours=2)
LAG_SECONDS_GOOD: Final = 10.0
LAG_SECONDS_MAX: Final = 300.0
EACH_MAX: Final = 10


class AttentionLevel(StrEnum):
    """How bad it is."""

    BAD = "bad"
    WARN = "warn"
    INFO = "info"


class AttentionKind(StrEnum):
    """What it is about."""

    PROCESSES = "processes"
    LEDGER = "ledger"
    JOBS = "jobs"
    EXHAUSTED = "exhausted"
    UNDER_DELIVERING = "underDelivering"
    EXPIRING = "expiring"
    CREDENTIALS = "credentials"


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look at: what it is, and of what; `at` is when it happens or has happened."""

    kind: AttentionKind
    level: AttentionLevel
    message: str
    noun: str | None = None
    id: UUID | None = None
    name: str | None = None
    at: datetime | None = None


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign, a banner or an account elsewhere, as far as this needs it."""

    noun: str
    id: UUID
    name: str
    at: datetime | None = None


def of_processes(processes: Sequence[ProcessHeartbeat], *, catalog_version: int) -> list[Attention]:
    """Judge which processes run, and whether they serve what the catalog says."""
    kinds = {one.kind for one in processes}
    found = [
        _house(
            AttentionKind.PROCESSES,
            AttentionLevel.BAD,
            f"No {kind} process runs. Start one, or see what it has logged.",
        )
        for kind in ("delivery", "worker")
        if kind not in kinds
    ]
    for one in processes:
        version = one.reading.index_version
        if version is not None and version < catalog_version:
            message = f"{one.process} serves version {version} of the catalog, which is at {catalog_version}."
            found.append(_house(AttentionKind.PROCESSES, AttentionLevel.WARN, message))
        if one.reading.spool_bytes:
            message = f"{one.process} keeps {one.reading.spool_bytes:,} bytes of events on its disk: Valkey was away."
            found.append(_house(AttentionKind.LEDGER, AttentionLevel.WARN, message))
    return found


def of_ledger(lags: Mapping[str, float], *, dead: int, failed_jobs: int) -> list[Attention]:
    """Judge how far the ledger was counted, and what was given up."""
    found: list[Attention] = []
    for name, seconds in lags.items():
        if seconds > LAG_SECONDS_GOOD:
            level = AttentionLevel.BAD if seconds > LAG_SECONDS_MAX else AttentionLevel.WARN
            found.append(
                _house(
                    AttentionKind.LEDGER,
                    level,
                    f"{name} is {seconds:,.0f} s behind the ledger: see the worker.",
                )
            )
    if dead:
        found.append(
            _house(
                AttentionKind.LEDGER,
                AttentionLevel.WARN,
                f"{dead:,} events could not be counted and wait for you.",
            )
        )
    if failed_jobs:
        found.append(_house(AttentionKind.JOBS, AttentionLevel.WARN, f"{failed_jobs:,} jobs have failed."))
    return found


def of_budgets(standings: Iterable[tuple[Thing, BudgetStatus]], *, now: datetime) -> list[Attention]:
    """Judge which running campaigns have nothing left to spend, and which spend too little."""
    found: list[Attention] = []
    for thing, standing in standings:
        if standing.remaining_today == 0:
            is_over = standing.total_budget is not None and standing.spent_total >= standing.total_budget
            when = "its total budget" if is_over else "its budget of today"
            found.append(_about(thing, AttentionKind.EXHAUSTED, AttentionLevel.WARN, f"has spent {when}."))
        elif standing.pace is not None and standing.pace < PACE_GOOD and _is_settled(thing, now):
            message = f"has spent {standing.pace:.0%} of what it may have by now."
            found.append(_about(thing, AttentionKind.UNDER_DELIVERING, AttentionLevel.WARN, message))
    return found


def of_ends(things: Iterable[Thing]) -> list[Attention]:
    """Say what ends soon."""
    return [_about(thing, AttentionKind.EXPIRING, AttentionLevel.INFO, "ends soon.") for thing in things]


def of_credentials(things: Iterable[Thing]) -> list[Attention]:
    """Say which accounts elsewhere do not let us in any more."""
    message = "does not let us in any more: its credentials have to be renewed."
    return [_about(thing, AttentionKind.CREDENTIALS, AttentionLevel.BAD, message) for thing in things]


def _is_settled(thing: Thing, now: datetime) -> bool:
    return thing.at is None or thing.at <= now - SETTLED_AFTER


def _house(kind: AttentionKind, level: AttentionLevel, message: str) -> Attention:
    return Attention(kind=kind, level=level, message=message)


def _about(thing: Thing, kind: AttentionKind, level: AttentionLevel, message: str) -> Attention:
    return Attention(
        kind=kind,
        level=level,
        message=message,
        noun=thing.noun,
        id=thing.id,
        name=thing.name,
        at=thing.at,
    )
