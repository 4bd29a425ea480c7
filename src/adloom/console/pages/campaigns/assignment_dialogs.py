"""Dialogs that bring placements and banners to a campaign, and say how a banner is shown."""

from collections.abc import Awaitable, Callable

from markupsafe import escape
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser
from adloom.console.page import Visit
from adloom.console.words import campaigns as words
from adloom.console.words import catalog as shared
from adloom.console.words import shell as shell_words
from adloom.core.actor import Role

Save = Callable[[CatalogForm], Awaitable[None]]


async def ask_placement(visit: Visit, on_save: Save) -> None:
    """Choose a placement; an advertiser cannot list those of others, so it names one by its id."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html(f"<h2>{escape(words.ADD_PLACEMENT)}</h2>", sanitize=False)
        form = CatalogForm()
        if visit.role is Role.ADVERTISER:
            form.text("placementId", words.PLACEMENT_ID, is_required=True, hint=words.PLACEMENT_ID_HINT)
        else:
            await chooser(
                form,
                "placementId",
                words.PLACEMENT,
                api=visit.api,
                path="/admin/placements",
                shown=lambda row: f"{row['label']} ({row['slug']})",
                is_required=True,
                sort="label",
            )
        _actions(form, dialog, shared.CREATE, on_save)


async def ask_banner(visit: Visit, campaign: Json, on_save: Save) -> None:
    """Choose a banner, of the campaign's advertiser where it has one."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html(f"<h2>{escape(words.ADD_BANNER)}</h2>", sanitize=False)
        form = CatalogForm({"displayOrder": 0, "weight": 100})
        await chooser(
            form,
            "bannerId",
            words.BANNER,
            api=visit.api,
            path="/admin/banners",
            shown=lambda row: row["title"],
            is_required=True,
            advertiserId=campaign["advertiserId"],
        )
        _places(form)
        _actions(form, dialog, shared.CREATE, on_save)


def ask_assignment(row: Json, on_save: Save) -> None:
    """Say how a banner is shown on a placement."""
    with ui.dialog(value=True) as dialog, ui.card():
        title = f"{row['bannerTitle']}: {words.ASSIGNMENT}"
        ui.html(f"<h2>{escape(title)}</h2>", sanitize=False)
        form = CatalogForm(row)
        form.flag("isActive", words.ASSIGNMENT_ACTIVE)
        _places(form)
        form.flag("isFallback", words.FALLBACK)
        form.whole("fallbackPriority", words.FALLBACK_PRIORITY, hint=words.ORDER_HINT)
        with ui.expansion(words.OVERRIDES).classes("full"), ui.element("div").classes("stack tight"):
            form.text("overrideHeadline", words.OVERRIDE_HEADLINE)
            form.text("overrideSubheadline", words.OVERRIDE_SUBHEADLINE)
            form.text("overrideCtaLabel", words.OVERRIDE_CTA_LABEL)
            form.web("overrideCtaUrl", words.OVERRIDE_CTA_URL)
            form.whole("transitionDurationMs", words.TRANSITION)
        _actions(form, dialog, shell_words.SAVE, on_save)


def _places(form: CatalogForm) -> None:
    with ui.element("div").classes("grid-of tiles"):
        form.whole("displayOrder", words.ORDER, hint=words.ORDER_HINT)
        form.whole("weight", words.WEIGHT, hint=words.WEIGHT_HINT)


def _actions(form: CatalogForm, dialog: ui.dialog, label: str, on_save: Save) -> None:
    async def save() -> None:
        await on_save(form)
        dialog.close()

    form.actions(label, save, on_cancel=dialog.close)
