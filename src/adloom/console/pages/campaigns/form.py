"""The fields of a campaign."""

from nicegui import ui

from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.words import campaigns as words
from adloom.console.words import catalog as shared


async def campaign_fields(visit: Visit, form: CatalogForm, *, is_new: bool) -> None:
    """Add all fields of a campaign; its advertiser is said once, when it is made."""
    with ui.element("div").classes("grid-of two"):
        with card(words.ABOUT), ui.element("div").classes("stack tight"):
            form.name("name", shared.NAME)
            if is_new and visit.role.value != "advertiser":
                await chooser(
                    form,
                    "advertiserId",
                    shared.ADVERTISER,
                    api=visit.api,
                    path="/admin/advertisers",
                    shown=lambda row: row["name"],
                    hint=shared.THE_HOUSE_HINT,
                )
            form.text("description", shared.DESCRIPTION, is_long=True).props("autogrow")
            form.choice("source", shared.SOURCE, shared.SOURCES, is_required=True)
        with card(words.WHEN), ui.element("div").classes("stack tight"):
            _dates(form)
        with card(words.MONEY), ui.element("div").classes("stack tight"):
            _money(form)
        with card(words.LIMITS), ui.element("div").classes("stack tight"):
            form.whole("impressionCap", words.IMPRESSION_CAP, hint=words.DAILY_HINT)
            form.whole("clickCap", words.CLICK_CAP, hint=words.DAILY_HINT)
            form.whole("priority", shared.PRIORITY, hint=shared.PRIORITY_HINT)
            form.text("advertiserName", words.ADVERTISER_NAME)
            form.text("advertiserContact", words.ADVERTISER_CONTACT)
            form.text("contractRef", words.CONTRACT_REF)


def _dates(form: CatalogForm) -> None:
    zone = form.zone("timezone")
    starts = form.moment("startsAt", words.STARTS_AT, zone=lambda: zone.value, hint=words.DATES_HINT)
    ends = form.moment(
        "endsAt",
        words.ENDS_AT,
        zone=lambda: zone.value,
        hint=words.DATES_HINT,
        check=lambda value: words.ENDS_BEFORE if starts.value and value <= starts.value else None,
    )
    # Whether the end is wrong may depend on the start alone.
    starts.on_value_change(lambda: ends.validate() if ends.value else None)


def _money(form: CatalogForm) -> None:
    form.choice("bidType", words.BID_TYPE, words.BID_TYPES, is_required=True)
    form.price("bidAmount", words.BID_AMOUNT, hint=words.BID_HINT)
    form.sum("budgetDailyPaisa", words.DAILY_BUDGET, hint=words.DAILY_HINT)
    form.sum("budgetTotalPaisa", words.TOTAL_BUDGET, hint=words.DAILY_HINT)
    form.choice("pacingStrategy", words.PACING, words.PACINGS, is_required=True)
