"""All advertisers, and making one."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago, money
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import card, heading
from adloom.console.components.status import account_badge
from adloom.console.components.table import Column, Table
from adloom.console.page import Visit, page
from adloom.console.shell import ADMINS, BUYERS

HOME: Final = "/console/advertisers"
NEW: Final = f"{HOME}/new"


@page(HOME, title="Advertisers", roles=BUYERS)
async def advertisers(visit: Visit) -> None:
    """List advertisers; one that looks sees itself."""
    with heading(
        "Advertisers", note="Who pays. An advertiser is an account: people and keys can act for it."
    ):
        if visit.is_admin:
            ui.button("New advertiser", icon="add").props(f'href="{NEW}" unelevated')

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/advertisers", **query)

    table = Table(
        visit.query,
        [
            Column(label="Name", cell=lambda row: row["name"], sort="name"),
            Column(label="Status", cell=account_badge),
            Column(
                label="Daily budget",
                cell=lambda row: money(row["dailyBudgetPaisa"]),
                sort="dailyBudgetPaisa",
                is_number=True,
            ),
            Column(label="Time zone", cell=lambda row: row["timezone"], is_wide_only=True),
            Column(
                label="Blocked sites",
                cell=lambda row: str(len(row["blockedSites"])),
                is_number=True,
                is_wide_only=True,
            ),
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
            "storefront",
            "No advertisers yet",
            "Campaigns can be the house's own. An advertiser has a daily budget over all its campaigns.",
        ),
        empty_action=("New advertiser", NEW) if visit.is_admin else None,
        caption="Advertisers",
    )
    table.search("Search by name")
    table.filter("includeDeleted", "Deleted", {"true": "Show them too"})
    await table.show()


@page(NEW, title="New advertiser", roles=ADMINS)
async def new_advertiser(visit: Visit) -> None:
    """Make an advertiser."""
    with heading("New advertiser", crumbs=[("Advertisers", HOME)]):
        pass
    form = CatalogForm({"timezone": "UTC"})
    with card(classes="al-narrow"), ui.element("div").classes("stack tight"):
        advertiser_fields(form)

    async def save() -> None:
        advertiser = await visit.api.post("/admin/advertisers", form.creation())
        ui.navigate.to(f"{HOME}/{advertiser['id']}")

    form.actions("Create", save, on_cancel=lambda: ui.navigate.to(HOME))


def advertiser_fields(form: CatalogForm) -> None:
    """Add the fields of an advertiser."""
    form.name("name", "Name")
    form.sum("dailyBudgetPaisa", "Daily budget", hint="Over all its campaigns. Empty: no limit.")
    form.zone("timezone")
    form.several(
        "blockedSites",
        "Blocked sites",
        hint="Its ads are not shown there. Press Enter after each domain.",
        is_open=True,
        check=checks.domains,
    )
