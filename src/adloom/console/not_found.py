"""What is shown at an address of the console where there is no page."""

from nicegui import ui

from adloom.console.components.notice import empty_state
from adloom.console.page import Visit, page
from adloom.console.words import shell as words

NOT_FOUND = 404


def register_not_found() -> None:
    """Take what no page takes; so it comes after all of them."""

    @page("/console/{rest:path}", title=words.NOTHING_HERE)
    async def not_found(visit: Visit) -> None:
        del visit
        ui.context.client.status_code = NOT_FOUND
        empty_state(
            "explore_off",
            words.NOTHING_HERE,
            words.NOTHING_HERE_NOTE,
            action=words.TO_OVERVIEW,
            href="/console",
        )

    assert callable(not_found)
