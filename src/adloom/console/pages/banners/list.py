"""All banners."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.heading import heading
from adloom.console.components.status import banner_badge, thumb
from adloom.console.components.table import Column, Table
from adloom.console.navigation import BUYERS
from adloom.console.page import Visit, page
from adloom.console.words import banners as words
from adloom.console.words import catalog as shared

HOME: Final = "/console/banners"
NEW: Final = f"{HOME}/new"


@page(HOME, title=words.BANNERS, roles=BUYERS)
async def banners(visit: Visit) -> None:
    """List banners."""
    with heading(words.BANNERS, note=words.NOTE):
        if visit.may_write:
            ui.button(words.NEW, icon="add").props(f'href="{NEW}" unelevated')

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/banners", **query)

    table = Table(
        visit.query,
        [
            Column(label=words.TITLE, cell=_title, sort="title"),
            Column(label=shared.STATUS, cell=banner_badge),
            Column(label=words.HEADLINE, cell=lambda row: row["headline"] or "", is_wide_only=True),
            Column(label=words.ADDRESS, cell=_address, is_wide_only=True),
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
        empty=("image", words.EMPTY, words.EMPTY_NOTE),
        empty_action=(words.NEW, NEW) if visit.may_write else None,
        caption=words.BANNERS,
    )
    table.search(words.SEARCH)
    table.filter("isActive", shared.ON_OR_OFF, {"true": shared.ACTIVE, "false": shared.INACTIVE})
    table.filter("scheduleStatus", words.SCHEDULE, words.SCHEDULE_STATUSES)
    table.filter("source", shared.SOURCE, shared.SOURCES)
    table.filter("includeDeleted", shared.SHOW_DELETED, {"true": shared.WITH_DELETED})
    await table.show()


def _title(row: Json) -> Markup:
    return Markup('<span class="al-titled">{}<span>{}</span></span>').format(
        thumb(row["primaryImageUrl"]), row["title"]
    )


def _address(row: Json) -> Markup:
    address: str = row["ctaUrl"] or ""
    shown = address.removeprefix("https://").removeprefix("http://")
    return Markup('<span class="al-cut" title="{}">{}</span>').format(address, shown)
