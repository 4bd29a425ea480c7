"""The budget of a campaign or an advertiser: the spend of its day against the plan, and the reset."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, fetch_all
from adloom.console.components import format as fmt
from adloom.console.components.attributes import set_attributes
from adloom.console.components.charts.bars import split, split_key
from adloom.console.components.charts.day_chart import DayChart
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import Tile, add_tiles, card, heading, link_button
from adloom.console.components.live import refresh_every
from adloom.console.components.messages import notify_success, open_dialog
from adloom.console.page import PageVisit, page
from adloom.console.pages.budgets.list import (
    ADDRESS,
    COLOURS,
    OF_ADVERTISERS,
    REFRESH_SECONDS,
    pace_badge,
    split_budget,
)
from adloom.console.shell import BUYERS

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
    with open_dialog("Reset today's budget?") as dialog:
        ui.label(
            f"What was spent today no longer counts against the daily budget, so up to {fmt.money(campaign['budgetDailyPaisa'])} more can be "
            "spent. The total budget, and what was charged, stay as they are. The history keeps your reason."
        )
        form = Form()
        form.text("reason", "Reason", is_required=True)

        async def reset() -> None:
            await visit.api.put(f"/api/v1/admin/budget/campaigns/{campaign['id']}/reset", form.values())
            dialog.close()
            notify_success("Today's budget is reset.")
            await refresh()

        form.buttons("Reset today", reset, on_cancel=dialog.close)
