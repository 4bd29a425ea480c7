"""The overview of a campaign; the results of a campaign, a banner or a placement, and its banners side by side."""

from datetime import timedelta
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.banner_preview import BannerPreview, with_neighbours
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.format import format_count, format_percent, format_quantity
from adloom.console.components.forms.fields import fetch_name
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_facts,
    add_hint,
    add_html,
    add_link_button,
    add_notice,
    build_meter,
    set_attributes,
)
from adloom.console.components.status import format_bid, format_dates
from adloom.console.components.targeting_sentence import describe_rules
from adloom.console.page import PageVisit
from adloom.console.pages.budgets import show_budget
from adloom.console.pages.campaigns.targeting import fetch_rules
from adloom.console.resource_pages import Reload
from adloom.console.shell import STAFF
from adloom.console.words.campaign_words import (
    describe_campaign_status,
    describe_missing,
    describe_missing_bid,
)
from adloom.core.caller import Role

RESULT_DAYS: Final = 14


async def show_overview(visit: PageVisit, campaign: Json, _: Reload) -> None:
    assigned = await visit.api.get("/admin/assignments", campaignId=campaign["id"], pageSize=100)
    shown = [row for row in assigned["items"] if row["bannerId"]]
    creatives = await visit.api.get(f"/admin/campaigns/{campaign['id']}/creatives", pageSize=1)
    # An admin may give space of the house away.
    no_bid = describe_missing_bid(campaign) if visit.role is Role.ADVERTISER else ""
    _show_missing(campaign, describe_missing(assigned["items"], creatives=creatives["totalCount"]), no_bid)
    _show_period(visit, campaign)
    await show_budget(visit, "campaign", campaign["id"])
    await _show_caps(visit, campaign)
    with add_div("grid-of side"):
        with add_div("stack"):
            await show_results(visit, campaignId=campaign["id"])
            await show_comparison(visit, f"campaigns/{campaign['id']}")
            await _show_facts(visit, campaign)
        if shown:
            await _show_preview(visit, shown[0])


def _show_missing(campaign: Json, missing: str, no_bid: str) -> None:
    if campaign["status"] not in {"draft", "active", "scheduled", "paused"} or campaign["deletedAt"]:
        return
    is_draft = campaign["status"] == "draft"
    if not missing and not no_bid and not is_draft:
        return
    text = f"{missing} {no_bid}".strip() or "It is a draft. Activate it, and it runs from that moment on."
    with add_notice(text, title="What it still needs"):
        if missing:
            add_link_button("Choose placement and banner", f"/console/campaigns/{campaign['id']}?tab=banners")
        elif no_bid:
            add_link_button("Choose a bid", f"/console/campaigns/{campaign['id']}?tab=settings")


def _show_period(visit: PageVisit, campaign: Json) -> None:
    """Say that an active campaign waits for its start, or that it is over."""
    standing = describe_campaign_status(campaign, now=visit.now, zone=visit.zone)
    if campaign["status"] != "active" or campaign["deletedAt"]:
        return
    link = f"/console/campaigns/{campaign['id']}?tab=schedule"
    if standing.text.startswith("Starts"):
        with add_notice(f"{standing.text}. Until then nothing is shown, and nothing is spent."):
            add_link_button("Change the dates", link)
    elif standing.text == "Over":
        with add_notice("Its last day is over: nothing is shown any more.", kind="warn"):
            add_link_button("Change the dates", link)


async def _show_caps(visit: PageVisit, campaign: Json) -> None:
    """Show how much of the caps is used."""
    caps = [
        (label, campaign[field], counted)
        for label, field, counted in (
            ("Impressions", "impressionCap", "impressions"),
            ("Clicks", "clickCap", "clicks"),
        )
        if campaign[field] is not None
    ]
    if not caps:
        return
    [figures] = await visit.api.get_items("/admin/stats/campaigns", campaignId=campaign["id"])
    with add_card("Caps", note="Of its whole life; valid ones count"), add_div("stack tight"):
        for label, cap, counted in caps:
            had = figures[counted]
            share = had / cap if cap else 1.0
            add_html(
                Markup(
                    '<div class="row-of apart"><span>{}</span><span class="num">{} of {}</span></div>{}'
                ).format(
                    label,
                    format_count(had),
                    format_count(cap),
                    build_meter(share, "bad" if share >= 1 else "good"),
                )
            ).classes("full")
            if share >= 1:
                add_hint(
                    "It has had all that the cap allows, so it is not shown any more. Raise the cap in Settings."
                )


async def show_results(visit: PageVisit, **narrowed: str) -> None:
    """Show impressions and clicks of the last days of a campaign, a banner or a placement."""
    last = visit.today
    days = [last - timedelta(days=RESULT_DAYS - 1 - number) for number in range(RESULT_DAYS)]
    answer = await visit.api.get(
        "/admin/stats/banners",
        **{"from": days[0], "to": last, "groupBy": "day", "timeZone": visit.choose_zone(None), **narrowed},
    )
    by_day = {row["date"]: row for row in answer["items"]}
    totals = answer["totals"]
    counts = f"{format_quantity(totals['impressions'], 'impression')}, {format_quantity(totals['clicks'], 'click')}"
    note = f"{counts}, {format_percent(totals['ctr'])} CTR"
    with add_card("The last 14 days", note=note):
        Chart(
            [f"{day:%-d %b}" for day in days],
            [
                Series(
                    name="Impressions",
                    values=[by_day.get(str(day), {}).get("impressions", 0) for day in days],
                    has_area=True,
                    is_last_unfinished=True,
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
        if visit.role in STAFF and totals["unboundImpressions"]:
            add_hint(
                f"{totals['unboundImpressions']:,} of the impressions were reported without a token. "
                "The list of campaigns, caps and budgets do not count these."
            )


async def _show_facts(visit: PageVisit, campaign: Json) -> None:
    rules = await fetch_rules(visit, campaign["id"])
    owner = campaign["advertiserId"]
    name = await fetch_name(visit.api, "/admin/advertisers", owner)
    whose: str | Markup = strings.THE_HOUSE
    if owner:
        whose = Markup('<a href="/console/advertisers/{}">{}</a>').format(owner, name)
    with add_card("At a glance"):
        add_facts(
            [
                ("Targeting", describe_rules(rules)),
                ("Dates", f"{format_dates(campaign)} ({campaign['timezone']})"),
                ("Bid", format_bid(campaign)),
                ("Pacing", strings.PACINGS[campaign["pacingStrategy"]]),
                ("Advertiser", whose),
                ("Source", strings.SOURCES[campaign["source"]]),
                ("Priority", str(campaign["priority"])),
                *([("Labels", ", ".join(campaign["labels"]))] if campaign["labels"] else []),
                *([("Description", campaign["description"])] if campaign["description"] else []),
                *([("Notes", campaign["notes"])] if campaign["notes"] else []),
            ]
        )


async def _show_preview(visit: PageVisit, row: Json) -> None:
    banner = await visit.api.get(f"/admin/banners/{row['bannerId']}")
    layout = row["placementLayoutType"]
    note = f"{banner['title']} on {row['placementLabel']}"
    with add_card("What readers see"), add_div("stack"):
        add_hint(note)
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


SURE: Final = 0.95
BANNERS_MIN: Final = 2
TOO_FEW: Final = "Nothing leads yet: two banners need 100 impressions each."


async def show_comparison(visit: PageVisit, owner: str) -> None:
    """Show the banners of `placements/{id}` or `campaigns/{id}`, where there are several."""
    answer = await visit.api.get(f"/admin/{owner}/comparison")
    items = answer["items"]
    if len(items) < BANNERS_MIN:
        return
    highest = max(item["ctrHigh"] or item["ctr"] for item in items) or 1.0
    with add_card("Banners side by side", note="The last 30 days"):
        ui.label(describe_leader(answer))
        rows = Markup("").join(
            _build_row(item, highest, has_link=visit.role is not Role.PUBLISHER) for item in items
        )
        set_attributes(add_html(rows, tag="ul").classes("al-shares"), role="list")


def describe_leader(answer: Json) -> str:
    """Say in one sentence which banner leads, and how sure that is."""
    leader = next((item for item in answer["items"] if item["bannerId"] == answer["leader"]), None)
    if leader is None:
        return TOO_FEW
    certainty = _format_certainty(answer["certainty"])
    if answer["certainty"] >= SURE:
        return f"“{leader['title']}” leads with {certainty} certainty."
    return f"“{leader['title']}” is ahead, but it may be chance: {certainty}."


def _format_certainty(share: float) -> str:
    """Never 100 %: nothing that is counted is certain."""
    return f"{min(share * 100, 99.9):.1f}%" if share > 0.99 else f"{share * 100:.0f}%"  # noqa: PLR2004 - of a hundred


def _build_row(item: Json, highest: float, *, has_link: bool) -> Markup:
    figures = (
        f"{format_quantity(item['impressions'], 'impression')} · {format_quantity(item['clicks'], 'click')}"
    )
    if item["ctrLow"] is None:
        span, note = Markup(""), f"{figures} · too few to compare"
    else:
        low, high = item["ctrLow"] / highest * 100, item["ctrHigh"] / highest * 100
        span = Markup(
            '<span class="al-range" aria-hidden="true"><i style="left: {:.2f}%; width: {:.2f}%"></i></span>'
        ).format(low, max(high - low, 0.5))
        note = f"{figures} · between {format_percent(item['ctrLow'])} and {format_percent(item['ctrHigh'])}"
    name = (
        Markup('<a class="cut" href="/console/banners/{}">{}</a>')
        if has_link
        else Markup('<span class="cut" data-id="{}">{}</span>')
    )
    return Markup('<li>{}<b class="num">{}</b>{}<span class="quiet small whole">{}</span></li>').format(
        name.format(item["bannerId"], item["title"]), format_percent(item["ctr"]), span, note
    )
