"""How the campaign shall run."""

from nicegui import ui

from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.pages.first_campaign.plan import Plan
from adloom.console.pages.first_campaign.step import Turn, next_buttons
from adloom.console.words import first_campaign as words


async def how_step(visit: Visit, plan: Plan, turn: Turn) -> None:
    """Give it a name, an end and a price; what is left empty is no limit."""
    del visit
    form = CatalogForm(plan.campaign or {"name": words.NAME_DEFAULT})
    with card(words.HOW_TITLE, classes="al-narrow"), ui.element("div").classes("stack tight"):
        form.name("name", words.NAME)
        form.moment("endsAt", words.ENDS_AT, zone=lambda: "UTC", hint=words.ENDS_HINT)
        form.price("bidAmount", words.BID, hint=words.BID_HINT)
        form.sum("budgetDailyPaisa", words.BUDGET, hint=words.BUDGET_HINT)

        def keep() -> None:
            plan.campaign = form.creation()
            plan.made.pop("campaign", None)

        next_buttons(form, turn, keep)
