"""Where a banner is shown, and how that goes."""

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.heading import card
from adloom.console.components.notice import empty_state
from adloom.console.components.status import campaign_badge
from adloom.console.page import Visit
from adloom.console.pages.campaigns.overview import results
from adloom.console.words import banners as words
from adloom.console.words import campaigns as campaign_words
from adloom.console.words import placements as placement_words

ROWS_MAX = 100


async def banner_uses(visit: Visit, banner: Json) -> None:
    """List the campaigns and placements of a banner."""
    await results(visit, bannerId=banner["id"])
    answer = await visit.api.get("/admin/assignments", bannerId=banner["id"], pageSize=ROWS_MAX)
    with card(words.WHERE):
        if not answer["items"]:
            empty_state(
                "campaign",
                words.NOT_USED,
                words.NOT_USED_NOTE,
                action=words.TO_CAMPAIGNS,
                href="/console/campaigns",
            )
        with ui.element("div").classes("al-list"):
            for row in answer["items"]:
                ui.html(_use(row), sanitize=False)


def _use(row: Json) -> Markup:
    return Markup(
        '<div class="row-of apart"><div><a class="strong" href="/console/campaigns/{}?tab=banners">{}</a> {}'
        '<div class="quiet small"><a href="/console/placements/{}">{}</a> · {}</div></div>'
        '<span class="quiet small">{}</span></div>'
    ).format(
        row["campaignId"],
        row["campaignName"],
        campaign_badge({"status": row["campaignStatus"]}),
        row["placementId"],
        row["placementLabel"],
        placement_words.LAYOUTS[row["placementLayoutType"]],
        campaign_words.WEIGHT_SHARE.format(order=row["displayOrder"], weight=row["weight"]),
    )
