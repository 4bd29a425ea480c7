"""All sites, and making one."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components import checks
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser
from adloom.console.components.format import ago
from adloom.console.components.heading import card, heading
from adloom.console.components.notice import notice
from adloom.console.components.table import Column, Table
from adloom.console.navigation import SELLERS
from adloom.console.page import Visit, page
from adloom.console.words import accounts as words
from adloom.console.words import catalog as shared
from adloom.core.actor import Role

HOME: Final = "/console/sites"
NEW: Final = f"{HOME}/new"


@page(HOME, title=words.SITES, roles=SELLERS)
async def sites(visit: Visit) -> None:
    """List sites."""
    with heading(words.SITES, note=words.SITES_NOTE):
        if visit.may_write:
            ui.button(words.NEW_SITE, icon="add").props(f'href="{NEW}" unelevated')
    await site_table(visit).show()


def site_table(visit: Visit, **narrowed: str) -> Table:
    """Make a table of sites, of all or of a publisher."""

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/sites", **query, **narrowed)

    table = Table(
        visit.query,
        [
            Column(label=words.DOMAIN, cell=lambda row: row["domain"], sort="domain"),
            Column(label=shared.NAME, cell=lambda row: row["name"], sort="name"),
            Column(label=shared.TIME_ZONE, cell=lambda row: row["timezone"], is_wide_only=True),
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
        empty=("language", words.NO_SITES, words.NO_SITES_NOTE),
        empty_action=(words.NEW_SITE, NEW) if visit.may_write else None,
        caption=words.SITES,
    )
    table.search(words.SEARCH_SITES)
    return table


@page(NEW, title=words.NEW_SITE, roles=SELLERS)
async def new_site(visit: Visit) -> None:
    """Make a site."""
    with heading(words.NEW_SITE, crumbs=[(words.SITES, HOME)]):
        pass
    if not visit.may_write:
        notice(shared.VIEW_ONLY)
        return
    form = CatalogForm({"timezone": "UTC", "publisherId": visit.query.get("publisher")})
    with card(classes="al-narrow"), ui.element("div").classes("stack tight"):
        site_fields(form)
        if visit.role is not Role.PUBLISHER:
            await chooser(
                form,
                "publisherId",
                shared.PUBLISHER,
                api=visit.api,
                path="/admin/publishers",
                shown=lambda row: row["name"],
                hint=shared.THE_HOUSE_HINT,
            )

    async def save() -> None:
        site = await visit.api.post("/admin/sites", form.creation())
        ui.navigate.to(f"{HOME}/{site['id']}")

    form.actions(shared.CREATE, save, on_cancel=lambda: ui.navigate.to(HOME))


def site_fields(form: CatalogForm) -> None:
    """Add the fields of a site."""
    form.text("domain", words.DOMAIN, is_required=True, hint=words.DOMAIN_HINT, check=checks.domain)
    form.text("name", shared.NAME, check=checks.name)
    form.zone("timezone")
