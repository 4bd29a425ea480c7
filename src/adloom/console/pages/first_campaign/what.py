"""What readers see."""

from typing import Final

from nicegui import ui

from adloom.console.client import ApiClient, Json
from adloom.console.components import checks
from adloom.console.components.attributes import attributed
from adloom.console.components.banner_preview import DEVICES, BannerPreview, with_neighbours
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.pages.first_campaign.plan import Plan
from adloom.console.pages.first_campaign.step import Turn, next_buttons

IMAGES_SHOWN_MAX: Final = 6
BANNERS_READ: Final = 30
HEADLINE_LENGTH_MAX: Final = 255
BUTTON_LENGTH_MAX: Final = 100


async def what_step(visit: Visit, plan: Plan, turn: Turn) -> None:
    """Say what the banner says, and see it at once."""
    known = await _images(visit.api)
    first = {
        "headline": "Something worth a look",
        "ctaLabel": "Have a look",
        "primaryImageUrl": known[0]["primaryImageUrl"] if known else "",
        "ctaUrl": known[0]["ctaUrl"] if known else "",
    }
    form = CatalogForm(plan.banner or first)
    with ui.element("div").classes("al-editor"):
        with card("What do readers see?"), ui.element("div").classes("stack tight"):
            fields = _fields(form, known)

            def keep() -> None:
                values = {name: value for name, value in form.values().items() if value}
                plan.banner = {**values, "title": values["headline"]}
                plan.made.pop("banner", None)

            next_buttons(form, turn, keep)
        with card("Preview"), ui.element("div").classes("stack"):
            frames = [BannerPreview(device) for device in DEVICES]

    def show() -> None:
        for frame in frames:
            frame.show(with_neighbours(form.values(), plan.layout), plan.layout)

    for field in fields:
        field.on_value_change(show)
    show()


def _fields(form: CatalogForm, known: list[Json]) -> list[ui.input | ui.textarea]:
    headline = form.text("headline", "Headline", is_required=True, check=checks.at_most(HEADLINE_LENGTH_MAX))
    second = form.text("subheadline", "A second line", check=checks.at_most(HEADLINE_LENGTH_MAX))
    image = form.web(
        "primaryImageUrl",
        "Address of a picture",
        is_required=True,
        hint="It has to be reachable for readers: https://…",
    )
    if known:
        ui.label("Or take one that is there already:").classes("quiet small")
        with ui.element("div").classes("al-pictures"):
            for banner in known:
                _picture(banner, image)
    button = form.text("ctaLabel", "Button", check=checks.at_most(BUTTON_LENGTH_MAX))
    leads_to = form.web("ctaUrl", "Leads to", is_required=True)
    return [headline, second, image, button, leads_to]


def _picture(banner: Json, image: ui.input | ui.textarea) -> None:
    address = banner["primaryImageUrl"]
    label = f"Use this picture: {banner['title']}"
    button = attributed(ui.element("button"), type="button", aria_label=label)
    with button.on("click", lambda: image.set_value(address)):
        ui.element("img").props["src"] = address


async def _images(api: ApiClient) -> list[Json]:
    """Tell a few pictures that banners have already, each once."""
    answer = await api.get("/admin/banners", pageSize=BANNERS_READ)
    found: dict[str, Json] = {}
    for banner in answer["items"]:
        found.setdefault(banner["primaryImageUrl"], banner)
    return list(found.values())[:IMAGES_SHOWN_MAX]
