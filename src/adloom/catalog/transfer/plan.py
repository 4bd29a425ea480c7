"""What an import would do: every item becomes a new thing, a changed one, or stays as it is, or has problems.

A pure function of the document and of what is there, so that a dry run and a real one cannot differ.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, cast
from uuid import UUID

import msgspec
from pydantic import ValidationError

from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.frequency.model import FrequencyCap
from adloom.catalog.targeting_rule.model import RULES_A_CAMPAIGN_MAX
from adloom.catalog.transfer.head import KEY, Head, identity_value, nature_of
from adloom.catalog.transfer.kind import KIND_NAMED, KINDS, Kind
from adloom.catalog.transfer.table import Identity
from adloom.core.actor import Role
from adloom.core.errors import AdloomError, FieldProblem
from adloom.core.ids import IdSource, UserId
from adloom.resource.access import Scope, choose_owner
from adloom.resource.audit.difference import find_changed_fields
from adloom.resource.etag import moved_forward
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.exception_handlers import field_problems

CapPlace: TypeAlias = tuple[UUID, str]  # A banner, and the window of one of its frequency caps.
Thing: TypeAlias = Any  # A struct of some kind: which fields it has, the kind's own rules know.


class ItemProblemError(Exception):
    """Something is wrong with one field of an item, or with the item itself."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.problem = FieldProblem(field, message)


class NamesAFailureError(Exception):
    """An item names another one that has problems of its own, which are told there."""


class Change(msgspec.Struct, frozen=True):
    """What becomes of an item: `before` is None for a new thing, and the same as `after` for one that stays."""

    kind: Kind
    path: str
    key: str | None
    before: Thing
    after: Thing

    @property
    def action(self) -> str:
        """Name it."""
        if self.before is None:
            return "create"
        return "unchanged" if self.before is self.after else "update"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Who imports, when, and what there is in the catalog of what the document names."""

    role: Role
    scope: Scope
    now: datetime
    ids: IdSource
    created_by: UserId | None
    there: Mapping[str, dict[Identity, Any]]
    by_nature: Mapping[str, dict[str, Any]]
    rule_counts: Mapping[UUID, int]
    cap_windows: Mapping[CapPlace, UUID]  # Which cap of a banner a window has.


class Planner:
    """Goes through a document kind by kind; what an item makes can be named by all that come after it."""

    def __init__(self, situation: Situation) -> None:
        self._now = situation
        self.problems: list[FieldProblem] = []
        self.changes: list[Change] = []
        self._keys: dict[tuple[str, str], Identity] = {}
        self._made: dict[str, dict[Identity, Any]] = {kind.name: {} for kind in KINDS}
        self._by_nature: dict[str, dict[str, Any]] = {kind.name: {} for kind in KINDS}
        self._failed: set[tuple[str, str]] = set()
        self._rule_counts = dict(situation.rule_counts)
        self._cap_windows = dict(situation.cap_windows)

    def plan(self, heads: Sequence[Head]) -> None:
        """Plan a whole document, in the order in which its kinds depend on each other."""
        by_kind: dict[str, list[Head]] = {kind.name: [] for kind in KINDS}
        for head in heads:
            by_kind[head.item.kind.name].append(head)
        for kind in KINDS:
            for head in by_kind[kind.name]:
                self._plan_item(kind, head)

    def _plan_item(self, kind: Kind, head: Head) -> None:
        path = head.item.path
        try:
            self._check_access(kind)
            change = self._change(kind, head)
        except NamesAFailureError:
            pass
        except ItemProblemError as error:
            self.problems.append(_under(path, error.problem))
        except ValidationError as error:
            self.problems += [_under(path, problem) for problem in field_problems(error.errors())]
        except AdloomError as error:
            found = error.errors or (FieldProblem("", error.detail.rstrip(".")),)
            self.problems += [_under(path, problem) for problem in found]
        else:
            self._remember(kind, change)
            return
        own = (head.key, head.names.get("id"), head.names.get(kind.natural or ""))
        self._failed |= {(kind.name, str(value)) for value in own if value is not None}

    def _check_access(self, kind: Kind) -> None:
        if self._now.role is not Role.ADMIN and kind.owner is not self._now.role:
            raise ItemProblemError(f"is not for you to import: the role {self._now.role} has no {kind.name}")

    def _change(self, kind: Kind, head: Head) -> Change:
        said = head.item.said()
        said.pop(KEY, None)
        named = self._resolved(kind, head)
        before = self._found(kind, head, named)
        shape = kind.body if before is None else kind.patch
        outside: dict[str, Any] = {}
        for field in {*kind.table.identity, *kind.references}:
            alias = kind.aliases[field]
            if field in shape.model_fields:
                said |= {alias: _written(named[field])} if field in named else {}
            elif alias in said:
                del said[alias]
                outside[field] = named.get(field)
        status = self._status(kind, said)
        after = (
            self._new(kind, said, outside, status)
            if before is None
            else self._changed(kind, before, said, outside, status)
        )
        self._check_neighbours(kind, before, after)
        if before is not None and not find_changed_fields(before, after):
            after = before
        elif before is not None and hasattr(before, "updated_at"):
            after = moved_forward(before, after)
        return Change(kind, head.item.path, head.key, before, after)

    def _resolved(self, kind: Kind, head: Head) -> dict[str, Any]:
        """Find out which things an item names: by their ids, by keys of the document, by their slugs."""
        named = {
            field: self._named(KIND_NAMED[other], head.names[field], kind.aliases[field])
            for field, other in kind.references.items()
            if field in head.names
        }
        for field in kind.table.identity:
            if field == "id" and field in head.names:
                named[field] = identity_value(kind, head.names[field])
                if named[field] is None:
                    raise ItemProblemError(f"must be the id of a {kind.singular}, or left out", "id")
            elif field != "id" and field not in named:
                raise ItemProblemError("is required", kind.aliases[field])
        if kind.table.identity_column == "id" and "id" not in named:
            raise ItemProblemError("is required", "id")
        return named

    def _named(self, kind: Kind, value: object, field: str) -> Any:  # noqa: ANN401 - a UUID or an integer
        if isinstance(value, str) and (kind.name, value) in self._keys:
            return self._keys[kind.name, value][0]
        known = identity_value(kind, value)
        thing = None if known is None else self._thing(kind, (known,))
        if kind.natural and isinstance(value, str) and thing is None:
            nature = nature_of(kind, value)
            thing = self._by_nature[kind.name].get(nature) or self._now.by_nature[kind.name].get(nature)
        if thing is not None and self._may_name(kind, thing):
            return thing.id
        if (kind.name, str(value)) in self._failed:
            raise NamesAFailureError
        raise ItemProblemError(_names_no(kind), field)

    def _thing(self, kind: Kind, identity: Identity) -> Thing:
        return self._made[kind.name].get(identity) or self._now.there[kind.name].get(identity)

    def _may_name(self, kind: Kind, thing: Thing) -> bool:
        """Tell whether somebody may name a thing: their own, a placement, a record that banners name."""
        is_for_all = kind.name == "placements" or kind.table.identity_column == "id"
        return is_for_all or self._is_mine(kind, thing)

    def _found(self, kind: Kind, head: Head, named: Mapping[str, Any]) -> Thing:
        """Find the thing that an item is about, if it is there."""
        account_id = self._now.scope.account_id
        found: Any = None
        if all(field in named for field in kind.table.identity):
            identity = tuple(named[field] for field in kind.table.identity)
            if identity in self._made[kind.name]:
                raise ItemProblemError("is in the document twice")
            found = self._now.there[kind.name].get(identity)
            is_mine = found is not None and self._is_mine(kind, found)
            if account_id is not None and kind.table.identity == ("id",) and not is_mine:
                # Whether it is somebody else's or nobody's is not theirs to know.
                raise ItemProblemError(
                    f"names no {kind.singular} of yours; leave it out to make a new one", "id"
                )
        elif kind.natural and isinstance(head.names.get(kind.natural), str):
            found = self._now.by_nature[kind.name].get(nature_of(kind, head.names[kind.natural]))
            found = found if found is not None and self._is_mine(kind, found) else None
            if found is not None and _identity(kind, found) in self._made[kind.name]:
                raise ItemProblemError("is in the document twice", kind.aliases[kind.natural])
        return found

    def _is_mine(self, kind: Kind, thing: Thing) -> bool:
        account_id = self._now.scope.account_id
        return account_id is None or self._owner(kind, thing) == account_id

    def _owner(self, kind: Kind, thing: Thing) -> UUID | None:
        return owner_of(kind, thing, self.parent)

    def parent(self, kind: Kind, thing: Thing) -> Thing:
        """Give the campaign or the banner that something hangs on, as it will be."""
        return self._thing(KIND_NAMED[kind.references[kind.hangs_on]], (getattr(thing, kind.hangs_on),))

    def _status(self, kind: Kind, said: dict[str, Any]) -> CampaignStatus | None:
        if not kind.beside or (status := said.pop("status", None)) is None:
            return None
        if not isinstance(status, str) or status not in set(CampaignStatus):
            raise ItemProblemError(f"must be one of {', '.join(CampaignStatus)}", "status")
        return CampaignStatus(status)

    def _new(
        self, kind: Kind, said: dict[str, Any], outside: dict[str, Any], status: CampaignStatus | None
    ) -> Thing:
        body = kind.body.model_validate(said)
        now = self._now.now
        fields: dict[str, Any] = {
            "id": None if "id" in outside else self._now.ids.new(),
            "created_at": now,
            "updated_at": now,
            "deleted_at": None,
            "created_by": self._now.created_by,
            # Whatever its status, moves of a draft lead there.
            "status": status or CampaignStatus.DRAFT,
        }
        fields |= body.fields() | outside
        if kind.owner_field is not None:
            fields[kind.owner_field] = choose_owner(
                self._now.scope, fields[kind.owner_field], field=kind.aliases[kind.owner_field]
            )
        thing = kind.table.struct(**{name: fields[name] for name in kind.table.fields})
        return kind.finished(body, thing, now)

    def _changed(
        self,
        kind: Kind,
        before: Thing,
        said: dict[str, Any],
        outside: dict[str, Any],
        status: CampaignStatus | None,
    ) -> Thing:
        for field, value in outside.items():
            if getattr(before, field) != value and (value is not None or field != "id"):
                raise ItemProblemError("cannot be changed once it is made", kind.aliases[field])
        _check_present(before)
        patch = kind.patch.model_validate(said)
        besides = {"updated_at": self._now.now} if hasattr(before, "updated_at") else {}
        after = kind.finished(patch, patch.apply_to(before, **besides), self._now.now)
        if status is not None and status is not before.status:
            return cast("Campaign", after).moved_to(status, now=self._now.now)
        return after

    def _check_neighbours(self, kind: Kind, before: Thing, after: Thing) -> None:
        """Check what the API's stores check against other rows."""
        self._check_nature(kind, after)
        for field, other in kind.references.items():
            value = getattr(after, field)
            is_new = before is None or getattr(before, field) != value
            if value is not None and is_new:
                self._check_named(kind, field, self._thing(KIND_NAMED[other], (value,)), after)
        if kind.name in {"links", "assignments", "targetingRules", "frequencyCaps"}:
            self.parent(kind, after).present()
        if (
            kind.name == "assignments"
            and self._thing(KIND_NAMED["links"], (after.campaign_id, after.placement_id)) is None
        ):
            raise ItemProblemError("names no link: the campaign does not use this placement", "placementId")
        if kind.name == "targetingRules" and before is None:
            count = self._rule_counts.get(after.campaign_id, 0) + 1
            if count > RULES_A_CAMPAIGN_MAX:
                raise ItemProblemError(f"is one rule too many: a campaign has at most {RULES_A_CAMPAIGN_MAX}")
            self._rule_counts[after.campaign_id] = count
        if kind.name == "frequencyCaps":
            self._take_window(before, after)

    def _take_window(self, before: FrequencyCap | None, after: FrequencyCap) -> None:
        """Give a cap its window, if no other cap of the banner has it."""
        if before is not None and before.window != after.window:
            self._cap_windows.pop((before.banner_id, before.window), None)
        place = (after.banner_id, after.window)
        if self._cap_windows.setdefault(place, after.id) != after.id:
            raise ItemProblemError(f"is {after.window}, for which the ad has a cap already", "window")

    def _check_nature(self, kind: Kind, after: Thing) -> None:
        if kind.natural is None:
            return
        value: str = getattr(after, kind.natural)
        others = (self._by_nature[kind.name].get(value), self._now.by_nature[kind.name].get(value))
        if any(other is not None and other.id != after.id for other in others):
            raise ItemProblemError(f"{value!r} is in use", kind.aliases[kind.natural])

    def _check_named(self, kind: Kind, field: str, named: Thing, after: Thing) -> None:
        if getattr(named, "deleted_at", None) is not None:
            raise ItemProblemError(
                f"names a deleted {named.noun_name}; restore it first", kind.aliases[field]
            )
        is_account = self._now.scope.account_id is not None
        if is_account and kind.name == "links" and field == "placement_id" and not named.is_active:
            raise ItemProblemError(_names_no(KIND_NAMED["placements"]), kind.aliases[field])
        if field == "site_id" and named.publisher_id != after.publisher_id:
            raise ItemProblemError("names no site of the placement's publisher", kind.aliases[field])

    def _remember(self, kind: Kind, change: Change) -> None:
        identity = _identity(kind, change.after)
        self._made[kind.name][identity] = change.after
        if kind.natural:
            self._by_nature[kind.name][getattr(change.after, kind.natural)] = change.after
        if change.key is not None:
            if (kind.name, change.key) in self._keys:
                self.problems.append(FieldProblem(f"{change.path}.{KEY}", "is the key of another item"))
            self._keys[kind.name, change.key] = identity
        self.changes.append(change)


def owner_of(kind: Kind, thing: Thing, parent: Callable[[Kind, Thing], Thing]) -> UUID | None:
    """Tell whose a thing is: it says so itself, what it hangs on does, or it is an account."""
    if kind.owner_field is not None:
        return getattr(thing, kind.owner_field)
    if kind.owner is Role.ADVERTISER:
        return parent(kind, thing).advertiser_id
    return thing.id if kind.name in {"advertisers", "publishers"} else None


def _names_no(kind: Kind) -> str:
    return f"names no {kind.singular} of this document or of the catalog"


def _check_present(thing: Thing) -> None:
    if isinstance(thing, SoftDeletable):
        thing.present()


def _identity(kind: Kind, thing: Thing) -> Identity:
    return tuple(getattr(thing, field) for field in kind.table.identity)


def _written(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


def _under(path: str, problem: FieldProblem) -> FieldProblem:
    return FieldProblem(f"{path}.{problem.field}" if problem.field else path, problem.message)
