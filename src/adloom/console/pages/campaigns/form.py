"""The fields of a campaign."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.components.forms.fields import chooser
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import card
from adloom.console.page import Visit

BID_TYPES: Final = {"cpm": "A thousand impressions (CPM)", "cpc": "A click (CPC)"}
DATES_HINT: Final = "In the campaign's time zone. Empty: no limit."


async def campaign_fields(visit: Visit, form: CatalogForm, *, is_new: bool) -> None:
    """Add all fields of a campaign; its advertiser is said once, when it is made."""
    with ui.element("div").classes("grid-of two"):
        with card("What it is"), ui.element("div").classes("stack tight"):
            form.name("name", "Name")
            if is_new and visit.role.value != "advertiser":
                await chooser(
                    form,
                    "advertiserId",
                    "Advertiser",
                    api=visit.api,
                    path="/admin/advertisers",
                    shown=lambda row: row["name"],
                    hint=strings.THE_HOUSE_HINT,
                )
            form.text("description", "Description", is_long=True).props("autogrow")
            form.choice("source", "Source", strings.SOURCES, is_required=True)
        with card("When it runs"), ui.element("div").classes("stack tight"):
            _dates(form)
        with card("What it may cost"), ui.element("div").classes("stack tight"):
            _money(form)
        with card("Limits and contract"), ui.element("div").classes("stack tight"):
            form.whole("impressionCap", "Impressions in all, at most", hint="Empty: no limit.")
            form.whole("clickCap", "Clicks in all, at most", hint="Empty: no limit.")
            form.whole("priority", "Priority", hint=strings.PRIORITY_HINT)
            form.text("advertiserName", "Advertiser's name on the contract")
            form.text("advertiserContact", "Contact")
            form.text("contractRef", "Contract")


def _dates(form: CatalogForm) -> None:
    zone = form.zone("timezone")
    starts = form.moment("startsAt", "Starts", zone=lambda: zone.value, hint=DATES_HINT)
    ends = form.moment(
        "endsAt",
        "Ends",
        zone=lambda: zone.value,
        hint=DATES_HINT,
        check=lambda value: strings.ENDS_BEFORE if starts.value and value <= starts.value else None,
    )
    # Whether the end is wrong may depend on the start alone.
    starts.on_value_change(lambda: ends.validate() if ends.value else None)


def _money(form: CatalogForm) -> None:
    form.choice("bidType", "Pays for", BID_TYPES, is_required=True)
    form.price("bidAmount", "Bid", hint="Empty: it costs nothing, and takes part in no auction.")
    form.sum("budgetDailyPaisa", "Daily budget", hint="Empty: no limit.")
    form.sum("budgetTotalPaisa", "Total budget", hint="Empty: no limit.")
    form.choice("pacingStrategy", "Pacing", strings.PACINGS, is_required=True)
