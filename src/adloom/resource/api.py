"""The routes of a noun, and what all routes share: who asks, the catalog, ETags."""

from collections.abc import Callable, Collection, Coroutine
from datetime import datetime
from typing import Annotated, Any, Final, Protocol, TypeVar
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response, status

from adloom.core.caller import Role
from adloom.core.ids import IdSource
from adloom.resource.access import (
    ADVERTISER,
    PUBLISHER,
    Owner,
    Scope,
    choose_owner,
    require_admin,
    require_read,
    require_write,
)
from adloom.resource.audit.entry import build_author
from adloom.resource.changes import Catalog, CatalogWrite
from adloom.resource.etag import IF_MATCH_PATTERN, UNCONDITIONAL, format_etag, parse_if_match
from adloom.resource.resource import Resource
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    GuardedRoute,
    Ids,
    Now,
    describe_problems,
)
from adloom.runtime.http.api.origin import find_origin
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Patch

T = TypeVar("T", bound=msgspec.Struct)
H = TypeVar("H", bound=Callable[..., Any])

CHANGING_METHODS: Final = frozenset({"PATCH", "PUT", "DELETE", "POST"})
IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of what you have read: if it has changed since, nothing is written (409).",
    "schema": {"type": "string", "pattern": IF_MATCH_PATTERN},
}


class Stamped(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an answer that names the state of a thing; lists have none."""

    updated_at: datetime | None = None


_decode_stamp = msgspec.json.Decoder(Stamped).decode


class CatalogRoute(GuardedRoute):
    """A guarded route whose answers of a single thing say in which state it is."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - the framework's own
        if set(options["methods"]) & {"PATCH", "PUT", "DELETE"} or path.endswith("/restore"):
            options["openapi_extra"] = {"parameters": [IF_MATCH]}
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Read the state off the answer itself, so that no handler has to set the header."""
        handle = super().get_route_handler()

        async def answer_with_etag(request: Request) -> Response:
            response = await handle(request)
            is_thing = response.media_type == "application/json" and bytes(response.body[:1]) == b"{"
            updated_at = _decode_stamp(response.body).updated_at if is_thing else None
            if updated_at is not None:
                response.headers["ETag"] = format_etag(updated_at)
            return response

        return answer_with_etag


async def _get_catalog(request: Request, caller: CurrentCaller) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    changes = request.method in CHANGING_METHODS
    if_match = ", ".join(request.headers.getlist("if-match")) if "if-match" in request.headers else None
    origin = find_origin(request)
    return catalog.with_author(
        build_author(caller, origin.request_id, origin.network),
        parse_if_match(if_match) if changes else UNCONDITIONAL,
    )


class Writer(Protocol):
    """A client that may write: in which scope, and whose a new thing becomes; its body may name an account."""

    def find_scope(self, named: UUID | None) -> Scope: ...

    def find_owner(self, named: UUID | None) -> UUID | None: ...


class RoleWriter(msgspec.Struct, frozen=True):
    """An admin, or an account that writes its own rows; `field` is how a body calls the owner."""

    scope: Scope
    field: str = ""

    def find_scope(self, named: UUID | None) -> Scope:  # noqa: ARG002 - a patch names no owner here
        return self.scope

    def find_owner(self, named: UUID | None) -> UUID | None:
        return choose_owner(self.scope, named, field=self.field)


class Access(msgspec.Struct, frozen=True):
    """Dependencies that decide who reads (a `Scope`) and who writes (a `Writer`)."""

    reads: Callable[..., Coroutine[Any, Any, Scope]]
    writes: Callable[..., Coroutine[Any, Any, Writer]]


def choose_access(owner: Owner) -> Access:
    """Let accounts of the owner's role read and write their own rows; accounts themselves are written by admins."""

    async def scope_reads(caller: CurrentCaller) -> Scope:
        return require_read(caller, owner.role)

    async def scope_writes(caller: CurrentCaller) -> Writer:
        scope = require_admin(caller) if owner.is_itself else require_write(caller, owner.role)
        return RoleWriter(scope, owner.alias)

    return Access(scope_reads, scope_writes)


async def _scope_writes_as_admin(caller: CurrentCaller) -> Scope:
    return require_admin(caller)


async def _scope_writes_as_advertiser(caller: CurrentCaller) -> Scope:
    return require_write(caller, Role.ADVERTISER)


async def _scope_writes_as_publisher(caller: CurrentCaller) -> Scope:
    return require_write(caller, Role.PUBLISHER)


CurrentCatalog = Annotated[Catalog, Depends(_get_catalog)]
AdminWrites = Annotated[Scope, Depends(_scope_writes_as_admin)]
AdvertiserReads = Annotated[Scope, Depends(choose_access(ADVERTISER).reads)]
AdvertiserWrites = Annotated[Scope, Depends(_scope_writes_as_advertiser)]
PublisherReads = Annotated[Scope, Depends(choose_access(PUBLISHER).reads)]
PublisherWrites = Annotated[Scope, Depends(_scope_writes_as_publisher)]


def make_catalog_router(prefix: str, *, tag: str) -> APIRouter:
    """Make a guarded router, with the errors that any of its routes may answer."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=CatalogRoute,
        responses=describe_problems(400, 401, 403, 404, 409, 413, 503),
    )


def build_router(
    resource: Resource[Any], *, access: Access | None = None, but: Collection[str] = ()
) -> APIRouter:
    """Make the routes of a noun; `but` names those that it writes itself, like "create"."""
    assert resource.owner is not None, "who may read is known by whose it is"
    router = make_catalog_router(resource.path, tag=resource.tag)
    routes = _Routes(resource, access or choose_access(resource.owner))
    a_thing, one = f"{resource.article} {resource.words}", f"/{{{resource.name}_id}}"
    also = ", also one that is deleted" if resource.is_soft_deleted else ""
    restorable = "; it can be restored" if resource.is_soft_deleted else ""
    many = resource.plural_name.replace("_", " ")
    plans = (
        ("create", "POST", "", f"Make {a_thing}.", resource.answer),
        ("list", "GET", "", f"List {many}.", Page[resource.answer]),
        ("read", "GET", one, f"Read {a_thing}{also}.", resource.answer),
        ("change", "PATCH", one, f"Change {a_thing}, field by field.", resource.answer),
        ("delete", "DELETE", one, f"Delete {a_thing}{restorable}.", None),
        ("restore", "POST", f"{one}/restore", f"Bring a deleted {resource.words} back.", resource.answer),
    )
    for action, method, path, sentence, answer in plans:
        if action not in but and (action != "restore" or resource.is_soft_deleted):
            router.add_api_route(
                path,
                getattr(routes, action)(),
                methods=[method],
                name=f"{action}_{resource.plural_name if action == 'list' else resource.function_name or resource.name}",
                description=resource.docs.get(action, sentence),
                response_model=answer,
                status_code={"create": status.HTTP_201_CREATED, "delete": status.HTTP_204_NO_CONTENT}.get(
                    action
                ),
            )
    return router


def add_change_route(  # noqa: PLR0913 - a route is that much
    router: APIRouter,
    resource: Resource[T],
    action: str,
    rule: Callable[[T, Any, datetime], T],
    *,
    description: str,
    body: type[Body] | None = None,
    is_body_optional: bool = False,
    method: str = "PATCH",
    name: str | None = None,
) -> None:
    """Add a route that changes a thing by a rule of its own: a move, a part of its fields."""
    assert resource.owner is not None, "who may write is known by whose it is"
    routes = _Routes(resource, choose_access(resource.owner))
    router.add_api_route(
        f"/{{{resource.name}_id}}/{action}",
        routes.apply_rule(rule, body, is_body_optional=is_body_optional),
        methods=[method],
        name=name or f"{action}_{resource.name}",
        description=description,
        response_model=resource.answer,
    )


class _Routes:
    """Makes the handlers of a noun: FastAPI reads off their annotations what to decode."""

    def __init__(self, resource: Resource[Any], access: Access) -> None:
        self._resource = resource
        self._types: dict[str, Any] = {
            "thing_id": Annotated[UUID, Path(alias=f"{resource.name}_id")],
            "scope": Annotated[Scope, Depends(access.reads)],
            "writer": Annotated[Writer, Depends(access.writes)],
        }

    def create(self) -> Callable[..., Any]:
        resource = self._resource

        async def create(body: Body, writer: Writer, catalog: CurrentCatalog, ids: Ids, now: Now) -> Answer:
            async with catalog.write() as write:
                thing = await create_in(write, resource, writer, body, ids, now)
            return resource.answer.model_validate(thing)

        return self._set_types(create, body=resource.body)

    def list(self) -> Callable[..., Any]:
        resource = self._resource

        async def list_page(query: ListQuery, scope: Scope, catalog: CurrentCatalog) -> Page[Answer]:
            async with catalog.read() as connection:
                filters = resource.build_filters(query)
                listed = await resource.table.read_page(connection, scope, filters, query.page_request)
            return build_page(resource.answer, listed, query)

        return self._set_types(list_page, query=Annotated[resource.query, Query()])

    def read(self) -> Callable[..., Any]:
        resource = self._resource

        async def read(thing_id: UUID, scope: Scope, catalog: CurrentCatalog) -> Answer:
            async with catalog.read() as connection:
                return resource.answer.model_validate(await resource.table.find(connection, scope, thing_id))

        return self._set_types(read)

    def change(self) -> Callable[..., Any]:
        resource = self._resource

        async def change(
            thing_id: UUID, body: Patch, writer: Writer, catalog: CurrentCatalog, now: Now
        ) -> Answer:
            scope = writer.find_scope(find_named_owner(resource, body))
            async with catalog.write() as write:
                after = await resource.change(
                    write, scope, thing_id, lambda before: resource.apply(body, before, now)
                )
            return resource.answer.model_validate(after)

        return self._set_types(change, body=resource.patch)

    def apply_rule(
        self,
        rule: Callable[[Any, Any, datetime], Any],
        body_type: type[Body] | None,
        *,
        is_body_optional: bool = False,
    ) -> Callable[..., Any]:
        resource = self._resource

        async def apply(
            thing_id: UUID, writer: Writer, catalog: CurrentCatalog, now: Now, body: Body | None = None
        ) -> Answer:
            async with catalog.write() as write:
                after = await resource.change(
                    write, writer.find_scope(None), thing_id, lambda before: rule(before, body, now)
                )
            return resource.answer.model_validate(after)

        async def apply_body(
            thing_id: UUID, body: Body, writer: Writer, catalog: CurrentCatalog, now: Now
        ) -> Answer:
            return await apply(thing_id, writer, catalog, now, body)

        async def apply_alone(thing_id: UUID, writer: Writer, catalog: CurrentCatalog, now: Now) -> Answer:
            return await apply(thing_id, writer, catalog, now)

        if body_type is None:
            return self._set_types(apply_alone)
        if is_body_optional:
            return self._set_types(apply, body=body_type | None)
        return self._set_types(apply_body, body=body_type)

    def delete(self) -> Callable[..., Any]:
        resource = self._resource

        async def delete(thing_id: UUID, writer: Writer, catalog: CurrentCatalog, now: Now) -> None:
            async with catalog.write() as write:
                await resource.remove(write, writer.find_scope(None), thing_id, now=now)

        return self._set_types(delete)

    def restore(self) -> Callable[..., Any]:
        def restore(deleted: SoftDeletable, _body: None, now: datetime) -> SoftDeletable:
            return deleted.restored(now)

        return self.apply_rule(restore, None)

    def _set_types(self, handler: Callable[..., Any], **types: object) -> Callable[..., Any]:
        for name, annotation in {**self._types, **types}.items():
            if name in handler.__annotations__:
                handler.__annotations__[name] = annotation
        return handler


def set_body_type(model: type[Body]) -> Callable[[H], H]:
    """Let FastAPI decode the `body` of a handler as a model that was made from a struct."""

    def decorate(handler: H) -> H:
        handler.__annotations__["body"] = model
        return handler

    return decorate


async def create_in(  # noqa: PLR0913, PLR0917 - a body, and who sends it when
    write: CatalogWrite, resource: Resource[T], writer: Writer, body: Body, ids: IdSource, now: datetime
) -> T:
    """Add a thing for a client, which becomes its owner or names it."""
    named = find_named_owner(resource, body)
    owner: dict[str, object] = {}
    if resource.table.has_own_owner and resource.owner is not None:
        owner = {resource.owner.field: writer.find_owner(named)}
    return await resource.create(write, writer.find_scope(named), body, ids=ids, now=now, **owner)


def find_named_owner(resource: Resource[Any], body: Body) -> UUID | None:
    """Return the owner that a body names; null is none, as if it were left out."""
    field = resource.owner.field if resource.owner else ""
    return getattr(body, field) if field in body.model_fields_set else None
