"""Daily budgets of campaigns and advertisers: the lists, and the spend of a day against the plan with its reset."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_all, fetch_names
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import Part, split, split_key
from adloom.console.components.charts.chart import ThemedChart, build_day_options
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    Tile,
    add_card,
    add_div,
    add_heading,
    add_hint,
    add_html,
    add_link_button,
    add_tiles,
    add_view_links,
    build_badge,
    build_meter,
)
from adloom.console.components.messages import notify_success
from adloom.console.components.table import Column, DataTable, make_number_column
from adloom.console.page import PageVisit, refresh_every, register_page
from adloom.console.shell import ADVERTISER_SIDE
from adloom.console.words.campaign_words import describe_spent
from adloom.core.ids import SystemIds

COLOURS: Final = {"Spent": "c1", "Held": "c4", "Leased": "c2", "Free": "line"}
SPLIT_KEY: Final = [(name, "", colour) for name, colour in COLOURS.items()]
ON_THE_LINE: Final = (0.9, 1.02)
ADDRESS: Final = "/console/budgets"
OF_ADVERTISERS: Final = f"{ADDRESS}/advertisers"
VIEWS: Final = (("Campaigns", ADDRESS), ("Advertisers", OF_ADVERTISERS))
REFRESH_SECONDS: Final = 5.0
TILES_REFRESH_SECONDS: Final = 2.0
PAISA: Final = 100


def split_budget(row: Json) -> list[Part]:
    """Split a day's budget into spent, held and leased; leased is part of what is left."""
    leased = row["leasedPaisa"]
    amounts = (row["spentTodayPaisa"], row["heldPaisa"], leased)
    return [(name, amount, COLOURS[name]) for name, amount in zip(COLOURS, amounts, strict=False)]


def build_budget_bar(row: Json) -> Markup:
    whole = row["dailyBudgetPaisa"]
    text = f"{fmt.format_money(row['spentTodayPaisa'])} / {_format_limit(whole)}"
    return split(split_budget(row), whole=whole, description=text)


def pace_badge(pace: float | None, *, text: str = "") -> Markup:
    """Show how a campaign keeps its pace, in words or as another text in the same colour."""
    if pace is None:
        return Markup('<span class="quiet">{}</span>').format("as fast as it can")
    low, high = ON_THE_LINE
    label, kind = ("ahead of the line", "warn") if pace > high else ("on the line", "good")
    if pace < low:
        label, kind = "behind the line", "info"
    return Markup('<span title="{}">{}</span>').format(
        f"{fmt.format_percent(pace, places=0)} of what may be spent by now", build_badge(text or label, kind)
    )


def show_pace(budget: Json) -> Markup:
    """Show the pace of a campaign that runs; one that is paused, over or not begun is behind nothing."""
    if not budget["isRunning"]:
        return Markup('<span class="quiet">{}</span>').format("does not run now")
    return pace_badge(budget["pace"])


@register_page(ADDRESS, title="Budgets", roles=ADVERTISER_SIDE)
async def show_campaign_budgets(visit: PageVisit) -> None:
    await _show_top(visit, ADDRESS)
    table = DataTable(
        visit.query,
        [
            Column("Campaign", "name"),
            Column("Today", build_budget_bar),
            Column("Spent", _build_spent, is_number=True),
            make_number_column("Budget", "dailyBudgetPaisa", fmt.format_money, is_wide_only=True),
            make_number_column("Held", "heldPaisa", fmt.format_money, is_wide_only=True),
            make_number_column("Leased", "leasedPaisa", fmt.format_money, is_wide_only=True),
            make_number_column("Left", "remainingTodayPaisa", fmt.format_money),
            Column("Pace", show_pace, is_wide_only=True),
            make_number_column("End of day", "projectedPaisa", fmt.format_money, is_wide_only=True),
            Column("Spent by about", lambda row: _build_spent_by(row, visit), is_wide_only=True),
        ],
        lambda query: _read_campaigns(visit.api, query),
        href=lambda row: f"{ADDRESS}/campaigns/{row['campaignId']}",
        sort="-lastUpdated",
        empty=(
            "account_balance_wallet",
            "No campaign has a daily budget",
            "Give a campaign a daily budget, and see here how it is spent over the day.",
        ),
        empty_action=("To the campaigns", "/console/campaigns"),
    )
    await table.show()
    add_html(split_key(SPLIT_KEY)).classes("row-of small quiet")
    refresh_every(REFRESH_SECONDS, table.show)


@register_page(OF_ADVERTISERS, title="Budgets", roles=ADVERTISER_SIDE)
async def show_advertiser_budgets(visit: PageVisit) -> None:
    await _show_top(visit, OF_ADVERTISERS)
    table = DataTable(
        visit.query,
        [
            Column("Advertiser", "name", sort="name"),
            Column("Today", build_budget_bar),
            Column("Spent", _build_spent, is_number=True),
            make_number_column("Budget", "dailyBudgetPaisa", _format_limit, is_wide_only=True),
            make_number_column("Held", "heldPaisa", fmt.format_money, is_wide_only=True),
            make_number_column("Left", "remainingTodayPaisa", fmt.format_money),
        ],
        lambda query: _read_advertisers(visit.api, query),
        href=lambda row: f"{OF_ADVERTISERS}/{row['id']}",
        sort="name",
        empty=(
            "storefront",
            strings.NO_ADVERTISERS,
            "An advertiser pays for campaigns, and may have a budget for all of them together.",
        ),
        empty_action=(strings.TO_ADVERTISERS, "/console/advertisers"),
    )
    table.search()
    await table.show()
    add_html(split_key([one for one in SPLIT_KEY if one[0] != "Leased"])).classes("row-of small quiet")
    refresh_every(REFRESH_SECONDS, table.show)


def _build_spent(row: Json) -> Markup:
    """Show what is spent; on a phone with the budget below it, which has no column there."""
    below = Markup('<div class="quiet small nowrap al-phone-only">of {}</div>').format(
        _format_limit(row["dailyBudgetPaisa"])
    )
    return Markup("{}{}").format(fmt.format_money(row["spentTodayPaisa"]), below)


def _build_spent_by(row: Json, visit: PageVisit) -> Markup:
    return Markup('<span class="small">{}</span>').format(_describe_end(row, visit))


async def _show_top(visit: PageVisit, current: str) -> None:
    add_heading("Budgets", note="What is spent today, against what may be by now.")
    tiles = add_tiles("Spent today", "Daily budgets", "Used on average", "Used up")

    async def update() -> None:
        found = await visit.api.get("/api/v1/admin/budget/statistics")
        budget, spent = found["totalDailyBudget"], found["totalSpentToday"]
        share = fmt.format_percent(spent / budget if budget else 0, places=0)
        tiles[0].update(
            fmt.format_money(round(spent * PAISA)),
            note=f"{share} of all daily budgets; campaigns without one are not in it",
        )
        tiles[1].update(fmt.format_money(round(budget * PAISA)))
        tiles[2].update(fmt.format_percent(found["averageUtilization"] / 100, places=1))
        exceeded = found["campaignsExceeded"]
        count = f"of {fmt.format_quantity(found['totalCampaigns'], 'campaign')}"
        tiles[3].update(fmt.format_count(exceeded), note=count, kind="warn" if exceeded else "")

    await update()
    refresh_every(REFRESH_SECONDS, update)
    add_view_links(VIEWS, current=current, label="Budgets of")


async def fetch_budget(api: ApiClient, noun: str, item_id: str) -> Json:
    """Read the state of a day's budget; an advertiser's has the same fields as a campaign's."""
    if noun == "campaign":
        return await api.get(f"/admin/campaigns/{item_id}/budget")
    spend = await api.get(f"/admin/advertisers/{item_id}/spend")
    return {
        **spend,
        "spentTodayPaisa": spend["spentPaisa"],
        "remainingTodayPaisa": spend["remainingPaisa"],
        "leasedPaisa": 0,
    }


async def show_budget(visit: PageVisit, noun: str, item_id: str) -> None:
    """Show the tiles of today's budget on the page of a campaign or an advertiser."""
    with add_div("grid-of tiles"):
        spent = Tile("Spent")
        held = Tile(
            "Held",
            hint="The price of offers that are out but not yet seen or clicked. Without a view or click it comes back.",
        )
        remaining = Tile("Remaining")
        more: list[Tile] = []
        if noun == "campaign":
            projected = Tile("Projected", hint="Spent at the end of the day, if it goes on like this.")
            more = [projected, Tile("Spent in all")]
    bar = add_html()
    bar.set_visibility(False)
    words = add_hint()

    async def show() -> None:
        budget = await fetch_budget(visit.api, noun, item_id)
        _show_end(words, budget, visit)
        daily, left = budget["dailyBudgetPaisa"], budget["remainingTodayPaisa"]
        spent.update(fmt.format_money(budget["spentTodayPaisa"]), note=_describe_limit(daily))
        held.update(fmt.format_money(budget["heldPaisa"]), note=f"Day {budget['day']}")
        note = ""
        if more:
            note = _describe_pace(budget)
            more[0].update(fmt.format_money(budget["projectedPaisa"]), note=_describe_limit(daily))
            more[1].update(
                fmt.format_money(budget["spentTotalPaisa"]), note=_describe_limit(budget["totalBudgetPaisa"])
            )
        remaining.update(_format_limit(left), kind="bad" if left == 0 else "", note=note)
        if daily:
            share = (budget["spentTodayPaisa"] + budget["heldPaisa"]) / daily
            bar.content = build_meter(share, "bad" if share >= 1 else "good")
            bar.set_visibility(True)

    await show()
    ui.timer(TILES_REFRESH_SECONDS, show)


def _describe_pace(budget: Json) -> str:
    if not budget["isRunning"]:
        return "does not run now"
    pace = budget["pace"]
    return (
        "as fast as it can"
        if pace is None
        else f"{fmt.format_percent(pace, places=0)} of what may be spent by now"
    )


async def _read_campaigns(api: ApiClient, query: Mapping[str, str]) -> Json:
    """Read a page of pacers, each with the state of its budgets."""
    answer = await api.get("/api/v1/admin/budget/pacers", **query)
    ids = [row["campaignId"] for row in answer["items"]]
    names = await fetch_names(api, "campaign", ids)
    found = await fetch_all([fetch_budget(api, "campaign", one) for one in ids])
    for row, budget in zip(answer["items"], found, strict=True):
        row.update(budget, name=names[row["campaignId"]])
    return answer


async def _read_advertisers(api: ApiClient, query: Mapping[str, str]) -> Json:
    answer = await api.get("/admin/advertisers", **query)
    found = await fetch_all([fetch_budget(api, "advertiser", row["id"]) for row in answer["items"]])
    for row, budget in zip(answer["items"], found, strict=True):
        row.update(budget)
    return answer


@register_page(ADDRESS + "/campaigns/{campaign_id}", title="Budgets", roles=ADVERTISER_SIDE)
async def show_campaign_budget(visit: PageVisit) -> None:
    campaign = await visit.api.get(f"/admin/campaigns/{visit.parts['campaign_id']}")
    with add_heading(campaign["name"], crumbs=[("Budgets", ADDRESS)]):
        add_link_button(strings.WHY_NOT_DELIVERING, f"/console/why?campaign={campaign['id']}")
        add_link_button("Open the campaign", f"/console/campaigns/{campaign['id']}")
        is_resettable = visit.is_admin and campaign["budgetDailyPaisa"] is not None
        refund = ui.button("Refund").props("flat") if visit.is_admin else None
        reset = ui.button("Reset today").props("outline") if is_resettable else None
    refresh = await _show_day(visit, "campaign", campaign["id"])
    if reset is not None:
        reset.on_click(lambda: _ask_reset(visit, campaign, refresh))
    if refund is not None:
        refund.on_click(lambda: _ask_refund(visit, campaign, refresh))


@register_page(OF_ADVERTISERS + "/{advertiser_id}", title="Budgets", roles=ADVERTISER_SIDE)
async def show_advertiser_budget(visit: PageVisit) -> None:
    advertiser = await visit.api.get(f"/admin/advertisers/{visit.parts['advertiser_id']}")
    crumbs = [("Budgets", ADDRESS), ("Advertisers", OF_ADVERTISERS)]
    with add_heading(advertiser["name"], crumbs=crumbs):
        add_link_button("Open the advertiser", f"/console/advertisers/{advertiser['id']}")
    await _show_day(visit, "advertiser", advertiser["id"])


async def _show_day(visit: PageVisit, noun: str, item_id: str) -> Callable[[], Awaitable[None]]:
    """Build the page of a day, and return its refresh."""
    part = "budget" if noun == "campaign" else "spend"

    async def read() -> list[Json]:
        path = f"/admin/{noun}s/{item_id}/{part}/day"
        return await fetch_all([fetch_budget(visit.api, noun, item_id), visit.api.get(path)])

    tiles = add_tiles("Spent today", "End of day", "Left", "Spent in all" if noun == "campaign" else "Held")
    budget, day = await read()
    _update_tiles(tiles, budget, day)
    words = add_hint()
    _show_end(words, budget, visit)
    with add_card("Spend against plan", note=f"{day['day']}, {day['timezone']}"):
        chart = ThemedChart(build_day_options(day, now=visit.now), description="Spend against plan")
        if day["dailyBudgetPaisa"] is None:
            add_hint("No daily budget: there is no plan to keep to.")
    with add_card("Where the day's budget is"):
        where = add_html(_describe_place(budget)).classes("stack tight")

    async def refresh() -> None:
        budget, day = await read()
        _update_tiles(tiles, budget, day)
        chart.redraw(build_day_options(day, now=visit.now))
        where.content = _describe_place(budget)
        _show_end(words, budget, visit)

    refresh_every(REFRESH_SECONDS, refresh)
    return refresh


def _update_tiles(tiles: list[Tile], budget: Json, day: Json) -> None:
    is_campaign = "pace" in budget
    tiles[0].update(
        fmt.format_money(budget["spentTodayPaisa"]), note=_describe_limit(budget["dailyBudgetPaisa"])
    )
    pace = show_pace(budget).striptags() if is_campaign else ""
    tiles[1].update(fmt.format_money(day["projectedPaisa"]), note=pace)
    tiles[2].update(_format_limit(budget["remainingTodayPaisa"]))
    if is_campaign:
        tiles[3].update(
            fmt.format_money(budget["spentTotalPaisa"]), note=_describe_limit(budget["totalBudgetPaisa"])
        )
    else:
        tiles[3].update(fmt.format_money(budget["heldPaisa"]))


def _show_end(words: ui.label, budget: Json, visit: PageVisit) -> None:
    words.text = _describe_end(budget, visit)
    words.set_visibility(bool(words.text))


def _describe_end(budget: Json, visit: PageVisit) -> str:
    """Say when a campaign's budgets are spent; empty where they last, and for advertisers."""
    if "dailySpentAt" not in budget:
        return ""
    return " ".join(describe_spent(budget, zone=visit.choose_zone(budget["timezone"]), now=visit.now))


def _format_limit(paisa: int | None) -> str:
    return "no limit" if paisa is None else fmt.format_money(paisa)


def _describe_limit(paisa: int | None) -> str:
    return "no limit" if paisa is None else f"of {fmt.format_money(paisa)}"


def _describe_place(budget: Json) -> str:
    left = budget["remainingTodayPaisa"]
    parts = split_budget(budget)
    shown_parts = [(name, fmt.format_money(int(amount)), colour) for name, amount, colour in parts]
    free = None if left is None else max(0, left - budget["leasedPaisa"])
    shown_parts.append(("Free", _format_limit(free), COLOURS["Free"]))
    bar = split(parts, whole=budget["dailyBudgetPaisa"], description="Where the day's budget is")
    return f'{bar}<div class="row-of small">{split_key(shown_parts)}</div>'


def _ask_reset(visit: PageVisit, campaign: Json, refresh: Callable[[], Awaitable[None]]) -> None:
    async def reset(form: Form) -> None:
        await visit.api.put(f"/api/v1/admin/budget/campaigns/{campaign['id']}/reset", form.read_values())
        notify_success("Today's budget is reset.")
        await refresh()

    with open_form_dialog("Reset today's budget?", "Reset today", reset) as form:
        ui.label(
            f"What was spent today no longer counts against the daily budget, so up to {fmt.format_money(campaign['budgetDailyPaisa'])} more can be "
            "spent. The total budget, and what was charged, stay as they are. The history keeps your reason."
        )
        form.add_text("reason", "Reason", is_required=True)


def _ask_refund(visit: PageVisit, campaign: Json, refresh: Callable[[], Awaitable[None]]) -> None:
    correlation_id = str(SystemIds().make())  # Of this dialog: pressed twice, it is one refund.

    async def refund(form: Form) -> None:
        values = form.read_values()
        answer = await visit.api.post(
            f"/admin/campaigns/{campaign['id']}/refunds", {**values, "correlationId": correlation_id}
        )
        amount = fmt.format_money(values["amountPaisa"])
        is_done = answer["state"] == "done"
        notify_success(
            f"{amount} given back." if is_done else f"{amount} will be given back when a worker runs."
        )
        await refresh()

    with open_form_dialog("Give money back?", "Give back", refund) as form:
        ui.label(
            "The newest charges are given back first, up to the amount. They are taken out of the bill and of the statistics, and "
            "the campaign's budgets allow as much again. The history keeps your reason."
        )
        form.add_money("amountPaisa", "Amount", is_positive=True)
        form.add_text("reason", "Reason", is_required=True)
