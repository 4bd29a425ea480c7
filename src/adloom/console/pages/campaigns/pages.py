"""The pages of campaigns: the list, the form, and the tabs of a campaign."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, fetch_names
from adloom.console.components.format import moment, money
from adloom.console.components.forms.fields import owner_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import card, link_button, meter
from adloom.console.components.status import campaign_badge, format_bid, format_dates
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.assignments import show_assignments
from adloom.console.pages.campaigns.moves import add_move_buttons
from adloom.console.pages.campaigns.overview import show_overview, show_schedule
from adloom.console.pages.campaigns.targeting import show_targeting
from adloom.console.resource_pages import Reload, ResourcePages, Tab
from adloom.console.shell import BUYERS
from adloom.core.actor import Role

BID_TYPES: Final = {"cpm": "A thousand impressions (CPM)", "cpc": "A click (CPC)"}
DATES_HINT: Final = "In the campaign's time zone. Empty: no limit."


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
    with ui.element("div").classes("grid-of two"):
        with card("What it is"), ui.element("div").classes("stack tight"):
            form.name("name", "Name")
            if is_new and visit.role is not Role.ADVERTISER:
                await owner_field(form, visit.api, "advertiser")
            form.text("description", "Description", is_long=True).props("autogrow")
            form.choice("source", "Source", strings.SOURCES, is_required=True)
        with card("When it runs"), ui.element("div").classes("stack tight"):
            _add_date_fields(form)
        with card("What it may cost"), ui.element("div").classes("stack tight"):
            form.choice("bidType", "Pays for", BID_TYPES, is_required=True)
            form.price("bidAmount", "Bid", hint="Empty: it costs nothing, and takes part in no auction.")
            form.money("budgetDailyPaisa", "Daily budget", hint="Empty: no limit.")
            form.money("budgetTotalPaisa", "Total budget", hint="Empty: no limit.")
            form.choice("pacingStrategy", "Pacing", strings.PACINGS, is_required=True)
        with card("Limits and contract"), ui.element("div").classes("stack tight"):
            form.integer("impressionCap", "Maximum impressions in total", hint="Empty: no limit.")
            form.integer("clickCap", "Maximum clicks in total", hint="Empty: no limit.")
            form.integer("priority", "Priority", hint=strings.PRIORITY_HINT)
            form.text("advertiserName", "Advertiser's name on the contract")
            form.text("advertiserContact", "Contact")
            form.text("contractRef", "Contract")


def _add_date_fields(form: Form) -> None:
    zone = form.time_zone("timezone")
    starts = form.moment("startsAt", "Starts", zone=lambda: zone.value, hint=DATES_HINT)
    ends = form.moment(
        "endsAt",
        "Ends",
        zone=lambda: zone.value,
        hint=DATES_HINT,
        check=lambda value: strings.ENDS_BEFORE if starts.value and value <= starts.value else None,
    )
    # A new start can make the end right or wrong.
    starts.on_value_change(lambda: ends.validate() if ends.value else None)


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
    roles=BUYERS,
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
        "targeting": Tab("Targeting", show_targeting),
        "schedule": Tab("Schedule", show_schedule),
    },
    tab_after_create="banners",
).register()
