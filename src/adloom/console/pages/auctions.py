"""Auctions: totals, price against eCPM, the latest ones live, and one in detail."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, fetch_all, short_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import shares
from adloom.console.components.charts.chart import Chart, Point, Scatter, Series
from adloom.console.components.layout import (
    add_tiles,
    card,
    div,
    empty_state,
    facts,
    heading,
    hint,
    html,
    link_button,
    meter,
    notice,
)
from adloom.console.components.table import Column, DataTable
from adloom.console.page import PageVisit, page, refresh_every
from adloom.console.pages.calibration import show_calibration
from adloom.console.pages.why.candidates import make_question_url, show_auction
from adloom.console.shell import ADVERTISER_SIDE
from adloom.console.words.device_words import name_device
from adloom.core.actor import Role
from adloom.schedule.schedule import find_zone

PERIODS: Final = {"1": "Last hour", "24": "Last 24 hours", "168": "Last 7 days"}

ADDRESS: Final = "/console/auctions"
AUCTIONS: Final = "/api/v1/admin/auctions"
HOURS_DEFAULT: Final = "24"
WEEK_HOURS: Final = "168"
REFRESH_SECONDS: Final = 2.0
PICTURE_SECONDS: Final = 10.0
POINTS_PAGES: Final = 3
POINTS_A_PAGE: Final = 100
PARTS_MAX: Final = 8
HOUR: Final = timedelta(hours=1)
CHARTED_MAX = 12
CPC = "cpc"
NOT_SAID = frozenset({"hour", "day", "loginState", "newVisitor"})


def make_page_address(url: str, slot: str | None = None) -> str:
    """Return the address of the auctions on record of a page, or of one of its slots."""
    asked = {"page_url": f"https://{url}", "placement": slot, "hours": WEEK_HOURS}
    return f"{ADDRESS}?{urlencode({name: value for name, value in asked.items() if value})}"


class AuctionsView:
    """The filters of the page, and the names of campaigns it has read."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self.zone = find_zone(visit.zone_for(None)) or UTC
        asked = visit.query.get("hours", HOURS_DEFAULT)
        self.hours = asked if asked in PERIODS else HOURS_DEFAULT
        self.type = visit.query.get("type") or None
        self.page_url = visit.query.get("page_url") or None
        self.placement = visit.query.get("placement") or None

    @property
    def query(self) -> dict[str, object]:
        since = self._visit.now - int(self.hours) * HOUR
        return {
            "startDate": f"{since:%Y-%m-%dT%H:%M:%SZ}",
            "placementType": self.type,
            "pageUrl": self.page_url,
            "placement": self.placement,
        }

    @property
    def every_hour(self) -> list[datetime]:
        """All hours of the period, with or without auctions."""
        last = self._visit.now.replace(minute=0, second=0, microsecond=0)
        return [last - number * HOUR for number in range(int(self.hours), -1, -1)]

    def address(self, **changes: str | None) -> str:
        asked = {
            "hours": self.hours,
            "type": self.type,
            "page_url": self.page_url,
            "placement": self.placement,
            **changes,
        }
        return f"{ADDRESS}?{urlencode({name: value for name, value in asked.items() if value})}"

    async def read(self, part: str, **more: object) -> Json:
        return await self._visit.api.get(f"{AUCTIONS}{part}", **{**self.query, **more})

    async def page(self, query: Mapping[str, str]) -> Json:
        known = {name: value for name, value in query.items() if name in {"page", "pageSize", "sort"}}
        return await self.read("", **known)

    def name_winner(self, row: Json) -> str:
        """Name the campaign that won an auction."""
        campaign_id: str | None = row["winningCampaignId"]
        if campaign_id is not None:
            return row["names"].get(campaign_id, short_id(campaign_id))
        return "somebody else" if self._visit.role is Role.ADVERTISER else "nobody"


@page(ADDRESS, title="Auctions", roles=ADVERTISER_SIDE)
async def auctions(visit: PageVisit) -> None:
    view = AuctionsView(visit)
    heading(
        "Auctions",
        note=(
            "Every auction is recorded for some days and appears here within seconds. Prices are per thousand impressions."
        ),
    )
    total = await view.read("/statistics")
    if view.page_url or view.placement:
        of_page = f" on {view.page_url.removeprefix('https://')}" if view.page_url else ""
        notice(
            f"Only auctions of the slot {view.placement or ''}{of_page}."
            if view.placement
            else f"Only auctions{of_page}."
        )
        link_button("All auctions", view.address(page_url=None, placement=None))
    await _controls(view)
    if not total["totalAuctions"]:
        empty_state(
            "gavel",
            "No auctions yet",
            (
                "Each request for a placement with delivery “auction” or “contextual” starts one, if campaigns bid on it. Choose a longer period to see older ones."
            ),
            action="To the campaigns" if visit.role is Role.ADVERTISER else "To the placements",
            href="/console/campaigns" if visit.role is Role.ADVERTISER else "/console/placements",
        )
        return
    _tiles(view, total, is_own=visit.role is Role.ADVERTISER)
    await _pictures(view)
    with div("row-of apart"):
        html("<h2>The last auctions</h2>")
        hint("refreshes automatically")
    table = DataTable(
        visit.query,
        [
            Column("Held", lambda row: fmt.ago(row["auctionTime"], now=visit.now), sort="auctionTime"),
            Column("Placement type", "placementType", is_wide_only=True),
            Column("Winner", view.name_winner),
            Column("Bids", lambda row: str(row["bidCount"]), is_number=True, is_wide_only=True),
            Column("Price", lambda row: fmt.price(row["finalPrice"]), is_number=True),
            Column(strings.WINNER_ECPM, lambda row: fmt.price(row["winningeCPM"]), is_number=True, is_wide_only=True),
            Column("Price of eCPM", _price_share, is_wide_only=True),
        ],
        view.page,
        href=lambda row: f"{ADDRESS}/{row['id']}",
        sort="-auctionTime",
    )  # fmt: skip
    await table.show()
    refresh_every(REFRESH_SECONDS, table.show)
    if visit.role in {Role.ADMIN, Role.VIEWER}:
        await show_calibration(visit)


def _price_share(row: Json) -> Markup:
    if not row["winningeCPM"]:
        return Markup("")
    return meter(row["finalPrice"] / row["winningeCPM"])


async def _controls(view: AuctionsView) -> None:
    types = await view.read("/statistics/breakdown", groupBy="placementType", placementType=None)
    with div("al-bar"):
        ui.select(PERIODS, label="Period", value=view.hours).props(
            "outlined dense options-dense"
        ).on_value_change(lambda event: ui.navigate.to(view.address(hours=event.value)))
        names = [one["placementType"] for one in types["items"]]
        known = names if view.type is None or view.type in names else [*names, view.type]
        ui.select(known, label="Placement type", value=view.type, clearable=True).props(
            'outlined dense options-dense data-field="type"'
        ).style("min-width: 12rem").on_value_change(
            lambda event: ui.navigate.to(view.address(type=event.value))
        )


def _tiles(view: AuctionsView, total: Json, *, is_own: bool) -> None:
    tiles = add_tiles("Auctions", "Won by you" if is_own else "With a winner", "Average eCPM", "Bids")

    def update(total: Json) -> None:
        count, bids = total["totalAuctions"], total["totalBidsPlaced"]
        tiles[0].update(fmt.count(count))
        tiles[1].update(fmt.percent(total["averageWinRate"] / 100, places=1))
        tiles[2].update(fmt.average(total["averageeCPM"]), note="of the winners")
        tiles[3].update(fmt.count(bids), note=f"{bids / count if count else 0:.1f} in an auction")

    async def refresh() -> None:
        update(await view.read("/statistics"))

    update(total)
    refresh_every(REFRESH_SECONDS, refresh)


async def _pictures(view: AuctionsView) -> None:
    points = await _points(view)
    count = sum(map(len, points.values()))
    with div("grid-of two"):
        with card("Price against eCPM", note=f"the last {count}; on the line nothing was saved"):
            scatter = Scatter(
                points, across=strings.WINNER_ECPM, up="Price", description="Price against eCPM"
            )
        with card("Auctions by hour"):
            hours = Chart(*await _by_hour(view), classes="tall", description="Auctions by hour")
        with card("Win rate by campaign"):
            campaigns = html(await _by_campaign(view))
        with card("Win rate by placement type"):
            types = html(await _by_type(view))

    async def refresh() -> None:
        scatter.update(await _points(view))
        hours.update(*await _by_hour(view))
        campaigns.content = await _by_campaign(view)
        types.content = await _by_type(view)

    refresh_every(PICTURE_SECONDS, refresh)


async def _points(view: AuctionsView) -> dict[str, list[Point]]:
    pages = await fetch_all(
        [view.read("", page=number, pageSize=POINTS_A_PAGE) for number in range(1, POINTS_PAGES + 1)]
    )
    rows = [row for answer in pages for row in answer["items"] if row["winningeCPM"] is not None]
    groups: dict[str, list[Point]] = {}
    for row in rows:
        point = (row["winningeCPM"], row["finalPrice"], view.name_winner(row))
        groups.setdefault(row["placementType"], []).append(point)
    return dict(sorted(groups.items()))


async def _by_campaign(view: AuctionsView) -> Markup:
    parts = (await view.read("/statistics/breakdown", groupBy="campaign"))["items"][:PARTS_MAX]
    return shares(
        [(part.get("campaignName") or short_id(part["campaignId"]), *_rate(part)) for part in parts]
    )


async def _by_type(view: AuctionsView) -> Markup:
    parts = (await view.read("/statistics/breakdown", groupBy="placementType"))["items"][:PARTS_MAX]
    return shares([(part["placementType"], *_rate(part)) for part in parts])


def _rate(part: Json) -> tuple[float, str]:
    return part["averageWinRate"] / 100, f"of {part['totalAuctions']:,} auctions"


async def _by_hour(view: AuctionsView) -> tuple[list[str], list[Series]]:
    answer = await view.read("/statistics/breakdown", groupBy="hour")
    found = {fmt.moment(part["hour"]): part for part in answer["items"]}
    parts = [found.get(hour) for hour in view.every_hour]
    labels = [f"{hour.astimezone(view.zone):%m-%d %H:%M}" for hour in view.every_hour]
    held = [part["totalAuctions"] if part else 0 for part in parts]
    rates = [part["averageWinRate"] / 100 if part else None for part in parts]
    return labels, [
        Series(name="Auctions", values=held, kind="bar", colour=2),
        Series(name="Win rate", values=rates, unit="percent", axis=1, colour=1),
    ]


@page(ADDRESS + "/{auction_id}", title="Auction", roles=ADVERTISER_SIDE)
async def auction(visit: PageVisit) -> None:
    found = await visit.api.get(f"{AUCTIONS}/{visit.parts['auction_id']}")
    note = found["names"].get(found["placementId"], found["placementType"])
    with heading(
        f"Auction at {fmt.full_moment(found['auctionTime'])}", note=note, crumbs=[("Auctions", ADDRESS)]
    ):
        again = await make_question_url(visit, found)
        if again:
            link_button("Ask the same now", again, icon="replay")
        link_button("Why?", f"/console/why?auction={found['id']}", icon="help_outline")
    # An account sees the eCPM of its own bids only; they may be far down the list.
    charted = [bid for bid in found["bids"] if bid["ecpm"] is not None][:CHARTED_MAX]
    with div("grid-of two"):
        with card("What it came to"):
            _facts(found)
        with card("eCPM of the bids"):
            _chart(found, charted)
    show_auction(found, visit.role)


def _facts(found: Json) -> None:
    names: dict[str, str] = found["names"]
    won_by_click = any(bid["outcome"] == "won" and bid["bidType"] == CPC for bid in found["bids"])
    unit = "click" if won_by_click else "thousand impressions"
    # The winner may be hidden; that there is one is not.
    is_won = any(bid["outcome"] == "won" for bid in found["bids"])
    nobody = "somebody else" if is_won else "nobody"
    pairs: list[tuple[str, str | Markup]] = [
        ("Winner", _link("banners", found["winningAdId"], names, nobody)),
        ("Campaign", _link("campaigns", found["winningCampaignId"], names, nobody)),
        ("Final price", fmt.price(found["finalPrice"])),
        (strings.WINNER_ECPM, fmt.price(found["winningeCPM"])),
        ("Charge", f"{fmt.price(found['charge'])} per {unit}"),
        ("Floor", fmt.price(found["floorCpm"])),
        ("Placement", _link("placements", found["placementId"], names, strings.NONE)),
        ("Placement type", found["placementType"]),
        *([("Page", _page_link(found["pageUrl"]))] if found["pageUrl"] else []),
        ("Scoring", f"{found['scoring']}, version {found['scoringVersion']}"),
        ("User", Markup('<span class="mono">{}</span>').format(found["userId"]) if found["userId"] else "not known, or erased"),
    ]  # fmt: skip
    if found["context"]:
        pairs.append(("Reader", _reader(found["context"])))
    facts(pairs)


def _page_link(url: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(make_page_address(url), url)


def _reader(context: Json) -> str:
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
        noun, thing_id, names.get(thing_id, short_id(thing_id))
    )


def _chart(found: Json, bids: Sequence[Json]) -> None:
    labels = [found["names"].get(bid["adId"], "another account's") for bid in bids]
    series = [Series(name="eCPM", values=[bid["ecpm"] for bid in bids], kind="bar", colour=2)]
    for name, value, colour in (("Price", found["finalPrice"], 1), ("Floor", found["floorCpm"], 6)):
        if value is not None:
            series.append(Series(name=name, values=[value] * len(bids), is_dashed=True, colour=colour))
    Chart(labels, series, description="eCPM of the bids")
