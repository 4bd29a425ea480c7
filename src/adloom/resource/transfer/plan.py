"""What an import would do: every item makes a new row, changes one, leaves it as it is, or has problems.

A pure function of the document and of what is there, so that a dry run and a real one cannot differ.
"""

# pure

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from pydantic import ValidationError

from adloom.core.caller import Role
from adloom.core.errors import AdloomError, FieldProblem
from adloom.core.ids import IdSource, UserId
from adloom.resource.access import Scope, choose_owner
from adloom.resource.account_bounds import keep_bounds
from adloom.resource.audit.difference import find_changed_fields
from adloom.resource.etag import move_forward
from adloom.resource.soft_delete import SoftDeletable
from adloom.resource.spec import DocumentLists, Identity, Item, ResourceSpec
from adloom.resource.transfer.document import KEY, ImportProgress, ItemHead, parse_id


class ItemProblemError(Exception):
    """Something is wrong with one field of an item, or with the item itself."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.problem = FieldProblem(field, message)


class NamesAFailureError(Exception):
    """An item names another one that has problems of its own, which are reported there."""


class ImportChange(msgspec.Struct, frozen=True):
    """What becomes of an item: `before` is None for a new row, and the same as `after` for one that stays."""

    spec: ResourceSpec[Any]
    path: str
    key: str | None
    before: Item
    after: Item

    @property
    def action(self) -> str:
        if self.before is None:
            return "create"
        return "unchanged" if self.before is self.after else "update"


class ImportContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who imports, when, and what the catalog has of what the document names.

    `by_natural_key` has the row that a name means, `same_names` all that have it: of several, the account's own is meant,
    else the oldest. `sibling_counts` are how many rows of a list a parent has; `sibling_values` which row of a parent has a value
    of the list's `unique_in_parent`. `explain` turns the errors of a body into problems of its fields.
    """

    lists: DocumentLists
    role: Role
    scope: Scope
    now: datetime
    ids: IdSource
    created_by: UserId | None
    found: Mapping[str, dict[Identity, Any]]
    by_natural_key: Mapping[str, dict[str, Any]]
    same_names: Mapping[str, Mapping[str, Sequence[Any]]]
    sibling_counts: Mapping[str, Mapping[UUID, int]]
    sibling_values: Mapping[str, Mapping[tuple[UUID, Any], UUID]]
    explain: Callable[[Sequence[Any]], Sequence[FieldProblem]]


class Planner:
    """Goes through a document list by list; what an item makes can be named by all that come after it."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._lists = context.lists
        self.problems: list[FieldProblem] = []
        self.changes: list[ImportChange] = []
        self._keys: dict[tuple[str, str], Identity] = {}
        self._made: dict[str, dict[Identity, Any]] = {spec.list_name: {} for spec in self._lists.specs}
        self._by_natural_key: dict[str, dict[str, Any]] = {spec.list_name: {} for spec in self._lists.specs}
        self._failed: set[tuple[str, str]] = set()
        self._sibling_counts = {name: dict(counts) for name, counts in context.sibling_counts.items()}
        self._sibling_values = {name: dict(values) for name, values in context.sibling_values.items()}

    def plan(self, heads: Sequence[ItemHead], progress: ImportProgress) -> None:
        """Plan a whole document, in the order in which its lists depend on each other."""
        by_list: dict[str, list[ItemHead]] = {spec.list_name: [] for spec in self._lists.specs}
        for head in heads:
            by_list[head.spec.list_name].append(head)
        for spec in self._lists.specs:
            for head in by_list[spec.list_name]:
                self._plan_item(spec, head)
                progress.done += 1

    def _plan_item(self, spec: ResourceSpec[Any], head: ItemHead) -> None:
        path = head.item.path
        try:
            self._check_access(spec)
            change = self._change(spec, head)
        except NamesAFailureError:
            pass
        except ItemProblemError as error:
            self.problems.append(_put_under(path, error.problem))
        except ValidationError as error:
            self.problems += [_put_under(path, problem) for problem in self._context.explain(error.errors())]
        except AdloomError as error:
            found = error.errors or (FieldProblem("", error.detail.rstrip(".")),)
            self.problems += [_put_under(path, problem) for problem in found]
        else:
            self._remember(spec, change)
            return
        own = (head.key, head.names.get("id"), head.names.get(spec.natural_key or ""))
        self._failed |= {(spec.list_name, str(value)) for value in own if value is not None}

    def _check_access(self, spec: ResourceSpec[Any]) -> None:
        if self._context.role is not Role.ADMIN and spec.owner_role is not self._context.role:
            raise ItemProblemError(
                f"is not for you to import: the role {self._context.role} has no {spec.list_name}"
            )

    def _change(self, spec: ResourceSpec[Any], head: ItemHead) -> ImportChange:
        given = head.item.decode()
        given.pop(KEY, None)
        named = self._resolve(spec, head)
        before = self._find(spec, head, named)
        shape = spec.body if before is None else spec.patch
        outside: dict[str, Any] = {}
        for field in {*spec.identity, *spec.references}:
            alias = spec.aliases[field]
            if field in shape.model_fields:
                given |= {alias: _convert_to_json(named[field])} if field in named else {}
            elif alias in given:
                del given[alias]
                if field != "id" or field in named:
                    outside[field] = named.get(field)
        status = self._take_status(spec, given)
        decided = _take_decisions(spec, given)
        after = (
            self._make_item(spec, given, outside, status)
            if before is None
            else self._change_item(spec, before, given, outside, status)
        )
        after = self._decide(spec, after, decided)
        self._check_neighbours(spec, before, after)
        if before is not None and not find_changed_fields(before, after):
            after = before
        elif before is not None and hasattr(before, "updated_at"):
            after = move_forward(before, after)
        return ImportChange(spec, head.item.path, head.key, before, after)

    def _resolve(self, spec: ResourceSpec[Any], head: ItemHead) -> dict[str, Any]:
        """Find which rows an item names: by their ids, by keys of the document, by their natural keys."""
        named = {
            field: self._find_named(other, head.names[field], spec.aliases[field])
            for field, other in spec.references.items()
            if field in head.names
        }
        for field in spec.identity:
            if field == "id" and field in head.names:
                named[field] = parse_id(spec, head.names[field])
                if named[field] is None:
                    raise ItemProblemError(f"must be the id of a {spec.kind}, or left out", "id")
            elif field != "id" and field not in named:
                raise ItemProblemError("is required", spec.aliases[field])
        if spec.has_own_ids and "id" not in named:
            raise ItemProblemError("is required", "id")
        return named

    def _find_named(self, spec: ResourceSpec[Any], value: object, field: str) -> Any:  # noqa: ANN401 - a UUID or an integer
        if isinstance(value, str) and (spec.list_name, value) in self._keys:
            return self._keys[spec.list_name, value][0]
        known = parse_id(spec, value)
        thing = None if known is None else self._get(spec, (known,))
        if spec.natural_key and isinstance(value, str) and thing is None:
            natural = spec.normalize(value)
            thing = self._by_natural_key[spec.list_name].get(natural) or self._context.by_natural_key[
                spec.list_name
            ].get(natural)
        if thing is not None and self._may_name(spec, thing):
            return thing.id
        if (spec.list_name, str(value)) in self._failed:
            raise NamesAFailureError
        raise ItemProblemError(f"names no {spec.kind} of this document or of the catalog", field)

    def _get(self, spec: ResourceSpec[Any], identity: Identity) -> Item:
        return self._made[spec.list_name].get(identity) or self._context.found[spec.list_name].get(identity)

    def _may_name(self, spec: ResourceSpec[Any], item: Item) -> bool:
        return spec.is_for_all or self._is_mine(spec, item)

    def _find(self, spec: ResourceSpec[Any], head: ItemHead, named: Mapping[str, Any]) -> Item:
        """Find the row that an item is about, if it is there."""
        account_id = self._context.scope.account_id
        found: Any = None
        if all(field in named for field in spec.identity):
            identity = tuple(named[field] for field in spec.identity)
            if identity in self._made[spec.list_name]:
                raise ItemProblemError("is in the document twice")
            found = self._context.found[spec.list_name].get(identity)
            is_mine = found is not None and self._is_mine(spec, found)
            if account_id is not None and spec.identity == ("id",) and not is_mine:
                # Whether another account has it is not for this one to know.
                raise ItemProblemError(f"names no {spec.kind} of yours; leave it out to make a new one", "id")
        elif spec.natural_key and isinstance(head.names.get(spec.natural_key), str):
            found = self._context.by_natural_key[spec.list_name].get(
                spec.normalize(head.names[spec.natural_key])
            )
            found = found if found is not None and self._is_mine(spec, found) else None
            if found is not None and spec.identify(found) in self._made[spec.list_name]:
                raise ItemProblemError("is in the document twice", spec.aliases[spec.natural_key])
        return found

    def _is_mine(self, spec: ResourceSpec[Any], thing: Item) -> bool:
        account_id = self._context.scope.account_id
        return account_id is None or spec.find_owner_id(thing, self.find_parent) == account_id

    def find_parent(self, spec: ResourceSpec[Any], item: Item) -> Item:
        """Return the campaign or the banner that an item hangs on, as it will be."""
        assert spec.parent is not None
        return self._get(spec.references[spec.parent], (getattr(item, spec.parent),))

    def _take_status(self, spec: ResourceSpec[Any], given: dict[str, Any]) -> StrEnum | None:
        if spec.status is None or (status := given.pop("status", None)) is None:
            return None
        if not isinstance(status, str) or status not in set(spec.status):
            raise ItemProblemError(f"must be one of {', '.join(spec.status)}", "status")
        return spec.status(status)

    def _make_item(
        self, spec: ResourceSpec[Any], given: dict[str, Any], outside: dict[str, Any], status: StrEnum | None
    ) -> Item:
        body = spec.body.model_validate(given)
        now = self._context.now
        fields: dict[str, Any] = {
            "id": self._context.ids.make(),
            "created_at": now,
            "updated_at": now,
            "deleted_at": None,
            "created_by": self._context.created_by,
        }
        fields |= body.to_fields() | outside
        if status is not None:
            fields["status"] = status  # Whatever it is, moves of a new one lead there.
        if spec.owner_field is not None:
            fields[spec.owner_field] = choose_owner(
                self._context.scope, fields[spec.owner_field], field=spec.aliases[spec.owner_field]
            )
        names = {*spec.struct.__struct_fields__}
        item = spec.struct(**{name: value for name, value in fields.items() if name in names})
        item = spec.finish(item, body.model_fields_set, now)
        item = keep_bounds(spec.account_bounds, None, item, self._context.scope, given=body.model_fields_set)
        named = {field: self._get(other, (getattr(item, field),)) for field, other in spec.references.items()}
        return spec.begin(item, named, self._context.scope)

    def _decide(self, spec: ResourceSpec[Any], item: Item, decided: Mapping[str, Any]) -> Item:
        """Set what others than the owner decide: a document of an account can only repeat it."""
        other = {field: value for field, value in decided.items() if getattr(item, field) != value}
        if other and self._context.scope.account_id is not None:
            raise ItemProblemError(
                "is not for you to decide: leave it out, or as it is", spec.aliases[min(other)]
            )
        return msgspec.structs.replace(item, **other) if other else item

    def _change_item(
        self,
        spec: ResourceSpec[Any],
        before: Item,
        given: dict[str, Any],
        outside: dict[str, Any],
        status: StrEnum | None,
    ) -> Item:
        for field, value in outside.items():
            if getattr(before, field) != value:
                raise ItemProblemError("cannot be changed once it is made", spec.aliases[field])
        _check_present(before)
        patch = spec.patch.model_validate(given)
        besides: dict[str, Any] = {"updated_at": self._context.now} if hasattr(before, "updated_at") else {}
        after = spec.finish(patch.apply_to(before, **besides), patch.model_fields_set, self._context.now)
        after = keep_bounds(spec.account_bounds, before, after, self._context.scope)
        if status is not None and status is not before.status:
            return after.moved_to(status, now=self._context.now)
        return after

    def _check_neighbours(self, spec: ResourceSpec[Any], before: Item, after: Item) -> None:
        """Check what the routes check against other rows."""
        self._check_natural_key(spec, after)
        for field, other in spec.references.items():
            value = getattr(after, field)
            is_new = before is None or getattr(before, field) != value
            if value is not None and is_new:
                self._check_named(spec, field, self._get(other, (value,)), after)
        if spec.parent is not None:
            _check_present(self.find_parent(spec, after))
            self._check_siblings(spec, before, after)
        if spec.needs is not None:
            needed = self._lists.by_name[spec.needs.list_name]
            if self._get(needed, needed.identify(after)) is None:
                raise ItemProblemError(spec.needs.message, spec.aliases[spec.needs.field])

    def _check_siblings(self, spec: ResourceSpec[Any], before: Item, after: Item) -> None:
        assert spec.parent is not None
        parent_id = getattr(after, spec.parent)
        if spec.siblings_max is not None and before is None:
            counts = self._sibling_counts[spec.list_name]
            counts[parent_id] = counts.get(parent_id, 0) + 1
            if counts[parent_id] > spec.siblings_max:
                raise ItemProblemError(f"is one {spec.words} too many: there may be {spec.siblings_max}")
        if spec.unique_in_parent is not None:
            values, field = self._sibling_values[spec.list_name], spec.unique_in_parent
            if before is not None and getattr(before, field) != getattr(after, field):
                values.pop((parent_id, getattr(before, field)), None)
            value = getattr(after, field)
            if values.setdefault((parent_id, value), after.id) != after.id:
                raise ItemProblemError(
                    f"is {value}, which another {spec.words} has already", spec.aliases[field]
                )

    def _check_natural_key(self, spec: ResourceSpec[Any], after: Item) -> None:
        if spec.natural_key is None:
            return
        value: str = getattr(after, spec.natural_key)
        made = self._by_natural_key[spec.list_name].get(value)
        others = (*([] if made is None else [made]), *self._context.same_names[spec.list_name].get(value, ()))
        if any(other.id != after.id and spec.is_in_the_way(other, after) for other in others):
            raise ItemProblemError(f"{value!r} is in use", spec.aliases[spec.natural_key])

    def _check_named(self, spec: ResourceSpec[Any], field: str, named: Item, after: Item) -> None:
        if getattr(named, "deleted_at", None) is not None:
            raise ItemProblemError(
                f"names a deleted {named.noun_name}; restore it first", spec.aliases[field]
            )
        message = spec.refuse_reference(field, named, after, self._context.scope)
        if message is not None:
            raise ItemProblemError(message, spec.aliases[field])

    def _remember(self, spec: ResourceSpec[Any], change: ImportChange) -> None:
        identity = spec.identify(change.after)
        self._made[spec.list_name][identity] = change.after
        if spec.natural_key:
            self._by_natural_key[spec.list_name][getattr(change.after, spec.natural_key)] = change.after
        if change.key is not None:
            if (spec.list_name, change.key) in self._keys:
                self.problems.append(FieldProblem(f"{change.path}.{KEY}", "is the key of another item"))
            self._keys[spec.list_name, change.key] = identity
        self.changes.append(change)


def _take_decisions(spec: ResourceSpec[Any], given: dict[str, Any]) -> dict[str, Any]:
    aliases = [spec.aliases[name] for name in spec.decisions.model_fields]
    decided = spec.decisions.model_validate({alias: given.pop(alias) for alias in aliases if alias in given})
    return {name: getattr(decided, name) for name in decided.model_fields_set}


def _check_present(item: Item) -> None:
    if isinstance(item, SoftDeletable):
        item.require_present()


def _convert_to_json(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


def _put_under(path: str, problem: FieldProblem) -> FieldProblem:
    return FieldProblem(f"{path}.{problem.field}" if problem.field else path, problem.message)
