"""The market of a site: which campaigns bid for which of its categories, how ads do there, its floors, and pages without bids."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json, fetch_all
from adloom.console.components.categories import build_category_chips, describe_category
from adloom.console.components.format import (
    format_average,
    format_count,
    format_full_moment,
    format_percent,
    format_price,
)
from adloom.console.components.layout import (
    add_card,
    add_empty_state,
    add_facts,
    add_hint,
    add_html,
    add_tiles,
    build_badge,
    build_meter,
)
from adloom.console.components.table import Column, build_plain_table, make_number_column
from adloom.console.page import PageVisit
from adloom.console.pages.sites.site_pages import build_page_address
from adloom.console.resource_pages import Reload

CATEGORIES_MAX: Final = 50
UNWANTED_MAX: Final = 8
TICK_MINUTES: Final = 15
PHASES: Final = {
    "waiting": ("Not enough bids to try floors", ""),
    "trying": ("Tries floors", "info"),
    "using": ("Uses the best", "good"),
}
# Why campaigns that want a category cannot be shown on the site.
REMOVED: Final = {
    "campaign_inactive": "not offered at the moment",
    "below_floor": "under the floor",
    "size_mismatch": "of another size",
    "no_creatives": "without a banner",
    "rejected": "rejected",
    "ad_product_blocked": "of a blocked product",
    "domain_blocked": "leading to a blocked domain",
    "site_blocked": "that block this site",
    "category_excluded": "that exclude it",
}


async def show_market(visit: PageVisit, site: Json, _: Reload) -> None:
    path = f"/admin/sites/{site['id']}"
    market, unwanted = await fetch_all(
        [
            visit.api.get(f"{path}/market"),
            visit.api.get(f"{path}/pages", isFresh=True, hasCandidates=False, pageSize=UNWANTED_MAX),
        ]
    )
    categories: list[Json] = market["categories"]
    if not categories:
        add_empty_state(
            "storefront",
            "Nothing to sell yet",
            "Ads are sold by what pages are about. Start a crawl, or give pages yourself.",
            action="To its pages",
            href=f"{visit.path}?tab=pages",
        )
        return
    _show_figures(market, unwanted["totalCount"])
    with add_card("Demand by category", note=_describe_age(market["demand"]), classes="flush"):
        add_html(
            build_plain_table(COLUMNS, [{**one, "siteId": site["id"]} for one in categories[:CATEGORIES_MAX]])
        )
    if len(categories) > CATEGORIES_MAX:
        add_hint(f"The {CATEGORIES_MAX} categories with most pages are shown.")
    _show_floor(visit, market["floor"])
    _show_unwanted(visit, site, unwanted)


def _show_figures(market: Json, unwanted: int) -> None:
    categories = market["categories"]
    wanted = sum(1 for one in categories if one["campaigns"])
    impressions = sum(one["impressions"] for one in categories)
    clicks = sum(one["clicks"] for one in categories)
    tiles = add_tiles("Categories", "Wanted", "Click rate", "Pages without demand")
    tiles[0].update(format_count(len(categories)))
    tiles[1].update(format_count(wanted), note="by one campaign or more", kind="" if wanted else "warn")
    tiles[2].update(format_percent(clicks / impressions if impressions else None), note="of the last weeks")
    tiles[3].update(format_count(unwanted), kind="warn" if unwanted else "", note="no ad wants their slots")


def _describe_age(demand: Json) -> str:
    return f"Changed last {format_full_moment(demand['updatedAt'])}" if demand["updatedAt"] else ""


def _show_floor(visit: PageVisit, floor: Json) -> None:
    moves = floor["mode"] == "sweep"
    with add_card("Floors", note="For 1,000 impressions"):
        add_facts(
            [
                ("The floor is", "moving, by category" if moves else "fixed"),
                ("It begins at" if moves else "It is", format_price(floor["floorCpm"])),
                *([("Never under", format_price(floor["minFloorCpm"]))] if moves else []),
            ]
        )
        sweeps: Sequence[Json] = floor["sweeps"]
        if moves:
            add_hint(
                f"Each floor is tried for a while, and the one that earned most is kept. Every {TICK_MINUTES} minutes "
                "it is looked at."
                if sweeps
                else "No floor was tried yet: this needs two campaigns that may be shown in one category."
            )
        for sweep in sweeps:
            _show_sweep(sweep)
        if visit.may_write:
            ui.link("Change it in the settings", f"{visit.path}?tab=settings")


def _show_sweep(sweep: Json) -> None:
    """Show what was tried, and what it earned: the evidence for the floor."""
    label, kind = PHASES[sweep["phase"]]
    with ui.expansion().classes("full") as part:
        with part.add_slot("header"):
            add_html(
                Markup(
                    '<div class="row-of"><span class="strong">{}</span>{}<span class="num">{}</span></div>'
                ).format(sweep["name"], build_badge(label, kind), format_price(sweep["floorCpm"]))
            )
        if sweep["ticksLeft"]:
            add_hint(f"Other floors are tried again in about {describe_ticks(sweep['ticksLeft'])}.")
        if sweep["tried"]:
            add_html(build_plain_table(TRIED_COLUMNS, sweep["tried"]))


def describe_ticks(ticks: int) -> str:
    minutes = ticks * TICK_MINUTES
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"  # noqa: PLR2004 - two hours


def _show_unwanted(visit: PageVisit, site: Json, unwanted: Json) -> None:
    pages, total = unwanted["items"], unwanted["totalCount"]
    with add_card("Pages without demand", note=format_count(total) if total else ""):
        if not pages:
            add_hint("An ad wants a slot of every fresh page.")
            return
        add_hint("No campaign bids on what they are about, or its bid is under the floor. They show no ad.")
        rows = Markup("").join(
            Markup('<li><a class="cut" href="{}">{}</a>{}</li>').format(
                build_page_address(site["id"], page["id"]),
                page["title"] or page["url"],
                build_category_chips(page["categories"]),
            )
            for page in pages
        )
        add_html(Markup('<ul class="al-newest">{}</ul>').format(rows))
        if total > len(pages):
            ui.link("All of them", f"{visit.path}?tab=pages&hasCandidates=false&isFresh=true")


def _name(row: Json) -> Markup:
    return Markup('<a href="/console/sites/{}?tab=pages&category={}" title="{}">{}</a>').format(
        row["siteId"], row["id"], describe_category(row["id"]), row["name"]
    )


def _build_demand(row: Json) -> Markup:
    """Say how many campaigns want a category, how many may be shown, and why the others may not."""
    if not row["campaigns"]:
        return build_badge("Nobody", "warn")
    parts = [
        *([f"{format_count(row['pending'])} waiting for approval"] if row["pending"] else []),
        *(
            f"{format_count(number)} {REMOVED.get(name, name.replace('_', ' '))}"
            for name, number in row["removed"].items()
        ),
    ]
    shown = f"{format_count(row['bidding'])} of {format_count(row['campaigns'])}"
    return Markup('<span class="num">{}</span> <span class="quiet small">{}</span>').format(
        shown, ", ".join(parts)
    )


def _build_weight(row: Json) -> Markup:
    return Markup('<span class="al-confidence">{}<b class="num">{:.2f}</b></span>').format(
        build_meter(row["weight"]), row["weight"]
    )


def _write_click_rate(row: Json) -> str:
    return format_percent(row["clicks"] / row["impressions"]) if row["impressions"] else "–"


COLUMNS: Final = (
    Column("Category", _name),
    make_number_column("Pages", "pages"),
    Column("Campaigns", _build_demand),
    Column("Weight", _build_weight, is_wide_only=True),
    make_number_column("Impressions", "impressions", is_wide_only=True),
    make_number_column("Clicks", "clicks", is_wide_only=True),
    Column("Click rate", _write_click_rate, is_number=True, is_wide_only=True),
    make_number_column("Floor", "floorCpm", format_price),
)
TRIED_COLUMNS: Final = (
    make_number_column("Floor", "floorCpm", format_price),
    make_number_column("For", "ticks", describe_ticks),
    make_number_column("Impressions", "impressions"),
    make_number_column("Earned", "revenue", format_average),
)
