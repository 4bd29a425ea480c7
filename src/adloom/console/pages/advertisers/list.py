"""All advertisers, and making one."""

from collections.abc import Mapping
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components import checks
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.format import ago, money
from adloom.console.components.heading import card, heading
from adloom.console.components.status import account_badge
from adloom.console.components.table import Column, Table
from adloom.console.navigation import ADMINS, BUYERS
from adloom.console.page import Visit, page
from adloom.console.words import accounts as words
from adloom.console.words import catalog as shared

HOME: Final = "/console/advertisers"
NEW: Final = f"{HOME}/new"


@page(HOME, title=words.ADVERTISERS, roles=BUYERS)
async def advertisers(visit: Visit) -> None:
    """List advertisers; one that looks sees itself."""
    with heading(words.ADVERTISERS, note=words.ADVERTISERS_NOTE):
        if visit.is_admin:
            ui.button(words.NEW_ADVERTISER, icon="add").props(f'href="{NEW}" unelevated')

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/advertisers", **query)

    table = Table(
        visit.query,
        [
            Column(label=shared.NAME, cell=lambda row: row["name"], sort="name"),
            Column(label=shared.STATUS, cell=account_badge),
            Column(
                label=words.DAILY_BUDGET,
                cell=lambda row: money(row["dailyBudgetPaisa"]),
                sort="dailyBudgetPaisa",
                is_number=True,
            ),
            Column(label=shared.TIME_ZONE, cell=lambda row: row["timezone"], is_wide_only=True),
            Column(
                label=words.BLOCKED,
                cell=lambda row: str(len(row["blockedSites"])),
                is_number=True,
                is_wide_only=True,
            ),
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
        empty=("storefront", words.NO_ADVERTISERS, words.NO_ADVERTISERS_NOTE),
        empty_action=(words.NEW_ADVERTISER, NEW) if visit.is_admin else None,
        caption=words.ADVERTISERS,
    )
    table.search(words.SEARCH_ACCOUNTS)
    table.filter("includeDeleted", shared.SHOW_DELETED, {"true": shared.WITH_DELETED})
    await table.show()


@page(NEW, title=words.NEW_ADVERTISER, roles=ADMINS)
async def new_advertiser(visit: Visit) -> None:
    """Make an advertiser."""
    with heading(words.NEW_ADVERTISER, crumbs=[(words.ADVERTISERS, HOME)]):
        pass
    form = CatalogForm({"timezone": "UTC"})
    with card(classes="al-narrow"), ui.element("div").classes("stack tight"):
        advertiser_fields(form)

    async def save() -> None:
        advertiser = await visit.api.post("/admin/advertisers", form.creation())
        ui.navigate.to(f"{HOME}/{advertiser['id']}")

    form.actions(shared.CREATE, save, on_cancel=lambda: ui.navigate.to(HOME))


def advertiser_fields(form: CatalogForm) -> None:
    """Add the fields of an advertiser."""
    form.name("name", shared.NAME)
    form.sum("dailyBudgetPaisa", words.DAILY_BUDGET, hint=words.DAILY_BUDGET_HINT)
    form.zone("timezone")
    form.several("blockedSites", words.BLOCKED, hint=words.BLOCKED_HINT, is_open=True, check=checks.domains)
