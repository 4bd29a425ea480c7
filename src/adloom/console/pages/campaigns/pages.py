"""The pages of campaigns: the list, the form, the tabs, and the buttons that change a campaign's status."""

import functools
from collections.abc import Callable
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.catalog.campaign.model import ALLOWED_MOVES, CampaignStatus
from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_names
from adloom.console.components.format import moment, money
from adloom.console.components.forms.fields import owner_field
from adloom.console.components.forms.form import Form, form_dialog
from adloom.console.components.layout import card, div, link_button, meter
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.status import campaign_badge, format_bid, format_dates
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.assignments import show_assignments
from adloom.console.pages.campaigns.bidding import show_bidding
from adloom.console.pages.campaigns.contextual import show_contextual
from adloom.console.pages.campaigns.contextual_fields import add_contextual_fields
from adloom.console.pages.campaigns.overview import show_overview, show_schedule
from adloom.console.pages.campaigns.targeting import show_targeting
from adloom.console.pages.campaigns.what_if import show_what_if
from adloom.console.resource_pages import Reload, ResourcePages, Tab
from adloom.console.shell import ADVERTISER_SIDE
from adloom.core.actor import Role

LABELS: Final = {
    "activate": "Activate",
    "resume": "Resume",
    "schedule": "Schedule",
    "unschedule": "Back to draft",
    "pause": "Pause",
    "end": "End",
    "cancel": "Cancel it",
}
# Where the label is not the question.
QUESTIONS: Final = {
    "unschedule": "Make “{name}” a draft again?",
    "end": "End “{name}” for good?",
    "cancel": "Cancel “{name}” for good?",
}
CONSEQUENCES: Final = {
    "activate": (
        "Its banners can be shown within two seconds, between its dates and within its budgets. "
        "From then on impressions or clicks cost its bid."
    ),
    "resume": (
        "Its banners can be shown again within two seconds. It continues with the rest of today's budget; "
        "money held for offers that were not seen has come back."
    ),
    "schedule": (
        "It becomes active at its start. Until then nothing is shown and nothing is spent, and it can "
        "become a draft again."
    ),
    "unschedule": "It does not start automatically any more. Its dates stay, and nothing is lost.",
    "pause": (
        "No new offers within two seconds, everywhere. Offers that are already on readers' pages still count and are "
        "charged when they are seen or clicked; money held for the others comes back after a few minutes. "
        "The rest of the budget stays, and you can resume at any time."
    ),
    "end": (
        "No new offers within two seconds. Offers that are already out still count and are charged; money held for "
        "unseen offers comes back within minutes. An ended campaign never runs again, but stays in reports. "
        "To stop for a while, pause it instead."
    ),
    "cancel": (
        "It never runs again. Offers that are already out still count and are charged, money held for unseen "
        "offers comes back, and reports keep it."
    ),
}
# The status that a move leads to; the first possible move becomes the main button.
TARGETS: Final = {
    "activate": CampaignStatus.ACTIVE,
    "pause": CampaignStatus.PAUSED,
    "schedule": CampaignStatus.SCHEDULED,
    "unschedule": CampaignStatus.DRAFT,
    "end": CampaignStatus.ENDED,
    "cancel": CampaignStatus.CANCELLED,
}
FINAL: Final = frozenset({"end", "cancel"})
DATES_HINT: Final = "In the campaign's time zone. Empty: no limit."


def list_moves(status: str) -> list[str]:
    allowed = ALLOWED_MOVES[CampaignStatus(status)]
    return [move for move, target in TARGETS.items() if target in allowed]


def add_move_buttons(
    api: ApiClient, campaign: Json, reload: Reload, *, on_delete: Callable[[], None]
) -> None:
    """Show the first move as a button, the others in a menu with the deletion."""
    first, *others = [*list_moves(campaign["status"]), "delete"]
    if first == "delete":
        ui.button("Delete", on_click=on_delete).props("outline")
        return
    ui.button(_label(first, campaign), on_click=lambda: ask_move(api, campaign, first, reload)).props(
        "unelevated"
    )
    with ui.button(icon="more_horiz").props('outline aria-label="More"'), ui.menu():
        for move in others:
            if move == "delete":
                ui.separator()
                ui.menu_item("Delete", on_click=on_delete)
            else:
                ui.menu_item(
                    _label(move, campaign), on_click=functools.partial(ask_move, api, campaign, move, reload)
                )


def ask_move(api: ApiClient, campaign: Json, move: str, reload: Reload) -> None:
    if move == "schedule" and not campaign["startsAt"]:
        _ask_start(api, campaign, reload)
        return
    word = _word(move, campaign)

    async def go() -> None:
        await _move(api, campaign, move, None, reload)

    confirm(
        _question(word, campaign),
        CONSEQUENCES[word],
        action=LABELS[word],
        on_confirm=go,
        is_dangerous=move in FINAL,
    )


def _ask_start(api: ApiClient, campaign: Json, reload: Reload) -> None:
    async def save(form: Form) -> None:
        await _move(api, campaign, "schedule", form.values(), reload)

    with form_dialog(_question("schedule", campaign), LABELS["schedule"], save, campaign) as form:
        ui.label(CONSEQUENCES["schedule"])
        ui.label("It has no start date. When should it start?")
        form.moment("startsAt", "Starts", zone=lambda: campaign["timezone"], hint=campaign["timezone"])


async def _move(api: ApiClient, campaign: Json, move: str, body: Json | None, reload: Reload) -> None:
    moved = await api.patch(f"/admin/campaigns/{campaign['id']}/{move}", body)
    status = strings.CAMPAIGN_STATUSES[moved["status"]].lower()
    notify_success(f"“{campaign['name']}” is {status}.")
    await reload()


def _question(word: str, campaign: Json) -> str:
    return QUESTIONS.get(word, LABELS[word] + " “{name}”?").format(name=campaign["name"])


def _word(move: str, campaign: Json) -> str:
    return "resume" if move == "activate" and campaign["status"] == CampaignStatus.PAUSED else move


def _label(move: str, campaign: Json) -> str:
    return LABELS[_word(move, campaign)]


async def _complete_rows(visit: PageVisit, rows: list[Json]) -> None:
    """Add the name of the advertiser, and the share of the campaign's time that is over."""
    names = await fetch_names(visit.api, "advertiser", (row["advertiserId"] for row in rows))
    for row in rows:
        row["ownerName"] = names.get(row["advertiserId"], strings.THE_HOUSE)
        starts_at, ends_at = moment(row["startsAt"]), moment(row["endsAt"])
        row["elapsed"] = (visit.now - starts_at) / (ends_at - starts_at) if starts_at and ends_at else None


def _dates(row: Json) -> str | Markup:
    if row["elapsed"] is None:
        return format_dates(row)
    return Markup('<div class="al-flight">{}{}</div>').format(format_dates(row), meter(row["elapsed"]))


async def _add_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    with div("grid-of two"):
        with card("What it is"), div("stack tight"):
            form.name("name", "Name")
            if is_new and visit.role is not Role.ADVERTISER:
                await owner_field(form, visit.api, "advertiser")
            form.text("description", "Description", is_long=True).props("autogrow")
            form.choice("source", "Source", strings.SOURCES, is_required=True)
        with card("When it runs"), div("stack tight"):
            form.period("timezone", ("startsAt", "Starts"), ("endsAt", "Ends"), hint=DATES_HINT)
        with card("What it may cost"), div("stack tight"):
            form.choice("bidType", "Pays for", strings.BID_TYPES, is_required=True)
            form.price("bidAmount", "Bid", hint="Empty: it costs nothing, and takes part in no auction.")
            form.money("budgetDailyPaisa", "Daily budget", hint="Empty: no limit.")
            form.money("budgetTotalPaisa", "Total budget", hint="Empty: no limit.")
            form.choice("pacingStrategy", "Pacing", strings.PACINGS, is_required=True)
        with card("Contextual slots"), div("stack tight"):
            await add_contextual_fields(visit, form)
        with card("Limits and contract"), div("stack tight"):
            form.integer("impressionCap", "Maximum impressions in total", hint="Empty: no limit.")
            form.integer("clickCap", "Maximum clicks in total", hint="Empty: no limit.")
            form.integer("priority", "Priority", hint=strings.PRIORITY_HINT)
            form.flag("passesClickId", "Landing pages get the id of the click, for conversions")
            form.text("advertiserName", "Advertiser's name on the contract")
            form.text("advertiserContact", "Contact")
            form.text("contractRef", "Contract")


def _add_links(campaign: Json) -> None:
    link_button(
        strings.WHY_NOT_DELIVERING,
        f"/console/why?campaign={campaign['id']}",
        icon="help_outline",
        look="flat",
    )


def _add_actions(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    add_move_buttons(
        visit.api, campaign, reload, on_delete=lambda: CAMPAIGNS.ask_delete(visit, campaign, reload)
    )


def _add_list_actions(visit: PageVisit) -> None:
    if visit.is_admin:
        ui.button("Guide me", icon="auto_awesome").props('href="/console/first-campaign" outline')


CAMPAIGNS: Final = ResourcePages(
    noun="campaign",
    icon="campaign",
    note="A campaign has dates, a budget and a bid, and shows its banners on placements.",
    empty_note="A campaign brings a banner to a placement. The guide makes your first one in a few steps.",
    roles=ADVERTISER_SIDE,
    columns=[
        Column("Name", "name", sort="name"),
        Column("Status", campaign_badge, sort="status"),
        Column("Advertiser", "ownerName", is_wide_only=True, owner="advertiserId"),
        Column("Dates", _dates, sort="startsAt", is_wide_only=True),
        Column("Bid", format_bid, is_number=True),
        Column("Daily budget", lambda row: money(row["budgetDailyPaisa"]), is_number=True, is_wide_only=True),
    ],
    complete=_complete_rows,
    search="Search by name or description",
    filters={"status": ("Status", strings.CAMPAIGN_STATUSES), "source": ("Source", strings.SOURCES)},
    fields=_add_fields,
    defaults={
        "source": "internal",
        "bidType": "cpm",
        "pacingStrategy": "Smooth",
        "timezone": "UTC",
        "priority": 0,
        "bidStrategy": "fixed",
    },
    defaults_from_query={"advertiserId": "advertiser"},
    badge=campaign_badge,
    links=_add_links,
    list_actions=_add_list_actions,
    actions=_add_actions,
    delete_note=(
        "Its banners are not offered any more within two seconds, and it leaves the lists. Offers that are "
        "already out still count and are charged; money held for ads that nobody sees comes back. "
        "Reports keep it. You can undo this: it then has the status that it has now, "
        "so an active campaign runs again at once."
    ),
    has_own_delete=True,
    tabs={
        "overview": Tab("Overview", show_overview),
        "banners": Tab("Banners and placements", show_assignments),
        "contextual": Tab("Contextual", show_contextual),
        "bidding": Tab("Bidding", show_bidding),
        "what-if": Tab("What if", show_what_if),
        "targeting": Tab("Targeting", show_targeting),
        "schedule": Tab("Schedule", show_schedule),
    },
    tab_after_create="banners",
).register()
