"""One publisher: its sites and placements, its settings, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.layout import card, facts, heading
from adloom.console.components.status import account_badge
from adloom.console.history import history
from adloom.console.page import Visit, page
from adloom.console.pages.placements.list import NEW as NEW_PLACEMENT
from adloom.console.pages.placements.list import placement_table
from adloom.console.pages.publishers.list import HOME, publisher_fields
from adloom.console.pages.sites.list import site_table
from adloom.console.shell import SELLERS
from adloom.console.things.account_buttons import delete_button
from adloom.console.things.deleted import deleted_notice
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked
from adloom.console.things.settings import thing_settings

TABS: Final = {
    "placements": "Its placements",
    "sites": "Its sites",
    "settings": "Settings",
    "history": "History",
}


@page(f"{HOME}/{{publisher_id}}", title="Publisher", roles=SELLERS)
async def publisher_page(visit: Visit) -> None:
    """Show a publisher."""
    await thing_page(visit, f"/admin/publishers/{visit.parts['publisher_id']}", _build)


async def _build(visit: Visit, publisher: Json, address: str, again: Again) -> None:
    with heading(publisher["name"], crumbs=[("Publishers", HOME)], badge=account_badge(publisher)):
        if visit.may_write and not publisher["deletedAt"]:
            if visit.is_admin:
                delete_button(
                    visit,
                    publisher,
                    address,
                    (
                        "Its people and keys are refused at once, and its placements are closed within two seconds. Offers that are out still count. You can undo this: restored, all that it owns is back as it was."
                    ),
                    again,
                )
            add = ui.button("New placement", icon="add").props("unelevated")
            attributed(add, href=f"{NEW_PLACEMENT}?publisher={publisher['id']}")
    if publisher["deletedAt"]:
        deleted_notice(visit, publisher, address, "Publisher".lower(), again)
    match part_asked(visit, TABS):
        case "sites":
            await site_table(visit, publisherId=publisher["id"]).show()
        case "settings":
            thing_settings(visit, publisher, address, publisher_fields, again, may_write=visit.is_admin)
            with card(classes="al-narrow"):
                facts([("Account id", publisher["id"])])
        case "history":
            await history(visit, "publisher", publisher["id"])
        case _:
            await placement_table(visit, publisherId=publisher["id"]).show()
