"""All sites, and making one."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import chooser
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import card, heading, notice
from adloom.console.components.table import Column, Table
from adloom.console.page import Visit, page
from adloom.console.shell import SELLERS
from adloom.core.actor import Role

HOME: Final = "/console/sites"
NEW: Final = f"{HOME}/new"


@page(HOME, title="Sites", roles=SELLERS)
async def sites(visit: Visit) -> None:
    """List sites."""
    with heading("Sites", note="A domain whose pages have placements."):
        if visit.may_write:
            ui.button("New site", icon="add").props(f'href="{NEW}" unelevated')
    await site_table(visit).show()


def site_table(visit: Visit, **narrowed: str) -> Table:
    """Make a table of sites, of all or of a publisher."""

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/sites", **query, **narrowed)

    table = Table(
        visit.query,
        [
            Column(label="Domain", cell=lambda row: row["domain"], sort="domain"),
            Column(label="Name", cell=lambda row: row["name"], sort="name"),
            Column(label="Time zone", cell=lambda row: row["timezone"], is_wide_only=True),
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
            "language",
            "No sites yet",
            "A site is a domain. Advertisers may block domains, and placements may name theirs.",
        ),
        empty_action=("New site", NEW) if visit.may_write else None,
        caption="Sites",
    )
    table.search("Search by domain or name")
    return table


@page(NEW, title="New site", roles=SELLERS)
async def new_site(visit: Visit) -> None:
    """Make a site."""
    with heading("New site", crumbs=[("Sites", HOME)]):
        pass
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
        return
    form = CatalogForm({"timezone": "UTC", "publisherId": visit.query.get("publisher")})
    with card(classes="al-narrow"), ui.element("div").classes("stack tight"):
        site_fields(form)
        if visit.role is not Role.PUBLISHER:
            await chooser(
                form,
                "publisherId",
                "Publisher",
                api=visit.api,
                path="/admin/publishers",
                shown=lambda row: row["name"],
                hint=strings.THE_HOUSE_HINT,
            )

    async def save() -> None:
        site = await visit.api.post("/admin/sites", form.creation())
        ui.navigate.to(f"{HOME}/{site['id']}")

    form.actions("Create", save, on_cancel=lambda: ui.navigate.to(HOME))


def site_fields(form: CatalogForm) -> None:
    """Add the fields of a site."""
    form.text("domain", "Domain", is_required=True, hint="Such as example.com.", check=checks.domain)
    form.text("name", "Name", check=checks.name)
    form.zone("timezone")
