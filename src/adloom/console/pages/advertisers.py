"""The pages of advertisers: the spend of the day, their campaigns and their settings."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import money
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import Tile, facts, meter
from adloom.console.components.status import account_badge
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.pages import CAMPAIGNS
from adloom.console.resource_pages import Reload, ResourcePages
from adloom.console.shell import BUYERS

REFRESH_SECONDS: Final = 2.0


async def _add_fields(_: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    form.name("name", "Name")
    form.money("dailyBudgetPaisa", "Daily budget", hint="For all its campaigns together. Empty: no limit.")
    form.time_zone("timezone")
    form.texts(
        "blockedSites",
        "Blocked sites",
        hint="Its ads are not shown there. Press Enter after each domain.",
        check=checks.domains,
    )
    if not is_new:
        facts([("Account id", form.initial("id"))])


async def _show_spend(visit: PageVisit, advertiser: Json, _: Reload) -> None:
    with ui.element("div").classes("grid-of tiles"):
        spent = Tile("Spent")
        held = Tile("Held", hint=strings.HELD_HINT)
        remaining = Tile("Remaining")
    bar = ui.html("", sanitize=False)

    async def show() -> None:
        spend = await visit.api.get(f"/admin/advertisers/{advertiser['id']}/spend")
        budget, left = spend["dailyBudgetPaisa"], spend["remainingPaisa"]
        spent.update(money(spend["spentPaisa"]), note="no limit" if budget is None else f"of {money(budget)}")
        held.update(money(spend["heldPaisa"]), note=f"Day {spend['day']}")
        remaining.update("no limit" if left is None else money(left), kind="bad" if left == 0 else "")
        if budget:
            share = (spend["spentPaisa"] + spend["heldPaisa"]) / budget
            bar.content = meter(share, "bad" if share >= 1 else "good")

    await show()
    ui.timer(REFRESH_SECONDS, show)


ADVERTISERS: Final = ResourcePages(
    noun="advertiser",
    icon="storefront",
    note="An advertiser pays for campaigns. It is an account: people and keys can act for it.",
    empty_note="Campaigns can be your own. An advertiser has a daily budget for all its campaigns together.",
    roles=BUYERS,
    is_admins_only=True,
    is_compact=True,
    columns=[
        Column("Name", "name", sort="name"),
        Column("Status", account_badge),
        Column(
            "Daily budget",
            lambda row: money(row["dailyBudgetPaisa"]),
            sort="dailyBudgetPaisa",
            is_number=True,
        ),
        Column("Time zone", "timezone", is_wide_only=True),
        Column("Blocked sites", lambda row: str(len(row["blockedSites"])), is_number=True, is_wide_only=True),
    ],
    search="Search by name",
    fields=_add_fields,
    defaults={"timezone": "UTC"},
    badge=account_badge,
    delete_note=(
        "Its people and keys are refused at once, and its ads are not offered any more within two seconds. "
        "Offers that are already out still count and are charged. "
        "You can undo this: everything it owns is then back as it was."
    ),
    add=lambda advertiser: ("New campaign", f"{CAMPAIGNS.new}?advertiser={advertiser['id']}"),
    above_tabs=_show_spend,
    tabs={"campaigns": CAMPAIGNS.tab_of("advertiserId")},
).register()
