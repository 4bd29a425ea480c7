"""One advertiser: its day, its campaigns, its settings, and who changed it."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.format import money
from adloom.console.components.layout import Tile, card, facts, heading, meter
from adloom.console.components.status import account_badge
from adloom.console.history import history
from adloom.console.page import Visit, page
from adloom.console.pages.advertisers.list import HOME, advertiser_fields
from adloom.console.pages.campaigns.list import NEW as NEW_CAMPAIGN
from adloom.console.pages.campaigns.list import campaign_table
from adloom.console.shell import BUYERS
from adloom.console.things.account_buttons import delete_button
from adloom.console.things.deleted import deleted_notice
from adloom.console.things.page_of import Again, thing_page
from adloom.console.things.parts import part_asked
from adloom.console.things.settings import thing_settings

REFRESH_SECONDS: Final = 2.0
TABS: Final = {
    "campaigns": "Its campaigns",
    "settings": "Settings",
    "history": "History",
}


@page(f"{HOME}/{{advertiser_id}}", title="Advertiser", roles=BUYERS)
async def advertiser_page(visit: Visit) -> None:
    """Show an advertiser."""
    await thing_page(visit, f"/admin/advertisers/{visit.parts['advertiser_id']}", _build)


async def _build(visit: Visit, advertiser: Json, address: str, again: Again) -> None:
    with heading(advertiser["name"], crumbs=[("Advertisers", HOME)], badge=account_badge(advertiser)):
        if visit.may_write and not advertiser["deletedAt"]:
            if visit.is_admin:
                delete_button(
                    visit,
                    advertiser,
                    address,
                    (
                        "Its people and keys are refused at once, and nothing of it is offered within two seconds. Offers that are out still count and are charged. You can undo this: restored, all that it owns is back as it was."
                    ),
                    again,
                )
            add = ui.button("New campaign", icon="add").props("unelevated")
            attributed(add, href=f"{NEW_CAMPAIGN}?advertiser={advertiser['id']}")
    if advertiser["deletedAt"]:
        deleted_notice(visit, advertiser, address, "Advertiser".lower(), again)
    await _spend(visit, address)
    match part_asked(visit, TABS):
        case "settings":
            thing_settings(visit, advertiser, address, advertiser_fields, again, may_write=visit.is_admin)
            with card(classes="al-narrow"):
                facts([("Account id", advertiser["id"])])
        case "history":
            await history(visit, "advertiser", advertiser["id"])
        case _:
            await campaign_table(visit, advertiser_id=advertiser["id"]).show()


async def _spend(visit: Visit, address: str) -> None:
    with ui.element("div").classes("grid-of tiles"):
        spent = Tile("Spent")
        held = Tile("Held", hint=strings.HELD_HINT)
        remaining = Tile("Remaining")
    bar = ui.html("", sanitize=False)

    async def show() -> None:
        spend = await visit.api.get(f"{address}/spend")
        budget, left = spend["dailyBudgetPaisa"], spend["remainingPaisa"]
        of = "without a limit" if budget is None else strings.OF_BUDGET.format(budget=money(budget))
        spent.update(money(spend["spentPaisa"]), note=of)
        held.update(money(spend["heldPaisa"]), note=strings.TODAY_NOTE.format(day=spend["day"]))
        remaining.update("no limit" if left is None else money(left), kind="bad" if left == 0 else "")
        if budget:
            share = (spend["spentPaisa"] + spend["heldPaisa"]) / budget
            bar.content = meter(share, "bad" if share >= 1 else "good")

    await show()
    ui.timer(REFRESH_SECONDS, show)
