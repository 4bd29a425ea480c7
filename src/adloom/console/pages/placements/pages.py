"""The pages of placements: the list, the form and the buttons."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.banner_preview import layout_picture
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import fetch_name, owner_field, reference_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import card, link_button
from adloom.console.components.status import switch_badge
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.placements.overview import show_overview
from adloom.console.resource_pages import ON_OR_OFF, Reload, ResourcePages, Tab, switch_button
from adloom.console.shell import SELLERS
from adloom.core.actor import Role

SCORINGS: Final = {"heuristic": "By fixed rules", "learned": "Learned from clicks"}
DELIVERY_NOTES: Final = {
    "direct": "Assigned banners, in their order.",
    "auction": "Campaigns bid for each request.",
    "contextual": "What fits the page.",
}
RATIO_LENGTH_MAX: Final = 20
PAGE_LENGTH_MAX: Final = 100
TYPE_LENGTH_MAX: Final = 50


async def _add_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    with ui.element("div").classes("grid-of two"):
        with card("What it is"), ui.element("div").classes("stack tight"):
            form.name("label", "Label", hint="For you and for buyers.")
            form.text(
                "slug",
                "Slug",
                is_required=True,
                hint="The name that a page asks for, such as home-hero.",
                check=checks.slug,
            )
            form.choice("layoutType", "Layout", strings.LAYOUTS, is_required=True)
            await _add_owner_fields(visit, form, is_new=is_new)
            form.text(
                "pageContext",
                "Page",
                hint="Where it is, in your words.",
                check=checks.at_most(PAGE_LENGTH_MAX),
            )
            form.flag("isActive", "Pages may ask for it")
        with card("How it is filled"), ui.element("div").classes("stack tight"):
            _add_delivery_fields(form)
        with card("What fits"), ui.element("div").classes("stack tight"):
            with ui.element("div").classes("grid-of tiles"):
                form.integer("recommendedWidth", "Width of images", is_positive=True)
                form.integer("recommendedHeight", "Height of images", is_positive=True)
            form.text("recommendedAspectRatio", "Aspect ratio", check=checks.at_most(RATIO_LENGTH_MAX))
            form.url("fallbackPlaceholderUrl", "Image when there is no ad")
        with card("Less often needed"), ui.element("div").classes("stack tight"):
            form.integer("sortOrder", "Position in lists")
            form.text("notes", "Notes", is_long=True).props("autogrow")


def _add_delivery_fields(form: Form) -> None:
    delivery = form.choice("delivery", "Filled by", strings.DELIVERIES, is_required=True)
    note = ui.label(DELIVERY_NOTES[delivery.value]).classes("quiet small")
    delivery.on_value_change(lambda event: note.set_text(DELIVERY_NOTES[event.value]))
    form.integer("maxBanners", "Slots", hint="How many banners at once, at most.", is_positive=True)
    form.flag("allowPartialRender", "Show fallbacks in slots that stay empty")
    form.time_zone("timezone")
    auction_fields = [
        form.text(
            "placementType",
            "Type",
            hint="Apps ask for ads of a type; a page asks for a slug.",
            check=checks.at_most(TYPE_LENGTH_MAX),
        ),
        form.price("floorCpm", strings.FLOOR_CPM),
        form.choice("auctionScoring", "Predicted clicks", SCORINGS),
    ]
    for field in auction_fields:
        field.bind_visibility_from(delivery, "value", backward=lambda value: value == "auction")


async def _add_owner_fields(visit: PageVisit, form: Form, *, is_new: bool) -> None:
    """Add the publisher, which cannot change later, and the site."""
    if is_new and visit.role is not Role.PUBLISHER:
        await owner_field(form, visit.api, "publisher")
    site_id = form.initial("siteId")
    current = (site_id, await fetch_name(visit.api, "/admin/sites", site_id)) if site_id else None
    await reference_field(
        form,
        "siteId",
        "Site",
        api=visit.api,
        path="/admin/sites",
        shown=lambda row: row["name"],
        current=current,
        publisherId=form.initial("publisherId"),
    )


def _add_links(placement: Json) -> None:
    link_button(
        "Why this ad?", f"/console/why?placement={placement['slug']}", icon="help_outline", look="flat"
    )


def _add_actions(visit: PageVisit, placement: Json, reload: Reload) -> None:
    is_on = placement["isActive"]

    async def switch() -> None:
        body = {"isActive": not is_on, "updatedAt": placement["updatedAt"]}
        await visit.api.patch(f"/admin/placements/{placement['id']}", body)
        await reload()

    switch_button(
        placement["label"],
        switch,
        is_on=is_on,
        off_note=(
            "Pages that ask for it get no ad within two seconds, and the space stays empty. "
            "Its assignments stay. Offers that are already out still count and are charged."
        ),
        on_note="Pages that ask for it get ads within two seconds.",
    )


PLACEMENTS: Final = ResourcePages(
    noun="placement",
    name_field="label",
    icon="view_quilt",
    note="A slot on a page, with a name that the page asks for.",
    empty_note="A placement is where ads appear on a page. It needs a slug and a layout.",
    roles=SELLERS,
    columns=[
        Column("Label", "label", sort="label"),
        Column("Slug", "slug", sort="slug", is_wide_only=True),
        Column("On or off", lambda row: switch_badge(is_on=row["isActive"]), sort="isActive"),
        Column("Layout", lambda row: layout_picture(row["layoutType"]), is_wide_only=True),
        Column("Filled by", lambda row: strings.DELIVERIES[row["delivery"]], sort="delivery"),
        Column("Slots", lambda row: str(row["maxBanners"]), is_number=True, is_wide_only=True),
    ],
    search="Search by slug, label or page",
    filters={
        "isActive": ON_OR_OFF,
        "layoutType": ("Layout", strings.LAYOUTS),
        "delivery": ("Filled by", strings.DELIVERIES),
    },
    fields=_add_fields,
    defaults={
        "layoutType": "full_static",
        "delivery": "direct",
        "maxBanners": 1,
        "isActive": True,
        "placementType": "banner",
        "floorCpm": 0,
        "auctionScoring": "heuristic",
        "timezone": "UTC",
        "sortOrder": 0,
    },
    defaults_from_query={"publisherId": "publisher", "siteId": "site"},
    badge=lambda placement: switch_badge(is_on=placement["isActive"]),
    links=_add_links,
    actions=_add_actions,
    delete_note=(
        "Pages that ask for it get no ad. Its assignments are removed too, and this cannot be undone. "
        "A placement with an active assignment of a campaign that is not over cannot be removed: "
        "switch it off instead."
    ),
    is_restorable=False,
    tabs={"overview": Tab("Overview", show_overview)},
).register()
