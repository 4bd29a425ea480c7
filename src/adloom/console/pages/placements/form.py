"""The fields of a placement."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import chooser, name_of
from adloom.console.components.forms.form import CatalogForm
from adloom.console.components.layout import card
from adloom.console.page import Visit

SCORINGS: Final = {"heuristic": "By rules of thumb", "learned": "Learned from clicks"}
DELIVERY_NOTES: Final = {
    "direct": "Assigned banners, in their order.",
    "auction": "Campaigns bid for each request.",
    "contextual": "What fits the page.",
}


RATIO_LENGTH_MAX = 20
PAGE_LENGTH_MAX = 100


async def placement_fields(visit: Visit, form: CatalogForm, *, is_new: bool) -> None:
    """Add all fields of a placement; its publisher is said once, when it is made."""
    with ui.element("div").classes("grid-of two"):
        with card("What it is"), ui.element("div").classes("stack tight"):
            form.name("label", "Label", hint="For you and for those who buy here.")
            form.text(
                "slug",
                "Slug",
                is_required=True,
                hint="How a page asks for it, such as home-hero.",
                check=checks.slug,
            )
            form.choice("layoutType", "Layout", strings.LAYOUTS, is_required=True)
            await _whose(visit, form, is_new=is_new)
            form.text(
                "pageContext",
                "Page",
                hint="Where it is, in your words.",
                check=checks.at_most(PAGE_LENGTH_MAX),
            )
            form.flag("isActive", "Pages may ask for it")
        with card("How it is filled"), ui.element("div").classes("stack tight"):
            _filling(form)
        with card("What fits"), ui.element("div").classes("stack tight"):
            with ui.element("div").classes("grid-of tiles"):
                form.whole("recommendedWidth", "Width of pictures", is_positive=True)
                form.whole("recommendedHeight", "Height of pictures", is_positive=True)
            form.text("recommendedAspectRatio", "Ratio of pictures", check=checks.at_most(RATIO_LENGTH_MAX))
            form.web("fallbackPlaceholderUrl", "Picture where there is no ad")
        with card("Less often needed"), ui.element("div").classes("stack tight"):
            form.whole("sortOrder", "Place in lists")
            form.text("notes", "Notes", is_long=True).props("autogrow")


def _filling(form: CatalogForm) -> None:
    delivery = form.choice("delivery", "Filled by", strings.DELIVERIES, is_required=True)
    note = ui.label(DELIVERY_NOTES[delivery.value]).classes("quiet small")
    delivery.on_value_change(lambda event: note.set_text(DELIVERY_NOTES[event.value]))
    form.whole("maxBanners", "Slots", hint="How many banners at once, at most.", is_positive=True)
    form.flag("allowPartialRender", "Show fallbacks in slots that stay empty")
    form.zone("timezone")
    auctioned = [
        form.text(
            "placementType",
            "Type",
            hint="Apps ask for ads of a type; a page asks for a slug.",
            check=checks.at_most(50),
        ),
        form.price("floorCpm", strings.FLOOR_CPM),
        form.choice("auctionScoring", "Predicted clicks", SCORINGS),
    ]
    for field in auctioned:
        field.bind_visibility_from(delivery, "value", backward=lambda value: value == "auction")


async def _whose(visit: Visit, form: CatalogForm, *, is_new: bool) -> None:
    if is_new and visit.role.value != "publisher":
        await chooser(
            form,
            "publisherId",
            "Publisher",
            api=visit.api,
            path="/admin/publishers",
            shown=lambda row: row["name"],
            hint=strings.THE_HOUSE_HINT,
        )
    site_id = form.given("siteId")
    current = (site_id, await name_of(visit.api, "/admin/sites", site_id)) if site_id else None
    await chooser(
        form,
        "siteId",
        "Site",
        api=visit.api,
        path="/admin/sites",
        shown=lambda row: row["name"],
        current=current,
        publisherId=form.given("publisherId"),
    )
