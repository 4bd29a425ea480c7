"""The pages of campaigns: the form, the tabs and what the list is made of."""

from typing import Final
from uuid import UUID

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.forms.fields import add_owner_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import add_card, add_div, add_hint, add_link_button
from adloom.console.components.schedule_calendar import (
    is_banner_on,
    is_campaign_on,
    is_timed,
    list_days,
    show_calendar,
)
from adloom.console.components.status import build_campaign_badge
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.assignments import show_assignments
from adloom.console.pages.campaigns.bidding import show_bidding
from adloom.console.pages.campaigns.campaign_list import (
    COLUMNS,
    add_bulk_buttons,
    complete_rows,
    read_label_filter,
)
from adloom.console.pages.campaigns.contextual import add_contextual_fields, show_contextual
from adloom.console.pages.campaigns.moves import add_move_buttons
from adloom.console.pages.campaigns.overview import show_overview
from adloom.console.pages.campaigns.targeting import fetch_rules, show_targeting
from adloom.console.pages.campaigns.what_if import show_what_if
from adloom.console.resource_pages import Reload, ResourcePages, Tab, save_changes
from adloom.console.shell import ADVERTISER_SIDE
from adloom.core.caller import Role

BANNERS_SHOWN_MAX: Final = 6
# By whether it is the campaign of an advertiser.
NO_BID: Final = {
    False: "Empty: it costs nothing, and takes part in no auction.",
    True: "Empty: it is not shown on the placements of publishers.",
}
DATES_HINT: Final = "In the campaign's time zone. Empty: no limit."


def add_date_fields(form: Form) -> None:
    form.add_period("timezone", ("startsAt", "Starts"), ("endsAt", "Ends"), hint=DATES_HINT)


def _show_dates(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    if not visit.may_write or campaign["deletedAt"]:
        return
    form = Form(campaign)
    with add_card("When it runs"), add_div("stack tight"):
        with add_div("grid-of tiles"):
            add_date_fields(form)
        form.add_buttons(
            "Save", lambda: save_changes(visit, f"/admin/campaigns/{campaign['id']}", form, reload)
        )


async def show_schedule(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    """Show the dates, the calendar of the campaign, and those of its banners that have a schedule."""
    _show_dates(visit, campaign, reload)
    rules = await fetch_rules(visit, campaign["id"])
    is_on = is_campaign_on(campaign, rules)
    with add_card(strings.NEXT_WEEKS):
        add_hint(
            "When its dates and its conditions about hours and days let it run. Its banners can have their own schedules."
        )
        zone = visit.choose_zone(campaign["timezone"])
        show_calendar(list_days(is_on, zone=zone, now=visit.now), now=visit.now, zone=zone)
        if any(map(is_timed, rules)):
            add_hint(
                "Hours and days of conditions are those of each placement's time zone. They are drawn as if that were"
                f" {campaign['timezone']}, the campaign's."
            )
    assigned = await visit.api.get("/admin/assignments", campaignId=campaign["id"], pageSize=100)
    ids = list(dict.fromkeys(row["bannerId"] for row in assigned["items"] if row["bannerId"]))
    for banner_id in ids[:BANNERS_SHOWN_MAX]:
        banner = await visit.api.get(f"/admin/banners/{banner_id}")
        if not has_schedule(banner):
            continue
        zone = visit.choose_zone(banner["scheduleTimezone"])
        own = is_banner_on(banner)
        both = list_days(lambda at, own=own: own(at) and is_on(at), zone=zone, now=visit.now)
        with add_card(banner["title"], note="Schedules of its banners"):
            show_calendar(both, now=visit.now, zone=zone)


def has_schedule(banner: Json) -> bool:
    return banner["scheduleStatus"] != "evergreen" or any(
        banner[name] for name in ("recurrenceRule", "recurrenceWindowStart")
    )


async def _add_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    with add_div("grid-of two"):
        with add_card("What it is"), add_div("stack tight"):
            form.add_name("name", "Name")
            if is_new and visit.role is not Role.ADVERTISER:
                owner = await add_owner_field(form, visit.api, "advertiser")
                owner.on_value_change(lambda: _take_time_zone(visit, form, owner.value))
            form.add_text("description", "Description", is_long=True).props("autogrow")
            form.add_texts("labels", "Labels", hint="To find campaigns that belong together. Enter adds one.")
            form.add_text("notes", "Notes", is_long=True, hint="For those who manage it.").props("autogrow")
            form.add_choice("source", "Source", strings.SOURCES, is_required=True)
        with add_card("When it runs"), add_div("stack tight"):
            add_date_fields(form)
        with add_card("What it may cost"), add_div("stack tight"):
            form.add_choice("bidType", "Pays for", strings.BID_TYPES, is_required=True)
            form.add_price("bidAmount", "Bid", hint=NO_BID[visit.role is Role.ADVERTISER])
            form.add_money("budgetDailyPaisa", "Daily budget", hint="Empty: no limit.")
            form.add_money("budgetTotalPaisa", "Total budget", hint="Empty: no limit.")
            form.add_choice("pacingStrategy", "Pacing", strings.PACINGS, is_required=True)
        with add_card("Contextual slots"), add_div("stack tight"):
            await add_contextual_fields(visit, form)
        with add_card("Limits and contract"), add_div("stack tight"):
            form.add_integer("impressionCap", "Maximum impressions in total", hint="Empty: no limit.")
            form.add_integer("clickCap", "Maximum clicks in total", hint="Empty: no limit.")
            form.add_integer("priority", "Priority", hint=strings.PRIORITY_HINT)
            form.add_flag("passesClickId", "Landing pages get the id of the click, for conversions")
            form.add_text("advertiserName", "Advertiser's name on the contract")
            form.add_text("advertiserContact", "Contact")
            form.add_text("contractRef", "Contract")
    if is_new:
        own_id = visit.account_id if visit.role is Role.ADVERTISER else None
        await _take_time_zone(visit, form, own_id or form.get_initial("advertiserId"))


async def _take_time_zone(visit: PageVisit, form: Form, advertiser_id: UUID | str | None) -> None:
    """Let a new campaign run by the clock of its advertiser; its own time zone can be chosen afterwards."""
    if advertiser_id:
        advertiser = await visit.api.get(f"/admin/advertisers/{advertiser_id}")
        form.fill({"timezone": advertiser["timezone"]})


def _add_links(campaign: Json) -> None:
    add_link_button(
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
    empty_note="A campaign shows banners on placements, between its dates and within its budget.",
    roles=ADVERTISER_SIDE,
    columns=COLUMNS,
    last_column=None,
    complete=complete_rows,
    search="Search by name, advertiser or notes",
    owner="advertiser",
    more_filters=read_label_filter,
    picks=add_bulk_buttons,
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
    badge_at=build_campaign_badge,
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
