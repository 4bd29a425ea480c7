"""One placement: what is shown there, how a page gets it, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import heading, notice
from adloom.console.components.messages import confirm, say_good
from adloom.console.components.status import switch_badge
from adloom.console.history import history
from adloom.console.page import Visit, page
from adloom.console.pages.placements.form import placement_fields
from adloom.console.pages.placements.list import HOME
from adloom.console.pages.placements.overview import placement_overview
from adloom.console.shell import SELLERS
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked

TABS: Final = {
    "overview": "Overview",
    "settings": "Settings",
    "history": "History",
}


@page(f"{HOME}/{{placement_id}}", title="Placement", roles=SELLERS)
async def placement_page(visit: Visit) -> None:
    """Show a placement."""
    await thing_page(visit, f"/admin/placements/{visit.parts['placement_id']}", _build)


async def _build(visit: Visit, placement: Json, address: str, again: Again) -> None:
    is_on = placement["isActive"]
    with heading(placement["label"], crumbs=[("Placements", HOME)], badge=switch_badge(is_on=is_on)):
        why = ui.button("Why this ad?", icon="help_outline").props("flat")
        attributed(why, href=f"/console/why?placement={placement['slug']}")
        if visit.may_write:
            _buttons(visit, placement, address, again)
    match part_asked(visit, TABS):
        case "settings":
            await _settings(visit, placement, address, again)
        case "history":
            await history(visit, "placement", placement["id"])
        case _:
            await placement_overview(visit, placement)


async def _settings(visit: Visit, placement: Json, address: str, again: Again) -> None:
    if not visit.may_write:
        notice(strings.VIEW_ONLY)
    form = CatalogForm(placement)
    await placement_fields(visit, form, is_new=False)

    async def save() -> None:
        changes = form.patch()
        if changes:
            await visit.api.patch(address, changes)
        say_good("Saved." if changes else strings.NOTHING_CHANGED)
        await again()

    if visit.may_write:
        form.actions("Save", save)


def _buttons(visit: Visit, placement: Json, address: str, again: Again) -> None:
    name, is_on = placement["label"], placement["isActive"]

    async def switch() -> None:
        await visit.api.patch(address, {"isActive": not is_on, "updatedAt": placement["updatedAt"]})
        say_good((strings.IS_OFF if is_on else strings.IS_ON).format(name=name))
        await again()

    async def remove() -> None:
        await visit.api.delete(address)
        ui.navigate.to(HOME)

    def ask_switch() -> None:
        confirm(
            (strings.OFF_TITLE if is_on else strings.ON_TITLE).format(name=name),
            (
                "Pages that ask for it get none within two seconds, and the space stays empty. What is assigned to it stays. Offers that are already out still count and are charged."
            )
            if is_on
            else "Pages that ask for it get ads within two seconds.",
            action="Switch off" if is_on else "Switch on",
            on_confirm=switch,
        )

    def ask_removal() -> None:
        confirm(
            strings.REMOVE_FOR_GOOD.format(name=name),
            (
                "Pages that ask for it get none. What campaigns had assigned here is gone too, and this cannot be undone. While an active assignment of a campaign that is not over is on it, it cannot be removed: switch it off instead."
            ),
            action="Remove",
            on_confirm=remove,
            is_dangerous=True,
        )

    ui.button("Switch off" if is_on else "Switch on", on_click=ask_switch).props("outline")
    ui.button("Remove", on_click=ask_removal).props("outline")
