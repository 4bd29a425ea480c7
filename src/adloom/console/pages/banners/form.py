"""The form of a banner, with a live preview."""

from typing import Any, Final

from nicegui import ui

from adloom.console import strings
from adloom.console.components.banner_preview import DEVICES, BannerPreview, with_neighbours
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import owner_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import card
from adloom.console.page import PageVisit
from adloom.core.actor import Role

REFERENCES: Final = {"brand": "Brand", "category": "Category", "product": "Product", "seo": "SEO record"}


LAYOUT_FIRST: Final = "full_static"
VARIANT_PARTS: Final = 2


async def add_banner_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    """Add the fields, and a live preview beside them."""
    with ui.element("div").classes("al-editor"):
        with ui.element("div").classes("stack"):
            with card("Text"), ui.element("div").classes("stack tight"):
                await _add_text_fields(visit, form, is_new=is_new)
            with card("Image"), ui.element("div").classes("stack tight"):
                _add_image_fields(form)
            with (
                card(),
                ui.expansion("Counting and sorting").classes("full"),
                ui.element("div").classes("stack tight"),
            ):
                await _add_other_fields(visit, form)
        with ui.element("div").classes("al-sticky"), card("Preview"), ui.element("div").classes("stack"):
            _show_preview(form)


def _show_preview(form: Form) -> None:
    layout = ui.select(strings.LAYOUTS, label="In the layout", value=LAYOUT_FIRST).props("outlined dense")
    frames = [BannerPreview(device) for device in DEVICES]

    def show() -> None:
        for frame in frames:
            frame.show(with_neighbours(form.values(), layout.value), layout.value)

    layout.on_value_change(show)
    form.on_any_change(show)
    show()


async def _add_text_fields(visit: PageVisit, form: Form, *, is_new: bool) -> None:
    form.name("title", "Title", hint="For you; readers do not see it.")
    if is_new and visit.role is not Role.ADVERTISER:
        await owner_field(form, visit.api, "advertiser")
    form.text("headline", "Headline", check=checks.at_most(255))
    form.text("subheadline", "Subheadline", check=checks.at_most(255))
    form.text("description", "Description", is_long=True).props("autogrow")
    form.text("ctaLabel", "Button", check=checks.at_most(100))
    form.url("ctaUrl", "Leads to", hint="Without an address it cannot be clicked.")
    form.flag("ctaOpenNewTab", "Opens in a new tab")


def _add_image_fields(form: Form) -> None:
    form.url("primaryImageUrl", "Address of the picture", is_required=True)
    form.text(
        "primaryImageAlt",
        "What the picture shows",
        hint="Read aloud to those who cannot see it.",
        check=checks.at_most(255),
    )
    form.url("mobileImageUrl", "Picture on phones", hint="Empty: the same picture.")
    form.url("videoUrl", "Video", hint="Played without sound; the picture is shown before it.")
    form.text(
        "bgColor", "Background", hint="Such as #ff8800: seen while the picture loads.", check=checks.colour
    )
    field = form.text(
        "mediaVariants",
        "Variants of the picture",
        hint=(
            "One a line: a language (de) or a screen (tablet), a space, and the address. html is a creative in a frame."
        ),
        check=_wrong_lines,
        is_long=True,
    )
    given: dict[str, str] = form.initial("mediaVariants") or {}
    field.value = "\n".join(f"{name} {address}" for name, address in given.items())
    form.encode("mediaVariants", parse_variants)


async def _add_other_fields(visit: PageVisit, form: Form) -> None:
    with ui.element("div").classes("grid-of two"):
        form.text("utmSource", "utm_source")
        form.text("utmMedium", "utm_medium")
        form.text("utmCampaign", "utm_campaign")
        form.text("utmContent", "utm_content")
    form.texts("tags", "Tags", hint="Press Enter after each.")
    form.integer("priority", "Priority", hint=strings.PRIORITY_HINT)
    form.choice("source", "Source", strings.SOURCES, is_required=True)
    for kind, label in REFERENCES.items():
        records = await visit.api.get(f"/admin/references/{kind}", pageSize=100)
        if records["items"]:
            options: dict[Any, str] = {record["id"]: record["label"] for record in records["items"]}
            form.choice(f"{kind}Id", label, options, is_clearable=True)
    form.flag("isEvergreenFallback", "Shown where a placement has nothing else at all")
    form.url("fallbackPlaceholderUrl", "Picture where it cannot be shown")


def parse_variants(text: str) -> dict[str, str]:
    """Parse lines of a name and an address; other lines are ignored."""
    parts = [line.split(maxsplit=1) for line in (text or "").splitlines()]
    return {pair[0]: pair[1].strip() for pair in parts if len(pair) == VARIANT_PARTS}


def _wrong_lines(text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    found = parse_variants(text)
    if len(found) < len(lines):
        return "must be lines with a name, a space and an address"
    return next((wrong for wrong in map(checks.web_address, found.values()) if wrong), None)
