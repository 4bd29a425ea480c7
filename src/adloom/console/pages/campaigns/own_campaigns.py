"""An advertiser's campaigns at a glance, for its overview: what each does now, what it has spent, and how fast."""

from typing import Final

from markupsafe import Markup

from adloom.console.client import Json
from adloom.console.components.format import format_money, format_percent
from adloom.console.components.layout import card, div, empty_state, html, link_button
from adloom.console.page import PageVisit
from adloom.console.pages.budgets import pace_badge
from adloom.console.pages.campaigns.campaign_list import complete_rows

# More are a click away. Those that run, or may soon, come first.
SHOWN_MAX: Final = 10
LISTED_MAX: Final = 100
ORDER: Final = ("active", "scheduled", "paused", "draft", "ended", "cancelled")
HEAD: Final = (("Campaign", ""), ("Status", ""), ("Spent", "num"), ("Today", "num"), ("Pace", "al-wide-only"))


async def show_own_campaigns(visit: PageVisit) -> None:
    """Show the account's campaigns, or how to begin if it has none."""
    found = await visit.api.get("/admin/campaigns", pageSize=LISTED_MAX, sort="name")
    rows: list[Json] = sorted(found["items"], key=lambda row: ORDER.index(row["status"]))[:SHOWN_MAX]
    with card("Your campaigns", classes="flush" if rows else ""):
        if not rows:
            empty_state(
                "campaign",
                "You have no campaign yet",
                "A campaign shows your banners on placements, between its dates and within its budget.",
                action="New campaign",
                href="/console/campaigns/new",
            )
            return
        await complete_rows(visit, rows)
        html(_build_table(rows))
        if found["totalCount"] > len(rows):
            with div("row-of"):
                link_button(f"All {found['totalCount']:,} campaigns", "/console/campaigns", look="flat")


def _build_table(rows: list[Json]) -> Markup:
    head = Markup("").join(
        Markup('<th scope="col" class="{}">{}</th>').format(kind, name) for name, kind in HEAD
    )
    body = Markup("").join(map(_build_row, rows))
    return Markup(
        '<div class="al-table-scroll"><table class="al-table"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(head, body)


def _build_row(row: Json) -> Markup:
    figures = row["figures"]
    pace = figures["pace"]
    cells = (
        Markup('<a href="/console/campaigns/{}">{}</a>').format(row["id"], row["name"]),
        row["badge"],
        _describe_spent(figures["spentTotalPaisa"], figures["totalBudgetPaisa"]),
        _describe_spent(figures["spentTodayPaisa"], figures["dailyBudgetPaisa"]),
        "" if pace is None else pace_badge(pace, text=format_percent(pace, places=0)),
    )
    return Markup("<tr>{}</tr>").format(
        Markup("").join(
            Markup('<td class="{}">{}</td>').format(kind, cell)
            for (_, kind), cell in zip(HEAD, cells, strict=True)
        )
    )


def _describe_spent(spent: int, budget: int | None) -> str:
    return format_money(spent) if budget is None else f"{format_money(spent)} of {format_money(budget)}"
