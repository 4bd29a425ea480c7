"""One campaign: how it stands, what it shows where, to whom and when, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import heading, notice
from adloom.console.components.messages import say_good
from adloom.console.components.status import campaign_badge
from adloom.console.history import history
from adloom.console.page import Visit, page
from adloom.console.pages.campaigns.assignments import Assignments
from adloom.console.pages.campaigns.form import campaign_fields
from adloom.console.pages.campaigns.list import HOME
from adloom.console.pages.campaigns.moves import move_buttons
from adloom.console.pages.campaigns.overview import campaign_overview, campaign_schedule
from adloom.console.pages.campaigns.targeting import Targeting
from adloom.console.shell import BUYERS
from adloom.console.things.deleted import deleted_notice
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked

TABS: Final = {
    "overview": "Overview",
    "banners": "Banners and placements",
    "targeting": "Targeting",
    "schedule": "Schedule",
    "settings": "Settings",
    "history": "History",
}


@page(f"{HOME}/{{campaign_id}}", title="Campaign", roles=BUYERS)
async def campaign_page(visit: Visit) -> None:
    """Show a campaign."""
    await thing_page(visit, f"/admin/campaigns/{visit.parts['campaign_id']}", _build)


async def _build(visit: Visit, campaign: Json, address: str, again: Again) -> None:
    with heading(campaign["name"], crumbs=[("Campaigns", HOME)], badge=campaign_badge(campaign)):
        why = ui.button(strings.WHY_NOT_DELIVERING, icon="help_outline").props("flat")
        attributed(why, href=f"/console/why?campaign={campaign['id']}")
        if visit.may_write and not campaign["deletedAt"]:
            move_buttons(visit.api, campaign, again)
    if campaign["deletedAt"]:
        deleted_notice(visit, campaign, address, "campaign", again)
    match part_asked(visit, TABS):
        case "banners":
            await Assignments(visit, campaign).build()
        case "targeting":
            await Targeting(visit, campaign).build()
        case "schedule":
            await campaign_schedule(visit, campaign)
        case "settings":
            await _settings(visit, campaign, address, again)
        case "history":
            await history(visit, "campaign", campaign["id"])
        case _:
            await campaign_overview(visit, campaign)


async def _settings(visit: Visit, campaign: Json, address: str, again: Again) -> None:
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
    form = CatalogForm(campaign)
    await campaign_fields(visit, form, is_new=False)

    async def save() -> None:
        changes = form.patch()
        if changes:
            await visit.api.patch(address, changes)
        say_good("Saved." if changes else strings.NOTHING_CHANGED)
        await again()

    if visit.may_write and not campaign["deletedAt"]:
        form.actions("Save", save)
