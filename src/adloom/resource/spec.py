"""The declaration of a noun, as far as it needs no database: its fields for clients, and what an import has to know."""

# pure

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
from pydantic.alias_generators import to_camel

from adloom.core.caller import Role
from adloom.resource.access import Owner, Scope
from adloom.resource.account_bounds import Bounds
from adloom.resource.audit.difference import list_virtual_fields
from adloom.resource.forms import (
    SET_BY_SERVER,
    build_answer,
    build_body,
    build_patch,
    list_fields,
    make_owner_field,
    read_annotations,
    strip_rules,
)
from adloom.runtime.http.api.shapes import Answer, Body, Patch

T = TypeVar("T", bound=msgspec.Struct)
Identity = tuple[Any, ...]
# A struct of some noun: which fields it has, the noun's own rules know.
Item = Any


def _refuse_nothing(_field: str, _named: object, _thing: object, _scope: Scope) -> None:
    return None


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Another item that must be there too, with the same values in its identity; `message` is about `field`."""

    list_name: str
    field: str
    message: str


class ResourceSpec(msgspec.Struct, Generic[T], frozen=True, kw_only=True, dict=True, eq=False):
    """What a noun is to clients and to documents.

    Names:

    - `name`: in code and addresses ("rule": `{rule_id}`, `create_rule`),
    - `noun`: in the audit trail ("targeting_rule"), and with spaces in sentences,
    - `docs`: sentences that replace the usual ones, by "create", "list", "read", "change", "delete", "restore",
      "body", "answer".

    Rows. `identity` are the fields that name one, `references` those that name rows of other nouns, `parents` the
    references that a row cannot be without: where it has no owner field, the first parent's owner is its own.

    Forms. `set_by_server` are fields that clients do not send. `form` replaces or adds fields of the body and
    the patch, `create_form` of the body only; each is an annotation with its default. `decided` are fields that
    others than the owner decide, by routes of their own; in a document an account can only repeat them.

    Rules. `finish` checks or completes a thing, new or changed, and returns it: it gets the thing, the names of the
    fields that a client gave, and the time. `account_bounds` are for numbers that accounts set.

    Documents. `list_name` is its list, `item_name` one item of it; `natural_key` a field that names one beside the
    id, in the form that `normalize` gives it, and `is_in_the_way` whether another with the same keeps a thing from having it;
    `is_for_all`: any account may name one. `siblings_max` bounds those of one parent,
    `unique_in_parent` is a field that no two of them have alike, `needs` another row that must be there too.
    `refuse_reference` says what is wrong with naming a row (field, named, thing, scope). `begin` returns a new thing as
    it begins, by the rows that it names and the scope.
    """

    struct: type[T]
    name: str
    noun: str = ""
    article: str = "a"
    docs: Mapping[str, str] = {}

    owner: Owner | None = None
    identity: tuple[str, ...] = ("id",)
    identity_column: str = "public_id"
    identity_type: str = "uuid"
    references: Mapping[str, "ResourceSpec[Any]"] = {}
    parents: tuple[str, ...] = ()

    set_by_server: frozenset[str] = frozenset()
    decided: tuple[str, ...] = ()
    form: Mapping[str, tuple[Any, Any]] = {}
    create_form: Mapping[str, tuple[Any, Any]] = {}

    finish: Callable[[Any, Collection[str], datetime], Any] = lambda thing, _given, _now: thing
    account_bounds: Mapping[str, Bounds] = {}

    list_name: str = ""
    item_name: str = ""
    natural_key: str | None = None
    normalize: Callable[[str], str] = lambda text: text
    is_in_the_way: Callable[[Any, Any], bool] = lambda _other, _thing: True
    is_for_all: bool = False
    siblings_max: int | None = None
    unique_in_parent: str | None = None
    needs: Need | None = None
    refuse_reference: Callable[[str, Any, Any, Scope], str | None] = _refuse_nothing
    begin: Callable[[Any, Mapping[str, Any], Scope], Any] = lambda thing, _named, _scope: thing

    @cached_property
    def full_noun(self) -> str:
        return self.noun or self.name

    @cached_property
    def words(self) -> str:
        return self.full_noun.replace("_", " ")

    @cached_property
    def kind(self) -> str:
        """What a document calls one item."""
        return self.item_name or to_camel(self.full_noun)

    @cached_property
    def has_own_ids(self) -> bool:
        """Whether clients give the ids, not we."""
        return self.identity_column == "id"

    @cached_property
    def owner_field(self) -> str | None:
        """The struct's field with the owner's id, if there is one."""
        fields = {*self.struct.__struct_fields__} - {*list_virtual_fields(self.struct)}
        return self.owner.field if self.owner is not None and self.owner.field in fields else None

    @cached_property
    def owner_role(self) -> Role | None:
        """The role of the accounts that own rows; accounts themselves have no owner."""
        return None if self.owner is None or self.owner.is_itself else self.owner.role

    @cached_property
    def parent(self) -> str | None:
        """The reference whose owner is the row's, where it has no owner field."""
        return self.parents[0] if self.parents and self.owner_field is None else None

    @cached_property
    def status(self) -> type[StrEnum] | None:
        """The statuses that a document may set, by the moves of the struct."""
        has_moves = "status" in self.set_by_server and hasattr(self.struct, "moved_to")
        return strip_rules(read_annotations(self.struct)["status"]) if has_moves else None

    @cached_property
    def form_fields(self) -> Mapping[str, tuple[Any, Any]]:
        """The fields of the patch, and of the body too."""
        server: set[str] = {*SET_BY_SERVER, *self.set_by_server, *self.decided, *self.identity}
        if self.owner is not None:
            server.add(self.owner.field)
        if self.owner_field is None:
            server.update(self.parents)
        return list_fields(self.struct, but=server) | dict(self.form)

    @cached_property
    def body(self) -> type[Body]:
        fields = {**self.form_fields, **self.create_form}
        annotations = read_annotations(self.struct)
        if self.owner is not None and self.owner_field is not None:
            fields[self.owner.field] = make_owner_field(self.owner)
        elif self.identity == ("id",):
            fields |= {field: (annotations[field], ...) for field in self.parents}
        doc = self.docs.get("body", f"A new {self.words}.")
        return build_body(f"{self.struct.__name__}Body", doc, fields)

    @cached_property
    def patch(self) -> type[Patch]:
        fields = dict(self.form_fields)
        if self.owner is not None and self.owner.is_in_patch:
            fields[self.owner.field] = make_owner_field(self.owner)
        return build_patch(f"{self.struct.__name__}Patch", f"Changes of {self.article} {self.words}.", fields)

    @cached_property
    def decisions(self) -> type[Body]:
        """The fields of a document that others than the owner decide."""
        others = [field for field in self.struct.__struct_fields__ if field not in self.decided]
        return build_body(
            f"{self.struct.__name__}Decisions", "What was decided.", list_fields(self.struct, but=others)
        )

    @cached_property
    def answer(self) -> type[Answer]:
        aliases = {self.owner.field: self.owner.alias} if self.owner else {}
        doc = self.docs.get("answer", f"{self.article.title()} {self.words}.")
        fields = self.struct.__struct_fields__
        # A thing without that moment is removed for good; the field is there because every resource has it.
        never = {"deleted_at": (None, None)} if "id" in fields and "deleted_at" not in fields else {}
        return build_answer(f"{self.struct.__name__}Answer", doc, self.struct, aliases=aliases, **never)

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """How clients call each field that a document may have, in the order of the API's answers."""
        known = {*self.body.model_fields, *self.decisions.model_fields, *self.identity, *self.references}
        known |= {"status"} if self.status else set()
        names = {name: field.alias or name for name, field in self.answer.model_fields.items()}
        return {name: alias for name, alias in names.items() if name in known}

    def identify(self, item: Item) -> Identity:
        return tuple(getattr(item, field) for field in self.identity)

    def find_owner_id(
        self, item: Item, find_parent: Callable[["ResourceSpec[Any]", Item], Item]
    ) -> UUID | None:
        """Return the owner: the item names it, its parent does, or it is an account itself."""
        if self.owner_field is not None:
            return getattr(item, self.owner_field)
        if self.owner is not None and self.owner.is_itself:
            return item.id
        return getattr(find_parent(self, item), f"{self.owner_role}_id") if self.parent else None

    def is_owned_by(self, item: Item, account_id: UUID | None) -> bool:
        """Return whether an item names an account as its owner; None is the house."""
        return self.owner_field is not None and getattr(item, self.owner_field) == account_id


class DocumentLists(msgspec.Struct, frozen=True, dict=True, eq=False):
    """The lists of a document, in the order in which they are written: what others name comes first."""

    specs: tuple[ResourceSpec[Any], ...]

    @cached_property
    def by_name(self) -> Mapping[str, ResourceSpec[Any]]:
        return {spec.list_name: spec for spec in self.specs}

    @cached_property
    def by_kind(self) -> Mapping[str, ResourceSpec[Any]]:
        return {spec.kind: spec for spec in self.specs}

    def list_visible_to(self, role: Role) -> tuple[ResourceSpec[Any], ...]:
        """Return what a role exports: admins and viewers everything, an account what belongs to its role."""
        if role in {Role.ADMIN, Role.VIEWER}:
            return self.specs
        return tuple(spec for spec in self.specs if spec.owner_role is role)
