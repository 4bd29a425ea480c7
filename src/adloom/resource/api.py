"""What the nouns' routes have in common: who asks, and the catalog that is asked."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from adloom.core.actor import Role
from adloom.resource.access import Scope, require_admin, require_read, require_write
from adloom.resource.audit.entry import build_author
from adloom.resource.changes import Catalog
from adloom.resource.etag import UNCONDITIONAL, format_etag, parse_if_match
from adloom.runtime.http.api.dependencies import CurrentActor, GuardedRoute
from adloom.runtime.http.api.openapi import NEEDS_A_TOKEN, problems

CHANGING_METHODS: Final = frozenset({"PATCH", "PUT", "DELETE", "POST"})
IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of what you have read: if it has changed since, nothing is written (409).",
    "schema": {"type": "string"},
}


class Stamped(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an answer that names the state of a thing; lists have none."""

    updated_at: datetime | None = None


_decode_stamp = msgspec.json.Decoder(Stamped).decode


class CatalogRoute(GuardedRoute):
    """A guarded route whose answers of a single thing say in which state it is."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - the framework's own
        super().__init__(path, endpoint, **options)
        if set(self.methods or ()) & {"PATCH", "PUT", "DELETE"}:
            self.openapi_extra = {**NEEDS_A_TOKEN, "parameters": [IF_MATCH]}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Read the state off the answer itself, so that no handler has to tell it."""
        handle = super().get_route_handler()

        async def tagged(request: Request) -> Response:
            response = await handle(request)
            is_thing = response.media_type == "application/json" and bytes(response.body[:1]) == b"{"
            updated_at = _decode_stamp(response.body).updated_at if is_thing else None
            if updated_at is not None:
                response.headers["ETag"] = format_etag(updated_at)
            return response

        return tagged


def _catalog(request: Request, actor: CurrentActor) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    changes = request.method in CHANGING_METHODS
    if_match = ", ".join(request.headers.getlist("if-match")) if "if-match" in request.headers else None
    return catalog.written_by(
        build_author(actor, request.state.request_id), parse_if_match(if_match) if changes else UNCONDITIONAL
    )


def _writes_as_admin(actor: CurrentActor) -> Scope:
    return require_admin(actor)


def _reads_as_advertiser(actor: CurrentActor) -> Scope:
    return require_read(actor, Role.ADVERTISER)


def _writes_as_advertiser(actor: CurrentActor) -> Scope:
    return require_write(actor, Role.ADVERTISER)


def _reads_as_publisher(actor: CurrentActor) -> Scope:
    return require_read(actor, Role.PUBLISHER)


def _writes_as_publisher(actor: CurrentActor) -> Scope:
    return require_write(actor, Role.PUBLISHER)


CurrentCatalog = Annotated[Catalog, Depends(_catalog)]
AdminWrites = Annotated[Scope, Depends(_writes_as_admin)]
AdvertiserReads = Annotated[Scope, Depends(_reads_as_advertiser)]
AdvertiserWrites = Annotated[Scope, Depends(_writes_as_advertiser)]
PublisherReads = Annotated[Scope, Depends(_reads_as_publisher)]
PublisherWrites = Annotated[Scope, Depends(_writes_as_publisher)]


def catalog_router(prefix: str, *, tag: str) -> APIRouter:
    """Make the router of a noun: guarded, with the errors that any of its routes may answer."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=CatalogRoute,
        responses=problems(400, 401, 403, 404, 409, 413, 503),
    )
