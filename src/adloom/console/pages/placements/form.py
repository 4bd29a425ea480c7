"""The fields of a placement."""

from nicegui import ui

from adloom.console.components import checks
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser, name_of
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.words import catalog as shared
from adloom.console.words import placements as words

RATIO_LENGTH_MAX = 20
PAGE_LENGTH_MAX = 100


async def placement_fields(visit: Visit, form: CatalogForm, *, is_new: bool) -> None:
    """Add all fields of a placement; its publisher is said once, when it is made."""
    with ui.element("div").classes("grid-of two"):
        with card(words.WHAT), ui.element("div").classes("stack tight"):
            form.name("label", words.LABEL, hint=words.LABEL_HINT)
            form.text("slug", words.SLUG, is_required=True, hint=words.SLUG_HINT, check=checks.slug)
            form.choice("layoutType", words.LAYOUT, words.LAYOUTS, is_required=True)
            await _whose(visit, form, is_new=is_new)
            form.text(
                "pageContext", words.PAGE_CONTEXT, hint=words.PAGE_HINT, check=checks.at_most(PAGE_LENGTH_MAX)
            )
            form.flag("isActive", words.ACTIVE)
        with card(words.HOW), ui.element("div").classes("stack tight"):
            _filling(form)
        with card(words.SIZE), ui.element("div").classes("stack tight"):
            with ui.element("div").classes("grid-of tiles"):
                form.whole("recommendedWidth", words.WIDTH, is_positive=True)
                form.whole("recommendedHeight", words.HEIGHT, is_positive=True)
            form.text("recommendedAspectRatio", words.RATIO, check=checks.at_most(RATIO_LENGTH_MAX))
            form.web("fallbackPlaceholderUrl", words.PLACEHOLDER)
        with card(shared.LESS_OFTEN), ui.element("div").classes("stack tight"):
            form.whole("sortOrder", words.SORT_ORDER)
            form.text("notes", words.NOTES, is_long=True).props("autogrow")


def _filling(form: CatalogForm) -> None:
    delivery = form.choice("delivery", words.DELIVERY, words.DELIVERIES, is_required=True)
    note = ui.label(words.DELIVERY_NOTES[delivery.value]).classes("quiet small")
    delivery.on_value_change(lambda event: note.set_text(words.DELIVERY_NOTES[event.value]))
    form.whole("maxBanners", words.SLOTS, hint=words.SLOTS_HINT, is_positive=True)
    form.flag("allowPartialRender", words.PARTIAL)
    form.zone("timezone")
    auctioned = [
        form.text("placementType", words.TYPE, hint=words.TYPE_HINT, check=checks.at_most(50)),
        form.price("floorCpm", words.FLOOR),
        form.choice("auctionScoring", words.SCORING, words.SCORINGS),
    ]
    for field in auctioned:
        field.bind_visibility_from(delivery, "value", backward=lambda value: value == "auction")


async def _whose(visit: Visit, form: CatalogForm, *, is_new: bool) -> None:
    if is_new and visit.role.value != "publisher":
        await chooser(
            form,
            "publisherId",
            shared.PUBLISHER,
            api=visit.api,
            path="/admin/publishers",
            shown=lambda row: row["name"],
            hint=shared.THE_HOUSE_HINT,
        )
    site_id = form.given("siteId")
    current = (site_id, await name_of(visit.api, "/admin/sites", site_id)) if site_id else None
    await chooser(
        form,
        "siteId",
        shared.SITE,
        api=visit.api,
        path="/admin/sites",
        shown=lambda row: row["name"],
        current=current,
        publisherId=form.given("publisherId"),
    )
