"""A noun, declared once.

`Resource(...)` names the struct, the table and the few rules of a noun. From that come:

- `table`: the SQL (`find`, `page`, `insert`, `update`, `delete`, and what imports and exports need),
- `body`, `patch`, `answer`, `query`: the Pydantic models of the routes, made from the struct,
- `create`, `change`, `patch_thing`, `remove`, `restore`: the writes, with every check, for routes of its own,
- `resource.api.build_router`: POST, GET list, GET, PATCH, DELETE and restore,
- `resource.transfer`: its list in a document that is exported and imported,

A new field is a column, a field of the struct, and a field of the console's form.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Optional, TypeVar
from uuid import UUID

import asyncpg
import msgspec
from pydantic.alias_generators import to_camel

from adloom.core.errors import AdloomError
from adloom.core.ids import IdSource
from adloom.resource.access import Scope
from adloom.resource.account_bounds import Bounds, keep_bounds
from adloom.resource.audit.entry import OWNED_NOUNS
from adloom.resource.changes import CatalogWrite, IndexedNoun, find_creator
from adloom.resource.forms import (
    SET_BY_SERVER,
    Filter,
    Sort,
    build_answer,
    build_body,
    build_patch,
    build_query,
    list_fields,
    make_owner_field,
    read_annotations,
    strip_rules,
)
from adloom.resource.list_spec import ListSpec, Need
from adloom.resource.names import NAME_COLUMNS
from adloom.resource.soft_delete import SoftDeletable
from adloom.resource.table import Owner, ResourceTable
from adloom.runtime.http.api.pages import ListQuery
from adloom.runtime.http.api.shapes import Answer, Body, Patch, Text255
from adloom.runtime.listing import Filters

T = TypeVar("T", bound=msgspec.Struct)
Key = UUID | int

# The thing, the names of the fields that a client gave, and the time.
Finish = Callable[[Any, Collection[str], datetime], Any]
Check = Callable[[CatalogWrite, Scope, Any, Any], Awaitable[None]]
Begin = Callable[[Any, Mapping[str, Any], Scope], Any]
AfterUpdate = Callable[[CatalogWrite, Any, Any], Awaitable[None]]
BeforeDelete = Callable[[CatalogWrite, Any, datetime], Awaitable[None]]


async def _pass(*_arguments: object) -> None:
    pass


def _refuse_nothing(_field: str, _named: object, _thing: object, _scope: Scope) -> None:
    return None


class Resource(msgspec.Struct, Generic[T], frozen=True, kw_only=True, dict=True, eq=False):
    """The declaration of a noun.

    Names:

    - `path`: the address of its list; `tag`: its chapter in the API's documentation,
    - `name`: in code and addresses ("rule": `{rule_id}`, `create_rule`; `function_name` where the latter differs),
    - `noun`: in the audit trail ("targeting_rule"); `words`: in sentences ("targeting rule"),
    - `docs`: sentences that replace the usual ones, by "create", "list", "read", "change", "delete", "restore",
      "body", "answer"; `missing`: the sentence for one that is not there,
    - `title`: the column with what people call one, if any,
    - `code`: how its error codes begin, if not with the noun ("SITE": SITE_NOT_FOUND).

    Storage: see `ResourceTable`.

    Forms. `set_by_server` are fields that clients do not send. `form` replaces or adds fields of the body and
    the patch, `create_form` of the body only; each is an annotation with its default. `decided` are fields that
    others than the owner decide, by routes of their own; in a document an account can only repeat them.

    Lists. `filters` are fields, or conditions of their own; `search` the columns that a text is looked for in, or conditions with `{}` for it;
    `sort` the columns, or orders of their own, to sort by, beside the moments.

    Rules. `finish` checks or completes a thing, new or changed, and returns it. `check` compares it with other
    rows before it is written. `account_bounds` are for numbers that accounts set. `after_update` and `before_delete` do what else a write has to do. `taken` makes
    the error of a unique constraint. `outlives_parent`: it can be deleted also where its parent is.

    Documents. `list_name` is its list, `item_name` one item of it; `natural_key` a field that names one beside the
    id, in the form that `normalize` gives it, and `is_in_the_way` whether another with the same keeps a thing from having it;
    `is_for_all`: everybody may name one. `siblings_max` bounds those of one parent,
    `unique_in_parent` is a field that no two of them have alike, `needs` another row that must be there too.
    `refuse_reference` says what is wrong with naming a row (field, named, thing, scope). `begin` returns a new thing as
    it begins, by the rows that it names and the scope.
    """

    struct: type[T]
    name: str
    table_name: str
    path: str = ""
    tag: str = ""
    function_name: str = ""
    plural: str = ""
    noun: str = ""
    article: str = "a"
    title: str = ""
    code: str = ""
    missing: str = ""
    docs: Mapping[str, str] = {}

    owner: Owner | None = None
    identity: tuple[str, ...] = ("id",)
    identity_column: str = "public_id"
    identity_type: str = "uuid"
    references: Mapping[str, "Resource[Any]"] = {}
    parents: tuple[str, ...] = ()
    touches: tuple[IndexedNoun, str] | None = None
    hides_deleted: bool = False

    set_by_server: frozenset[str] = frozenset()
    decided: tuple[str, ...] = ()
    form: Mapping[str, tuple[Any, Any]] = {}
    create_form: Mapping[str, tuple[Any, Any]] = {}
    query_base: type[ListQuery] = ListQuery

    filters: tuple[str | Filter, ...] = ()
    search: tuple[str, ...] = ()
    sort: tuple[str | Sort, ...] = ()

    finish: Finish = lambda thing, _given, _now: thing
    check: Check = _pass
    account_bounds: Mapping[str, Bounds] = {}
    after_update: AfterUpdate = _pass
    before_delete: BeforeDelete = _pass
    outlives_parent: bool = False
    taken: Callable[[Any], AdloomError] | None = None

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
    begin: Begin = lambda thing, _named, _scope: thing

    def __post_init__(self) -> None:
        if self.owner is not None:
            OWNED_NOUNS[self.owner.role].append(self.noun or self.name)
        if self.title:
            NAME_COLUMNS[self.table_name] = self.title

    @cached_property
    def table(self) -> ResourceTable[T]:
        return ResourceTable(
            struct=self.struct,
            name=self.table_name,
            noun=self.noun or self.name,
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
    def words(self) -> str:
        return self.table.words

    @cached_property
    def plural_name(self) -> str:
        return self.plural or f"{self.function_name or self.name}s"

    @cached_property
    def is_soft_deleted(self) -> bool:
        return issubclass(self.struct, SoftDeletable)

    @cached_property
    def form_fields(self) -> Mapping[str, tuple[Any, Any]]:
        """The fields of the patch, and of the body too."""
        server: set[str] = {*SET_BY_SERVER, *self.set_by_server, *self.decided, *self.identity}
        if self.owner is not None:
            server.add(self.owner.field)
        if not self.table.has_own_owner:
            server.update(self.parents)
        return list_fields(self.struct, but=server) | dict(self.form)

    @cached_property
    def body(self) -> type[Body]:
        fields = {**self.form_fields, **self.create_form}
        annotations = read_annotations(self.struct)
        if self.owner is not None and self.table.has_own_owner:
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

    @cached_property
    def spec(self) -> ListSpec:
        has_moves = "status" in self.set_by_server and hasattr(self.struct, "moved_to")
        return ListSpec(
            name=self.list_name,
            item_name=self.item_name or to_camel(self.table.noun),
            words=self.words,
            struct=self.struct,
            body=self.body,
            patch=self.patch,
            answer=self.answer,
            decisions=self.decisions,
            identity=self.identity,
            id_type=self.identity_type,
            has_own_ids=self.identity_column == "id",
            owner=None if self.owner is None or self.owner.is_itself else self.owner.role,
            owner_field=self.owner.field if self.owner and self.table.has_own_owner else None,
            is_account=self.owner is not None and self.owner.is_itself,
            references={field: other.list_name for field, other in self.references.items()},
            parent=self.parents[0] if self.parents and not self.table.has_own_owner else None,
            needs=self.needs,
            natural_key=self.natural_key,
            normalize=self.normalize,
            is_in_the_way=self.is_in_the_way,
            is_for_all=self.is_for_all,
            siblings_max=self.siblings_max,
            unique_in_parent=self.unique_in_parent,
            status=strip_rules(read_annotations(self.struct)["status"]) if has_moves else None,
            finish=self.finish,
            refuse_reference=self.refuse_reference,
            account_bounds=self.account_bounds,
            begin=self.begin,
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
            before.present()
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
        thing = self.build(body, id=ids.new(), created_by=creator, **moments, **set_by_server)
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
                    parent.present()

    @contextmanager
    def _refuse_repeated(self, thing: T) -> Generator[None]:
        try:
            yield
        except asyncpg.UniqueViolationError as error:
            if self.taken is None:
                raise
            raise self.taken(thing) from error
