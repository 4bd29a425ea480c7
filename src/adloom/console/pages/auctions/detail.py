"""One auction in full: its result, every candidate and step, and the bid that each would have needed to win."""

from collections.abc import Sequence

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, fetch_names, short_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.layout import card, facts, heading, link_button
from adloom.console.page import PageVisit, page
from adloom.console.pages.auctions.list import ADDRESS, AUCTIONS
from adloom.console.pages.why.candidates import amount
from adloom.console.pages.why.recorded import make_question_url, show_auction
from adloom.console.shell import BUYERS

CHARTED_MAX = 12
CPC = "cpc"
NOT_SAID = frozenset({"hour", "day", "loginState", "newVisitor"})


@page(ADDRESS + "/{auction_id}", title="Auction", roles=BUYERS)
async def auction(visit: PageVisit) -> None:
    found = await visit.api.get(f"{AUCTIONS}/{visit.parts['auction_id']}")
    note = fmt.full_moment(found["auctionTime"])
    with heading(f"Auction {short_id(found['id'])}", note=note, crumbs=[("Auctions", ADDRESS)]):
        again = await make_question_url(visit, found)
        if again:
            link_button("Ask the same now", again, icon="replay")
        link_button("Why?", f"/console/why?auction={found['id']}", icon="help_outline")
    # An account sees the eCPM of its own bids only; they may be far down the list.
    charted = [bid for bid in found["bids"] if bid["ecpm"] is not None][:CHARTED_MAX]
    named = [found["winningAdId"], *(bid["adId"] for bid in charted)]
    banners = await fetch_names(visit.api, "banner", named)
    with ui.element("div").classes("grid-of two"):
        with card("What it came to"):
            await _facts(visit, found, banners)
        with card("eCPM of the bids"):
            _chart(found, charted, banners)
    await show_auction(visit, found)


async def _facts(visit: PageVisit, found: Json, banners: dict[str, str]) -> None:
    campaigns = await fetch_names(visit.api, "campaign", [found["winningCampaignId"]])
    placements = await fetch_names(visit.api, "placement", [found["placementId"]])
    won_by_click = any(bid["outcome"] == "won" and bid["bidType"] == CPC for bid in found["bids"])
    unit = "click" if won_by_click else "thousand impressions"
    # The winner may be hidden; that there is one is not.
    is_won = any(bid["outcome"] == "won" for bid in found["bids"])
    nobody = "somebody else" if is_won else "nobody"
    pairs: list[tuple[str, str | Markup]] = [
        ("Winner", _link("banners", found["winningAdId"], banners, nobody)),
        ("Campaign", _link("campaigns", found["winningCampaignId"], campaigns, nobody)),
        ("Final price", amount(found["finalPrice"], places=4)),
        (strings.WINNER_ECPM, amount(found["winningeCPM"], places=4)),
        ("Charge", f"{amount(found['charge'], places=4)} per {unit}"),
        ("Floor", amount(found["floorCpm"], places=4)),
        ("Placement", _link("placements", found["placementId"], placements, strings.NONE)),
        ("Placement type", found["placementType"]),
        ("Scoring", f"{found['scoring']}, version {found['scoringVersion']}"),
        ("User", Markup('<span class="mono">{}</span>').format(found["userId"]) if found["userId"] else "not known, or erased"),
    ]  # fmt: skip
    if found["context"]:
        pairs.append(("Reader", _reader(found["context"])))
    facts(pairs)


def _reader(context: Json) -> str:
    known = [str(value) for name, value in context.items() if name not in NOT_SAID and value]
    flags = {"loginState": "logged in", "newVisitor": "new visitor"}
    return ", ".join([*known, *(text for name, text in flags.items() if context.get(name) == "true")])


def _link(noun: str, thing_id: str | None, names: dict[str, str], instead: str) -> Markup:
    if thing_id is None:
        return Markup('<span class="quiet">{}</span>').format(instead)
    return Markup('<a href="/console/{}/{}">{}</a>').format(
        noun, thing_id, names.get(thing_id, short_id(thing_id))
    )


def _chart(found: Json, bids: Sequence[Json], banners: dict[str, str]) -> None:
    labels = [banners.get(bid["adId"] or "", "another account's") for bid in bids]
    series = [Series(name="eCPM", values=[bid["ecpm"] for bid in bids], kind="bar", colour=2)]
    for name, value, colour in (("Price", found["finalPrice"], 1), ("Floor", found["floorCpm"], 6)):
        if value is not None:
            series.append(Series(name=name, values=[value] * len(bids), is_dashed=True, colour=colour))
    Chart(labels, series, description="eCPM of the bids")
