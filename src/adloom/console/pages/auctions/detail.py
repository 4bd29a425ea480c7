"""One auction in detail: what it came to, why it cost that, and every bid."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.client import Json, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.layout import card, div, facts, heading, hint, link_button
from adloom.console.page import PageVisit, page
from adloom.console.pages.auctions.page import ADDRESS, AUCTIONS, make_page_address
from adloom.console.pages.why.candidates import make_question_url, show_auction
from adloom.console.shell import ADVERTISER_SIDE
from adloom.console.words.field_labels import name_device
from adloom.console.words.price_words import explain_price

CHARTED_MAX: Final = 12
CPC: Final = "cpc"
NOT_SAID: Final = frozenset({"hour", "day", "loginState", "newVisitor"})


@page(ADDRESS + "/{auction_id}", title="Auction", roles=ADVERTISER_SIDE)
async def auction(visit: PageVisit) -> None:
    found = await visit.api.get(f"{AUCTIONS}/{visit.parts['auction_id']}")
    note = found["names"].get(found["placementId"], found["placementType"])
    with heading(
        f"Auction at {fmt.format_full_moment(found['auctionTime'])}",
        note=note,
        crumbs=[("Auctions", ADDRESS)],
    ):
        again = await make_question_url(visit, found)
        if again:
            link_button("Ask the same now", again, icon="replay")
        link_button("Why?", f"/console/why?auction={found['id']}", icon="help_outline")
    # An account sees the eCPM of its own bids only; they may be far down the list.
    charted = [bid for bid in found["bids"] if bid["ecpm"] is not None][:CHARTED_MAX]
    with div("grid-of two"):
        with card("What it came to"):
            _show_facts(found)
            hint(explain_price(found, write=fmt.format_price))
        with card("eCPM of the bids"):
            _show_chart(found, charted)
    show_auction(found, visit.role)


def _show_facts(found: Json) -> None:
    names: dict[str, str] = found["names"]
    won_by_click = any(bid["outcome"] == "won" and bid["bidType"] == CPC for bid in found["bids"])
    unit = "click" if won_by_click else "thousand impressions"
    # The winner may be hidden; that there is one is not.
    is_won = any(bid["outcome"] == "won" for bid in found["bids"])
    nobody = "somebody else" if is_won else "nobody"
    pairs: list[tuple[str, str | Markup]] = [
        ("Winner", _link("banners", found["winningAdId"], names, nobody)),
        ("Campaign", _link("campaigns", found["winningCampaignId"], names, nobody)),
        ("Final price", fmt.format_price(found["finalPrice"])),
        (strings.WINNER_ECPM, fmt.format_price(found["winningeCPM"])),
        ("Charge", f"{fmt.format_price(found['charge'])} per {unit}"),
        ("Floor", fmt.format_price(found["floorCpm"])),
        ("Placement", _link("placements", found["placementId"], names, strings.NONE)),
        ("Placement type", found["placementType"]),
        *([("Page", _page_link(found["pageUrl"]))] if found["pageUrl"] else []),
        ("Scoring", f"{found['scoring']}, version {found['scoringVersion']}"),
        ("User", Markup('<span class="mono">{}</span>').format(found["userId"]) if found["userId"] else "not known, or erased"),
    ]  # fmt: skip
    if found["context"]:
        pairs.append(("Reader", _describe_visitor(found["context"])))
    facts(pairs)


def _page_link(url: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(make_page_address(url), url)


def _describe_visitor(context: Json) -> str:
    known = [
        name_device(str(value)) if name == "device" else str(value)
        for name, value in context.items()
        if name not in NOT_SAID and value
    ]
    flags = {"loginState": "logged in", "newVisitor": "new visitor"}
    return ", ".join([*known, *(text for name, text in flags.items() if context.get(name) == "true")])


def _link(noun: str, thing_id: str | None, names: dict[str, str], instead: str) -> Markup:
    if thing_id is None:
        return Markup('<span class="quiet">{}</span>').format(instead)
    return Markup('<a href="/console/{}/{}">{}</a>').format(
        noun, thing_id, names.get(thing_id, shorten_id(thing_id))
    )


def _show_chart(found: Json, bids: Sequence[Json]) -> None:
    labels = [found["names"].get(bid["adId"], "another account's") for bid in bids]
    series = [Series(name="eCPM", values=[bid["ecpm"] for bid in bids], kind="bar", colour=2)]
    for name, value, colour in (("Price", found["finalPrice"], 1), ("Floor", found["floorCpm"], 6)):
        if value is not None:
            series.append(Series(name=name, values=[value] * len(bids), is_dashed=True, colour=colour))
    Chart(labels, series, description="eCPM of the bids")
