"""Making a placement."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import heading, notice
from adloom.console.page import Visit, page
from adloom.console.pages.placements.form import placement_fields
from adloom.console.pages.placements.list import HOME, NEW
from adloom.console.shell import SELLERS

DEFAULTS: Final = {
    "layoutType": "full_static",
    "delivery": "direct",
    "maxBanners": 1,
    "isActive": True,
    "placementType": "banner",
    "floorCpm": 0,
    "auctionScoring": "heuristic",
    "timezone": "UTC",
    "sortOrder": 0,
}


@page(NEW, title="New placement", roles=SELLERS)
async def new_placement(visit: Visit) -> None:
    """Make a placement."""
    with heading("New placement", crumbs=[("Placements", HOME)]):
        pass
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
        return
    given = {"publisherId": visit.query.get("publisher"), "siteId": visit.query.get("site")}
    form = CatalogForm({**DEFAULTS, **given})
    await placement_fields(visit, form, is_new=True)

    async def save() -> None:
        placement = await visit.api.post("/admin/placements", form.creation())
        ui.navigate.to(f"{HOME}/{placement['id']}")

    form.actions("Create", save, on_cancel=lambda: ui.navigate.to(HOME))
