"""All banners."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.layout import heading
from adloom.console.components.status import banner_badge, thumb
from adloom.console.components.table import Column, Table
from adloom.console.page import Visit, page
from adloom.console.shell import BUYERS

HOME: Final = "/console/banners"
NEW: Final = f"{HOME}/new"


@page(HOME, title="Banners", roles=BUYERS)
async def banners(visit: Visit) -> None:
    """List banners."""
    with heading("Banners", note="One creative: a picture, words, and where they lead."):
        if visit.may_write:
            ui.button("New banner", icon="add").props(f'href="{NEW}" unelevated')

    async def read(query: Mapping[str, str]) -> Json:
        return await visit.api.get("/admin/banners", **query)

    table = Table(
        visit.query,
        [
            Column(label="Title", cell=_title, sort="title"),
            Column(label="Status", cell=banner_badge),
            Column(label="Headline", cell=lambda row: row["headline"] or "", is_wide_only=True),
            Column(label="Leads to", cell=_address, is_wide_only=True),
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
            "image",
            "No banners yet",
            "A banner is what readers see. It needs a title and the address of a picture.",
        ),
        empty_action=("New banner", NEW) if visit.may_write else None,
        caption="Banners",
    )
    table.search("Search by title, headline or description")
    table.filter("isActive", "On or off", {"true": "On", "false": "Off"})
    table.filter("scheduleStatus", "Schedule", strings.SCHEDULE_STATUSES)
    table.filter("source", "Source", strings.SOURCES)
    table.filter("includeDeleted", "Deleted", {"true": "Show them too"})
    await table.show()


def _title(row: Json) -> Markup:
    return Markup('<span class="al-titled">{}<span>{}</span></span>').format(
        thumb(row["primaryImageUrl"]), row["title"]
    )


def _address(row: Json) -> Markup:
    address: str = row["ctaUrl"] or ""
    shown = address.removeprefix("https://").removeprefix("http://")
    return Markup('<span class="al-cut" title="{}">{}</span>').format(address, shown)
