"""The list of campaigns: its columns with figures, its filters, and what is done to several at once; and an advertiser's own at a glance."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.catalog.campaign.model import CampaignStatus
from adloom.console import strings
from adloom.console.client import Json, fetch_all, fetch_names
from adloom.console.components.format import format_count, format_moment, format_money, format_percent
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_html,
    add_link_button,
    add_notice,
    build_meter,
)
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.components.status import build_campaign_badge, format_bid, format_dates
from adloom.console.components.table import Column, build_plain_table
from adloom.console.page import PageVisit
from adloom.console.pages.budgets import pace_badge
from adloom.console.pages.campaigns.moves import find_missing
from adloom.console.resource_pages import Reload, is_over
from adloom.console.words.campaign_words import describe_empty, describe_spent
from adloom.console.words.field_labels import name_fields

# More are a click away. Those that run, or may soon, come first.
SHOWN_MAX: Final = 10
LISTED_MAX: Final = 100
ORDER: Final = ("active", "scheduled", "paused", "draft", "ended", "cancelled")
BULK: Final = "/admin/campaigns/bulk"
DONE: Final = {"pause": "paused", "resume": "resumed", "change": "changed"}
CONSEQUENCES: Final = {
    "pause": (
        "No new offers within two seconds. Offers that are already on readers' pages still count and are charged; "
        "money held for the others comes back after a few minutes. You can resume them at any time."
    ),
    "resume": (
        "Their banners can be shown again within two seconds, between their dates and within their budgets. "
        "Only paused campaigns are resumed; drafts stay drafts."
    ),
}


async def complete_rows(visit: PageVisit, rows: list[Json]) -> None:
    """Add figures, the name of the advertiser, what it does now, and the share of its time that is over."""
    now = visit.now
    names = await fetch_names(visit.api, "advertiser", (row["advertiserId"] for row in rows))
    figures = await _fetch_figures(visit, rows)
    for row in rows:
        row["figures"] = figures[row["id"]]
        row["ownerName"] = names.get(row["advertiserId"], strings.THE_HOUSE)
        row["badge"] = build_campaign_badge(row, now, visit.zone)
        starts_at, ends_at = format_moment(row["startsAt"]), format_moment(row["endsAt"])
        row["elapsed"] = (now - starts_at) / (ends_at - starts_at) if starts_at and ends_at else None
        row["spentWords"] = " ".join(
            describe_spent(row["figures"], zone=visit.choose_zone(row["timezone"]), now=now)
        )


async def _fetch_figures(visit: PageVisit, rows: Sequence[Json]) -> dict[str, Json]:
    if not rows:
        return {}
    found = await visit.api.get_items("/admin/stats/campaigns", campaignId=[row["id"] for row in rows])
    return {one["campaignId"]: one for one in found}


async def read_label_filter(visit: PageVisit) -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """Return the filter by label, if there are labels."""
    labels = await visit.api.get_items("/admin/campaigns/labels")
    return {"label": ("Label", {one["label"]: one["label"] for one in labels})} if labels else {}


def _name(row: Json) -> Markup:
    """Show whose it is and its labels below the name, on phones also its status: columns leave no room for figures."""
    labels = Markup("").join(Markup("<span>{}</span>").format(label) for label in row["labels"])
    return Markup(
        '<div class="al-named"><a href="/console/campaigns/{}">{}</a><div class="quiet small">{}</div>'
        '<div class="al-phone-only">{}</div>{}</div>'
    ).format(
        row["id"],
        row["name"],
        row["ownerName"],
        row["badge"],
        Markup('<div class="al-labels">{}</div>').format(labels) if labels else "",
    )


def _build_status(row: Json) -> Markup:
    if not row["startsAt"] and not row["endsAt"]:
        return row["badge"]
    dates = Markup('<span class="quiet small">{}</span>').format(format_dates(row))
    elapsed = "" if row["elapsed"] is None else build_meter(row["elapsed"])
    return Markup('{}<div class="al-flight al-wide-only">{}{}</div>').format(row["badge"], dates, elapsed)


def _build_spent(row: Json) -> Markup:
    """Show what it has spent, and today's part of it against the budget."""
    figures = row["figures"]
    daily, today = figures["dailyBudgetPaisa"], figures["spentTodayPaisa"]
    limit = "" if daily is None else f" of {format_money(daily)}"
    below = Markup('<div class="quiet small nowrap al-wide-only">{}</div>').format(
        f"{format_money(today)}{limit} today"
    )
    return Markup('<span title="{}">{}</span>{}').format(
        row["spentWords"],
        format_money(figures["spentTotalPaisa"]),
        below if daily is not None or today else "",
    )


def _build_pace(row: Json) -> Markup | str:
    pace = row["figures"]["pace"]
    return "" if pace is None else pace_badge(pace, text=format_percent(pace, places=0))


COLUMNS: Final = (
    Column("Name", _name, sort="name", more_sorts=(("Advertiser", "advertiser"),)),
    Column("Status", _build_status, sort="startsAt", is_wide_only=True),
    Column("Bid", format_bid, sort="bidAmount", is_number=True, is_wide_only=True),
    Column(
        "Impressions",
        lambda row: format_count(row["figures"]["impressions"]),
        is_number=True,
        is_wide_only=True,
    ),
    Column("CTR", lambda row: format_percent(row["figures"]["ctr"]), is_number=True, is_wide_only=True),
    # What is spent is not in the catalog; the budget below it is.
    Column("Spent", _build_spent, is_number=True, more_sorts=(("Budget", "budgetDailyPaisa"),)),
    Column("Pace", _build_pace, is_wide_only=True),
)


def add_bulk_buttons(visit: PageVisit, rows: Sequence[Json], done: Reload) -> None:
    """Add what can be done to the chosen campaigns."""
    ui.button("Pause", on_click=lambda: _ask_move(visit, rows, "pause", done)).props("outline")
    ui.button("Resume", on_click=lambda: _ask_move(visit, rows, "resume", done)).props("outline")
    ui.button("Change bid", on_click=lambda: _ask_bid(visit, rows, done)).props("outline")
    ui.button("Change dates", on_click=lambda: _ask_dates(visit, rows, done)).props("outline")


async def _ask_move(visit: PageVisit, rows: Sequence[Json], action: str, done: Reload) -> None:
    """Ask before a move of all; before they are resumed, say which of them have nothing to show."""
    empty = await _find_empty(visit, rows) if action == "resume" else ""

    title = f"{action.capitalize()} {_describe_number(rows)}?"
    confirm(
        title,
        CONSEQUENCES[action],
        action=action.capitalize(),
        on_confirm=lambda: _change(visit, rows, {"action": action}, done),
        before=(lambda: add_notice(empty, kind="warn")) if empty else None,
    )


async def _find_empty(visit: PageVisit, rows: Sequence[Json]) -> str:
    """Name the campaigns that would be resumed and have nothing to show."""
    paused = [row for row in rows if row["status"] == CampaignStatus.PAUSED]
    missing = await fetch_all([find_missing(visit.api, row) for row in paused])
    return describe_empty([row["name"] for row, found in zip(paused, missing, strict=True) if found])


def _ask_bid(visit: PageVisit, rows: Sequence[Json], done: Reload) -> None:
    async def save(form: Form) -> None:
        await _change(visit, rows, {"action": "change", "change": form.read_values()}, done)

    with open_form_dialog(f"Change the bid of {_describe_number(rows)}", "Change", save) as form:
        kinds = {row["bidType"] for row in rows}
        if len(kinds) > 1:
            ui.label("Some pay for impressions and some for clicks: the same number means something else.")
        hint = strings.BID_TYPES[next(iter(kinds))] if len(kinds) == 1 else ""
        form.add_price("bidAmount", "Bid", hint=hint or "Each as it pays: for impressions or for clicks.")


def _ask_dates(visit: PageVisit, rows: Sequence[Json], done: Reload) -> None:
    """Ask for new dates; a date that is left empty stays as each campaign has it."""
    zones = {row["timezone"] for row in rows}
    zone = next(iter(zones)) if len(zones) == 1 else "UTC"

    async def save(form: Form) -> None:
        given = {name: value for name, value in form.read_values().items() if value is not None}
        if not given:
            notify_success(strings.NOTHING_CHANGED)
            return

        async def change() -> None:
            await _change(visit, rows, {"action": "change", "change": given}, done)

        if not is_over(given, visit.now):
            await change()
            return
        with ui.context.client:  # Beside the dialog with the dates, which closes now.
            confirm(
                f"End {_describe_number(rows)} for good?",
                "The end is in the past. They are over at once, and cannot run again: copy them to go on.",
                action="End",
                on_confirm=change,
                is_dangerous=True,
            )

    with open_form_dialog(f"Change the dates of {_describe_number(rows)}", "Change", save) as form:
        hint = f"{zone}. Empty: as each has it."
        form.add_moment("startsAt", "Starts", zone=lambda: zone, hint=hint)
        form.add_moment("endsAt", "Ends", zone=lambda: zone, hint=hint)


async def _change(visit: PageVisit, rows: Sequence[Json], body: dict[str, Any], done: Reload) -> None:
    items = await visit.api.post(BULK, {"ids": [row["id"] for row in rows], **body})
    results: list[Json] = items["items"]
    refused = [one for one in results if not one["isDone"]]
    changed = len(results) - len(refused)
    client = ui.context.client
    await done()
    with client:  # The list is painted anew, without the buttons that asked.
        if refused:
            _show_refused(rows, refused, f"{_count(changed)} {DONE[body['action']]}, {len(refused)} not")
        else:
            notify_success(f"{_count(changed)} {DONE[body['action']]}.")


def _show_refused(rows: Sequence[Json], refused: Sequence[Json], title: str) -> None:
    names = {row["id"]: row["name"] for row in rows}
    with open_dialog(title) as dialog:
        items = Markup("").join(
            Markup('<dt><a href="/console/campaigns/{}">{}</a></dt><dd>{}</dd>').format(
                one["id"], names[one["id"]], name_fields(one["error"]["message"])
            )
            for one in refused
        )
        add_html(items, tag="dl").classes("al-facts")
        ui.button("Close", on_click=dialog.close).props("flat")


def _describe_number(rows: Sequence[Json]) -> str:
    return f"“{rows[0]['name']}”" if len(rows) == 1 else f"{len(rows)} campaigns"


def _count(number: int) -> str:
    return f"{number} campaign{'' if number == 1 else 's'}"


async def show_own_campaigns(visit: PageVisit) -> None:
    """Show the account's campaigns, or how to begin if it has none."""
    found = await visit.api.get("/admin/campaigns", pageSize=LISTED_MAX, sort="name")
    rows: list[Json] = sorted(found["items"], key=lambda row: ORDER.index(row["status"]))[:SHOWN_MAX]
    with add_card("Your campaigns", classes="flush" if rows else ""):
        if not rows:
            add_empty_state(
                "campaign",
                "You have no campaign yet",
                "A campaign shows your banners on placements, between its dates and within its budget.",
                action="New campaign",
                href="/console/campaigns/new",
            )
            return
        await complete_rows(visit, rows)
        add_html(build_plain_table(OWN_COLUMNS, rows))
        if found["totalCount"] > len(rows):
            with add_div("row-of"):
                add_link_button(f"All {found['totalCount']:,} campaigns", "/console/campaigns", look="flat")


def _make_spent_column(label: str, spent: str, budget: str) -> Column:
    def write(row: Json) -> str:
        figures = row["figures"]
        limit = "" if figures[budget] is None else f" of {format_money(figures[budget])}"
        return f"{format_money(figures[spent])}{limit}"

    return Column(label, write, is_number=True)


OWN_COLUMNS: Final = (
    Column(
        "Campaign",
        lambda row: Markup('<a href="/console/campaigns/{}">{}</a>').format(row["id"], row["name"]),
    ),
    Column("Status", "badge"),
    _make_spent_column("Spent", "spentTotalPaisa", "totalBudgetPaisa"),
    _make_spent_column("Today", "spentTodayPaisa", "dailyBudgetPaisa"),
    Column("Pace", _build_pace, is_wide_only=True),
)
