"""One banner: what it looks like, where and when it is shown, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.confirm import confirm
from adloom.console.components.heading import heading
from adloom.console.components.notice import notice
from adloom.console.components.status import banner_badge
from adloom.console.components.toast import say_good
from adloom.console.components.undo import say_undoable
from adloom.console.navigation import BUYERS
from adloom.console.page import Visit, page
from adloom.console.pages.banners.form import BannerForm, banner_editor
from adloom.console.pages.banners.list import HOME
from adloom.console.pages.banners.schedule import banner_schedule
from adloom.console.pages.banners.where import banner_uses
from adloom.console.things.deleted import deleted_notice
from adloom.console.things.history import history
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked
from adloom.console.words import banners as words
from adloom.console.words import catalog as shared
from adloom.console.words import schedule as schedule_words
from adloom.console.words import shell as shell_words

TABS: Final = {
    "look": words.TAB_LOOK,
    "where": words.WHERE,
    "schedule": schedule_words.SCHEDULE,
    "history": shared.TAB_HISTORY,
}


@page(f"{HOME}/{{banner_id}}", title=words.BANNER, roles=BUYERS)
async def banner_page(visit: Visit) -> None:
    """Show a banner."""
    await thing_page(visit, f"/admin/banners/{visit.parts['banner_id']}", _build)


async def _build(visit: Visit, banner: Json, address: str, again: Again) -> None:
    with heading(banner["title"], crumbs=[(words.BANNERS, HOME)], badge=banner_badge(banner)):
        if visit.may_write and not banner["deletedAt"]:
            _buttons(visit, banner, address, again)
    if banner["deletedAt"]:
        deleted_notice(visit, banner, address, words.NOUN, again, name="title")
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
        notice(shared.VIEW_ONLY)
    form = BannerForm(banner)
    await banner_editor(visit, form, is_new=False)

    async def save() -> None:
        changes = form.patch()
        if changes:
            await visit.api.patch(address, changes)
        say_good(shared.SAVED if changes else shared.NOTHING_CHANGED)
        await again()

    if visit.may_write and not banner["deletedAt"]:
        form.actions(shell_words.SAVE, save)


def _buttons(visit: Visit, banner: Json, address: str, again: Again) -> None:
    name, is_on = banner["title"], banner["isActive"]

    async def switch() -> None:
        await visit.api.patch(f"{address}/{'deactivate' if is_on else 'activate'}")
        say_good((words.IS_OFF if is_on else words.IS_ON).format(name=name))
        await again()

    async def undo() -> None:
        await visit.api.post(f"{address}/restore")
        say_good(shared.RESTORED.format(name=name))
        await again()

    async def delete() -> None:
        await visit.api.delete(address)
        say_undoable(shared.WAS_DELETED.format(name=name), undo)
        await again()

    def ask_switch() -> None:
        confirm(
            (words.OFF_TITLE if is_on else words.ON_TITLE).format(name=name),
            words.OFF_NOTE if is_on else words.ON_NOTE,
            action=words.SWITCH_OFF if is_on else words.SWITCH_ON,
            on_confirm=switch,
        )

    def ask_delete() -> None:
        confirm(
            words.DELETE_TITLE.format(name=name),
            words.DELETE_NOTE,
            action=shared.DELETE,
            on_confirm=delete,
            is_dangerous=True,
        )

    ui.button(words.SWITCH_OFF if is_on else words.SWITCH_ON, on_click=ask_switch).props("outline")
    ui.button(shared.DELETE, on_click=ask_delete).props("outline")
