"""All publishers, and making one."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import card, heading
from adloom.console.components.status import account_badge
from adloom.console.components.table import Column, Table
from adloom.console.page import Visit, page
from adloom.console.shell import ADMINS, SELLERS

HOME: Final = "/console/publishers"
NEW: Final = f"{HOME}/new"


@page(HOME, title="Publishers", roles=SELLERS)
async def publishers(visit: Visit) -> None:
    """List publishers; one that looks sees itself."""
    with heading(
        "Publishers", note="Who shows ads. A publisher is an account that owns sites and placements."
    ):
        if visit.is_admin:
            ui.button("New publisher", icon="add").props(f'href="{NEW}" unelevated')

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/publishers", **query)

    table = Table(
        visit.query,
        [
            Column(label="Name", cell=lambda row: row["name"], sort="name"),
            Column(label="Status", cell=account_badge),
            Column(label="Created", cell=lambda row: ago(row["createdAt"], now=visit.now), sort="createdAt"),
        ],
        read,
        href=lambda row: f"{HOME}/{row['id']}",
        sort="-createdAt",
        empty=(
            "groups",
            "No publishers yet",
            "Sites and placements can be the house's own. Make a publisher for somebody else's pages.",
        ),
        empty_action=("New publisher", NEW) if visit.is_admin else None,
        caption="Publishers",
    )
    table.search("Search by name")
    table.filter("includeDeleted", "Deleted", {"true": "Show them too"})
    await table.show()


@page(NEW, title="New publisher", roles=ADMINS)
async def new_publisher(visit: Visit) -> None:
    """Make a publisher."""
    with heading("New publisher", crumbs=[("Publishers", HOME)]):
        pass
    form = CatalogForm()
    with card(classes="al-narrow"):
        publisher_fields(form)

    async def save() -> None:
        publisher = await visit.api.post("/admin/publishers", form.creation())
        ui.navigate.to(f"{HOME}/{publisher['id']}")

    form.actions("Create", save, on_cancel=lambda: ui.navigate.to(HOME))


def publisher_fields(form: CatalogForm) -> None:
    """Add the fields of a publisher."""
    form.name("name", "Name")
