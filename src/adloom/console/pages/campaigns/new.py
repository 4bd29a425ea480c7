"""Making a campaign."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import heading, notice
from adloom.console.page import Visit, page
from adloom.console.pages.campaigns.form import campaign_fields
from adloom.console.pages.campaigns.list import HOME, NEW
from adloom.console.shell import BUYERS

DEFAULTS: Final = {
    "source": "internal",
    "bidType": "cpm",
    "pacingStrategy": "Smooth",
    "timezone": "UTC",
    "priority": 0,
}


@page(NEW, title="New campaign", roles=BUYERS)
async def new_campaign(visit: Visit) -> None:
    """Make a campaign."""
    with heading("New campaign", crumbs=[("Campaigns", HOME)]):
        pass
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
        return
    form = CatalogForm({**DEFAULTS, "advertiserId": visit.query.get("advertiser")})
    await campaign_fields(visit, form, is_new=True)

    async def save() -> None:
        campaign = await visit.api.post("/admin/campaigns", form.creation())
        ui.navigate.to(f"{HOME}/{campaign['id']}?tab=banners")

    form.actions("Create", save, on_cancel=lambda: ui.navigate.to(HOME))
