"""The first page: live figures, charts over time, and what needs attention."""

from collections import deque
from datetime import UTC
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError, fetch_all
from adloom.console.components.charts.chart import Series
from adloom.console.components.charts.svg_chart import SvgChart
from adloom.console.components.format import (
    format_ago,
    format_count,
    format_duration,
    format_moment,
    format_money,
    format_percent,
    format_quantity,
    format_rate,
)
from adloom.console.components.layout import (
    Tile,
    add_card,
    add_div,
    add_empty_state,
    add_heading,
    add_html,
    add_link_button,
    add_notice,
)
from adloom.console.page import PageVisit, refresh_every, register_page
from adloom.console.pages.campaigns.campaign_list import show_own_campaigns
from adloom.console.pages.first_campaign.steps import find_sample_placement
from adloom.console.shell import ADVERTISER_SIDE, EVERYBODY, PUBLISHER_SIDE, STAFF
from adloom.core.caller import Role
from adloom.schedule.schedule import find_zone

FIRST_CAMPAIGN: Final = "Create my first campaign"
SPANS: Final = {"today": "Today", "24h": "24 hours", "7d": "7 days"}

REFRESH_SECONDS: Final = 2.0
# Sums over days are refreshed with every fifth tick only.
SLOW_EVERY: Final = 5
DAY_SECONDS: Final = 86_400
REMEMBERED: Final = 60
LAG_SECONDS_GOOD: Final = 10.0
UNAVAILABLE: Final = 503
SITES_MAX: Final = 10  # With the most ads that wait.
NOW: Final = ("requests", "fill", "latency", "lag")  # Figures that only Valkey has.
# Label, hint, and who sees it.
TILES: Final = {
    "requests": (
        "Requests",
        "Requests for ads a second, of all delivery processes; the line is the last hour by minute.",
        STAFF,
    ),
    "fill": ("Fill", "The share of requests that got an ad.", STAFF),
    "impressions": ("Impressions", "", EVERYBODY),
    "ctr": ("CTR", "", EVERYBODY),
    "spend": ("Spend", "All charges, by the moment of each.", ADVERTISER_SIDE),
    "revenue": ("Revenue", "Charges to advertisers, without house campaigns.", PUBLISHER_SIDE),
    "latency": (
        "Serve latency",
        "From a whole request to its answer: the median of the slowest delivery process.",
        STAFF,
    ),
    "lag": ("Ledger lag", "How old the oldest event is that is not counted yet.", STAFF),
}
WAYS: Final = {
    "campaign": "/console/campaigns/{id}",
    "banner": "/console/banners/{id}",
    "site": "/console/sites/{id}",
    "adAccount": "/console/reports/ads",
}
HOUSE_WAYS: Final = {"ledger": "System", "processes": "System", "jobs": "Jobs", "unknownSlugs": "Placements"}


@register_page("/console", title="Overview")
async def show_overview(visit: PageVisit) -> None:
    """Show the figures; an advertiser or publisher sees its own."""
    span = visit.query.get("span", "today")
    span = span if span in SPANS else "today"
    with add_heading("Overview"):
        live = ui.label("live").classes("al-live")
        choice = ui.toggle(SPANS, value=span).props('no-caps aria-label="How far back"')
    choice.on_value_change(lambda event: ui.navigate.to(f"/console?span={event.value}"))
    if visit.is_admin or visit.role is Role.PUBLISHER:
        await _invite(visit)
    figures = OverviewFigures(visit, span)
    with add_div("grid-of four" if visit.role in STAFF else "grid-of tiles"):
        figures.build_tiles()
    if visit.role is Role.ADVERTISER:
        await show_own_campaigns(visit)
    with add_div("grid-of side"):
        main = add_div("stack")
        with add_card("What needs attention"):
            attention = AttentionList(visit)
    below = add_div("grid-of two")
    await figures.build_charts(main, below)
    await attention.refresh()
    live.set_visibility(await figures.refresh_now())
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        ticks += 1
        live.set_visibility(await figures.refresh_now())
        if ticks % SLOW_EVERY == 0:
            await figures.refresh_span()
            await attention.refresh()

    refresh_every(REFRESH_SECONDS, tick)


async def _invite(visit: PageVisit) -> None:
    """Show where to start if there is no campaign but the sample's; for a publisher, no placement."""
    is_publisher = visit.role is Role.PUBLISHER
    found = await visit.api.get("/admin/placements" if is_publisher else "/admin/campaigns", pageSize=1)
    if found["totalCount"]:
        if not is_publisher:
            await _point_to_free_place(visit)
        return
    with add_card():
        if is_publisher:
            add_empty_state(
                "view_quilt",
                "You have no placement yet",
                "A placement is where ads appear on a page. Make one, and put its two lines on the page.",
                action="New placement",
                href="/console/placements/new",
            )
        else:
            add_empty_state(
                "auto_awesome",
                "Nothing is shown yet",
                "An ad needs a placement, a banner and a campaign. “My first campaign” asks for them in four steps.",
                action=FIRST_CAMPAIGN,
                href="/console/first-campaign",
            )


async def _point_to_free_place(visit: PageVisit) -> None:
    """Point to the guided campaign while the place that the sample keeps free is empty."""
    place = await find_sample_placement(visit.api)
    if place is None:
        return
    taken = await visit.api.get("/admin/assignments", placementId=place["id"], pageSize=1)
    if not taken["totalCount"]:
        with add_notice("The sample's front page keeps a place free for your first ad."):
            add_link_button(FIRST_CAMPAIGN, "/console/first-campaign")


class OverviewFigures:
    """The tiles and charts of the overview, and their refresh."""

    def __init__(self, visit: PageVisit, span: str) -> None:
        self._visit = visit
        self._span = span
        self._is_house = visit.role in STAFF
        self._tiles: dict[str, Tile] = {}
        self._charts: dict[str, SvgChart] = {}
        self._latencies: deque[float | None] = deque(maxlen=REMEMBERED)
        self._lags: deque[float | None] = deque(maxlen=REMEMBERED)

    def build_tiles(self) -> None:
        self._tiles = {
            name: Tile(label, hint=hint)
            for name, (label, hint, roles) in TILES.items()
            if self._visit.role in roles
        }

    async def build_charts(self, main: ui.element, below: ui.element) -> None:
        """Draw the charts of the span: the first in the middle, the others below."""
        answer = await self._read_span()
        note = f"by {'day' if _is_of_days(answer) else 'hour'}, {answer['timeZone']}"
        for index, (name, title, series) in enumerate(self._list_charts(answer)):
            with below if index else main, add_card(title, note=note):
                self._charts[name] = SvgChart(self._list_labels(answer), series, description=title)
        self._show_span(answer)

    async def refresh_span(self) -> None:
        answer = await self._read_span()
        for name, _, series in self._list_charts(answer):
            self._charts[name].update(self._list_labels(answer), series)
        self._show_span(answer)

    async def refresh_now(self) -> bool:
        """Refresh the figures that only exist for the present; return whether they are known."""
        if not self._is_house:
            return True
        try:
            await self._refresh_traffic()
            await self._refresh_lag()
        except ProblemError as error:
            if error.status != UNAVAILABLE:
                raise
            # The other figures are in the database; what needs attention says what does not answer.
            for name in NOW:
                self._tiles[name].update(strings.NONE, note="not known now", kind="warn")
            return False
        return True

    async def _refresh_traffic(self) -> None:
        traffic = await self._visit.api.get("/admin/system/traffic")
        minutes = traffic["minutes"]
        self._tiles["requests"].update(
            format_rate(traffic["requestsPerSecond"]),
            note="a second, now",
            values=[one["requests"] for one in minutes],
        )
        self._tiles["fill"].update(
            format_percent(traffic["fill"], places=1),
            note="of the last hour",
            values=[one["filled"] / one["requests"] if one["requests"] else None for one in minutes],
        )
        self._tiles["latency"].update(
            format_duration(traffic["p50Seconds"]),
            note=f"99% under {format_duration(traffic['p99Seconds'])}",
            values=_remember(self._latencies, traffic["p50Seconds"]),
        )

    async def _refresh_lag(self) -> None:
        ledger = await self._visit.api.get("/admin/system/ledger")
        seconds = max((one["behindSeconds"] for one in ledger["projections"]), default=0.0)
        entries = max((one["behindEntries"] for one in ledger["projections"]), default=0)
        self._tiles["lag"].update(
            format_duration(seconds) if seconds else "none",
            note=f"{format_quantity(entries, 'event')} to count",
            values=_remember(self._lags, seconds),
            kind="warn" if seconds > LAG_SECONDS_GOOD else "",
        )

    async def _read_span(self) -> Json:
        return await self._visit.api.get(
            "/admin/overview", span=self._span, timeZone=self._visit.choose_zone(None)
        )

    def _show_span(self, answer: Json) -> None:
        totals, points = answer["totals"], answer["points"]
        span = SPANS[self._span].lower()
        self._tiles["impressions"].update(
            format_count(totals["impressions"]), note=span, values=[one["impressions"] for one in points]
        )
        self._tiles["ctr"].update(
            format_percent(totals["ctr"]),
            note=format_quantity(totals["clicks"], "click"),
            values=[one["ctr"] for one in points],
        )
        for name, field in (("spend", "spendPaisa"), ("revenue", "revenuePaisa")):
            if name in self._tiles:
                self._tiles[name].update(
                    format_money(totals[field]), note=span, values=[one[field] for one in points]
                )

    def _list_labels(self, answer: Json) -> list[str]:
        """Name hours and days as the person's clock and calendar have them."""
        zone = find_zone(answer["timeZone"]) or UTC
        begins = [at.astimezone(zone) for one in answer["points"] if (at := format_moment(one["beginsAt"]))]
        return [at.strftime("%a %d" if _is_of_days(answer) else "%H:%M") for at in begins]

    def _list_charts(self, answer: Json) -> list[tuple[str, str, list[Series]]]:
        points = answer["points"]

        def list_values(field: str) -> list[float | None]:
            return [one[field] for one in points]

        impressions = Series(
            name="Impressions",
            values=list_values("impressions"),
            has_area=True,
            colour=1,
            is_last_unfinished=True,
        )
        ctr = Series(name="CTR", values=list_values("ctr"), unit="percent", colour=3)
        spend = Series(name="Spend", values=list_values("spendPaisa"), kind="bar", unit="money", colour=1)
        revenue = Series(
            name="Revenue", values=list_values("revenuePaisa"), kind="bar", unit="money", colour=2
        )
        clicks = Series(
            name="Clicks", values=list_values("clicks"), axis=1, colour=4, is_last_unfinished=True
        )
        if self._is_house:
            requests = Series(
                name="Requests", values=list_values("requests"), colour=2, is_last_unfinished=True
            )
            fill = Series(name="Fill", values=list_values("fill"), unit="percent", axis=1, colour=2)
            return [
                ("traffic", "Requests and impressions", [impressions, requests]),
                ("money", "Money", [spend, revenue]),
                ("rates", "Rates", [ctr, fill]),
            ]
        return [
            ("counts", "Impressions and clicks", [impressions, clicks]),
            ("money", "Money", [revenue if self._visit.role is Role.PUBLISHER else spend]),
        ]


def _remember(history: deque[float | None], value: float | None) -> list[float | None]:
    """Keep a figure that the API has no history of, for the sparkline of this page."""
    history.append(value)
    return list(history)


def _is_of_days(answer: Json) -> bool:
    return answer["stepSeconds"] == DAY_SECONDS


async def _list_decisions(visit: PageVisit) -> list[Markup]:
    """List what waits for a publisher's word."""
    asked, sites = await fetch_all(
        [
            visit.api.get("/admin/links", state="requested", pageSize=1),
            visit.api.get("/admin/approvals", pageSize=SITES_MAX),
        ]
    )
    told = [
        Markup('<a href="/console/sites/{}?tab=approvals">{}</a> {}').format(
            site["siteId"],
            site["name"],
            f"has {format_quantity(site['pending'], 'ad')} to approve or reject.",
        )
        for site in sites["items"]
        if site["pending"]
    ]
    if count := asked["totalCount"]:
        said = f"{format_quantity(count, 'request')} for your placements to accept or refuse:"
        told.insert(0, Markup('{} <a href="/console/requests">Requests</a>').format(said))
    return [Markup('<div class="al-look is-info"><i></i><span>{}</span></div>').format(one) for one in told]


class AttentionList:
    """The list of what needs attention."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._list = add_html("").classes("al-list")
        self._nothing = ui.element("div")
        with self._nothing:
            add_empty_state("task_alt", "Nothing needs your attention.", "")
        self._nothing.set_visibility(False)  # Until that is known.

    async def refresh(self) -> None:
        answer = await self._visit.api.get("/admin/attention")
        items: list[Json] = answer["items"]
        shown = [self._build_item(item) for item in items]
        if self._visit.role is Role.PUBLISHER:
            shown += await _list_decisions(self._visit)
        for kind, total in answer["counts"].items():
            hidden = total - sum(item["kind"] == kind for item in items)
            if hidden > 0:
                more = f"and {hidden} more of this kind"
                shown.append(Markup('<div class="quiet small">{}</div>').format(more))
        content = Markup("").join(shown)
        if self._list.content != content:
            self._list.content = content
        self._list.set_visibility(bool(shown))
        self._nothing.set_visibility(not shown)

    def _build_item(self, item: Json) -> Markup:
        about, rest = Markup(""), item["message"]
        if item["name"] is not None:
            href = WAYS.get(item["noun"], "").format(id=item["id"])
            about = Markup('<a href="{}">{}</a> ').format(href, item["name"])
            if item["kind"] == "expiring":
                rest = Markup("{} {}").format("ends", format_ago(item["at"], now=self._visit.now))
        elif item["kind"] in HOUSE_WAYS:
            page_name = HOUSE_WAYS[item["kind"]]
            rest = Markup('{} <a href="/console/{}">{}</a>').format(rest, page_name.lower(), page_name)
        return Markup('<div class="al-look is-{}"><i></i><span>{}{}</span></div>').format(
            item["level"], about, rest
        )
