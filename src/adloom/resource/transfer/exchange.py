"""Export and import as they happen. An import loads what is there, plans, and writes all of it or nothing."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import asyncpg
import msgspec

from adloom.core.caller import Caller
from adloom.core.errors import ConflictError, FieldProblem, ValidationFailedError
from adloom.core.ids import IdSource
from adloom.resource.access import Scope
from adloom.resource.audit.difference import describe_change, describe_creation, name_action
from adloom.resource.audit.entry import NewAuditEntry
from adloom.resource.changes import Catalog, CatalogWrite, find_creator
from adloom.resource.resource import Resource
from adloom.resource.spec import DocumentLists, ResourceSpec
from adloom.resource.table import BATCH_MAX, Identity
from adloom.resource.transfer.document import (
    ImportProgress,
    ImportStep,
    ItemHead,
    RawItem,
    parse_id,
    read_heads,
)
from adloom.resource.transfer.plan import ImportChange, ImportContext, Planner
from adloom.runtime.http.api.exception_handlers import list_field_problems
from adloom.runtime.process.tuning import pause_gc

PROBLEMS_MAX: Final = 1_000  # More cannot be read at a time, and the next import finds the rest.
NATURAL_KEY_LENGTH_MAX: Final = 253

ExportedLists = Mapping[ResourceSpec[Any], Sequence[Mapping[str, Any]]]


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A document that the catalog shall agree with, and who sent it."""

    items: Sequence[RawItem]
    caller: Caller
    ids: IdSource
    now: datetime
    is_dry_run: bool


class Exchange(msgspec.Struct, frozen=True, dict=True, eq=False):
    """The nouns of a document, in the order in which they are written: what others name comes first."""

    resources: tuple[Resource[Any], ...]

    @cached_property
    def lists(self) -> DocumentLists:
        return DocumentLists(self.resources)

    @cached_property
    def by_name(self) -> Mapping[str, Resource[Any]]:
        return {resource.list_name: resource for resource in self.resources}

    async def export(self, catalog: Catalog, caller: Caller) -> ExportedLists:
        """Read all that a caller may see, in one moment of the catalog."""
        found: dict[ResourceSpec[Any], list[Any]] = {}
        async with (
            catalog.read() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            for spec in self.lists.list_visible_to(caller.role):
                found[spec] = await self.by_name[spec.list_name].table.load_all(
                    connection, Scope(caller.account_id)
                )
        return {spec: await asyncio.to_thread(_show, spec, things) for spec, things in found.items()}

    async def import_document(
        self, catalog: Catalog, wanted: ImportRequest, progress: ImportProgress
    ) -> list[ImportChange]:
        """Import a document, or raise all that is wrong with it; return what becomes of each item."""
        # It would go through a million new objects again and again while other requests wait.
        with pause_gc():
            heads, problems = await asyncio.to_thread(read_heads, wanted.items)
            async with catalog.write() as write:
                planner = Planner(await self._load_context(write, wanted, heads))
                progress.begin(ImportStep.CHECKING, len(heads))
                await asyncio.to_thread(planner.plan, heads, progress)
                problems += planner.problems
                if problems:
                    raise _make_invalid_error(problems)
                if not wanted.is_dry_run:
                    await self._write(write, planner, progress)
            return planner.changes

    async def _load_context(
        self, write: CatalogWrite, wanted: ImportRequest, heads: Sequence[ItemHead]
    ) -> ImportContext:
        connection = write.connection
        ids, natural_keys = await asyncio.to_thread(self._collect_names, heads)
        found: dict[str, dict[Identity, Any]] = {name: {} for name in self.by_name}
        by_natural_key: dict[str, dict[str, Any]] = {name: {} for name in self.by_name}
        same_names: dict[str, Mapping[str, list[Any]]] = {}
        account_id = wanted.caller.account_id
        children = [one for one in self.resources if one.parent is not None and one.identity == ("id",)]
        for child in children:
            parents = await child.table.load_parent_ids(connection, [key for (key,) in ids[child.list_name]])
            ids[_find_parent_name(child)] |= {(key,) for key in parents}
        # Parents first, in the order in which the routes lock them (a campaign, its placement, the banner), and what
        # hangs on them last: so no two writes wait for each other.
        parents = [spec.references[field].list_name for spec in self.lists.specs for field in spec.parents]
        order = list(dict.fromkeys([*parents, *self.by_name]))
        simple = [one for one in self.resources if one.identity == ("id",)]
        for one in sorted(simple, key=lambda one: order.index(one.list_name)):
            things = await one.table.load(connection, list(ids[one.list_name]))
            if one.natural_key:
                keys = list(natural_keys[one.list_name])
                things += await one.table.load_by(connection, one.natural_key, keys)
                same_names[one.list_name] = _group_by_name(things, one.natural_key)
                by_natural_key[one.list_name] = {
                    name: min(others, key=lambda thing: not one.is_owned_by(thing, account_id))
                    for name, others in same_names[one.list_name].items()
                }
            found[one.list_name] = {one.table.identify(thing): thing for thing in things}
        joined = await asyncio.to_thread(self._collect_joined, heads, by_natural_key)
        for name, identities in joined.items():
            table = self.by_name[name].table
            for thing in await table.load(connection, list(identities)):
                found[name][table.identify(thing)] = thing
        counts: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for child in (one for one in self.resources if one.parent is not None):
            parent_ids = [identity[0] for identity in found[_find_parent_name(child)]]
            if child.siblings_max is not None:
                counts[child.list_name] = await child.table.count_siblings(connection, parent_ids)
            if child.unique_in_parent is not None:
                values[child.list_name] = await child.table.load_sibling_values(
                    connection, child.unique_in_parent, parent_ids
                )
        return ImportContext(
            lists=self.lists,
            role=wanted.caller.role,
            scope=Scope(account_id),
            now=wanted.now,
            ids=wanted.ids,
            created_by=await find_creator(write),
            found=found,
            by_natural_key=by_natural_key,
            same_names=same_names,
            sibling_counts=counts,
            sibling_values=values,
            explain=list_field_problems,
        )

    def _collect_names(
        self, heads: Iterable[ItemHead]
    ) -> tuple[dict[str, set[Identity]], dict[str, set[str]]]:
        """Collect the ids and the natural keys by which a document names rows."""
        ids: dict[str, set[Identity]] = {name: set() for name in self.by_name}
        natural_keys: dict[str, set[str]] = {name: set() for name in self.by_name}
        for head in heads:
            for spec, value in head.iterate_names():
                known = parse_id(spec, value)
                if known is not None:
                    ids[spec.list_name].add((known,))
                is_text = isinstance(value, str) and "\0" not in value
                if spec.natural_key and is_text and len(value) <= NATURAL_KEY_LENGTH_MAX:
                    natural_keys[spec.list_name].add(spec.normalize(value))
        return ids, natural_keys

    def _collect_joined(
        self, heads: Sequence[ItemHead], by_natural_key: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, set[Identity]]:
        """Collect which links and assignments a document may be about, by the ids of what they join."""
        keys: dict[tuple[str, str], Any] = {}
        wanted: dict[str, set[Identity]] = {
            one.list_name: set() for one in self.resources if one.identity != ("id",)
        }

        def find_id(spec: ResourceSpec[Any], value: Any) -> Any:  # noqa: ANN401 - JSON in, a UUID out
            if isinstance(value, str) and (spec.list_name, value) in keys:
                return keys[spec.list_name, value]
            thing = (
                by_natural_key[spec.list_name].get(spec.normalize(value)) if isinstance(value, str) else None
            )
            return parse_id(spec, value) if thing is None else thing.id

        for head in heads:
            if head.key is not None:
                own = head.names.get("id") or head.names.get(head.spec.natural_key or "")
                keys[head.spec.list_name, head.key] = None if own is None else find_id(head.spec, own)
        for head in heads:
            spec = head.spec
            if spec.list_name in wanted:
                named = {
                    field: find_id(spec.references[field], head.names.get(field)) for field in spec.identity
                }
                for one in (spec, self.lists.by_name[spec.needs.list_name] if spec.needs else spec):
                    identity = tuple(named[field] for field in one.identity)
                    if None not in identity:
                        wanted[one.list_name].add(identity)
        return wanted

    async def _write(self, write: CatalogWrite, planner: Planner, progress: ImportProgress) -> None:
        written = sum(change.action != "unchanged" for change in planner.changes)
        progress.begin(ImportStep.WRITING, written)
        try:
            for resource in self.resources:
                changes = [change for change in planner.changes if change.spec is resource]
                created = [change for change in changes if change.action == "create"]
                updated = [change for change in changes if change.action == "update"]
                for some, statement in (
                    (created, resource.table.insert_rows),
                    (updated, resource.table.update_rows),
                ):
                    for start in range(0, len(some), BATCH_MAX):
                        batch = some[start : start + BATCH_MAX]
                        keys = await statement(write.connection, [change.after for change in batch])
                        if resource.touches is not None:
                            write.touched |= {(resource.touches[0], key) for key in keys}
                        for change in batch:
                            if change.before is not None:
                                await resource.after_update(write, change.before, change.after)
                        write.entries += await asyncio.to_thread(_audit, resource, planner, batch)
                        await write.write_audit()
                        progress.done += len(batch)
        except asyncpg.IntegrityConstraintViolationError as error:
            raise ConflictError(
                "Somebody else changed the same things meanwhile; nothing was written. Try again."
            ) from error


def _audit(resource: Resource[Any], planner: Planner, changes: Iterable[ImportChange]) -> list[NewAuditEntry]:
    entries: list[NewAuditEntry] = []
    for change in changes:
        before, after = change.before, change.after
        owner_id = change.spec.find_owner_id(after, planner.find_parent)
        subject = resource.table.name_subject(after, owner_id)
        action = "create" if before is None else name_action(before, after)
        changed = describe_creation(after) if before is None else describe_change(before, after)
        entries.append(NewAuditEntry(subject, action, changed))
    return entries


def _find_parent_name(child: Resource[Any]) -> str:
    return child.references[child.parents[0]].list_name


def _show(spec: ResourceSpec[Any], things: Sequence[msgspec.Struct]) -> list[Mapping[str, Any]]:
    """Write what the API's answers say, as far as an import takes it."""
    items: list[Mapping[str, Any]] = []
    for thing in things:
        answer = spec.answer.model_validate(thing).model_dump(mode="json")
        items.append({alias: answer[alias] for alias in spec.aliases.values()})
    return items


def _make_invalid_error(problems: Sequence[FieldProblem]) -> ValidationFailedError:
    first = "; ".join(f"{problem.field}: {problem.message.removesuffix('.')}" for problem in problems[:3])
    more = f" The first {PROBLEMS_MAX} are listed." if len(problems) > PROBLEMS_MAX else ""
    count = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
    return ValidationFailedError(
        f"Nothing was imported: the document has {count}. {first}.{more}", errors=problems[:PROBLEMS_MAX]
    )


def _group_by_name(things: Iterable[Any], natural_key: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for thing in things:
        found.setdefault(getattr(thing, natural_key), []).append(thing)
    return found
