"""The overview and the calendar of a campaign."""

from datetime import timedelta
from typing import Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.banner_preview import BannerPreview, with_neighbours
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.format import count, percent
from adloom.console.components.forms.fields import fetch_name
from adloom.console.components.layout import card, div, facts, hint, link_button, notice
from adloom.console.components.schedule_calendar import banner_is_on, calendar, campaign_is_on, list_days
from adloom.console.components.status import format_bid, format_dates
from adloom.console.components.targeting_sentence import describe_rules
from adloom.console.page import PageVisit
from adloom.console.pages.budgets import show_budget
from adloom.console.resource_pages import Reload

RESULT_DAYS: Final = 14
RULES_MAX: Final = 100
BANNERS_SHOWN_MAX = 6


async def show_overview(visit: PageVisit, campaign: Json, _: Reload) -> None:
    assigned = await visit.api.get("/admin/assignments", campaignId=campaign["id"], pageSize=100)
    shown = [row for row in assigned["items"] if row["bannerId"]]
    creatives = await visit.api.get(f"/admin/campaigns/{campaign['id']}/creatives", pageSize=1)
    _say_what_is_missing(campaign, has_banner=bool(shown or creatives["totalCount"]))
    await show_budget(visit, "campaign", campaign["id"])
    with div("grid-of side"):
        with div("stack"):
            await show_results(visit, campaignId=campaign["id"])
            await _facts(visit, campaign)
        if shown:
            await _look(visit, shown[0])


def _say_what_is_missing(campaign: Json, *, has_banner: bool) -> None:
    if campaign["status"] not in {"draft", "active", "scheduled", "paused"} or campaign["deletedAt"]:
        return
    is_draft = campaign["status"] == "draft"
    if has_banner and not is_draft:
        return
    text = (
        "It is a draft. Activate it, and it runs from that moment on."
        if has_banner
        else "It has no banner yet, on a placement or for contextual slots, so there is nothing to show."
    )
    with notice(text, title="What it still needs"):
        if not has_banner:
            link_button("Choose placement and banner", f"/console/campaigns/{campaign['id']}?tab=banners")


async def show_results(visit: PageVisit, **narrowed: str) -> None:
    """Show impressions and clicks of the last days of a campaign, a banner or a placement."""
    last = visit.now.date()
    days = [last - timedelta(days=RESULT_DAYS - 1 - number) for number in range(RESULT_DAYS)]
    answer = await visit.api.get(
        "/admin/stats/banners", **{"from": days[0], "to": last, "groupBy": "day", **narrowed}
    )
    by_day = {row["date"]: row for row in answer["items"]}
    totals = answer["totals"]
    note = f"{count(totals['impressions'])} impressions, {count(totals['clicks'])} clicks, {percent(totals['ctr'])} CTR"
    with card("The last 14 days", note=note):
        Chart(
            [f"{day:%-d %b}" for day in days],
            [
                Series(
                    name="Impressions",
                    values=[by_day.get(str(day), {}).get("impressions", 0) for day in days],
                    has_area=True,
                ),
                Series(
                    name="Clicks",
                    values=[by_day.get(str(day), {}).get("clicks", 0) for day in days],
                    kind="bar",
                    axis=1,
                ),
            ],
            classes="low",
            description=note,
        )


async def _facts(visit: PageVisit, campaign: Json) -> None:
    rules = await visit.api.get("/admin/targeting-rules", campaignId=campaign["id"], pageSize=RULES_MAX)
    owner = campaign["advertiserId"]
    name = await fetch_name(visit.api, "/admin/advertisers", owner)
    whose: str | Markup = strings.THE_HOUSE
    if owner:
        whose = Markup('<a href="/console/advertisers/{}">{}</a>').format(owner, name)
    with card("At a glance"):
        facts(
            [
                ("Targeting", describe_rules(rules["items"])),
                ("Dates", f"{format_dates(campaign)} ({campaign['timezone']})"),
                ("Bid", format_bid(campaign)),
                ("Pacing", strings.PACINGS[campaign["pacingStrategy"]]),
                ("Advertiser", whose),
                ("Source", strings.SOURCES[campaign["source"]]),
                ("Priority", str(campaign["priority"])),
                *([("Description", campaign["description"])] if campaign["description"] else []),
            ]
        )


async def _look(visit: PageVisit, row: Json) -> None:
    banner = await visit.api.get(f"/admin/banners/{row['bannerId']}")
    layout = row["placementLayoutType"]
    note = f"{banner['title']} on {row['placementLabel']}"
    with card("What readers see"), div("stack"):
        hint(note)
        BannerPreview().show(with_neighbours(apply_overrides(banner, row), layout), layout)


def apply_overrides(banner: Json, row: Json) -> Json:
    """Return the banner with the texts it has on a placement."""
    said = {
        "headline": row["overrideHeadline"],
        "subheadline": row["overrideSubheadline"],
        "ctaLabel": row["overrideCtaLabel"],
        "ctaUrl": row["overrideCtaUrl"],
    }
    return {**banner, **{name: value for name, value in said.items() if value is not None}}


async def show_schedule(visit: PageVisit, campaign: Json, _: Reload) -> None:
    """Show the calendar of the campaign, and of its banners that have a schedule."""
    rules = await visit.api.get("/admin/targeting-rules", campaignId=campaign["id"], pageSize=RULES_MAX)
    is_on = campaign_is_on(campaign, rules["items"])
    with card(strings.NEXT_WEEKS):
        hint(
            "When its dates and its conditions about hours and days let it run. Its banners can have their own schedules."
        )
        zone = campaign["timezone"]
        calendar(list_days(is_on, zone=zone, now=visit.now), now=visit.now, zone=zone)
    assigned = await visit.api.get("/admin/assignments", campaignId=campaign["id"], pageSize=100)
    ids = list(dict.fromkeys(row["bannerId"] for row in assigned["items"] if row["bannerId"]))
    for banner_id in ids[:BANNERS_SHOWN_MAX]:
        banner = await visit.api.get(f"/admin/banners/{banner_id}")
        if not has_schedule(banner):
            continue
        zone = banner["scheduleTimezone"]
        own = banner_is_on(banner)
        both = list_days(lambda at, own=own: own(at) and is_on(at), zone=zone, now=visit.now)
        with card(banner["title"], note="Schedules of its banners"):
            calendar(both, now=visit.now, zone=zone)


def has_schedule(banner: Json) -> bool:
    return banner["scheduleStatus"] != "evergreen" or any(
        banner[name] for name in ("recurrenceRule", "recurrenceWindowStart")
    )
