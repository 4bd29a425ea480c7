"""One list of a document: what an import has to know about its items, without a database."""

# pure

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

import msgspec

from adloom.core.caller import Role
from adloom.resource.access import Scope
from adloom.resource.account_bounds import Bounds
from adloom.runtime.http.api.shapes import Answer, Body, Patch

Identity = tuple[Any, ...]
# A struct of some list: which fields it has, the list's own rules know.
Item = Any


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Another item that must be there too, with the same values in its identity; `message` is about `field`."""

    list_name: str
    field: str
    message: str


class ListSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """One list of a document, made from a `Resource`, which says what its fields mean.

    `references` are the fields that name items of other lists, `parent` the one whose owner is the item's where
    it has no owner field. `has_own_ids`: ids are given by clients, not by us. `status` are the statuses that a
    document may set, by the moves of the struct. `decisions` are the fields that only an admin's document changes.
    """

    name: str
    item_name: str
    words: str
    struct: type[msgspec.Struct]
    body: type[Body]
    patch: type[Patch]
    answer: type[Answer]
    decisions: type[Body]
    identity: tuple[str, ...]
    id_type: str
    has_own_ids: bool
    owner: Role | None
    owner_field: str | None
    is_account: bool
    references: Mapping[str, str]
    parent: str | None
    needs: Need | None
    natural_key: str | None
    normalize: Callable[[str], str]
    is_in_the_way: Callable[[Item, Item], bool]
    is_for_all: bool
    siblings_max: int | None
    unique_in_parent: str | None
    status: type[StrEnum] | None
    finish: Callable[[Item, Collection[str], datetime], Item]
    refuse_reference: Callable[[str, Item, Item, Scope], str | None]
    account_bounds: Mapping[str, Bounds]
    begin: Callable[[Item, Mapping[str, Any], Scope], Item]

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """How clients call each field that a document may have, in the order of the API's answers."""
        known = {*self.body.model_fields, *self.decisions.model_fields, *self.identity, *self.references}
        known |= {"status"} if self.status else set()
        names = {name: field.alias or name for name, field in self.answer.model_fields.items()}
        return {name: alias for name, alias in names.items() if name in known}

    def identify(self, item: Item) -> Identity:
        return tuple(getattr(item, field) for field in self.identity)

    def find_owner_id(self, item: Item, find_parent: Callable[["ListSpec", Item], Item]) -> UUID | None:
        """Return the owner: the item names it, its parent does, or it is an account itself."""
        if self.owner_field is not None:
            return getattr(item, self.owner_field)
        if self.is_account:
            return item.id
        return getattr(find_parent(self, item), f"{self.owner}_id") if self.parent else None

    def is_owned_by(self, item: Item, account_id: UUID | None) -> bool:
        """Return whether an item names an account as its owner; None is the house."""
        return self.owner_field is not None and getattr(item, self.owner_field) == account_id


class DocumentLists(msgspec.Struct, frozen=True, dict=True, eq=False):
    """The lists of a document, in the order in which they are written: what others name comes first."""

    specs: tuple[ListSpec, ...]

    @cached_property
    def by_name(self) -> Mapping[str, ListSpec]:
        return {spec.name: spec for spec in self.specs}

    @cached_property
    def by_item_name(self) -> Mapping[str, ListSpec]:
        return {spec.item_name: spec for spec in self.specs}

    def list_visible_to(self, role: Role) -> tuple[ListSpec, ...]:
        """Return what a role exports: admins and viewers everything, an account what belongs to its role."""
        if role in {Role.ADMIN, Role.VIEWER}:
            return self.specs
        return tuple(spec for spec in self.specs if spec.owner is role)
