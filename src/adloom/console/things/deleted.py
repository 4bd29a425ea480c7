"""What stands on the page of a thing that is deleted: since when, and the way back."""

from collections.abc import Awaitable, Callable

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.messages import say_good
from adloom.console.page import Visit


def deleted_notice(  # noqa: PLR0913 - a thing, and what becomes of it
    visit: Visit,
    thing: Json,
    address: str,
    noun: str,
    on_done: Callable[[], Awaitable[None]],
    *,
    name: str = "name",
) -> None:
    """Say that a thing is deleted, and bring it back for whoever may."""

    async def restore() -> None:
        await visit.api.post(f"{address}/restore")
        say_good(strings.RESTORED.format(name=thing[name]))
        await on_done()

    with ui.element("div").classes("al-notice warn").props('role="status"'):
        ui.icon("delete_outline").props('aria-hidden="true"')
        note = Markup("Nobody sees it, and it is out of the lists. It was deleted {ago}.").format(
            ago=ago(thing["deletedAt"], now=visit.now)
        )
        ui.html(
            Markup('<div class="strong">{}</div><div>{}</div>').format(f"This {noun} is deleted", note),
            sanitize=False,
        ).classes("grow")
        if visit.may_write:
            ui.button("Restore", on_click=restore).props("outline")
