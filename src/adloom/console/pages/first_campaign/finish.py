"""The ad is on its way: where to look, and whether it was asked for, seen and clicked."""

from typing import Final
from urllib.parse import urlsplit

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.attributes import attributed
from adloom.console.components.format import count
from adloom.console.components.heading import card
from adloom.console.components.snippet import snippet
from adloom.console.page import Visit
from adloom.console.pages.first_campaign.plan import Plan
from adloom.console.pages.first_campaign.where import SAMPLE_PATH, is_of_sample
from adloom.console.words import first_campaign as words

REFRESH_SECONDS: Final = 1.0


async def finish(visit: Visit, plan: Plan) -> None:
    """Show the way to the page, and what becomes of the ad there."""
    placement, campaign = plan.made["placement"], plan.made["campaign"]
    tag = await visit.api.get(f"/admin/placements/{placement['id']}/tag")
    with ui.element("div").classes("grid-of two"):
        with card(words.DONE_TITLE), ui.element("div").classes("stack"):
            _way(placement, tag)
            with ui.element("div").classes("row-of"):
                whole = ui.button(words.TO_CAMPAIGN).props("outline")
                attributed(whole, href=f"/console/campaigns/{campaign['id']}")
                ui.button(words.AGAIN, on_click=ui.navigate.reload).props("flat")
        with card(words.CHECKS):
            checks = ui.html("", sanitize=False, tag="ul").classes("al-progress").props('aria-live="polite"')

    async def look() -> None:
        content = await _checks(visit, placement, campaign)
        if content != checks.content:
            checks.content = content

    await look()
    ui.timer(REFRESH_SECONDS, look)


def _way(placement: Json, tag: Json) -> None:
    if is_of_sample(placement):
        parts = urlsplit(str(tag["scriptUrl"]))
        ui.label(words.DONE_SAMPLE)
        _link(words.OPEN_PAGE, f"{parts.scheme}://{parts.netloc}{SAMPLE_PATH}")
    else:
        ui.label(words.DONE_PAGE)
        snippet(tag["html"])
        _link(words.TRY_PAGE, tag["pageUrl"])


def _link(label: str, address: str) -> None:
    with ui.element("div").classes("row-of"):
        link = ui.button(label, icon="open_in_new").props('target="_blank" rel="noopener" unelevated')
        attributed(link, href=address)


async def _checks(visit: Visit, placement: Json, campaign: Json) -> Markup:
    today = visit.now.date()
    stats = await visit.api.get(
        "/admin/stats/banners", **{"from": today, "to": today, "campaignId": campaign["id"], "groupBy": "day"}
    )
    totals = stats["totals"]
    explained = await visit.api.get(f"/banners/explain/{placement['slug']}")
    own = [one for one in explained["candidates"] if one["campaignId"] == campaign["id"]]
    is_chosen = any(one["outcome"] == "won" for one in own)
    reason = own[0]["reason"] if own else words.CHECK_CHOSEN_WAIT
    seen, clicked = totals["impressions"], totals["clicks"]
    return Markup("").join(
        [
            _check(words.CHECK_CHOSEN, reason, is_done=is_chosen or seen > 0),
            _check(
                words.CHECK_SEEN,
                words.CHECK_SEEN_COUNT.format(count=count(seen)) if seen else words.CHECK_SEEN_WAIT,
                is_done=seen > 0,
            ),
            _check(
                words.CHECK_CLICKED,
                words.CHECK_CLICKED_COUNT.format(count=count(clicked))
                if clicked
                else words.CHECK_CLICKED_WAIT,
                is_done=clicked > 0,
            ),
        ]
    )


def _check(label: str, note: str, *, is_done: bool) -> Markup:
    return Markup('<li class="{}"><b>{}</b><span class="quiet small">{}</span></li>').format(
        "" if is_done else "waiting", label, note
    )
