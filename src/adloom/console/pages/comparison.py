"""The banners of a placement or a campaign side by side: click rates with their ranges, and which one leads."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import format_percent, format_quantity
from adloom.console.components.layout import add_card, add_html, set_attributes
from adloom.console.page import PageVisit
from adloom.core.caller import Role

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
    return f"{min(share * 100, 99.9):.1f} %" if share > 0.99 else f"{share * 100:.0f} %"  # noqa: PLR2004 - of a hundred


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
    return Markup('<li>{}<b class="num">{}</b>{}<span class="quiet small num">{}</span></li>').format(
        name.format(item["bannerId"], item["title"]), format_percent(item["ctr"]), span, note
    )
