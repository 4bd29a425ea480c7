"""How a publisher proves that a site is its own: a file with a token, checked on request."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json, ProblemError
from adloom.console.components.format import format_full_moment
from adloom.console.components.layout import badge, div, html, notice, snippet
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload

WHY: Final = (
    "Only of a verified site do we take the text of pages from readers' browsers. Without it the site is known by its "
    "crawls alone."
)
FORCE_NOTE: Final = "It counts as verified at once and without the file. Do this only when you know that the publisher owns the domain."


def build_verification_badge(site: Json) -> Markup:
    return badge("Verified", "good") if site["verifiedAt"] else badge("Not verified", "warn")


def describe_verification(site: Json) -> str:
    if site["verifiedAt"]:
        return f"{site['verifiedHost']}, since {format_full_moment(site['verifiedAt'])}. It is checked again every week."
    return WHY


async def open_verification(visit: PageVisit, site: Json, reload: Reload) -> None:
    """Open the dialog that leads through the steps."""
    asked = await visit.api.post(f"/admin/sites/{site['id']}/verification")
    with open_dialog(f"Prove that {site['domain']} is yours") as dialog:
        with ui.element("ol").classes("al-numbered"):
            with ui.element("li"):
                html("Create a text file with this line. Other lines do not matter.")
                snippet(asked["token"])
            with ui.element("li"):
                html(
                    "Make it readable at this address, without a log-in and without a redirect to another host."
                )
                snippet(asked["url"])
            with ui.element("li"):
                html("Press “Check now”. Leave the file in place: it is checked again every week.")
        said = div("stack tight")

        async def check() -> None:
            button.disable()
            said.clear()
            try:
                await visit.api.post(f"/admin/sites/{site['id']}/verify")
            except ProblemError as error:
                with said:
                    notice(error.message, kind="warn", title="Not yet")
                button.enable()
                return
            dialog.close()
            notify_success(f"{site['domain']} is verified.")
            await reload()

        with div("al-actions"):
            if visit.is_admin:
                ui.button("Verify without the file", on_click=lambda: _ask_force(visit, site, reload)).props(
                    "flat"
                )
            ui.button("Close", on_click=dialog.close).props("flat")
            button = ui.button("Check now", on_click=check).props("unelevated")


def _ask_force(visit: PageVisit, site: Json, reload: Reload) -> None:
    confirm(
        f"Verify {site['domain']} by your word?",
        FORCE_NOTE,
        action="Verify",
        on_confirm=lambda: visit.api.post(f"/admin/sites/{site['id']}/verify", {"force": True}),
        said=f"{site['domain']} is verified.",
        then=reload,
    )
