"""All placements."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.heading import heading
from adloom.console.components.layout_picture import layout_picture
from adloom.console.components.status import switch_badge
from adloom.console.components.table import Column, Table
from adloom.console.navigation import SELLERS
from adloom.console.page import Visit, page
from adloom.console.words import catalog as shared
from adloom.console.words import placements as words

HOME: Final = "/console/placements"
NEW: Final = f"{HOME}/new"


@page(HOME, title=words.PLACEMENTS, roles=SELLERS)
async def placements(visit: Visit) -> None:
    """List placements."""
    with heading(words.PLACEMENTS, note=words.NOTE):
        if visit.may_write:
            ui.button(words.NEW, icon="add").props(f'href="{NEW}" unelevated')
    await placement_table(visit).show()


def placement_table(visit: Visit, **narrowed: str) -> Table:
    """Make a table of placements, of all or of a site or publisher."""

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/placements", **query, **narrowed)

    table = Table(
        visit.query,
        [
            Column(label=words.LABEL, cell=lambda row: row["label"], sort="label"),
            Column(label=words.SLUG, cell=lambda row: row["slug"], sort="slug", is_wide_only=True),
            Column(
                label=shared.ON_OR_OFF, cell=lambda row: switch_badge(is_on=row["isActive"]), sort="isActive"
            ),
            Column(label=words.LAYOUT, cell=lambda row: layout_picture(row["layoutType"]), is_wide_only=True),
            Column(label=words.DELIVERY, cell=lambda row: words.DELIVERIES[row["delivery"]], sort="delivery"),
            Column(
                label=words.SLOTS, cell=lambda row: str(row["maxBanners"]), is_number=True, is_wide_only=True
            ),
            Column(
                label=shared.CHANGED,
                cell=lambda row: ago(row["updatedAt"], now=visit.now),
                sort="updatedAt",
                is_wide_only=True,
            ),
        ],
        read,
        href=lambda row: f"{HOME}/{row['id']}",
        sort="-createdAt",
        empty=("view_quilt", words.EMPTY, words.EMPTY_NOTE),
        empty_action=(words.NEW, NEW) if visit.may_write else None,
        caption=words.PLACEMENTS,
    )
    table.search(words.SEARCH)
    table.filter("isActive", shared.ON_OR_OFF, {"true": shared.ACTIVE, "false": shared.INACTIVE})
    table.filter("layoutType", words.LAYOUT, words.LAYOUTS)
    table.filter("delivery", words.DELIVERY, words.DELIVERIES)
    return table
