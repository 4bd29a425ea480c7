"""A noun, declared once.

`Resource(...)` names the struct, the table and the few rules of a noun. From that come:

- `table`: the SQL (`find`, `page`, `insert`, `update`, `delete`, and what imports and exports need),
- `body`, `patch`, `answer`, `query`: the Pydantic models of the routes, made from the struct,
- `create`, `change`, `patch_thing`, `remove`, `restore`: the writes, with every check, for routes of its own,
- `resource.api.build_router`: POST, GET list, GET, PATCH, DELETE and restore,
- `resource.transfer`: its list in a document that is exported and imported,

A new field is a column, a field of the struct, and a field of the console's form.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Generic, Optional, TypeVar, get_args
from uuid import UUID

import asyncpg
import msgspec
from pydantic import Field, create_model
from pydantic.alias_generators import to_camel

from adloom.core.errors import AdloomError
from adloom.core.ids import IdSource
from adloom.resource.access import Scope
from adloom.resource.account_bounds import keep_bounds
from adloom.resource.audit.entry import OWNED_NOUNS
from adloom.resource.changes import CatalogWrite, IndexedNoun, find_creator
from adloom.resource.forms import find_alias, read_annotations, strip_rules
from adloom.resource.names import NAME_COLUMNS
from adloom.resource.soft_delete import SoftDeletable
from adloom.resource.spec import ResourceSpec
from adloom.resource.table import ResourceTable
from adloom.runtime.http.api.pages import ListQuery
from adloom.runtime.http.api.shapes import INT4_MAX, Body, Patch, Text255
from adloom.runtime.listing import Filters

T = TypeVar("T", bound=msgspec.Struct)
Key = UUID | int

Check = Callable[[CatalogWrite, Scope, Any, Any], Awaitable[None]]
AfterUpdate = Callable[[CatalogWrite, Any, Any], Awaitable[None]]
BeforeDelete = Callable[[CatalogWrite, Any, datetime], Awaitable[None]]


async def _pass(*_arguments: object) -> None:
    pass


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What a list may be narrowed to: `condition` is SQL with `{}` where the value goes."""

    name: str
    annotation: Any
    condition: str


class Sort(msgspec.Struct, frozen=True, kw_only=True):
    """An order of a list that is not that of a column; rows without a value come last."""

    name: str
    expression: str


class Resource(ResourceSpec[T], Generic[T], frozen=True, kw_only=True, dict=True, eq=False):
    """The declaration of a noun: what `ResourceSpec` has, and how it is stored, listed and written.

    - `path`: the address of its list; `tag`: its chapter in the API's documentation,
    - `function_name`: in the names of functions, where that is not `name`; `plural` likewise of several,
    - `title`: the column with what people call one, if any,
    - `code`: how its error codes begin, if not with the noun ("SITE": SITE_NOT_FOUND); `missing`: the sentence for
      one that is not there.

    Storage: see `ResourceTable`.

    Lists. `filters` are fields, or conditions of their own; `search` the columns that a text is looked for in, or
    conditions with `{}` for it; `sort` the columns, or orders of their own, to sort by, beside the moments.

    Rules. `check` compares a thing with other rows before it is written. `after_update` and `before_delete` do what
    else a write has to do. `taken` makes the error of a unique constraint. `outlives_parent`: it can be deleted also
    where its parent is.
    """

    table_name: str
    path: str = ""
    tag: str = ""
    function_name: str = ""
    plural: str = ""
    title: str = ""
    code: str = ""
    missing: str = ""

    references: Mapping[str, "Resource[Any]"] = {}
    touches: tuple[IndexedNoun, str] | None = None
    hides_deleted: bool = False

    query_base: type[ListQuery] = ListQuery
    filters: tuple[str | Filter, ...] = ()
    search: tuple[str, ...] = ()
    sort: tuple[str | Sort, ...] = ()

    check: Check = _pass
    after_update: AfterUpdate = _pass
    before_delete: BeforeDelete = _pass
    outlives_parent: bool = False
    taken: Callable[[Any], AdloomError] | None = None

    def __post_init__(self) -> None:
        if self.owner is not None:
            OWNED_NOUNS[self.owner.role].append(self.full_noun)
        if self.title:
            NAME_COLUMNS[self.table_name] = self.title

    @cached_property
    def table(self) -> ResourceTable[T]:
        return ResourceTable(
            struct=self.struct,
            name=self.table_name,
            noun=self.full_noun,
            code=self.code,
            missing=self.missing,
            owner=self.owner,
            identity=self.identity,
            identity_column=self.identity_column,
            identity_type=self.identity_type,
            references={field: other.table for field, other in self.references.items()},
            parents=self.parents,
            touches=self.touches,
            hides_deleted=self.hides_deleted,
        )

    @cached_property
    def plural_name(self) -> str:
        return self.plural or f"{self.function_name or self.name}s"

    @cached_property
    def is_soft_deleted(self) -> bool:
        return issubclass(self.struct, SoftDeletable)

    @cached_property
    def query(self) -> type[ListQuery]:
        extra: dict[str, Any] = {"include_deleted": (bool, False)} if self.is_soft_deleted else {}
        extra |= {"search": (Optional[Text255], None)} if self.search else {}  # noqa: UP045 - a value, not an annotation
        return build_query(
            f"{self.struct.__name__}Query",
            f"How a list of {self.plural_name.replace('_', ' ')} is filtered, sorted and paged.",
            self.query_base,
            struct=self.struct,
            filters=self.filters,
            sortable=self.sort,
            extra=extra,
        )

    def build_filters(self, query: ListQuery) -> Filters:
        filters = Filters()
        for item in self.filters:
            if isinstance(item, Filter):
                filters.add_given(item.condition, getattr(query, item.name))
            else:
                filters.add_given(f"{self.table.build_outside_sql(item)} = {{}}", getattr(query, item))
        if self.search:
            text: str | None = getattr(query, "search")  # noqa: B009 - made by `query` above
            columns = [column if "{}" in column else f"it.{column}" for column in self.search]
            filters.add_search(columns, text)
        if self.is_soft_deleted and not getattr(query, "include_deleted"):  # noqa: B009 - likewise
            filters.add("it.deleted_at IS NULL")
        return filters

    def build(self, body: Body, **set_by_server: object) -> T:
        """Make a new thing of a body and of what the server sets."""
        known = {*self.struct.__struct_fields__}
        given = {name: value for name, value in body.to_fields().items() if name in known}
        return self.struct(**given | {name: value for name, value in set_by_server.items() if name in known})

    def apply(self, patch: Patch, before: T, now: datetime) -> T:
        if isinstance(before, SoftDeletable):
            before.require_present()
        known = {*self.table.fields} - ({self.owner.field} if self.owner else set())
        besides = {"updated_at": now} if "updated_at" in known else {}
        after = patch.apply_to(before, only=known, **besides)
        return self.finish(after, patch.model_fields_set, now)

    async def create(
        self,
        write: CatalogWrite,
        scope: Scope,
        body: Body,
        *,
        ids: IdSource,
        now: datetime,
        **set_by_server: object,
    ) -> T:
        creator = await find_creator(write) if "created_by" in self.struct.__struct_fields__ else None
        moments = {"created_at": now, "updated_at": now, "deleted_at": None}
        thing = self.build(body, id=ids.make(), created_by=creator, **moments, **set_by_server)
        thing = self.finish(thing, body.model_fields_set, now)
        thing = keep_bounds(self.account_bounds, None, thing, scope, given=body.model_fields_set)
        await self._lock_parents(write, scope, None, thing)
        await self.check(write, scope, None, thing)
        await self.insert(write, thing)
        return thing

    async def insert(self, write: CatalogWrite, thing: T) -> None:
        """Add a thing that was checked before."""
        with self._refuse_repeated(thing):
            await self.table.insert(write, thing)

    async def change(self, write: CatalogWrite, scope: Scope, thing_id: Key, rule: Callable[[T], T]) -> T:
        """Change a thing by a rule, if it is in the state that the client knows."""
        before = await self.lock(write, scope, thing_id)
        return await self.update(write, scope, before, rule(before))

    async def update(self, write: CatalogWrite, scope: Scope, before: T, after: T) -> T:
        """Write a changed thing that was locked before, and return it as it is now."""
        after = keep_bounds(self.account_bounds, before, after, scope)
        await self._lock_parents(write, scope, before, after)
        await self.check(write, scope, before, after)
        with self._refuse_repeated(after):
            updated = await self.table.update(write, before, after)
        await self.after_update(write, before, after)
        return updated

    async def remove(self, write: CatalogWrite, scope: Scope, thing_id: Key, *, now: datetime) -> None:
        """Delete a thing: out of sight where it has a moment for that, else for good."""
        thing = await self.lock(write, scope, thing_id, is_parent_deleted_ok=self.outlives_parent)
        await self.before_delete(write, thing, now)
        if isinstance(thing, SoftDeletable):
            await self.update(write, scope, thing, thing.deleted(now))
        elif "deleted_at" in self.table.fields:
            await self.table.update(
                write, thing, msgspec.structs.replace(thing, deleted_at=now, updated_at=now)
            )
        else:
            await self.table.delete(write, thing)

    async def lock(
        self, write: CatalogWrite, scope: Scope, thing_id: Key, *, is_parent_deleted_ok: bool = False
    ) -> T:
        """Read a thing to change it. A parent that owns it is locked first, as every write does."""
        if self.parents and not self.table.has_own_owner:
            found = await self.table.find(write.connection, scope, thing_id)
            await self._lock_parents(write, scope, None, found, is_deleted_ok=is_parent_deleted_ok)
        return await self.table.find_locked(write, scope, thing_id)

    async def _lock_parents(
        self, write: CatalogWrite, scope: Scope, before: T | None, after: T, *, is_deleted_ok: bool = False
    ) -> None:
        for field in self.parents:
            if before is None or getattr(before, field) != getattr(after, field):
                parent = await self.references[field].table.lock(write, scope, getattr(after, field))
                if not is_deleted_ok and isinstance(parent, SoftDeletable):
                    parent.require_present()

    @contextmanager
    def _refuse_repeated(self, thing: T) -> Generator[None]:
        try:
            yield
        except asyncpg.UniqueViolationError as error:
            if self.taken is None:
                raise
            raise self.taken(thing) from error


def build_query(  # noqa: PLR0913 - what a list may be asked
    name: str,
    doc: str,
    base: type[ListQuery],
    *,
    struct: type[msgspec.Struct],
    filters: Sequence[str | Filter],
    sortable: Collection[str | Sort],
    extra: Mapping[str, Any],
) -> type[ListQuery]:
    annotations = read_annotations(struct)
    fields: dict[str, Any] = {}
    for item in filters:
        if isinstance(item, Filter):
            fields[item.name] = (item.annotation | None, None)
        else:
            fields[item] = (_filter_type(item, annotations[item]), None)
    query = create_model(name, __base__=base, __doc__=doc, **fields, **extra)
    names = [one.name if isinstance(one, Sort) else one for one in sortable]
    query.SORTABLE = frozenset({"created_at", "updated_at", *names})
    query.EXPRESSIONS = {one.name: one.expression for one in sortable if isinstance(one, Sort)}
    query.describe_sort()
    return query


def _filter_type(name: str, annotation: object) -> Any:  # noqa: ANN401 - a type
    alias = find_alias(name, annotation)
    plain = strip_rules(annotation) | None
    is_number = int in get_args(plain)
    return Annotated[
        plain,
        Field(
            alias=None if alias == to_camel(name) else alias,
            ge=0 if is_number else None,
            le=INT4_MAX if is_number else None,
        ),
    ]
