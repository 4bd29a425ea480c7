"""Making a banner."""

from typing import Final

from nicegui import ui

from adloom.console.components.heading import heading
from adloom.console.components.notice import notice
from adloom.console.navigation import BUYERS
from adloom.console.page import Visit, page
from adloom.console.pages.banners.form import BannerForm, banner_editor
from adloom.console.pages.banners.list import HOME, NEW
from adloom.console.words import banners as words
from adloom.console.words import catalog as shared

DEFAULTS: Final = {"source": "internal", "priority": 0}


@page(NEW, title=words.NEW, roles=BUYERS)
async def new_banner(visit: Visit) -> None:
    """Make a banner."""
    with heading(words.NEW, crumbs=[(words.BANNERS, HOME)]):
        pass
    if not visit.may_write:
        notice(shared.VIEW_ONLY)
        return
    form = BannerForm({**DEFAULTS, "advertiserId": visit.query.get("advertiser")})
    await banner_editor(visit, form, is_new=True)

    async def save() -> None:
        banner = await visit.api.post("/admin/banners", form.creation())
        ui.navigate.to(f"{HOME}/{banner['id']}?tab=where")

    form.actions(shared.CREATE, save, on_cancel=lambda: ui.navigate.to(HOME))
