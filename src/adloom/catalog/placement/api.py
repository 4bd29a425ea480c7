"""What a publisher puts into a page, so that a placement is on it."""

from typing import Annotated
from uuid import UUID

from fastapi import Request
from pydantic import Field

from adloom.catalog.placement.resource import placements
from adloom.resource.api import CurrentCatalog, PublisherReads, build_router
from adloom.runtime.http.api.shapes import Answer


class TagAnswer(Answer):
    """What a publisher copies into a page."""

    slug: str
    script_url: str
    html: Annotated[
        str, Field(description="Two lines: the script, once a page, and the placement where it shall be.")
    ]
    frame_html: Annotated[str, Field(description="For pages that run no script of ours.")]
    page_url: Annotated[str, Field(description="A page with this placement and nothing else, to try it.")]


router = build_router(placements)


@router.get("/{placement_id}/tag")
async def read_tag(
    placement_id: UUID, request: Request, scope: PublisherReads, catalog: CurrentCatalog
) -> TagAnswer:
    """Read what to put into a page, so that the placement is on it."""
    async with catalog.read() as connection:
        placement = await placements.table.find(connection, scope, placement_id)
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
