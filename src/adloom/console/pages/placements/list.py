"""All placements."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.banner_preview import layout_picture
from adloom.console.components.format import ago
from adloom.console.components.layout import heading
from adloom.console.components.status import switch_badge
from adloom.console.components.table import Column, Table
from adloom.console.page import Visit, page
from adloom.console.shell import SELLERS

HOME: Final = "/console/placements"
NEW: Final = f"{HOME}/new"


@page(HOME, title="Placements", roles=SELLERS)
async def placements(visit: Visit) -> None:
    """List placements."""
    with heading("Placements", note="A slot on a page, with a name that the page asks for."):
        if visit.may_write:
            ui.button("New placement", icon="add").props(f'href="{NEW}" unelevated')
    await placement_table(visit).show()


def placement_table(visit: Visit, **narrowed: str) -> Table:
    """Make a table of placements, of all or of a site or publisher."""

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/placements", **query, **narrowed)

    table = Table(
        visit.query,
        [
            Column(label="Label", cell=lambda row: row["label"], sort="label"),
            Column(label="Slug", cell=lambda row: row["slug"], sort="slug", is_wide_only=True),
            Column(label="On or off", cell=lambda row: switch_badge(is_on=row["isActive"]), sort="isActive"),
            Column(label="Layout", cell=lambda row: layout_picture(row["layoutType"]), is_wide_only=True),
            Column(label="Filled by", cell=lambda row: strings.DELIVERIES[row["delivery"]], sort="delivery"),
            Column(label="Slots", cell=lambda row: str(row["maxBanners"]), is_number=True, is_wide_only=True),
            Column(
                label="Changed",
                cell=lambda row: ago(row["updatedAt"], now=visit.now),
                sort="updatedAt",
                is_wide_only=True,
            ),
        ],
        read,
        href=lambda row: f"{HOME}/{row['id']}",
        sort="-createdAt",
        empty=(
            "view_quilt",
            "No placements yet",
            "A placement is where ads appear on a page. It needs a slug and a layout.",
        ),
        empty_action=("New placement", NEW) if visit.may_write else None,
        caption="Placements",
    )
    table.search("Search by slug, label or page")
    table.filter("isActive", "On or off", {"true": "On", "false": "Off"})
    table.filter("layoutType", "Layout", strings.LAYOUTS)
    table.filter("delivery", "Filled by", strings.DELIVERIES)
    return table
