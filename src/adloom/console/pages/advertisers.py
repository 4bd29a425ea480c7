"""The pages of advertisers: the spend of the day, their campaigns, banners and settings."""

from typing import Final

from adloom.console.client import Json
from adloom.console.components.format import format_money
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import add_facts
from adloom.console.components.status import build_account_badge, build_account_name
from adloom.console.components.table import Column, make_number_column
from adloom.console.page import PageVisit
from adloom.console.pages.banners import BANNERS
from adloom.console.pages.budgets import show_budget
from adloom.console.pages.campaigns.pages import CAMPAIGNS
from adloom.console.resource_pages import Reload, ResourcePages
from adloom.console.shell import ADVERTISER_SIDE


async def _add_fields(_: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    form.add_name("name", "Name")
    form.add_money(
        "dailyBudgetPaisa", "Daily budget", hint="For all its campaigns together. Empty: no limit."
    )
    form.add_time_zone("timezone")
    form.add_texts(
        "blockedSites",
        "Blocked sites",
        hint="Its ads are not shown there. Press Enter after each domain.",
        check=checks.check_domains,
    )
    if not is_new:
        add_facts([("Account id", form.get_initial("id"))])


async def _show_spend(visit: PageVisit, advertiser: Json, _: Reload) -> None:
    await show_budget(visit, "advertiser", advertiser["id"])


ADVERTISERS: Final = ResourcePages(
    noun="advertiser",
    icon="storefront",
    note="An advertiser pays for campaigns. It is an account: people and keys can act for it.",
    empty_note="Campaigns can be your own. An advertiser has a daily budget for all its campaigns together.",
    roles=ADVERTISER_SIDE,
    is_admins_only=True,
    is_compact=True,
    columns=[
        Column("Name", build_account_name, sort="name"),
        make_number_column("Daily budget", "dailyBudgetPaisa", format_money, is_sorted=True),
        Column("Time zone", "timezone", is_wide_only=True),
        Column("Blocked sites", lambda row: str(len(row["blockedSites"])), is_number=True, is_wide_only=True),
    ],
    search="Search by name",
    fields=_add_fields,
    defaults={"timezone": "UTC"},
    badge=build_account_badge,
    delete_note=(
        "Its people and keys are refused at once, and its ads are not offered any more within two seconds. "
        "Offers that are already out still count and are charged. "
        "You can undo this: everything it owns is then back as it was."
    ),
    add=lambda advertiser: ("New campaign", f"{CAMPAIGNS.new}?advertiser={advertiser['id']}"),
    above_tabs=_show_spend,
    tabs={"campaigns": CAMPAIGNS.make_tab("advertiserId"), "banners": BANNERS.make_tab("advertiserId")},
).register()
