"""Dialogs that bring placements and banners to a campaign, and say how a banner is shown."""

from collections.abc import Awaitable, Callable

from markupsafe import escape
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser
from adloom.console.page import Visit
from adloom.core.actor import Role

Save = Callable[[CatalogForm], Awaitable[None]]


async def ask_placement(visit: Visit, on_save: Save) -> None:
    """Choose a placement; an advertiser cannot list those of others, so it names one by its id."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html("<h2>Add a placement</h2>", sanitize=False)
        form = CatalogForm()
        if visit.role is Role.ADVERTISER:
            form.text(
                "placementId",
                "Id of the placement",
                is_required=True,
                hint="The publisher or the house tells you the id.",
            )
        else:
            await chooser(
                form,
                "placementId",
                "Placement",
                api=visit.api,
                path="/admin/placements",
                shown=lambda row: f"{row['label']} ({row['slug']})",
                is_required=True,
                sort="label",
            )
        _actions(form, dialog, "Create", on_save)


async def ask_banner(visit: Visit, campaign: Json, on_save: Save) -> None:
    """Choose a banner, of the campaign's advertiser where it has one."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html("<h2>Add a banner</h2>", sanitize=False)
        form = CatalogForm({"displayOrder": 0, "weight": 100})
        await chooser(
            form,
            "bannerId",
            "Banner",
            api=visit.api,
            path="/admin/banners",
            shown=lambda row: row["title"],
            is_required=True,
            advertiserId=campaign["advertiserId"],
        )
        _places(form)
        _actions(form, dialog, "Create", on_save)


def ask_assignment(row: Json, on_save: Save) -> None:
    """Say how a banner is shown on a placement."""
    with ui.dialog(value=True) as dialog, ui.card():
        title = f"{row['bannerTitle']}: How it is shown"
        ui.html(f"<h2>{escape(title)}</h2>", sanitize=False)
        form = CatalogForm(row)
        form.flag("isActive", "On")
        _places(form)
        form.flag("isFallback", "Fallback: fills a slot only where nothing else does")
        form.whole("fallbackPriority", "Order among fallbacks", hint="Small ones first.")
        with (
            ui.expansion("Say something else here than the banner does").classes("full"),
            ui.element("div").classes("stack tight"),
        ):
            form.text("overrideHeadline", "Headline here")
            form.text("overrideSubheadline", "Subheadline here")
            form.text("overrideCtaLabel", "Button here")
            form.web("overrideCtaUrl", "Leads here to")
            form.whole("transitionDurationMs", "Slides in within milliseconds")
        _actions(form, dialog, "Save", on_save)


def _places(form: CatalogForm) -> None:
    with ui.element("div").classes("grid-of tiles"):
        form.whole("displayOrder", "Order", hint="Small ones first.")
        form.whole("weight", "Weight", hint="Large ones first.")


def _actions(form: CatalogForm, dialog: ui.dialog, label: str, on_save: Save) -> None:
    async def save() -> None:
        await on_save(form)
        dialog.close()

    form.actions(label, save, on_cancel=dialog.close)
