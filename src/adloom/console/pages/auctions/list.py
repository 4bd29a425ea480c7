"""Auctions: totals, price against eCPM, and the latest ones, live."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, fetch_all, fetch_names
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import shares
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.charts.scatter import Point, Scatter
from adloom.console.components.layout import Tile, card, empty_state, heading, meter
from adloom.console.components.live import refresh_every
from adloom.console.components.table import Column, DataTable
from adloom.console.page import PageVisit, page
from adloom.console.pages.why.candidates import amount
from adloom.console.shell import BUYERS
from adloom.core.actor import Role

PERIODS: Final = {"1": "Last hour", "24": "Last 24 hours", "168": "Last 7 days"}

ADDRESS: Final = "/console/auctions"
AUCTIONS: Final = "/api/v1/admin/auctions"
HOURS_DEFAULT: Final = "24"
REFRESH_SECONDS: Final = 2.0
PICTURE_SECONDS: Final = 10.0
POINTS_PAGES: Final = 3
POINTS_A_PAGE: Final = 100
PARTS_MAX: Final = 8
HOUR: Final = timedelta(hours=1)


class AuctionQuery:
    """The filters of the page, and the names of campaigns it has read."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        asked = visit.query.get("hours", HOURS_DEFAULT)
        self.hours = asked if asked in PERIODS else HOURS_DEFAULT
        self.type = visit.query.get("type") or None
        self._names: dict[str, str] = {}

    @property
    def query(self) -> dict[str, object]:
        since = self._visit.now - int(self.hours) * HOUR
        return {"startDate": f"{since:%Y-%m-%dT%H:%M:%SZ}", "placementType": self.type}

    @property
    def every_hour(self) -> list[datetime]:
        """All hours of the period, with or without auctions."""
        last = self._visit.now.replace(minute=0, second=0, microsecond=0)
        return [last - number * HOUR for number in range(int(self.hours), -1, -1)]

    def address(self, **changes: str | None) -> str:
        asked = {"hours": self.hours, "type": self.type, **changes}
        return f"{ADDRESS}?{urlencode({name: value for name, value in asked.items() if value})}"

    async def read(self, part: str, **more: object) -> Json:
        return await self._visit.api.get(f"{AUCTIONS}{part}", **{**self.query, **more})

    async def page(self, query: Mapping[str, str]) -> Json:
        known = {name: value for name, value in query.items() if name in {"page", "pageSize", "sort"}}
        answer = await self.read("", **known)
        await self.learn_names(row["winningCampaignId"] for row in answer["items"])
        return answer

    async def learn_names(self, campaign_ids: Iterable[str | None]) -> None:
        new = [one for one in campaign_ids if one and one not in self._names]
        self._names |= await fetch_names(self._visit.api, "campaign", new)

    def name(self, campaign_id: str | None) -> str:
        if campaign_id is not None:
            return self._names.get(campaign_id, "")
        return "somebody else" if self._visit.role is Role.ADVERTISER else "nobody"


@page(ADDRESS, title="Auctions", roles=BUYERS)
async def auctions(visit: PageVisit) -> None:
    market = AuctionQuery(visit)
    heading(
        "Auctions",
        note=(
            "Every auction is recorded for some days and appears here within seconds. Prices are per thousand impressions."
        ),
    )
    total = await market.read("/statistics")
    await _controls(market)
    if not total["totalAuctions"]:
        empty_state(
            "gavel",
            "No auctions yet",
            (
                "Each request for a placement with delivery “auction” starts one, if campaigns bid on it. Choose a longer period to see older ones."
            ),
            action="To the placements",
            href="/console/placements",
        )
        return
    _tiles(market, total, is_own=visit.role is Role.ADVERTISER)
    await _pictures(market)
    with ui.element("div").classes("row-of apart"):
        ui.html("<h2>The last auctions</h2>", sanitize=False)
        ui.label("refreshes automatically").classes("quiet small")
    table = DataTable(
        visit.query,
        [
            Column("Held", lambda row: fmt.ago(row["auctionTime"], now=visit.now), sort="auctionTime"),
            Column("Placement type", "placementType", is_wide_only=True),
            Column("Winner", lambda row: market.name(row["winningCampaignId"])),
            Column("Bids", lambda row: str(row["bidCount"]), is_number=True, is_wide_only=True),
            Column("Price", lambda row: amount(row["finalPrice"], places=4), is_number=True),
            Column(strings.WINNER_ECPM, lambda row: amount(row["winningeCPM"], places=4), is_number=True, is_wide_only=True),
            Column("Price of eCPM", _share, is_wide_only=True),
        ],
        market.page,
        href=lambda row: f"{ADDRESS}/{row['id']}",
        sort="-auctionTime",
    )  # fmt: skip
    await table.show()
    refresh_every(REFRESH_SECONDS, table.show)


def _share(row: Json) -> Markup:
    if not row["winningeCPM"]:
        return Markup("")
    return meter(row["finalPrice"] / row["winningeCPM"])


async def _controls(market: AuctionQuery) -> None:
    types = await market.read("/statistics/breakdown", groupBy="placementType", placementType=None)
    with ui.element("div").classes("al-bar"):
        ui.select(PERIODS, label="Period", value=market.hours).props(
            "outlined dense options-dense"
        ).on_value_change(lambda event: ui.navigate.to(market.address(hours=event.value)))
        names = [one["placementType"] for one in types["items"]]
        known = names if market.type is None or market.type in names else [*names, market.type]
        ui.select(known, label="Placement type", value=market.type, clearable=True).props(
            'outlined dense options-dense data-field="type"'
        ).style("min-width: 12rem").on_value_change(
            lambda event: ui.navigate.to(market.address(type=event.value))
        )


def _tiles(market: AuctionQuery, total: Json, *, is_own: bool) -> None:
    with ui.element("div").classes("grid-of tiles"):
        labels = ("Auctions", "Won by you" if is_own else "With a winner", "Average eCPM", "Bids")
        tiles = [Tile(label) for label in labels]

    def tell(total: Json) -> None:
        count = total["totalAuctions"]
        tiles[0].update(fmt.count(count))
        tiles[1].update(fmt.percent(total["averageWinRate"] / 100, places=1))
        tiles[2].update(amount(total["averageeCPM"]), note="of the winners")
        each = f"{total['totalBidsPlaced'] / count:.1f}" if count else "0"
        tiles[3].update(fmt.count(total["totalBidsPlaced"]), note=f"{each} in an auction")

    async def refresh() -> None:
        tell(await market.read("/statistics"))

    tell(total)
    refresh_every(REFRESH_SECONDS, refresh)


async def _pictures(market: AuctionQuery) -> None:
    points = await _points(market)
    count = sum(map(len, points.values()))
    with ui.element("div").classes("grid-of two"):
        with card("Price against eCPM", note=f"the last {count}; on the line nothing was saved"):
            scatter = Scatter(
                points, across=strings.WINNER_ECPM, up="Price", description="Price against eCPM"
            )
        with card("Auctions by hour"):
            hours = Chart(*await _by_hour(market), classes="tall", description="Auctions by hour")
        with card("Win rate by campaign"):
            campaigns = ui.html(await _by_campaign(market), sanitize=False)
        with card("Win rate by placement type"):
            types = ui.html(await _by_type(market), sanitize=False)

    async def refresh() -> None:
        scatter.update(await _points(market))
        hours.update(*await _by_hour(market))
        campaigns.content = await _by_campaign(market)
        types.content = await _by_type(market)

    refresh_every(PICTURE_SECONDS, refresh)


async def _points(market: AuctionQuery) -> dict[str, list[Point]]:
    pages = await fetch_all(
        [market.read("", page=number, pageSize=POINTS_A_PAGE) for number in range(1, POINTS_PAGES + 1)]
    )
    rows = [row for answer in pages for row in answer["items"] if row["winningeCPM"] is not None]
    await market.learn_names(row["winningCampaignId"] for row in rows)
    groups: dict[str, list[Point]] = {}
    for row in rows:
        point = (row["winningeCPM"], row["finalPrice"], market.name(row["winningCampaignId"]))
        groups.setdefault(row["placementType"], []).append(point)
    return dict(sorted(groups.items()))


async def _by_campaign(market: AuctionQuery) -> Markup:
    parts = (await market.read("/statistics/breakdown", groupBy="campaign"))["items"][:PARTS_MAX]
    await market.learn_names(part["campaignId"] for part in parts)
    return shares([(market.name(part["campaignId"]), *_rate(part)) for part in parts])


async def _by_type(market: AuctionQuery) -> Markup:
    parts = (await market.read("/statistics/breakdown", groupBy="placementType"))["items"][:PARTS_MAX]
    return shares([(part["placementType"], *_rate(part)) for part in parts])


def _rate(part: Json) -> tuple[float, str]:
    return part["averageWinRate"] / 100, "of {count} auctions".format(count=f"{part['totalAuctions']:,}")


async def _by_hour(market: AuctionQuery) -> tuple[list[str], list[Series]]:
    answer = await market.read("/statistics/breakdown", groupBy="hour")
    found = {fmt.moment(part["hour"]): part for part in answer["items"]}
    parts = [found.get(hour) for hour in market.every_hour]
    labels = [f"{hour:%m-%d %H:%M}" for hour in market.every_hour]
    held = [part["totalAuctions"] if part else 0 for part in parts]
    rates = [part["averageWinRate"] / 100 if part else None for part in parts]
    return labels, [
        Series(name="Auctions", values=held, kind="bar", colour=2),
        Series(name="Win rate", values=rates, unit="percent", axis=1, colour=1),
    ]
