"""The frequency caps of a banner: how often one visitor sees it in an hour, a day, a week, a month or ever."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.catalog.frequency_cap import CapWindow
from adloom.console.client import Json
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_card, add_div, add_empty_state, add_hint, add_html
from adloom.console.components.messages import confirm
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload, save_changes

CAPS: Final = "/api/v1/admin/frequency/caps"
WINDOWS: Final = {
    CapWindow.HOUR.value: "an hour",
    CapWindow.DAY.value: "a day",
    CapWindow.WEEK.value: "a week",
    CapWindow.MONTH.value: "a month",
    CapWindow.LIFETIME.value: "for ever",
}
MOST: Final = "maxImpressionsPerUser"
MOST_LABEL: Final = "Impressions a visitor, at most"


async def show_caps(visit: PageVisit, banner: Json, reload: Reload) -> None:
    """Show the caps of a banner, one for each window, to add, change and remove."""
    caps = await visit.api.get_list(CAPS, adId=banner["id"])
    may_write = visit.may_write and not banner["deletedAt"]
    free = {name: text for name, text in WINDOWS.items() if name not in {cap["window"] for cap in caps}}
    with add_card("How often one visitor sees it"):
        add_hint("Windows are calendar units in UTC; a week begins on Monday. All caps hold at once.")
        if not caps:
            add_empty_state("repeat", "No caps yet", "One visitor may see this banner any number of times.")
        with add_div("al-list"):
            for cap in sorted(caps, key=lambda cap: list(WINDOWS).index(cap["window"])):
                _show_cap(visit, cap, reload, may_write=may_write)
        if may_write and free:
            ui.button("Add a cap", icon="add", on_click=lambda: _add(visit, banner, free, reload)).props(
                "flat"
            )


def _show_cap(visit: PageVisit, cap: Json, reload: Reload, *, may_write: bool) -> None:
    with add_div("row-of"):
        text = Markup('<span class="strong">{}</span> in {}') if cap["window"] != "Lifetime" else Markup(
            '<span class="strong">{}</span> {}'
        )  # fmt: skip
        add_html(text.format(f"At most {cap[MOST]}", WINDOWS[cap["window"]])).classes("grow")
        if may_write:
            ui.button("Change", on_click=lambda: _change(visit, cap, reload)).props("flat")
            ui.button("Remove", on_click=lambda: _ask_remove(visit, cap, reload)).props("flat")


def _add(visit: PageVisit, banner: Json, free: dict[str, str], reload: Reload) -> None:
    async def save(form: Form) -> None:
        await visit.api.post(CAPS, {"adId": banner["id"], **form.create_body()})
        await reload()

    with open_form_dialog("Add a cap", "Add", save, {"window": next(iter(free)), MOST: 3}) as form:
        form.add_integer(MOST, MOST_LABEL, is_positive=True)
        form.add_choice("window", "In", free, is_required=True)


def _change(visit: PageVisit, cap: Json, reload: Reload) -> None:
    async def save(form: Form) -> None:
        await save_changes(visit, f"{CAPS}/{cap['id']}", form, reload)

    with open_form_dialog("Change the cap", "Save", save, cap) as form:
        form.add_integer(MOST, MOST_LABEL, is_positive=True)


def _ask_remove(visit: PageVisit, cap: Json, reload: Reload) -> None:
    confirm(
        "Remove the cap?",
        "Visitors who have seen the banner often enough see it again within two seconds.",
        action="Remove",
        on_confirm=lambda: visit.api.delete(f"{CAPS}/{cap['id']}"),
        on_success=reload,
        is_dangerous=True,
    )
