"""One site: its placements, its settings, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.layout import heading
from adloom.console.components.messages import confirm
from adloom.console.history import history
from adloom.console.page import Visit, page
from adloom.console.pages.placements.list import NEW as NEW_PLACEMENT
from adloom.console.pages.placements.list import placement_table
from adloom.console.pages.sites.list import HOME, site_fields
from adloom.console.shell import SELLERS
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked
from adloom.console.things.settings import thing_settings

TABS: Final = {
    "placements": "Its placements",
    "settings": "Settings",
    "history": "History",
}


@page(f"{HOME}/{{site_id}}", title="Site", roles=SELLERS)
async def site_page(visit: Visit) -> None:
    """Show a site."""
    await thing_page(visit, f"/admin/sites/{visit.parts['site_id']}", _build)


async def _build(visit: Visit, site: Json, address: str, again: Again) -> None:
    async def remove() -> None:
        await visit.api.delete(address)
        ui.navigate.to(HOME)

    def ask() -> None:
        confirm(
            strings.REMOVE_FOR_GOOD.format(name=site["name"]),
            (
                "Its placements stay and go on serving, without a site: what advertisers have blocked by this domain is then shown there. This cannot be undone."
            ),
            action="Remove",
            on_confirm=remove,
            is_dangerous=True,
        )

    with heading(site["name"], note=site["domain"], crumbs=[("Sites", HOME)]):
        if visit.may_write:
            publisher = f"&publisher={site['publisherId']}" if site["publisherId"] else ""
            ui.button("Remove", on_click=ask).props("outline")
            add = ui.button("New placement", icon="add").props("unelevated")
            attributed(add, href=f"{NEW_PLACEMENT}?site={site['id']}{publisher}")
    match part_asked(visit, TABS):
        case "settings":
            thing_settings(visit, site, address, site_fields, again, may_write=visit.may_write)
        case "history":
            await history(visit, "site", site["id"])
        case _:
            await placement_table(visit, siteId=site["id"]).show()
