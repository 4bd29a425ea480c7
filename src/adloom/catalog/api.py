"""What the nouns' routes have in common: who asks, and the catalog that is asked."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from adloom.catalog.access import Scope, reading_scope, writing_scope
from adloom.catalog.changes import Catalog
from adloom.core.actor import Role
from adloom.runtime.http.dependencies import CurrentActor, GuardedRoute
from adloom.runtime.http.openapi import problems


def _catalog(request: Request) -> Catalog:
    return request.app.state.catalog


def _reads_as_advertiser(actor: CurrentActor) -> Scope:
    return reading_scope(actor, Role.ADVERTISER)


def _writes_as_advertiser(actor: CurrentActor) -> Scope:
    return writing_scope(actor, Role.ADVERTISER)


def _reads_as_publisher(actor: CurrentActor) -> Scope:
    return reading_scope(actor, Role.PUBLISHER)


def _writes_as_publisher(actor: CurrentActor) -> Scope:
    return writing_scope(actor, Role.PUBLISHER)


CatalogOfTheApp = Annotated[Catalog, Depends(_catalog)]
AdvertiserReads = Annotated[Scope, Depends(_reads_as_advertiser)]
AdvertiserWrites = Annotated[Scope, Depends(_writes_as_advertiser)]
PublisherReads = Annotated[Scope, Depends(_reads_as_publisher)]
PublisherWrites = Annotated[Scope, Depends(_writes_as_publisher)]


def catalog_router(prefix: str, *, tag: str) -> APIRouter:
    """Make the router of a noun: guarded, with the errors that any of its routes may answer."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=GuardedRoute,
        responses=problems(400, 401, 403, 404, 409, 413, 503),
    )
