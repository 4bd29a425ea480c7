"""Placements over HTTP."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, Request, status
from pydantic import AfterValidator, Field

from adloom.catalog.placement import store
from adloom.catalog.placement.model import (
    PLACEMENT_TYPE_DEFAULT,
    SLUG_LENGTH_MAX,
    SLUG_PATTERN,
    AuctionScoring,
    Delivery,
    Layout,
    Placement,
)
from adloom.core.ids import PlacementId, PublisherId
from adloom.core.money import Micros
from adloom.resource.access import choose_owner
from adloom.resource.api import CurrentCatalog, PublisherReads, PublisherWrites, catalog_router
from adloom.resource.shapes import Price, PriceShown, TimeZone
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import (
    Answer,
    Body,
    Flag,
    Name,
    Natural,
    Patch,
    Positive,
    Text,
    Text20,
    Text100,
    Text255,
    WebAddress,
    make_pattern_check,
)

Slug = Annotated[
    str,
    Field(max_length=SLUG_LENGTH_MAX),
    AfterValidator(
        make_pattern_check(
            SLUG_PATTERN, "must be small letters and digits, in words joined by single hyphens: home-hero"
        )
    ),
]

PlacementType = Annotated[Name, Field(max_length=50)]


class PlacementFields(Body):
    """What a placement can be told."""

    slug: Slug
    label: Name
    layout_type: Layout
    page_context: Text100 | None = None
    max_banners: Positive = 1
    recommended_width: Positive | None = None
    recommended_height: Positive | None = None
    recommended_aspect_ratio: Text20 | None = None
    notes: Text | None = None
    is_active: Flag = True
    sort_order: Natural = 0
    fallback_placeholder_url: WebAddress | None = None
    allow_partial_render: Flag = False
    delivery: Delivery = Delivery.DIRECT
    placement_type: PlacementType = PLACEMENT_TYPE_DEFAULT
    floor_cpm_micros: Annotated[Price, Field(alias="floorCpm")] = Micros(0)
    auction_scoring: AuctionScoring = AuctionScoring.HEURISTIC
    timezone: TimeZone = "UTC"
    site_id: UUID | None = None


class PlacementBody(PlacementFields):
    """A new placement; it is the house's own where no publisher is named."""

    publisher_id: UUID | None = None


class PlacementPatch(Patch, PlacementFields):
    """Changes of a placement."""


class PlacementAnswer(Answer):
    """A placement."""

    id: UUID
    publisher_id: UUID | None
    slug: str
    label: str
    layout_type: Layout
    page_context: str | None
    max_banners: int
    recommended_width: int | None
    recommended_height: int | None
    recommended_aspect_ratio: str | None
    notes: str | None
    is_active: bool
    sort_order: int
    fallback_placeholder_url: str | None
    allow_partial_render: bool
    delivery: Delivery
    placement_type: str
    floor_cpm_micros: Annotated[PriceShown, Field(alias="floorCpm")]
    auction_scoring: AuctionScoring
    timezone: str
    site_id: UUID | None
    created_at: datetime
    updated_at: datetime
    # A placement is removed for good; the field is there because every resource has it.
    deleted_at: None = None


class TagAnswer(Answer):
    """What a publisher copies into a page."""

    slug: str
    script_url: str
    html: Annotated[
        str, Field(description="Two lines: the script, once a page, and the placement where it shall be.")
    ]
    frame_html: Annotated[str, Field(description="For pages that run no script of ours.")]
    page_url: Annotated[str, Field(description="A page with this placement and nothing else, to try it.")]


class PlacementQuery(ListQuery):
    """What a list of placements may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    is_active: bool | None = None
    layout_type: Layout | None = None
    delivery: Delivery | None = None
    publisher_id: UUID | None = None
    site_id: UUID | None = None
    search: Text255 | None = None


router = catalog_router("/admin/placements", tag="placements")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_placement(
    body: PlacementBody, scope: PublisherWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> PlacementAnswer:
    """Make a placement."""
    owner = choose_owner(scope, body.publisher_id, field="publisherId")
    placement = Placement(
        **body.fields(but="publisher_id"),
        id=PlacementId(ids.new()),
        publisher_id=None if owner is None else PublisherId(owner),
        created_at=now,
        updated_at=now,
    )
    async with catalog.write() as write:
        await store.insert(write, placement)
    return PlacementAnswer.model_validate(placement)


@router.get("")
async def list_placements(
    query: Annotated[PlacementQuery, Query()], scope: PublisherReads, catalog: CurrentCatalog
) -> Page[PlacementAnswer]:
    """List placements."""
    filters = store.matching(
        is_active=query.is_active,
        layout_type=query.layout_type,
        delivery=query.delivery,
        search=query.search,
        publisher_id=query.publisher_id,
        site_id=query.site_id,
    )
    async with catalog.read() as connection:
        listed = await store.placements.page(connection, scope, filters, query.page_request)
    return page_of(PlacementAnswer, listed, query)


@router.get("/{placement_id}")
async def read_placement(
    placement_id: UUID, scope: PublisherReads, catalog: CurrentCatalog
) -> PlacementAnswer:
    """Read a placement."""
    async with catalog.read() as connection:
        return PlacementAnswer.model_validate(await store.placements.find(connection, scope, placement_id))


@router.get("/{placement_id}/tag")
async def read_tag(
    placement_id: UUID, request: Request, scope: PublisherReads, catalog: CurrentCatalog
) -> TagAnswer:
    """Read what to put into a page, so that the placement is on it."""
    async with catalog.read() as connection:
        placement = await store.placements.find(connection, scope, placement_id)
    origin: str = request.app.state.delivery_url
    # A slug has small letters, digits and hyphens only: it needs no escaping.
    slug, page_url = placement.slug, f"{origin}/serve/{placement.slug}.html"
    return TagAnswer(
        slug=slug,
        script_url=f"{origin}/tag.js",
        html=f'<script async src="{origin}/tag.js"></script>\n<div data-adloom="{slug}"></div>',
        frame_html=f'<iframe src="{page_url}" title="Advertisement" style="border: 0; width: 100%"></iframe>',
        page_url=page_url,
    )


@router.patch("/{placement_id}")
async def change_placement(
    placement_id: UUID, body: PlacementPatch, scope: PublisherWrites, catalog: CurrentCatalog, now: Now
) -> PlacementAnswer:
    """Change a placement, field by field."""
    async with catalog.write() as write:
        before = await store.placements.find_locked(write, scope, placement_id)
        after = await store.update(write, before, body.apply_to(before, updated_at=now))
    return PlacementAnswer.model_validate(after)


@router.delete("/{placement_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_placement(placement_id: UUID, scope: PublisherWrites, catalog: CurrentCatalog) -> None:
    """Remove a placement on which nothing is shown any more."""
    async with catalog.write() as write:
        await store.delete(write, await store.placements.find_locked(write, scope, placement_id))
