"""The overview of a placement: its tag, its banners and its results."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.banner_preview import DEVICES, BannerPreview, layout_picture
from adloom.console.components.forms.fields import fetch_name
from adloom.console.components.layout import badge, card, empty_state, facts, snippet
from adloom.console.components.status import campaign_badge, thumbnail
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.overview import apply_overrides, show_results
from adloom.console.resource_pages import Reload
from adloom.core.actor import Role

ROWS_MAX: Final = 100
BANNERS_SHOWN_MAX: Final = 4


async def show_overview(visit: PageVisit, placement: Json, reload: Reload) -> None:
    del reload
    # Publishers may not know what advertisers assign.
    rows = [] if visit.role is Role.PUBLISHER else await _fetch_assignments(visit, placement)
    with ui.element("div").classes("grid-of side"):
        with ui.element("div").classes("stack"):
            await _show_tag(visit, placement)
            if visit.role is not Role.PUBLISHER:
                _show_banners(rows)
            await show_results(visit, placementId=placement["id"])
            await _show_facts(visit, placement)
        if rows:
            await _show_preview(visit, placement, rows)


async def _show_tag(visit: PageVisit, placement: Json) -> None:
    tag = await visit.api.get(f"/admin/placements/{placement['id']}/tag")
    with card("Put it on a page"):
        ui.label(
            "Put the script into the page once, and the second line where the placement should be."
        ).classes("quiet small")
        snippet(tag["html"])
        with ui.expansion("For pages without scripts").classes("full"):
            snippet(tag["frameHtml"])
            ui.link("Try it", tag["pageUrl"], new_tab=True)


async def _show_facts(visit: PageVisit, placement: Json) -> None:
    site = await fetch_name(visit.api, "/admin/sites", placement["siteId"])
    width, height = placement["recommendedWidth"], placement["recommendedHeight"]
    with card("At a glance"):
        facts(
            [
                ("Slug", placement["slug"]),
                ("Layout", layout_picture(placement["layoutType"])),
                ("Filled by", strings.DELIVERIES[placement["delivery"]]),
                ("Slots", str(placement["maxBanners"])),
                ("Time zone", placement["timezone"]),
                *([("Site", site)] if site else []),
                *([("What fits", f"{width} x {height}")] if width and height else []),
                *(
                    [(strings.FLOOR_CPM, f"{placement['floorCpm']:,.2f}")]
                    if placement["delivery"] == "auction"
                    else []
                ),
                *([("Notes", placement["notes"])] if placement["notes"] else []),
            ]
        )


async def _fetch_assignments(visit: PageVisit, placement: Json) -> list[Json]:
    answer = await visit.api.get("/admin/assignments", placementId=placement["id"], pageSize=ROWS_MAX)
    return [row for row in answer["items"] if row["bannerId"]]


def _show_banners(rows: list[Json]) -> None:
    with card("What is shown here", note="In the order in which slots are filled" if rows else ""):
        if not rows:
            empty_state("image", "Nothing is shown here yet", "Assign a banner to it in a campaign.")
            return
        with ui.element("div").classes("al-list"):
            for row in rows:
                ui.html(_row(row), sanitize=False)


async def _show_preview(visit: PageVisit, placement: Json, rows: list[Json]) -> None:
    live = [
        row for row in rows if row["campaignStatus"] == "active" and row["isActive"] and row["isLinkActive"]
    ]
    first = (live or rows)[: placement["maxBanners"]][:BANNERS_SHOWN_MAX]
    banners = [
        apply_overrides(await visit.api.get(f"/admin/banners/{row['bannerId']}"), row) for row in first
    ]
    with card("What readers see"), ui.element("div").classes("stack"):
        for device in DEVICES:
            BannerPreview(device).show(
                banners, placement["layoutType"], instead=placement["fallbackPlaceholderUrl"]
            )


def _row(row: Json) -> Markup:
    fallback = badge("fallback", "info") if row["isFallback"] else Markup("")
    return Markup(
        '<div class="al-pair"><span>{}</span><div class="grow"><a class="strong" href="/console/banners/{}">{}</a> {}'
        '<div class="small"><a href="/console/campaigns/{}?tab=banners">{}</a> {}</div>'
        '<div class="quiet small">{}</div></div></div>'
    ).format(
        thumbnail(row["bannerImageUrl"]),
        row["bannerId"],
        row["bannerTitle"],
        fallback,
        row["campaignId"],
        row["campaignName"],
        campaign_badge({"status": row["campaignStatus"]}),
        strings.ORDER_AND_WEIGHT.format(order=row["displayOrder"], weight=row["weight"]),
    )
