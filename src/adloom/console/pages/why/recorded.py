"""Why an ad won a past auction: the record of every candidate."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import funnel
from adloom.console.components.layout import card, empty_state, link_button, notice
from adloom.console.page import PageVisit
from adloom.console.pages.why.candidates import candidate_table, explain_record, funnel_steps

BIDS_MAX: Final = 256
TO_PARAMETERS: Final = {"loginState": "loggedIn", "referrerDomain": "referrer"}
OF_TIME: Final = frozenset({"hour", "day"})


async def show_recorded(visit: PageVisit) -> None:
    auction_id = visit.query.get("auction", "")
    if not auction_id:
        empty_state(
            "gavel",
            "Which auction?",
            "Every auction of the last days is on record. Take one from the list, or enter its id.",
            action="To the auctions",
            href="/console/auctions",
        )
        return
    try:
        auction = await visit.api.get(f"/api/v1/admin/auctions/{auction_id}")
    except ProblemError as error:
        notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    with ui.element("div").classes("row-of apart"):
        ui.label(f"Held {fmt.full_moment(auction['auctionTime'])}").classes("quiet")
        with ui.element("div").classes("row-of"):
            again = await make_question_url(visit, auction)
            if again:
                link_button("Ask the same now", again, icon="replay")
            link_button("The auction in full", f"/console/auctions/{auction['id']}")
    await show_auction(visit, auction)


async def show_auction(visit: PageVisit, auction: Json) -> None:
    bids: list[Json] = auction["bids"]
    won = sum(bid["outcome"] == "won" for bid in bids)
    with card(strings.AUCTION_FUNNEL):
        funnel(
            funnel_steps(
                _count_removed(auction), lost=max(0, auction["bidCount"] - won), won=won, is_auction=True
            ),
            description=strings.AUCTION_FUNNEL,
        )
    with card("Candidates", note=f"{len(bids):,}", classes="flush"):
        told = [{**bid, "reason": explain_record(bid["removedBy"], bid["outcome"])} for bid in bids]
        await candidate_table(visit.api, told, is_auction=True, placement_id=auction["placementId"])
    if len(bids) >= BIDS_MAX:
        ui.label("At most 256 bids of an auction are recorded one by one; the funnel counts all.").classes(
            "quiet small"
        )


def _count_removed(auction: Json) -> Mapping[str, int]:
    if auction["removed"]:
        return auction["removed"]
    # An account sees only its own bids.
    own: dict[str, int] = {}
    for bid in auction["bids"]:
        if bid["outcome"] == "removed" and bid["removedBy"]:
            own[bid["removedBy"]] = own.get(bid["removedBy"], 0) + 1
    return own


async def make_question_url(visit: PageVisit, auction: Json) -> str | None:
    """Return the address that asks for the same reader now; None if the placement is unknown."""
    if auction["placementId"] is None or auction["context"] is None:
        return None
    try:
        placement = await visit.api.get(f"/admin/placements/{auction['placementId']}")
    except ProblemError:
        return None
    context: dict[str, Any] = auction["context"]
    reader = {TO_PARAMETERS.get(name, name): value for name, value in context.items() if name not in OF_TIME}
    user = {"userId": auction["userId"]} if auction["userId"] else {}
    return f"/console/why?{urlencode({'placement': placement['slug'], **reader, **user})}"
