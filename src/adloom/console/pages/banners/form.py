"""The fields of a banner, beside what they make of it."""

from collections.abc import Callable
from typing import Any, Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components import checks
from adloom.console.components.banner_preview import DEVICES, BannerPreview, with_neighbours
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.words import banners as words
from adloom.console.words import catalog as shared
from adloom.console.words import placements as placement_words

LAYOUT_FIRST: Final = "full_static"
VARIANT_PARTS: Final = 2
# What a reader sees of a banner; another field changes nothing in the preview.
SEEN: Final = (
    "primaryImageUrl",
    "primaryImageAlt",
    "mobileImageUrl",
    "videoUrl",
    "mediaVariants",
    "headline",
    "subheadline",
    "description",
    "ctaLabel",
    "ctaUrl",
    "bgColor",
)


class BannerForm(CatalogForm):
    """A form that tells when anything was typed."""

    def on_change(self, handler: Callable[[], None]) -> None:
        """Call when one of the fields that readers see has another value."""
        for name in SEEN:
            self._fields[name].on_value_change(handler)

    def seen(self) -> Json:
        """Tell what readers would see; what is wrong is left out."""
        values = self.values()
        return {name: values[name] for name in SEEN}


async def banner_editor(visit: Visit, form: BannerForm, *, is_new: bool) -> None:
    """Show the fields, and beside them the banner as it would be."""
    with ui.element("div").classes("al-editor"):
        with ui.element("div").classes("stack"):
            with card(words.WORDS), ui.element("div").classes("stack tight"):
                await _words(visit, form, is_new=is_new)
            with card(words.PICTURE), ui.element("div").classes("stack tight"):
                _picture(form)
            with (
                card(),
                ui.expansion(words.COUNTING).classes("full"),
                ui.element("div").classes("stack tight"),
            ):
                await _counting(visit, form)
        with ui.element("div").classes("al-sticky"), card(words.PREVIEW), ui.element("div").classes("stack"):
            live_preview(form)


def live_preview(form: BannerForm) -> None:
    """Show what is typed, in a layout of one's choice."""
    layout = ui.select(placement_words.LAYOUTS, label=words.LAYOUT, value=LAYOUT_FIRST).props(
        "outlined dense"
    )
    frames = [BannerPreview(device) for device in DEVICES]

    def show() -> None:
        for frame in frames:
            frame.show(with_neighbours(form.seen(), layout.value), layout.value)

    layout.on_value_change(show)
    form.on_change(show)
    show()


async def _words(visit: Visit, form: BannerForm, *, is_new: bool) -> None:
    form.name("title", words.TITLE, hint=words.TITLE_HINT)
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
    form.text("headline", words.HEADLINE, check=checks.at_most(255))
    form.text("subheadline", words.SUBHEADLINE, check=checks.at_most(255))
    form.text("description", shared.DESCRIPTION, is_long=True).props("autogrow")
    form.text("ctaLabel", words.CTA_LABEL, check=checks.at_most(100))
    form.web("ctaUrl", words.CTA_URL, hint=words.CTA_HINT)
    form.flag("ctaOpenNewTab", words.NEW_TAB)


def _picture(form: BannerForm) -> None:
    form.web("primaryImageUrl", words.IMAGE_URL, is_required=True)
    form.text("primaryImageAlt", words.IMAGE_ALT, hint=words.IMAGE_ALT_HINT, check=checks.at_most(255))
    form.web("mobileImageUrl", words.MOBILE_IMAGE_URL, hint=words.MOBILE_HINT)
    form.web("videoUrl", words.VIDEO_URL, hint=words.VIDEO_HINT)
    form.text("bgColor", words.COLOUR, hint=words.COLOUR_HINT, check=checks.colour)
    field = form.text(
        "mediaVariants", words.VARIANTS, hint=words.VARIANTS_HINT, check=_wrong_lines, is_long=True
    )
    given: dict[str, str] = form.given("mediaVariants") or {}
    field.value = "\n".join(f"{name} {address}" for name, address in given.items())
    form.encode("mediaVariants", variants_of)


async def _counting(visit: Visit, form: BannerForm) -> None:
    with ui.element("div").classes("grid-of two"):
        form.text("utmSource", words.UTM_SOURCE)
        form.text("utmMedium", words.UTM_MEDIUM)
        form.text("utmCampaign", words.UTM_CAMPAIGN)
        form.text("utmContent", words.UTM_CONTENT)
    form.several("tags", words.TAGS, hint=words.TAGS_HINT, is_open=True)
    form.whole("priority", shared.PRIORITY, hint=shared.PRIORITY_HINT)
    form.choice("source", shared.SOURCE, shared.SOURCES, is_required=True)
    for kind, label in words.REFERENCES.items():
        records = await visit.api.get(f"/admin/references/{kind}", pageSize=100)
        if records["items"]:
            options: dict[Any, str] = {record["id"]: record["label"] for record in records["items"]}
            form.choice(f"{kind}Id", label, options, is_clearable=True)
    form.flag("isEvergreenFallback", words.EVERGREEN)
    form.web("fallbackPlaceholderUrl", words.PLACEHOLDER_URL)


def variants_of(text: str) -> dict[str, str]:
    """Read lines of a name and an address; what is no such line is left out."""
    parts = [line.split(maxsplit=1) for line in (text or "").splitlines()]
    return {pair[0]: pair[1].strip() for pair in parts if len(pair) == VARIANT_PARTS}


def _wrong_lines(text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    found = variants_of(text)
    if len(found) < len(lines):
        return words.VARIANT_LINE
    return next((wrong for wrong in map(checks.web_address, found.values()) if wrong), None)
