"""One publisher: its sites and placements, its settings, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.heading import card, facts, heading
from adloom.console.components.status import account_badge
from adloom.console.navigation import SELLERS
from adloom.console.page import Visit, page
from adloom.console.pages.placements.list import NEW as NEW_PLACEMENT
from adloom.console.pages.placements.list import placement_table
from adloom.console.pages.publishers.list import HOME, publisher_fields
from adloom.console.pages.sites.list import site_table
from adloom.console.things.account_buttons import delete_button
from adloom.console.things.deleted import deleted_notice
from adloom.console.things.history import history
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked
from adloom.console.things.settings import thing_settings
from adloom.console.words import accounts as words
from adloom.console.words import catalog as shared
from adloom.console.words import placements as placement_words

TABS: Final = {
    "placements": words.PLACEMENTS_OF,
    "sites": words.SITES_OF,
    "settings": shared.TAB_SETTINGS,
    "history": shared.TAB_HISTORY,
}


@page(f"{HOME}/{{publisher_id}}", title=words.PUBLISHER, roles=SELLERS)
async def publisher_page(visit: Visit) -> None:
    """Show a publisher."""
    await thing_page(visit, f"/admin/publishers/{visit.parts['publisher_id']}", _build)


async def _build(visit: Visit, publisher: Json, address: str, again: Again) -> None:
    with heading(publisher["name"], crumbs=[(words.PUBLISHERS, HOME)], badge=account_badge(publisher)):
        if visit.may_write and not publisher["deletedAt"]:
            if visit.is_admin:
                delete_button(visit, publisher, address, words.PUBLISHER_DELETE_NOTE, again)
            add = ui.button(placement_words.NEW, icon="add").props("unelevated")
            attributed(add, href=f"{NEW_PLACEMENT}?publisher={publisher['id']}")
    if publisher["deletedAt"]:
        deleted_notice(visit, publisher, address, words.PUBLISHER.lower(), again)
    match part_asked(visit, TABS):
        case "sites":
            await site_table(visit, publisherId=publisher["id"]).show()
        case "settings":
            thing_settings(visit, publisher, address, publisher_fields, again, may_write=visit.is_admin)
            with card(classes="al-narrow"):
                facts([(words.ACCOUNT_ID, publisher["id"])])
        case "history":
            await history(visit, "publisher", publisher["id"])
        case _:
            await placement_table(visit, publisherId=publisher["id"]).show()
