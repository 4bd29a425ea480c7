"""An import as it happens: ask what is there, plan, and write all of it in one transaction or nothing."""

import asyncio
import gc
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import asyncpg
import msgspec

from adloom.catalog.transfer import table
from adloom.catalog.transfer.document import RawItem
from adloom.catalog.transfer.head import Head, heads_of, identity_value, nature_of
from adloom.catalog.transfer.kind import KIND_NAMED, KINDS, Kind
from adloom.catalog.transfer.plan import CapPlace, Change, Planner, Situation, owner_of
from adloom.catalog.transfer.table import Identity
from adloom.core.actor import Actor
from adloom.core.errors import ConflictError, FieldProblem, ValidationFailedError
from adloom.core.ids import IdSource
from adloom.resource.access import Scope
from adloom.resource.audit.difference import describe_change, describe_creation, name_action
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.changes import Catalog, CatalogWrite, find_creator
from adloom.runtime.postgres import Connection

PROBLEMS_MAX: Final = 1_000  # Nobody reads more at a time, and the next import finds the rest.
NATURE_LENGTH_MAX: Final = 253
CAMPAIGNS_OF_RULES = """
    SELECT DISTINCT campaign.public_id
      FROM campaign_targeting_rules AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
     WHERE it.public_id = ANY ($1::uuid[])
"""
RULE_COUNTS = """
    SELECT campaign.public_id, count(*)
      FROM campaign_targeting_rules AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
     WHERE campaign.public_id = ANY ($1::uuid[]) GROUP BY campaign.public_id
"""
BANNERS_OF_CAPS = """
    SELECT DISTINCT banner.public_id
      FROM frequency_caps AS it JOIN banners AS banner ON banner.id = it.banner_id
     WHERE it.public_id = ANY ($1::uuid[])
"""
CAP_WINDOWS = """
    SELECT banner.public_id AS banner_id, it."window", it.public_id AS id
      FROM frequency_caps AS it JOIN banners AS banner ON banner.id = it.banner_id
     WHERE banner.public_id = ANY ($1::uuid[])
"""
# Campaigns first and what hangs on them last, as the API's own writes do: so no two wait for each other.
LOCKED_FIRST: Final = ("campaigns", "placements", "banners")
HANGING: Final = ("links", "assignments")


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants a document to be so."""

    items: Sequence[RawItem]
    actor: Actor
    ids: IdSource
    now: datetime
    is_dry_run: bool


async def carried_out(catalog: Catalog, wanted: Import) -> list[Change]:
    """Import a document, or raise all that is wrong with it; tell what becomes of each item."""
    with _collector_paused():
        return await _carried_out(catalog, wanted)


async def _carried_out(catalog: Catalog, wanted: Import) -> list[Change]:
    heads, problems = await asyncio.to_thread(heads_of, wanted.items)
    async with catalog.write() as write:
        planner = Planner(await _situation(write, wanted, heads))
        await asyncio.to_thread(planner.plan, heads)
        problems += planner.problems
        if problems:
            raise _invalid(problems)
        if not wanted.is_dry_run:
            await _write(write, planner)
    return planner.changes


@contextmanager
def _collector_paused() -> Generator[None]:
    """Keep the garbage collector from looking at a million new objects again and again: all else would wait."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


async def _situation(write: CatalogWrite, wanted: Import, heads: Sequence[Head]) -> Situation:
    connection = write.connection
    there: dict[str, dict[Identity, Any]] = {kind.name: {} for kind in KINDS}
    by_nature: dict[str, dict[str, Any]] = {kind.name: {} for kind in KINDS}
    ids, natures = await asyncio.to_thread(_named, heads)
    rule_ids = [identity[0] for identity in ids["targetingRules"]]
    ids["campaigns"] |= {(row[0],) for row in await connection.fetch(CAMPAIGNS_OF_RULES, rule_ids)}
    cap_ids = [identity[0] for identity in ids["frequencyCaps"]]
    ids["banners"] |= {(row[0],) for row in await connection.fetch(BANNERS_OF_CAPS, cap_ids)}
    simple = [kind for kind in KINDS if kind.name not in HANGING]
    for kind in sorted(simple, key=lambda kind: kind.name not in LOCKED_FIRST):
        found = await table.load(connection, kind.table, list(ids[kind.name]))
        if kind.natural:
            found += await table.load_by(connection, kind.table, kind.natural, list(natures[kind.name]))
        there[kind.name] = {(getattr(thing, "id"),): thing for thing in found}  # noqa: B009 - a struct of a kind
        if kind.natural:
            by_nature[kind.name] = {getattr(thing, kind.natural): thing for thing in found}
    for name, identities in (await asyncio.to_thread(_hanging, heads, by_nature)).items():
        kind = KIND_NAMED[name]
        for thing in await table.load(connection, kind.table, list(identities)):
            there[name][tuple(getattr(thing, field) for field in kind.table.identity)] = thing
    campaign_ids = [identity[0] for identity in there["campaigns"]]
    return Situation(
        role=wanted.actor.role,
        scope=Scope(wanted.actor.account_id),
        now=wanted.now,
        ids=wanted.ids,
        created_by=await find_creator(write),
        there=there,
        by_nature=by_nature,
        rule_counts=dict(await _rule_counts(connection, campaign_ids)),
        cap_windows=await _cap_windows(connection, [identity[0] for identity in there["banners"]]),
    )


def _named(heads: Iterable[Head]) -> tuple[dict[str, set[Identity]], dict[str, set[str]]]:
    """Collect the ids and the natural keys by which a document names things."""
    ids: dict[str, set[Identity]] = {kind.name: set() for kind in KINDS}
    natures: dict[str, set[str]] = {kind.name: set() for kind in KINDS}
    for head in heads:
        for kind, value in head.named():
            known = identity_value(kind, value)
            if known is not None:
                ids[kind.name].add((known,))
            if (
                kind.natural
                and isinstance(value, str)
                and "\0" not in value
                and len(value) <= NATURE_LENGTH_MAX
            ):
                natures[kind.name].add(nature_of(kind, value))
    return ids, natures


def _hanging(heads: Iterable[Head], by_nature: Mapping[str, Mapping[str, Any]]) -> dict[str, set[Identity]]:
    """Tell which links and assignments a document may be about, by the ids of what they hang on."""
    keys: dict[tuple[str, str], Any] = {}
    wanted: dict[str, set[Identity]] = {name: set() for name in HANGING}

    def known(kind: Kind, value: Any) -> Any:  # noqa: ANN401 - JSON in, a UUID out
        if isinstance(value, str) and (kind.name, value) in keys:
            return keys[kind.name, value]
        thing = by_nature[kind.name].get(nature_of(kind, value)) if isinstance(value, str) else None
        return identity_value(kind, value) if thing is None else thing.id

    for head in heads:
        if head.key is not None:
            own = head.names.get("id") or head.names.get(head.kind.natural or "")
            keys[head.kind.name, head.key] = None if own is None else known(head.kind, own)
    for head in heads:
        if head.kind.name in HANGING:
            references = head.kind.references
            identity = tuple(
                known(KIND_NAMED[references[field]], head.names.get(field))
                for field in head.kind.table.identity
            )
            if None not in identity:
                wanted[head.kind.name].add(identity)
            if None not in identity[:2]:
                wanted["links"].add(identity[:2])
    return wanted


async def _rule_counts(connection: Connection, campaign_ids: Sequence[UUID]) -> list[tuple[UUID, int]]:
    return [(row[0], row[1]) for row in await connection.fetch(RULE_COUNTS, campaign_ids)]


async def _cap_windows(connection: Connection, banner_ids: Sequence[UUID]) -> dict[CapPlace, UUID]:
    rows = await connection.fetch(CAP_WINDOWS, banner_ids)
    return {(row["banner_id"], row["window"]): row["id"] for row in rows}


async def _write(write: CatalogWrite, planner: Planner) -> None:
    try:
        for kind in KINDS:
            changes = [change for change in planner.changes if change.kind is kind]
            created = [change for change in changes if change.action == "create"]
            updated = [change for change in changes if change.action == "update"]
            if created or updated:
                types = await table.column_types(write.connection, kind.table)
                await _write_kind(write, planner, kind, types, created, table.insert)
                await _write_kind(write, planner, kind, types, updated, table.update)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise ConflictError(
            "Somebody else changed the same things meanwhile; nothing was written. Try again."
        ) from error


async def _write_kind(  # noqa: PLR0913, PLR0917 - a batch of what, and how
    write: CatalogWrite,
    planner: Planner,
    kind: Kind,
    types: Mapping[str, str],
    changes: Sequence[Change],
    statement: Any,  # noqa: ANN401 - one of the two of `table`
) -> None:
    for start in range(0, len(changes), table.BATCH_MAX):
        batch = changes[start : start + table.BATCH_MAX]
        for key in await statement(write.connection, kind.table, types, [change.after for change in batch]):
            assert kind.table.touched is not None
            write.touch(kind.table.touched[0], key)
        write.entries += await asyncio.to_thread(_entries, planner, batch)
        await write.write_audit()


def _entries(planner: Planner, changes: Iterable[Change]) -> list[NewAuditEntry]:
    return [
        NewAuditEntry(_about(planner, change), "create", describe_creation(change.after))
        if change.before is None
        else NewAuditEntry(
            _about(planner, change),
            name_action(change.before, change.after),
            describe_change(change.before, change.after),
        )
        for change in changes
    ]


def _about(planner: Planner, change: Change) -> AuditSubject:
    kind = change.kind
    noun_id = "/".join(str(getattr(change.after, field)) for field in kind.table.identity)
    return AuditSubject(kind.noun, noun_id, owner_of(kind, change.after, planner.parent))


def _invalid(problems: Sequence[FieldProblem]) -> ValidationFailedError:
    first = "; ".join(f"{problem.field}: {problem.message}" for problem in problems[:3])
    more = f" The first {PROBLEMS_MAX} are listed." if len(problems) > PROBLEMS_MAX else ""
    count = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
    return ValidationFailedError(
        f"Nothing was imported: the document has {count}. {first}.{more}", errors=problems[:PROBLEMS_MAX]
    )
