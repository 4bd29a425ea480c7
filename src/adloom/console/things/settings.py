"""The settings of a thing in one card, and what saving them does."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import card, notice
from adloom.console.components.messages import say_good
from adloom.console.page import Visit

Fields = Callable[[CatalogForm], None]


def thing_settings(  # noqa: PLR0913 - a thing, its fields, and what becomes of them
    visit: Visit,
    thing: Json,
    address: str,
    fields: Fields,
    on_done: Callable[[], Awaitable[None]],
    *,
    may_write: bool,
) -> None:
    """Show the fields of a thing; what was changed is sent when it is saved."""
    if not may_write:
        notice(strings.VIEW_ONLY)
    form = CatalogForm(thing)
    with card(classes="al-narrow"), ui.element("div").classes("stack tight"):
        fields(form)

    async def save() -> None:
        changes = form.patch()
        if changes:
            await visit.api.patch(address, changes)
        say_good("Saved." if changes else strings.NOTHING_CHANGED)
        await on_done()

    if may_write and not thing.get("deletedAt"):
        form.actions("Save", save)
