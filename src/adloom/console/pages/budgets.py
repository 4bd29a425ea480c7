"""Daily budgets of campaigns and advertisers: the lists, and the spend of a day against the plan with its reset."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_all, fetch_names
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import Part, split, split_key
from adloom.console.components.charts.chart import DayChart
from adloom.console.components.forms.form import Form, form_dialog
from adloom.console.components.layout import (
    Tile,
    add_tiles,
    badge,
    card,
    heading,
    link_button,
    set_attributes,
    view_links,
)
from adloom.console.components.messages import notify_success
from adloom.console.components.table import Column, DataTable
from adloom.console.page import PageVisit, page, refresh_every
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


Tell = Callable[[list[Tile], Json, Json], None]
Refresh = Callable[[], Awaitable[None]]


@page(ADDRESS + "/campaigns/{campaign_id}", title="Budgets", roles=BUYERS)
async def campaign_budget(visit: PageVisit) -> None:
    path = f"/admin/campaigns/{visit.parts['campaign_id']}"
    campaign = await visit.api.get(path)
    with heading(campaign["name"], crumbs=[("Budgets", ADDRESS)]):
        why, whole = (
            ui.button(strings.WHY_NOT_DELIVERING).props("outline"),
            ui.button("Open the campaign").props("outline"),
        )
        set_attributes(why, href=f"/console/why?campaign={campaign['id']}")
        set_attributes(whole, href=f"/console/campaigns/{campaign['id']}")
        is_resettable = visit.is_admin and campaign["budgetDailyPaisa"] is not None
        reset = ui.button("Reset today").props("unelevated") if is_resettable else None

    with ui.element("div").classes("grid-of tiles"):
        names = ("Spent today", "End of day", "Left", "Spent in all")
        tiles = [Tile(name) for name in names]
    refresh = await _day(visit, path, "budget", tiles, _tell_campaign)
    if reset is not None:
        reset.on_click(lambda: _ask_reset(visit, campaign, refresh))


@page(OF_ADVERTISERS + "/{advertiser_id}", title="Budgets", roles=BUYERS)
async def advertiser_budget(visit: PageVisit) -> None:
    path = f"/admin/advertisers/{visit.parts['advertiser_id']}"
    advertiser = await visit.api.get(path)
    crumbs = [("Budgets", ADDRESS), ("Advertisers", OF_ADVERTISERS)]
    with heading(advertiser["name"], crumbs=crumbs):
        link_button("Open the advertiser", f"/console/advertisers/{advertiser['id']}")
    tiles = add_tiles("Spent today", "End of day", "Left", "Held")
    await _day(visit, path, "spend", tiles, _tell_advertiser)


async def _day(visit: PageVisit, path: str, noun: str, tiles: list[Tile], tell: Tell) -> Refresh:
    """Build the page of a day, and return its refresh."""
    standing, day = await fetch_all([visit.api.get(f"{path}/{noun}"), visit.api.get(f"{path}/{noun}/day")])
    tell(tiles, standing, day)
    note = f"{day['day']}, {day['timezone']}"
    with card(strings.AGAINST_PLAN, note=note):
        chart = DayChart(day, now=visit.now)
        if day["dailyBudgetPaisa"] is None:
            ui.label("No daily budget: there is no plan to keep to.").classes("quiet small")
    with card("Where the day's budget is"):
        where = ui.html(_where(standing), sanitize=False).classes("stack tight")

    async def refresh() -> None:
        standing, day = await fetch_all(
            [visit.api.get(f"{path}/{noun}"), visit.api.get(f"{path}/{noun}/day")]
        )
        tell(tiles, standing, day)
        chart.update(day, now=visit.now)
        where.content = _where(standing)

    refresh_every(REFRESH_SECONDS, refresh)
    return refresh


def _tell_campaign(tiles: list[Tile], standing: Json, day: Json) -> None:
    budget = standing["dailyBudgetPaisa"]
    of_day = "no limit" if budget is None else f"of {fmt.money(budget)}"
    tiles[0].update(fmt.money(standing["spentTodayPaisa"]), note=of_day)
    tiles[1].update(fmt.money(day["projectedPaisa"]), note=pace_badge(standing["pace"]).striptags())
    tiles[2].update(_limit(standing["remainingTodayPaisa"]))
    total = standing["totalBudgetPaisa"]
    of_total = "no limit" if total is None else f"of {fmt.money(total)}"
    tiles[3].update(fmt.money(standing["spentTotalPaisa"]), note=of_total)


def _tell_advertiser(tiles: list[Tile], standing: Json, day: Json) -> None:
    budget = standing["dailyBudgetPaisa"]
    of_day = "no limit" if budget is None else f"of {fmt.money(budget)}"
    tiles[0].update(fmt.money(standing["spentPaisa"]), note=of_day)
    tiles[1].update(fmt.money(day["projectedPaisa"]))
    tiles[2].update(_limit(standing["remainingPaisa"]))
    tiles[3].update(fmt.money(standing["heldPaisa"]))


def _limit(paisa: int | None) -> str:
    return "no limit" if paisa is None else fmt.money(paisa)


def _where(standing: Json) -> str:
    row = {
        "spentTodayPaisa": standing.get("spentTodayPaisa", standing.get("spentPaisa")),
        "heldPaisa": standing["heldPaisa"],
        "leasedPaisa": standing.get("leasedPaisa", 0),
    }
    left = standing.get("remainingTodayPaisa", standing.get("remainingPaisa"))
    parts = split_budget(row)
    shown_parts = [(name, fmt.money(int(amount)), colour) for name, amount, colour in parts]
    free = None if left is None else max(0, left - row["leasedPaisa"])
    shown_parts.append(("Left", _limit(free), COLOURS["Left"]))
    bar = split(parts, whole=standing["dailyBudgetPaisa"], description="Where the day's budget is")
    return f'{bar}<div class="row-of small">{split_key(shown_parts)}</div>'


def _ask_reset(visit: PageVisit, campaign: Json, refresh: Refresh) -> None:
    async def reset(form: Form) -> None:
        await visit.api.put(f"/api/v1/admin/budget/campaigns/{campaign['id']}/reset", form.values())
        notify_success("Today's budget is reset.")
        await refresh()

    with form_dialog("Reset today's budget?", "Reset today", reset) as form:
        ui.label(
            f"What was spent today no longer counts against the daily budget, so up to {fmt.money(campaign['budgetDailyPaisa'])} more can be "
            "spent. The total budget, and what was charged, stay as they are. The history keeps your reason."
        )
        form.text("reason", "Reason", is_required=True)
