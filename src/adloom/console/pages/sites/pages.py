"""The pages of sites: list, form, and a site with its setup, its pages, its crawls and its placements."""

from typing import Final

from markupsafe import Markup

from adloom.console.client import Json, fetch_all
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.format import format_count, format_money, format_percent
from adloom.console.components.layout import add_card, add_html, add_tiles, build_badge
from adloom.console.components.table import Column, build_plain_table, make_number_column
from adloom.console.page import PageVisit
from adloom.console.pages.placements import PLACEMENTS
from adloom.console.pages.sites.approvals import show_site_approvals
from adloom.console.pages.sites.crawls import show_crawls
from adloom.console.pages.sites.fields import add_site_fields
from adloom.console.pages.sites.market import show_market
from adloom.console.pages.sites.overview import (
    build_verification_badge,
    show_overview,
    write_new_slot_address,
)
from adloom.console.pages.sites.site_pages import show_pages
from adloom.console.resource_pages import Reload, ResourcePages, Tab
from adloom.console.shell import PUBLISHER_SIDE

CAMPAIGNS_SHOWN_MAX: Final = 20


async def show_pacing(visit: PageVisit, site: Json, _: Reload) -> None:
    found = await visit.api.get(f"/admin/sites/{site['id']}/pacing")
    requests, served, left_out = add_tiles("Requests today", "Filled", "Left out to keep pace")
    requests.update(format_count(found["requests"]))
    served.update(
        format_count(found["served"]),
        note=format_percent(found["served"] / max(1, found["requests"]), places=0),
    )
    left_out.update(
        format_count(found["throttled"]), note="offers of campaigns that were ahead of their plan"
    )
    with add_card("The usual day", note="Times the average hour, as learned so far; budgets follow it"):
        Chart(
            [f"{hour}:00" for hour in range(24)],
            [
                Series(name="Monday to Friday", values=found["shapes"]["weekday"], has_area=True),
                Series(name="Saturday and Sunday", values=found["shapes"]["weekend"], is_dashed=True),
            ],
            description="How many times the average each hour of weekdays and of weekends has",
        )
    if found["campaigns"]:
        await _show_campaigns(visit, found["campaigns"])


async def _show_campaigns(visit: PageVisit, campaigns: list[Json]) -> None:
    """List those that are farthest from their plan first."""
    shown = sorted(campaigns, key=lambda one: -abs(1 - (one["ratio"] or 1)))[:CAMPAIGNS_SHOWN_MAX]
    named = await fetch_all([visit.api.get(f"/admin/campaigns/{one['campaignId']}") for one in shown])
    rows = [{**one, "name": campaign["name"]} for one, campaign in zip(shown, named, strict=True)]
    with add_card("Campaigns on this site", note="Those farthest from their plan first", classes="flush"):
        add_html(build_plain_table(COLUMNS, rows))


COLUMNS: Final = (
    Column("Campaign", "name"),
    make_number_column("Daily budget", "dailyBudgetPaisa", format_money, is_wide_only=True),
    make_number_column("Spent", "spentPaisa", format_money),
    make_number_column("By its plan", "expectedPaisa", format_money),
    Column(
        "Of the plan",
        lambda row: "—" if row["ratio"] is None else format_percent(row["ratio"], places=0),
        is_number=True,
    ),
    Column("Left out", lambda row: format_percent(row["throttle"], places=0), is_number=True),
)


def _build_site_badge(site: Json) -> Markup:
    suspended = build_badge("Suspended", "bad") if site["isSuspended"] else Markup("")
    return build_verification_badge(site) + suspended


def _show_domain(site: Json) -> Markup:
    """Show its name too on phones, which have no column for it."""
    name = site["name"] if site["name"] != site["domain"] else ""
    return Markup('{}<span class="al-phone-only quiet small"><br>{}</span>').format(site["domain"], name)


SITES: Final = ResourcePages(
    noun="site",
    icon="language",
    note="A domain whose pages have placements.",
    empty_note="A site is a domain. We read its pages and find out what they are about, so that ads fit them.",
    roles=PUBLISHER_SIDE,
    columns=[
        Column("Domain", _show_domain, sort="domain"),
        Column("Name", "name", sort="name", is_wide_only=True),
        Column("State", _build_site_badge),
        Column("Time zone", "timezone", is_wide_only=True),
    ],
    search="Search by domain or name",
    fields=add_site_fields,
    defaults={
        "timezone": "UTC",
        "cronSchedule": "0 2 * * *",
        "maxDepth": 2,
        "maxPages": 1_000,
        "crawlConcurrency": 5,
        "approvalMode": "manual",
        "floorCpm": 0.5,
        "minFloorCpm": 0.1,
        "floorMode": "fixed",
        "auctionMode": "second_price",
        "bidWeight": 0.5,
        "acceptsFiller": True,
        "isSuspended": False,
        "pacing": {"dayDurationSeconds": 86_400, "warmup": False},
    },
    defaults_from_query={"publisherId": "publisher"},
    badge=_build_site_badge,
    detail_note=lambda site: site["domain"] if site["domain"] != site["name"] else "",
    delete_note=(
        "What is known about its pages is lost. A site with contextual placements cannot be deleted. Other placements "
        "stay and keep serving, but without a site: ads of advertisers that block this domain can then appear there. "
        "This cannot be undone."
    ),
    is_restorable=False,
    add=lambda site: ("New placement", write_new_slot_address(site)),
    tabs={
        "overview": Tab("Overview", show_overview),
        "pages": Tab("Pages", show_pages),
        "crawls": Tab("Crawls", show_crawls),
        "approvals": Tab("Approvals", show_site_approvals),
        "market": Tab("Market", show_market),
        "traffic": Tab("Traffic", show_pacing),
        "placements": PLACEMENTS.make_tab("siteId"),
    },
).register()
