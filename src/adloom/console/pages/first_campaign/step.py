"""What the steps of the guided path have in common."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from adloom.console.components.form import Form

# Forward by 1, back by -1.
Turn = Callable[[int], Awaitable[None]]


def next_buttons(form: Form, turn: Turn, on_next: Callable[[], None], *, is_first: bool = False) -> None:
    """Show the way on, which is closed while a field is wrong, and the way back."""

    async def forth() -> None:
        on_next()
        await turn(1)

    async def back() -> None:
        await turn(-1)

    with ui.element("div").classes("row-of"):
        if not is_first:
            ui.button("Back", on_click=back).props("flat")
        form.actions("Next", forth)
