"""When a campaign runs, over the next weeks."""

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.heading import card
from adloom.console.components.schedule_calendar import banner_is_on, calendar, campaign_is_on, days_of
from adloom.console.page import Visit

BANNERS_SHOWN_MAX = 6
RULES_MAX = 100


async def campaign_schedule(visit: Visit, campaign: Json) -> None:
    """Show the campaign's own calendar, and those of its banners that have one."""
    rules = await visit.api.get("/admin/targeting-rules", campaignId=campaign["id"], pageSize=RULES_MAX)
    is_on = campaign_is_on(campaign, rules["items"])
    with card(strings.NEXT_WEEKS):
        ui.label(
            "When dates and conditions about hours and days let it run. Its banners may have schedules of their own."
        ).classes("quiet small")
        zone = campaign["timezone"]
        calendar(days_of(is_on, zone=zone, now=visit.now), now=visit.now, zone=zone)
    assigned = await visit.api.get("/admin/assignments", campaignId=campaign["id"], pageSize=100)
    ids = list(dict.fromkeys(row["bannerId"] for row in assigned["items"] if row["bannerId"]))
    for banner_id in ids[:BANNERS_SHOWN_MAX]:
        banner = await visit.api.get(f"/admin/banners/{banner_id}")
        if not has_schedule(banner):
            continue
        zone = banner["scheduleTimezone"]
        own = banner_is_on(banner)
        both = days_of(lambda at, own=own: own(at) and is_on(at), zone=zone, now=visit.now)
        with card(banner["title"], note="Schedules of its banners"):
            calendar(both, now=visit.now, zone=zone)


def has_schedule(banner: Json) -> bool:
    """Tell whether a banner is not simply always on."""
    return banner["scheduleStatus"] != "evergreen" or any(
        banner[name] for name in ("recurrenceRule", "recurrenceWindowStart")
    )
