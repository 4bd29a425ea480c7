"""How the campaign shall run."""

from nicegui import ui

from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.pages.first_campaign.plan import Plan
from adloom.console.pages.first_campaign.step import Turn, next_buttons


async def how_step(visit: Visit, plan: Plan, turn: Turn) -> None:
    """Give it a name, an end and a price; what is left empty is no limit."""
    del visit
    form = CatalogForm(plan.campaign or {"name": "My first campaign"})
    with card("How shall it run?", classes="al-narrow"), ui.element("div").classes("stack tight"):
        form.name("name", "Name of the campaign")
        form.moment("endsAt", "Runs until", zone=lambda: "UTC", hint="Empty: until you pause it.")
        form.price(
            "bidAmount",
            "Pays for a thousand impressions",
            hint="Empty: it costs nothing. Good for a first try.",
        )
        form.sum(
            "budgetDailyPaisa",
            "A day at most",
            hint="Empty: no limit. It is never exceeded, not by one impression.",
        )

        def keep() -> None:
            plan.campaign = form.creation()
            plan.made.pop("campaign", None)

        next_buttons(form, turn, keep)
