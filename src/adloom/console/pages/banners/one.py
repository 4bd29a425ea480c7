"""One banner: what it looks like, where and when it is shown, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.layout import heading, notice
from adloom.console.components.messages import confirm, say_good, say_undoable
from adloom.console.components.status import banner_badge
from adloom.console.history import history
from adloom.console.page import Visit, page
from adloom.console.pages.banners.form import BannerForm, banner_editor
from adloom.console.pages.banners.list import HOME
from adloom.console.pages.banners.schedule import banner_schedule
from adloom.console.pages.banners.where import banner_uses
from adloom.console.shell import BUYERS
from adloom.console.things.deleted import deleted_notice
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked

TABS: Final = {
    "look": "Look and words",
    "where": "Where it is shown",
    "schedule": "Schedule",
    "history": "History",
}


@page(f"{HOME}/{{banner_id}}", title="Banner", roles=BUYERS)
async def banner_page(visit: Visit) -> None:
    """Show a banner."""
    await thing_page(visit, f"/admin/banners/{visit.parts['banner_id']}", _build)


async def _build(visit: Visit, banner: Json, address: str, again: Again) -> None:
    with heading(banner["title"], crumbs=[("Banners", HOME)], badge=banner_badge(banner)):
        if visit.may_write and not banner["deletedAt"]:
            _buttons(visit, banner, address, again)
    if banner["deletedAt"]:
        deleted_notice(visit, banner, address, "banner", again, name="title")
    match part_asked(visit, TABS):
        case "where":
            await banner_uses(visit, banner)
        case "schedule":
            await banner_schedule(visit, banner, again)
        case "history":
            await history(visit, "banner", banner["id"])
        case _:
            await _editor(visit, banner, address, again)


async def _editor(visit: Visit, banner: Json, address: str, again: Again) -> None:
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
    form = BannerForm(banner)
    await banner_editor(visit, form, is_new=False)

    async def save() -> None:
        changes = form.patch()
        if changes:
            await visit.api.patch(address, changes)
        say_good("Saved." if changes else strings.NOTHING_CHANGED)
        await again()

    if visit.may_write and not banner["deletedAt"]:
        form.actions("Save", save)


def _buttons(visit: Visit, banner: Json, address: str, again: Again) -> None:
    name, is_on = banner["title"], banner["isActive"]

    async def switch() -> None:
        await visit.api.patch(f"{address}/{'deactivate' if is_on else 'activate'}")
        say_good((strings.IS_OFF if is_on else strings.IS_ON).format(name=name))
        await again()

    async def undo() -> None:
        await visit.api.post(f"{address}/restore")
        say_good(strings.RESTORED.format(name=name))
        await again()

    async def delete() -> None:
        await visit.api.delete(address)
        say_undoable(strings.WAS_DELETED.format(name=name), undo)
        await again()

    def ask_switch() -> None:
        confirm(
            (strings.OFF_TITLE if is_on else strings.ON_TITLE).format(name=name),
            (
                "It is not offered within two seconds, in no campaign. Offers that are already on readers' pages still count and are charged. Its assignments stay."
            )
            if is_on
            else "Campaigns that have it can show it within two seconds, in its schedule.",
            action="Switch off" if is_on else "Switch on",
            on_confirm=switch,
        )

    def ask_delete() -> None:
        confirm(
            strings.DELETE_TITLE.format(name=name),
            (
                "It is not offered within two seconds, and leaves the lists. Offers that are out still count and are charged, and reports keep it. You can undo this: restored, it is where it was in its campaigns."
            ),
            action="Delete",
            on_confirm=delete,
            is_dangerous=True,
        )

    ui.button("Switch off" if is_on else "Switch on", on_click=ask_switch).props("outline")
    ui.button("Delete", on_click=ask_delete).props("outline")
