"""Auctions: totals, price against eCPM, the latest ones live, and one in detail."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, fetch_all, parse_id, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import build_shares
from adloom.console.components.charts.chart import Chart, Point, Series, ThemedChart, build_scatter_options
from adloom.console.components.forms.fields import add_picker
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_heading,
    add_hint,
    add_html,
    add_link_button,
    add_notice,
    add_tiles,
    build_meter,
    set_attributes,
)
from adloom.console.components.table import Column, DataTable, build_plain_table, make_number_column
from adloom.console.page import PageVisit, refresh_every, register_page
from adloom.console.shell import ADVERTISER_SIDE
from adloom.core.caller import Role
from adloom.schedule.schedule import find_zone

OUTCOMES: Final = {"won": "Won", "not_won": "Not won"}
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


async def show_calibration(visit: PageVisit) -> None:
    """Show a table for each way of predicting; nothing before anything was learned."""
    answer = await visit.api.get("/admin/stats/calibration")
    for one in answer["items"]:
        with add_card(f"How well {one['scoring']} scoring predicts clicks"):
            parts = [{**part, "place": place} for place, part in enumerate(one["deciles"], 1)]
            add_html(build_plain_table(CALIBRATION_COLUMNS, parts))
            add_hint(describe(one))


def describe(one: Json) -> str:
    if one["ratio"] is None:
        return "Nobody has clicked yet."
    verdict = "That is far off." if one["isFarOff"] else "That is as good as chance allows to say."
    return (
        f"It predicted {one['ratio']:.2f} clicks for each that came, over the last "
        f"{fmt.format_count(round(one['impressions']))} impressions of auctions. {verdict}"
    )


CALIBRATION_COLUMNS: Final = (
    Column("Part", lambda part: str(part["place"])),
    make_number_column("Predicted CTR", "predictedCtr", fmt.format_percent),
    make_number_column("CTR", "ctr", fmt.format_percent),
    make_number_column("Predicted clicks", "predictedClicks"),
    make_number_column("Clicks", "clicks"),
)


def make_page_address(url: str, slot: str | None = None) -> str:
    """Return the address of the auctions on record of a page, or of one of its slots."""
    asked = {"page_url": f"https://{url}", "placement": slot, "hours": WEEK_HOURS}
    return f"{ADDRESS}?{urlencode({name: value for name, value in asked.items() if value})}"


class AuctionsView:
    """The filters of the page, and the names of campaigns it has read."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self.zone = find_zone(visit.choose_zone(None)) or UTC
        asked = visit.query.get("hours", HOURS_DEFAULT)
        self.hours = asked if asked in PERIODS else HOURS_DEFAULT
        self.type = visit.query.get("type") or None
        self.page_url = visit.query.get("page_url") or None
        self.placement = visit.query.get("placement") or None
        self.campaign = parse_id(visit.query.get("campaign", ""))
        asked_outcome = visit.query.get("outcome")
        self.outcome = asked_outcome if asked_outcome in OUTCOMES else None
        self.total: Json = {}

    @property
    def query(self) -> dict[str, object]:
        since = self._visit.now - int(self.hours) * HOUR
        return {
            "startDate": f"{since:%Y-%m-%dT%H:%M:%SZ}",
            "placementType": self.type,
            "pageUrl": self.page_url,
            "placement": self.placement,
            "campaignId": self.campaign,
            "outcome": self.outcome,
        }

    @property
    def is_filtered(self) -> bool:
        return any((self.type, self.page_url, self.placement, self.campaign, self.outcome))

    @property
    def every_hour(self) -> list[datetime]:
        """All hours of the period, with or without auctions."""
        last = self._visit.now.replace(minute=0, second=0, microsecond=0)
        return [last - number * HOUR for number in range(int(self.hours), -1, -1)]

    def build_address(self, **changes: str | None) -> str:
        asked = {
            "hours": self.hours,
            "type": self.type,
            "page_url": self.page_url,
            "placement": self.placement,
            "campaign": self.campaign,
            "outcome": self.outcome,
            **changes,
        }
        return f"{ADDRESS}?{urlencode({name: value for name, value in asked.items() if value})}"

    async def read(self, part: str, **more: object) -> Json:
        return await self._visit.api.get(f"{AUCTIONS}{part}", **{**self.query, **more})

    async def read_page(self, query: Mapping[str, str]) -> Json:
        known = {name: value for name, value in query.items() if name in {"page", "pageSize", "sort"}}
        return await self.read("", **known)

    async def read_total(self) -> Json:
        """Read the totals, which the last line of the table has too."""
        self.total = await self.read("/statistics")
        return self.total

    def show_total(self, columns: Sequence[Column]) -> list[str]:
        """Return the cells of the line with the totals."""
        total = self.total
        count = total["totalAuctions"]
        wins = round(count * total["averageWinRate"] / 100)
        is_own = self.campaign is not None or self._visit.role is Role.ADVERTISER
        cells = {
            "Held": f"{fmt.format_count(count)} in all",
            "Winner": f"{fmt.format_count(wins)} {'won' if is_own else 'with a winner'}",
            "Bids": fmt.format_count(total["totalBidsPlaced"]),
            strings.WINNER_ECPM: f"{fmt.format_average(total['averageeCPM'])} on average",
        }
        return [cells.get(column.label, "") for column in columns]

    def name_winner(self, row: Json) -> str:
        """Name the campaign that won an auction."""
        campaign_id: str | None = row["winningCampaignId"]
        if campaign_id is not None:
            return row["names"].get(campaign_id, shorten_id(campaign_id))
        return "somebody else" if self._visit.role is Role.ADVERTISER else "nobody"


@register_page(ADDRESS, title="Auctions", roles=ADVERTISER_SIDE)
async def show_auctions(visit: PageVisit) -> None:
    view = AuctionsView(visit)
    add_heading(
        "Auctions",
        note=(
            "Every auction is recorded for some days and appears here within seconds. Prices are per thousand impressions."
        ),
    )
    total = await view.read_total()
    if view.page_url:
        of_slot = f" of the slot {view.placement}" if view.placement else ""
        add_notice(f"Only auctions{of_slot} on {view.page_url.removeprefix('https://')}.")
        add_link_button("All auctions", view.build_address(page_url=None, placement=None))
    await _show_controls(visit, view)
    if not total["totalAuctions"]:
        _show_nothing(visit, view)
        return
    _show_tiles(view, total, is_own=visit.role is Role.ADVERTISER)
    await _show_charts(view)
    with add_div("row-of apart"):
        add_html("<h2>The last auctions</h2>")
        add_hint("refreshes automatically")
    columns = [
        Column("Held", lambda row: fmt.format_ago(row["auctionTime"], now=visit.now), sort="auctionTime"),
        Column("Placement type", "placementType", is_wide_only=True),
        Column("Winner", view.name_winner),
        make_number_column("Bids", "bidCount", str, is_wide_only=True),
        make_number_column("Price", "finalPrice", fmt.format_price),
        make_number_column(strings.WINNER_ECPM, "winningeCPM", fmt.format_price, is_wide_only=True),
        Column("Price of eCPM", _build_price_share, is_wide_only=True),
    ]  # fmt: skip
    table = DataTable(
        visit.query,
        columns,
        view.read_page,
        href=lambda row: f"{ADDRESS}/{row['id']}",
        sort="-auctionTime",
        total=lambda: view.show_total(columns),
    )
    await table.show()
    refresh_every(REFRESH_SECONDS, table.show)
    if visit.role in {Role.ADMIN, Role.VIEWER}:
        await show_calibration(visit)


def _show_nothing(visit: PageVisit, view: AuctionsView) -> None:
    if view.is_filtered:
        add_empty_state(
            "search_off",
            "No auction matches",
            "Change the filters, or choose a longer period.",
            action="Clear the filters",
            href=f"{ADDRESS}?hours={view.hours}",
        )
        return
    is_advertiser = visit.role is Role.ADVERTISER
    add_empty_state(
        "gavel",
        "No auctions yet",
        (
            "Each request for a placement that is filled by auction or by context starts one, if campaigns bid for it. Choose a longer period to see older ones."
        ),
        action="To the campaigns" if is_advertiser else "To the placements",
        href="/console/campaigns" if is_advertiser else "/console/placements",
    )


def _build_price_share(row: Json) -> Markup:
    if not row["winningeCPM"]:
        return Markup("")
    return build_meter(row["finalPrice"] / row["winningeCPM"])


async def _show_controls(visit: PageVisit, view: AuctionsView) -> None:
    types = await view.read("/statistics/breakdown", groupBy="placementType", placementType=None)
    names = [one["placementType"] for one in types["items"]]
    known = names if view.type is None or view.type in names else [*names, view.type]
    # Advertisers do not list placements, but know those that they can ask for.
    places = "/admin/offered-placements" if visit.role is Role.ADVERTISER else "/admin/placements"
    with add_div("al-bar"):
        fields: dict[str, ui.select] = {
            "hours": ui.select(PERIODS, label="Period", value=view.hours),
            "type": ui.select(known, label="Placement type", value=view.type, clearable=True),
            "placement": await add_picker(
                "Placement",
                view.placement,
                api=visit.api,
                path=places,
                is_clearable=True,
                key="slug",
                sort="label",
            ),
            "campaign": await add_picker(
                "Campaign",
                view.campaign,
                api=visit.api,
                path="/admin/campaigns",
                is_clearable=True,
                sort="name",
            ),
            "outcome": ui.select(OUTCOMES, label="Outcome", value=view.outcome, clearable=True),
        }
        for name, field in fields.items():
            set_attributes(field, data_field=name).props("outlined dense options-dense")
            field.style("min-width: 11rem").on_value_change(
                lambda event, name=name: ui.navigate.to(view.build_address(**{name: event.value}))
            )


def _show_tiles(view: AuctionsView, total: Json, *, is_own: bool) -> None:
    tiles = add_tiles("Auctions", "Won by you" if is_own else "With a winner", "Average eCPM", "Bids")

    def update(total: Json) -> None:
        count, bids = total["totalAuctions"], total["totalBidsPlaced"]
        tiles[0].update(fmt.format_count(count))
        tiles[1].update(fmt.format_percent(total["averageWinRate"] / 100, places=1))
        tiles[2].update(fmt.format_average(total["averageeCPM"]), note="of the winners")
        tiles[3].update(fmt.format_count(bids), note=f"{bids / count if count else 0:.1f} in an auction")

    async def refresh() -> None:
        update(await view.read_total())

    update(total)
    refresh_every(REFRESH_SECONDS, refresh)


async def _show_charts(view: AuctionsView) -> None:
    def draw(points: Mapping[str, Sequence[Point]]) -> dict[str, Any]:
        return build_scatter_options(points, across=strings.WINNER_ECPM, up="Price")

    points = await _group_points(view)
    count = sum(map(len, points.values()))
    with add_div("grid-of two"):
        with add_card("Price against eCPM", note=f"the last {count}; on the line nothing was saved"):
            scatter = ThemedChart(draw(points), description="Price against eCPM")
        with add_card("Auctions by hour"):
            hours = Chart(*await _sum_by_hour(view), classes="tall", description="Auctions by hour")
        with add_card("Win rate by campaign"):
            campaigns = add_html(await _build_campaign_table(view))
        with add_card("Win rate by placement type"):
            types = add_html(await _build_type_table(view))

    async def refresh() -> None:
        scatter.redraw(draw(await _group_points(view)))
        hours.update(*await _sum_by_hour(view))
        campaigns.content = await _build_campaign_table(view)
        types.content = await _build_type_table(view)

    refresh_every(PICTURE_SECONDS, refresh)


async def _group_points(view: AuctionsView) -> dict[str, list[Point]]:
    pages = await fetch_all(
        [view.read("", page=number, pageSize=POINTS_A_PAGE) for number in range(1, POINTS_PAGES + 1)]
    )
    rows = [row for answer in pages for row in answer["items"] if row["winningeCPM"] is not None]
    groups: dict[str, list[Point]] = {}
    for row in rows:
        point = (row["winningeCPM"], row["finalPrice"], view.name_winner(row))
        groups.setdefault(row["placementType"], []).append(point)
    return dict(sorted(groups.items()))


async def _build_campaign_table(view: AuctionsView) -> Markup:
    parts = (await view.read("/statistics/breakdown", groupBy="campaign"))["items"][:PARTS_MAX]
    return build_shares(
        [
            (part.get("campaignName") or shorten_id(part["campaignId"]), *_describe_rate(part))
            for part in parts
        ]
    )


async def _build_type_table(view: AuctionsView) -> Markup:
    parts = (await view.read("/statistics/breakdown", groupBy="placementType"))["items"][:PARTS_MAX]
    return build_shares([(part["placementType"], *_describe_rate(part)) for part in parts])


def _describe_rate(part: Json) -> tuple[float, str]:
    return part["averageWinRate"] / 100, f"of {part['totalAuctions']:,} auctions"


async def _sum_by_hour(view: AuctionsView) -> tuple[list[str], list[Series]]:
    answer = await view.read("/statistics/breakdown", groupBy="hour")
    found = {fmt.format_moment(part["hour"]): part for part in answer["items"]}
    parts = [found.get(hour) for hour in view.every_hour]
    labels = [f"{hour.astimezone(view.zone):%m-%d %H:%M}" for hour in view.every_hour]
    held = [part["totalAuctions"] if part else 0 for part in parts]
    rates = [part["averageWinRate"] / 100 if part else None for part in parts]
    return labels, [
        Series(name="Auctions", values=held, kind="bar", colour=2),
        Series(name="Win rate", values=rates, unit="percent", axis=1, colour=1),
    ]
