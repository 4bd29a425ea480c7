"""Making a banner."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.components.layout import heading, notice
from adloom.console.page import Visit, page
from adloom.console.pages.banners.form import BannerForm, banner_editor
from adloom.console.pages.banners.list import HOME, NEW
from adloom.console.shell import BUYERS

DEFAULTS: Final = {"source": "internal", "priority": 0}


@page(NEW, title="New banner", roles=BUYERS)
async def new_banner(visit: Visit) -> None:
    """Make a banner."""
    with heading("New banner", crumbs=[("Banners", HOME)]):
        pass
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
        return
    form = BannerForm({**DEFAULTS, "advertiserId": visit.query.get("advertiser")})
    await banner_editor(visit, form, is_new=True)

    async def save() -> None:
        banner = await visit.api.post("/admin/banners", form.creation())
        ui.navigate.to(f"{HOME}/{banner['id']}?tab=where")

    form.actions("Create", save, on_cancel=lambda: ui.navigate.to(HOME))
