"""What is shown at an address of the console where there is no page."""

from typing import Final

from nicegui import ui

from adloom.console.components.notice import empty_state
from adloom.console.page import Visit, page

NOTHING_HERE: Final = "There is nothing at this address"


NOT_FOUND = 404


def register_not_found() -> None:
    """Take what no page takes; so it comes after all of them."""

    @page("/console/{rest:path}", title=NOTHING_HERE)
    async def not_found(visit: Visit) -> None:
        del visit
        ui.context.client.status_code = NOT_FOUND
        empty_state(
            "explore_off",
            NOTHING_HERE,
            "It may have been renamed or removed.",
            action="To the overview",
            href="/console",
        )

    assert callable(not_found)
