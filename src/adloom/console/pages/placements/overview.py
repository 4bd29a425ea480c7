"""What a placement shows, and how a page gets it."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.banner_preview import DEVICES, BannerPreview
from adloom.console.components.chooser import name_of
from adloom.console.components.heading import badge, card, facts
from adloom.console.components.layout_picture import layout_picture
from adloom.console.components.notice import empty_state
from adloom.console.components.snippet import snippet
from adloom.console.components.status import campaign_badge, thumb
from adloom.console.page import Visit
from adloom.console.pages.campaigns.overview import overridden, results
from adloom.console.words import campaigns as campaign_words
from adloom.console.words import catalog as shared
from adloom.console.words import placements as words
from adloom.core.actor import Role

ROWS_MAX: Final = 100
LAYOUTS_BESIDE: Final = 4


async def placement_overview(visit: Visit, placement: Json) -> None:
    """Show the tag, the banners in their order, and how it goes."""
    # Who shows what is the advertisers' own.
    rows = [] if visit.role is Role.PUBLISHER else await _assigned(visit, placement)
    with ui.element("div").classes("grid-of side"):
        with ui.element("div").classes("stack"):
            await _tag(visit, placement)
            if visit.role is not Role.PUBLISHER:
                _shown(rows)
            await results(visit, placementId=placement["id"])
            await _facts(visit, placement)
        if rows:
            await _look(visit, placement, rows)


async def _tag(visit: Visit, placement: Json) -> None:
    tag = await visit.api.get(f"/admin/placements/{placement['id']}/tag")
    with card(words.SNIPPET):
        ui.label(words.SNIPPET_NOTE).classes("quiet small")
        snippet(tag["html"])
        with ui.expansion(words.FRAME).classes("full"):
            snippet(tag["frameHtml"])
            ui.link(words.TRY, tag["pageUrl"], new_tab=True)


async def _facts(visit: Visit, placement: Json) -> None:
    site = await name_of(visit.api, "/admin/sites", placement["siteId"])
    width, height = placement["recommendedWidth"], placement["recommendedHeight"]
    with card(campaign_words.FACTS):
        facts(
            [
                (words.SLUG, placement["slug"]),
                (words.LAYOUT, layout_picture(placement["layoutType"])),
                (words.DELIVERY, words.DELIVERIES[placement["delivery"]]),
                (words.SLOTS, str(placement["maxBanners"])),
                (shared.TIME_ZONE, placement["timezone"]),
                *([(shared.SITE, site)] if site else []),
                *([(words.SIZE, f"{width} x {height}")] if width and height else []),
                *(
                    [(words.FLOOR, f"{placement['floorCpm']:,.2f}")]
                    if placement["delivery"] == "auction"
                    else []
                ),
                *([(words.NOTES, placement["notes"])] if placement["notes"] else []),
            ]
        )


async def _assigned(visit: Visit, placement: Json) -> list[Json]:
    answer = await visit.api.get("/admin/assignments", placementId=placement["id"], pageSize=ROWS_MAX)
    return [row for row in answer["items"] if row["bannerId"]]


def _shown(rows: list[Json]) -> None:
    with card(words.SHOWN_HERE, note=words.SHOWN_NOTE if rows else ""):
        if not rows:
            empty_state("image", words.NOTHING_SHOWN, words.NOTHING_SHOWN_NOTE)
            return
        with ui.element("div").classes("al-list"):
            for row in rows:
                ui.html(_row(row), sanitize=False)


async def _look(visit: Visit, placement: Json, rows: list[Json]) -> None:
    live = [
        row for row in rows if row["campaignStatus"] == "active" and row["isActive"] and row["isLinkActive"]
    ]
    first = (live or rows)[: placement["maxBanners"]][:LAYOUTS_BESIDE]
    banners = [overridden(await visit.api.get(f"/admin/banners/{row['bannerId']}"), row) for row in first]
    with card(campaign_words.LOOK), ui.element("div").classes("stack"):
        for device in DEVICES:
            BannerPreview(device).show(
                banners, placement["layoutType"], instead=placement["fallbackPlaceholderUrl"]
            )


def _row(row: Json) -> Markup:
    fallback = badge(campaign_words.IS_FALLBACK, "info") if row["isFallback"] else Markup("")
    return Markup(
        '<div class="al-pair"><span>{}</span><div class="grow"><a class="strong" href="/console/banners/{}">{}</a> {}'
        '<div class="small"><a href="/console/campaigns/{}?tab=banners">{}</a> {}</div>'
        '<div class="quiet small">{}</div></div></div>'
    ).format(
        thumb(row["bannerImageUrl"]),
        row["bannerId"],
        row["bannerTitle"],
        fallback,
        row["campaignId"],
        row["campaignName"],
        campaign_badge({"status": row["campaignStatus"]}),
        campaign_words.WEIGHT_SHARE.format(order=row["displayOrder"], weight=row["weight"]),
    )
