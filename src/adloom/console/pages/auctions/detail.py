"""One auction in detail: what it came to, why the winner pays what it pays, and every bid."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.client import Json, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_facts,
    add_heading,
    add_hint,
    add_link_button,
)
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.auctions.page import ADDRESS, AUCTIONS, make_page_address
from adloom.console.pages.why.candidates import make_question_url, show_auction
from adloom.console.shell import ADVERTISER_SIDE, link_thing
from adloom.console.words.field_labels import name_device
from adloom.core.caller import Role

CHARTED_MAX: Final = 12
CPC: Final = "cpc"
NOT_SAID: Final = frozenset({"hour", "day", "loginState", "newVisitor"})


@register_page(ADDRESS + "/{auction_id}", title="Auction", roles=ADVERTISER_SIDE)
async def auction(visit: PageVisit) -> None:
    found = await visit.api.get(f"{AUCTIONS}/{visit.parts['auction_id']}")
    note = found["names"].get(found["placementId"], found["placementType"])
    with add_heading(
        f"Auction at {fmt.format_full_moment(found['auctionTime'])}",
        note=note,
        crumbs=[("Auctions", ADDRESS)],
    ):
        again = await make_question_url(visit, found)
        if again:
            add_link_button("Ask the same now", again, icon="replay")
        add_link_button("Why?", f"/console/why?auction={found['id']}", icon="help_outline")
    # An account sees the eCPM of its own bids only; they may be far down the list.
    charted = [bid for bid in found["bids"] if bid["ecpm"] is not None][:CHARTED_MAX]
    with add_div("grid-of two"):
        with add_card("What it came to"):
            _show_facts(found, visit.role)
            add_hint(explain_price(found, write=fmt.format_price))
        with add_card("eCPM of the bids"):
            _show_chart(found, charted)
    show_auction(found, visit.role)


def _show_facts(found: Json, role: Role) -> None:
    names: dict[str, str] = found["names"]
    won_by_click = any(bid["outcome"] == "won" and bid["bidType"] == CPC for bid in found["bids"])
    unit = "click" if won_by_click else "thousand impressions"
    # The winner may be hidden; that there is one is not.
    is_won = any(bid["outcome"] == "won" for bid in found["bids"])
    nobody = "somebody else" if is_won else "nobody"
    pairs: list[tuple[str, str | Markup]] = [
        ("Winner", _build_link("banner", found["winningAdId"], names, role, nobody)),
        ("Campaign", _build_link("campaign", found["winningCampaignId"], names, role, nobody)),
        ("Final price", fmt.format_price(found["finalPrice"])),
        (strings.WINNER_ECPM, fmt.format_price(found["winningeCPM"])),
        ("Charge", f"{fmt.format_price(found['charge'])} per {unit}"),
        ("Floor", fmt.format_price(found["floorCpm"])),
        ("Placement", _build_link("placement", found["placementId"], names, role, strings.NONE)),
        ("Placement type", found["placementType"]),
        *([("Page", _build_page_link(found["pageUrl"]))] if found["pageUrl"] else []),
        ("Scoring", f"{found['scoring']}, version {found['scoringVersion']}"),
        ("User", Markup('<span class="mono">{}</span>').format(found["userId"]) if found["userId"] else "not known, or erased"),
    ]  # fmt: skip
    if found["context"]:
        pairs.append(("Reader", _describe_visitor(found["context"])))
    add_facts(pairs)


def _build_page_link(url: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(make_page_address(url), url)


def _describe_visitor(context: Json) -> str:
    known = [
        name_device(str(value)) if name == "device" else str(value)
        for name, value in context.items()
        if name not in NOT_SAID and value
    ]
    flags = {"loginState": "logged in", "newVisitor": "new visitor"}
    return ", ".join([*known, *(text for name, text in flags.items() if context.get(name) == "true")])


def _build_link(kind: str, thing_id: str | None, names: dict[str, str], role: Role, instead: str) -> Markup:
    if thing_id is None:
        return Markup('<span class="quiet">{}</span>').format(instead)
    return link_thing(kind, thing_id, names.get(thing_id, shorten_id(thing_id)), role)


def _show_chart(found: Json, bids: Sequence[Json]) -> None:
    labels = [found["names"].get(bid["adId"], "another account's") for bid in bids]
    series = [Series(name="eCPM", values=[bid["ecpm"] for bid in bids], kind="bar", colour=2)]
    for name, value, colour in (("Price", found["finalPrice"], 1), ("Floor", found["floorCpm"], 6)):
        if value is not None:
            series.append(Series(name=name, values=[value] * len(bids), is_dashed=True, colour=colour))
    Chart(labels, series, description="eCPM of the bids")


CENT: Final = 0.01
NEAR: Final = 0.00005  # Prices are recorded with four decimals.
RULE: Final = (
    "The winner pays a cent more than the second eCPM, at least the floor, and never more than its own eCPM."
)


def explain_price(auction: Mapping[str, Any], *, write: Callable[[float], str]) -> str:
    """Return why the price of a recorded auction is what it is; `write` formats prices.

    An account does not see other bids: then it is the rule.
    """
    if auction["finalPrice"] is None or auction["winningeCPM"] is None:
        return ""
    return next(_find_reasons(auction, write), RULE)


def _find_reasons(auction: Mapping[str, Any], write: Callable[[float], str]) -> Iterator[str]:
    final, own, floor = auction["finalPrice"], auction["winningeCPM"], auction["floorCpm"] or 0.0
    lost = [bid["ecpm"] for bid in auction["bids"] if bid["outcome"] == "lost"]
    is_known = None not in lost
    # Higher ones could not be paid for at that moment, and set no price.
    others = sorted((ecpm for ecpm in lost if ecpm is not None and ecpm <= own), reverse=True)
    for ecpm in others:
        if _is_equal(final, ecpm + CENT):
            yield f"A cent more than the second eCPM, which was {write(ecpm)}."
        if _is_equal(final, ecpm):
            yield f"As much as the second eCPM, which was {write(ecpm)}."
    if floor and _is_equal(final, floor):
        yield _explain_floor(floor, others, is_known=is_known, write=write)
    if _is_equal(final, own) and others and others[0] + CENT > own:
        yield f"The second eCPM, {write(others[0])}, was less than a cent below: the winner pays its own."
    if _is_equal(final, CENT) and is_known and not others and not floor:
        yield "Nobody else bid, and there is no floor: a cent is the lowest price."


def _explain_floor(
    floor: float, others: list[float], *, is_known: bool, write: Callable[[float], str]
) -> str:
    if others:
        return f"The floor, which is above the second eCPM ({write(max(others))}) and a cent."
    if is_known:
        return f"Nobody else reached the floor, so the winner pays the floor of {write(floor)}."
    return f"The floor of {write(floor)}."


def _is_equal(one: float, other: float) -> bool:
    return abs(one - other) < NEAR
