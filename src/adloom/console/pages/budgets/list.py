"""Daily budgets of campaigns and advertisers: spent, held, leased and left."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_all, fetch_names
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import Part, split, split_key
from adloom.console.components.layout import add_tiles, badge, heading, view_links
from adloom.console.components.live import refresh_every
from adloom.console.components.table import Column, DataTable
from adloom.console.page import PageVisit, page
from adloom.console.shell import BUYERS

COLOURS: Final = {"Spent": "c1", "Held": "c4", "Leased": "c2", "Left": "line"}
SPLIT_KEY: Final = [(name, "", colour) for name, colour in COLOURS.items()]
ON_THE_LINE: Final = (0.9, 1.02)


def split_budget(row: Json) -> list[Part]:
    """Split a day's budget into spent, held and leased; leased is part of what is left."""
    leased = row["leasedPaisa"]
    amounts = (row["spentTodayPaisa"], row["heldPaisa"], leased)
    return [(name, amount, COLOURS[name]) for name, amount in zip(COLOURS, amounts, strict=False)]


def budget_bar(row: Json) -> Markup:
    whole = row["dailyBudgetPaisa"]
    text = f"{fmt.money(row['spentTodayPaisa'])} / {'no limit' if whole is None else fmt.money(whole)}"
    return split(split_budget(row), whole=whole, description=text)


def pace_badge(pace: float | None) -> Markup:
    if pace is None:
        return Markup('<span class="quiet">{}</span>').format("as fast as it can")
    low, high = ON_THE_LINE
    label, kind = (
        ("behind the line", "info")
        if pace < low
        else ("ahead of the line", "warn")
        if pace > high
        else ("on the line", "good")
    )
    return Markup('<span title="{}">{}</span>').format(
        f"{fmt.percent(pace, places=0)} of what may be spent by now", badge(label, kind)
    )


ADDRESS: Final = "/console/budgets"
OF_ADVERTISERS: Final = f"{ADDRESS}/advertisers"
VIEWS: Final = (("Campaigns", ADDRESS), ("Advertisers", OF_ADVERTISERS))
REFRESH_SECONDS: Final = 5.0
PAISA: Final = 100


@page(ADDRESS, title="Budgets", roles=BUYERS)
async def budgets(visit: PageVisit) -> None:
    await _top(visit, ADDRESS)
    table = DataTable(
        visit.query,
        [
            Column("Campaign", "name"),
            Column("Today", budget_bar),
            Column("Spent", lambda row: fmt.money(row["spentTodayPaisa"]), is_number=True),
            Column("Budget", lambda row: fmt.money(row["dailyBudgetPaisa"]), is_number=True),
            Column("Held", lambda row: fmt.money(row["heldPaisa"]), is_number=True, is_wide_only=True),
            Column("Leased", lambda row: fmt.money(row["leasedPaisa"]), is_number=True, is_wide_only=True),
            Column("Left", lambda row: fmt.money(row["remainingTodayPaisa"]), is_number=True, is_wide_only=True),
            Column("Pace", lambda row: pace_badge(row["pace"]), is_wide_only=True),
            Column("End of day", lambda row: fmt.money(row["projectedPaisa"]), is_number=True, is_wide_only=True),
        ],
        lambda query: _campaigns(visit.api, query),
        href=lambda row: f"{ADDRESS}/campaigns/{row['campaignId']}",
        sort="-lastUpdated",
        empty=("account_balance_wallet", "No campaign has a daily budget", "Give a campaign a daily budget, and see here how it is spent over the day."),
        empty_action=("To the campaigns", "/console/campaigns"),
    )  # fmt: skip
    await table.show()
    ui.html(split_key(SPLIT_KEY), sanitize=False).classes("row-of small quiet")
    refresh_every(REFRESH_SECONDS, table.show)


@page(OF_ADVERTISERS, title="Budgets", roles=BUYERS)
async def advertisers(visit: PageVisit) -> None:
    await _top(visit, OF_ADVERTISERS)
    table = DataTable(
        visit.query,
        [
            Column("Advertiser", "name", sort="name"),
            Column("Today", budget_bar),
            Column("Spent", lambda row: fmt.money(row["spentTodayPaisa"]), is_number=True),
            Column("Budget", _budget, is_number=True),
            Column("Held", lambda row: fmt.money(row["heldPaisa"]), is_number=True, is_wide_only=True),
            Column("Left", lambda row: fmt.money(row["remainingTodayPaisa"]), is_number=True, is_wide_only=True),
        ],
        lambda query: _advertisers(visit.api, query),
        href=lambda row: f"{OF_ADVERTISERS}/{row['id']}",
        sort="name",
        empty=("storefront", strings.NO_ADVERTISERS, "An advertiser pays for campaigns, and may have a budget for all of them together."),
        empty_action=(strings.TO_ADVERTISERS, "/console/advertisers"),
    )  # fmt: skip
    table.search()
    await table.show()
    ui.html(split_key([one for one in SPLIT_KEY if one[0] != "Leased"]), sanitize=False).classes(
        "row-of small quiet"
    )
    refresh_every(REFRESH_SECONDS, table.show)


async def _top(visit: PageVisit, current: str) -> None:
    heading("Budgets", note="What is spent today, against what may be by now.")
    tiles = add_tiles("Spent today", "Daily budgets", "Used on average", "Used up")

    async def tell() -> None:
        found = await visit.api.get("/api/v1/admin/budget/statistics")
        budget, spent = found["totalDailyBudget"], found["totalSpentToday"]
        share = fmt.percent(spent / budget if budget else 0, places=0)
        tiles[0].update(fmt.money(round(spent * PAISA)), note=f"{share} of all budgets")
        tiles[1].update(fmt.money(round(budget * PAISA)))
        tiles[2].update(fmt.percent(found["averageUtilization"] / 100, places=1))
        count = "of {count} campaigns".format(count=f"{found['totalCampaigns']:,}")
        exceeded = found["campaignsExceeded"]
        tiles[3].update(fmt.count(exceeded), note=count, kind="warn" if exceeded else "")

    await tell()
    refresh_every(REFRESH_SECONDS, tell)
    view_links(VIEWS, current=current, label="Budgets of")


def _budget(row: Json) -> str | Markup:
    budget = row["dailyBudgetPaisa"]
    return Markup('<span class="quiet">{}</span>').format("no limit") if budget is None else fmt.money(budget)


async def _campaigns(api: ApiClient, query: Mapping[str, str]) -> Json:
    """Read a page of pacers, each with the state of its budgets."""
    answer = await api.get("/api/v1/admin/budget/pacers", **query)
    ids = [row["campaignId"] for row in answer["items"]]
    names = await fetch_names(api, "campaign", ids)
    standings = await fetch_all([api.get(f"/admin/campaigns/{one}/budget") for one in ids])
    for row, standing in zip(answer["items"], standings, strict=True):
        row.update(standing, name=names[row["campaignId"]])
    return answer


async def _advertisers(api: ApiClient, query: Mapping[str, str]) -> Json:
    answer = await api.get("/admin/advertisers", **query)
    spends = await fetch_all([api.get(f"/admin/advertisers/{row['id']}/spend") for row in answer["items"]])
    for row, spend in zip(answer["items"], spends, strict=True):
        row.update(
            spend,
            spentTodayPaisa=spend["spentPaisa"],
            remainingTodayPaisa=spend["remainingPaisa"],
            leasedPaisa=0,
        )
    return answer
