"""All publishers, and making one."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.format import ago
from adloom.console.components.heading import card, heading
from adloom.console.components.status import account_badge
from adloom.console.components.table import Column, Table
from adloom.console.navigation import ADMINS, SELLERS
from adloom.console.page import Visit, page
from adloom.console.words import accounts as words
from adloom.console.words import catalog as shared

HOME: Final = "/console/publishers"
NEW: Final = f"{HOME}/new"


@page(HOME, title=words.PUBLISHERS, roles=SELLERS)
async def publishers(visit: Visit) -> None:
    """List publishers; one that looks sees itself."""
    with heading(words.PUBLISHERS, note=words.PUBLISHERS_NOTE):
        if visit.is_admin:
            ui.button(words.NEW_PUBLISHER, icon="add").props(f'href="{NEW}" unelevated')

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/publishers", **query)

    table = Table(
        visit.query,
        [
            Column(label=shared.NAME, cell=lambda row: row["name"], sort="name"),
            Column(label=shared.STATUS, cell=account_badge),
            Column(
                label=shared.CREATED, cell=lambda row: ago(row["createdAt"], now=visit.now), sort="createdAt"
            ),
        ],
        read,
        href=lambda row: f"{HOME}/{row['id']}",
        sort="-createdAt",
        empty=("groups", words.NO_PUBLISHERS, words.NO_PUBLISHERS_NOTE),
        empty_action=(words.NEW_PUBLISHER, NEW) if visit.is_admin else None,
        caption=words.PUBLISHERS,
    )
    table.search(words.SEARCH_ACCOUNTS)
    table.filter("includeDeleted", shared.SHOW_DELETED, {"true": shared.WITH_DELETED})
    await table.show()


@page(NEW, title=words.NEW_PUBLISHER, roles=ADMINS)
async def new_publisher(visit: Visit) -> None:
    """Make a publisher."""
    with heading(words.NEW_PUBLISHER, crumbs=[(words.PUBLISHERS, HOME)]):
        pass
    form = CatalogForm()
    with card(classes="al-narrow"):
        publisher_fields(form)

    async def save() -> None:
        publisher = await visit.api.post("/admin/publishers", form.creation())
        ui.navigate.to(f"{HOME}/{publisher['id']}")

    form.actions(shared.CREATE, save, on_cancel=lambda: ui.navigate.to(HOME))


def publisher_fields(form: CatalogForm) -> None:
    """Add the fields of a publisher."""
    form.name("name", shared.NAME)
