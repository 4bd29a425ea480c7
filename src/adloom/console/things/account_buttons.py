"""Deleting an account of the catalog, with the way back."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.messages import confirm, say_good, say_undoable
from adloom.console.page import Visit


def delete_button(
    visit: Visit, account: Json, address: str, consequence: str, on_done: Callable[[], Awaitable[None]]
) -> None:
    """Show the button; what follows is said first, and it can be undone."""
    name = account["name"]

    async def undo() -> None:
        await visit.api.post(f"{address}/restore")
        say_good(strings.RESTORED.format(name=name))
        await on_done()

    async def delete() -> None:
        await visit.api.delete(address)
        say_undoable(strings.WAS_DELETED.format(name=name), undo)
        await on_done()

    def ask() -> None:
        confirm(
            strings.DELETE_TITLE.format(name=name),
            consequence,
            action="Delete",
            on_confirm=delete,
            is_dangerous=True,
        )

    ui.button("Delete", on_click=ask).props("outline")
