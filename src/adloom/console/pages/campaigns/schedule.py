"""When a campaign runs: its dates, and the calendar of what they and its conditions allow."""

from typing import Final

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import card, div, hint
from adloom.console.components.schedule_calendar import banner_is_on, calendar, campaign_is_on, list_days
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.overview import RULES_MAX
from adloom.console.resource_pages import Reload, save_changes

BANNERS_SHOWN_MAX: Final = 6
DATES_HINT: Final = "In the campaign's time zone. Empty: no limit."


def add_date_fields(form: Form) -> None:
    form.period("timezone", ("startsAt", "Starts"), ("endsAt", "Ends"), hint=DATES_HINT)


def _show_dates(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    if not visit.may_write or campaign["deletedAt"]:
        return
    form = Form(campaign)
    with card("When it runs"), div("stack tight"):
        with div("grid-of tiles"):
            add_date_fields(form)
        form.buttons("Save", lambda: save_changes(visit, f"/admin/campaigns/{campaign['id']}", form, reload))


async def show_schedule(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    """Show the dates, the calendar of the campaign, and those of its banners that have a schedule."""
    _show_dates(visit, campaign, reload)
    rules = await visit.api.get("/admin/targeting-rules", campaignId=campaign["id"], pageSize=RULES_MAX)
    is_on = campaign_is_on(campaign, rules["items"])
    with card(strings.NEXT_WEEKS):
        hint(
            "When its dates and its conditions about hours and days let it run. Its banners can have their own schedules."
        )
        zone = visit.zone_for(campaign["timezone"])
        calendar(list_days(is_on, zone=zone, now=visit.now), now=visit.now, zone=zone)
    assigned = await visit.api.get("/admin/assignments", campaignId=campaign["id"], pageSize=100)
    ids = list(dict.fromkeys(row["bannerId"] for row in assigned["items"] if row["bannerId"]))
    for banner_id in ids[:BANNERS_SHOWN_MAX]:
        banner = await visit.api.get(f"/admin/banners/{banner_id}")
        if not has_schedule(banner):
            continue
        zone = visit.zone_for(banner["scheduleTimezone"])
        own = banner_is_on(banner)
        both = list_days(lambda at, own=own: own(at) and is_on(at), zone=zone, now=visit.now)
        with card(banner["title"], note="Schedules of its banners"):
            calendar(both, now=visit.now, zone=zone)


def has_schedule(banner: Json) -> bool:
    return banner["scheduleStatus"] != "evergreen" or any(
        banner[name] for name in ("recurrenceRule", "recurrenceWindowStart")
    )
