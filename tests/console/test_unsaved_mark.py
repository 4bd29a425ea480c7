"""A form that is not saved: how long its page waits for a browser that has lost its connection."""

from nicegui import ui

from adloom.console.components.forms.unsaved import RECONNECT_SECONDS_MAX, UnsavedMark
from adloom.console.mount import RECONNECT_SECONDS_MAX as OTHERS_SECONDS_MAX
from adloom.console.page import REGISTERED, PageVisit, register_page
from tests.console.visitor import Visitor

waits: list[float] = []


@register_page("/console/a-form", title="A form")
async def show_form(_: PageVisit) -> None:
    field = ui.input("Name", value="Leaves")
    mark = UnsavedMark(ui.button("Save"), {"name": field})
    for value in ("Leaves", "Roots", "Leaves", "Bark"):
        field.value = value
        waits.append(ui.context.client.page.resolve_reconnect_timeout())
    mark.forget()
    waits.append(ui.context.client.page.resolve_reconnect_timeout())


REGISTERED.discard("/console/a-form")  # It is no page of the product.


async def test_a_page_waits_longer_for_a_lost_browser_while_its_form_is_not_saved(ann: Visitor) -> None:
    waits.clear()

    assert (await ann.get("/console/a-form")).status_code == 200

    short, long = OTHERS_SECONDS_MAX, RECONNECT_SECONDS_MAX
    assert long > 60 * short
    assert waits == [short, long, short, long, short]
