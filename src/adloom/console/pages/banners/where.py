"""Where a banner is shown, and how that goes."""

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.layout import card, empty_state
from adloom.console.components.status import campaign_badge
from adloom.console.page import Visit
from adloom.console.pages.campaigns.overview import results

ROWS_MAX = 100


async def banner_uses(visit: Visit, banner: Json) -> None:
    """List the campaigns and placements of a banner."""
    await results(visit, bannerId=banner["id"])
    answer = await visit.api.get("/admin/assignments", bannerId=banner["id"], pageSize=ROWS_MAX)
    with card("Where it is shown"):
        if not answer["items"]:
            empty_state(
                "campaign",
                "Not shown anywhere yet",
                "Open a campaign, and assign this banner to one of its placements.",
                action="To the campaigns",
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
        strings.LAYOUTS[row["placementLayoutType"]],
        strings.ORDER_AND_WEIGHT.format(order=row["displayOrder"], weight=row["weight"]),
    )
