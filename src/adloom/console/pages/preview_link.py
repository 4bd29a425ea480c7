"""Asks for a page, and shows a link that previews a banner there."""

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import format_moment
from adloom.console.components.forms.fields import add_reference_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import add_div, add_hint, add_snippet
from adloom.console.components.messages import open_dialog
from adloom.console.page import PageVisit

ACTION = "On a real page"
NOTE = (
    "Whoever opens the link sees the banner in its place on the page, marked as a preview, for 24 hours. "
    "The campaign need not run. Nothing of it is counted or paid, and other visitors see nothing of it."
)


def preview_button(visit: PageVisit, banner_id: str, placement: tuple[str, str] | None = None) -> None:
    """Add a button that asks for a page; `placement` is an id and a label, or is asked for too."""
    ui.button(ACTION, icon="open_in_new", on_click=lambda: _ask(visit, banner_id, placement)).props("flat")


async def _ask(visit: PageVisit, banner_id: str, placement: tuple[str, str] | None) -> None:
    with open_dialog("Preview on a real page") as dialog:
        add_hint(NOTE)
        form = Form({})
        if placement is None:
            await add_reference_field(
                form,
                "placementId",
                "Placement",
                api=visit.api,
                path="/admin/offered-placements",
                shown=_describe,
                is_required=True,
                hint="One of those that the page has.",
                sort="label",
            )
        form.add_url("url", "Page", hint="Empty: the front page of the placement's site.")
        found = add_div("full")

        async def make() -> None:
            named = {} if placement is None else {"placementId": placement[0]}
            link = await visit.api.post(
                f"/admin/banners/{banner_id}/preview-link", {**form.create_body(), **named}
            )
            found.clear()
            with found:
                _show(link)

        form.add_buttons("Make a link", make, on_cancel=dialog.close)


def _describe(row: Json) -> str:
    site = f" · {row['siteDomain']}" if row["siteDomain"] else ""
    return f"{row['label']} ({row['slug']}){site}"


def _show(link: Json) -> None:
    add_snippet(link["url"])
    expires_at = format_moment(link["expiresAt"])
    assert expires_at is not None
    with add_div("row-of"):
        ui.link("Open it", link["url"], new_tab=True)
        add_hint(f"In the placement {link['placementSlug']}, until {expires_at:%d %B, %H:%M} UTC.")
