"""How a site's traffic comes over its day, and how the campaigns on it keep pace with it."""

from typing import Final

from adloom.console.client import Json, fetch_all
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.format import count, money, percent
from adloom.console.components.layout import add_tiles, card, html
from adloom.console.components.table import Column, plain_table
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload

CAMPAIGNS_SHOWN_MAX: Final = 20


async def show_pacing(visit: PageVisit, site: Json, _: Reload) -> None:
    found = await visit.api.get(f"/admin/sites/{site['id']}/pacing")
    requests, served, left_out = add_tiles("Requests today", "Filled", "Left out to keep pace")
    requests.update(count(found["requests"]))
    served.update(count(found["served"]), note=percent(found["served"] / max(1, found["requests"]), places=0))
    left_out.update(count(found["throttled"]), note="offers of campaigns that were ahead of their plan")
    with card("The usual day", note="Times the average hour, as learned so far; budgets follow it"):
        Chart(
            [f"{hour}:00" for hour in range(24)],
            [
                Series(name="Monday to Friday", values=found["shapes"]["weekday"], has_area=True),
                Series(name="Saturday and Sunday", values=found["shapes"]["weekend"], is_dashed=True),
            ],
            description="How many times the average each hour of weekdays and of weekends has",
        )
    if found["campaigns"]:
        await _show_campaigns(visit, found["campaigns"])


async def _show_campaigns(visit: PageVisit, campaigns: list[Json]) -> None:
    """List those that are farthest from their plan first."""
    shown = sorted(campaigns, key=lambda one: -abs(1 - (one["ratio"] or 1)))[:CAMPAIGNS_SHOWN_MAX]
    named = await fetch_all([visit.api.get(f"/admin/campaigns/{one['campaignId']}") for one in shown])
    rows = [{**one, "name": campaign["name"]} for one, campaign in zip(shown, named, strict=True)]
    with card("Campaigns on this site", note="Those farthest from their plan first", classes="flush"):
        html(plain_table(COLUMNS, rows))


COLUMNS: Final = (
    Column("Campaign", "name"),
    Column("Daily budget", lambda row: money(row["dailyBudgetPaisa"]), is_number=True, is_wide_only=True),
    Column("Spent", lambda row: money(row["spentPaisa"]), is_number=True),
    Column("By its plan", lambda row: money(row["expectedPaisa"]), is_number=True),
    Column(
        "Of the plan",
        lambda row: "—" if row["ratio"] is None else percent(row["ratio"], places=0),
        is_number=True,
    ),
    Column("Left out", lambda row: percent(row["throttle"], places=0), is_number=True),
)
