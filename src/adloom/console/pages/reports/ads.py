"""Statistics of external ad accounts: campaigns, ad sets, ads and sell pages; and a manual sync."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final
from urllib.parse import urlencode

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError
from adloom.console.components import format as fmt
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.forms.fields import add_day_field
from adloom.console.components.layout import (
    Tile,
    add_card,
    add_div,
    add_empty_state,
    add_heading,
    add_html,
    add_link_button,
    add_notice,
    add_view_links,
    build_badge,
    build_meter,
)
from adloom.console.components.messages import download_sheet, notify_error, notify_success, open_dialog
from adloom.console.components.table import Column, DataTable, make_number_column
from adloom.console.guide import GUIDE
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.reports.question import add_period_field, paginate, parse_query
from adloom.console.shell import ADVERTISER_SIDE
from adloom.core.caller import Role

LEVELS: Final = {"campaigns": "Campaigns", "adsets": "Ad sets", "ads": "Ads", "sellpages": "Sell pages"}
STATUSES: Final = {"ACTIVE": "Active", "PAUSED": "Paused", "ARCHIVED": "Archived"}
SPEND_AND_ROAS: Final = "Spend, and what came back of it"

ADDRESS: Final = "/console/reports/ads"
REPORTS: Final = "/api/ads-manager/reports"
LISTED_MAX: Final = 100
CHARTED_MAX: Final = 10
CHECKED_MAX: Final = 20  # Advertisers checked for ad accounts; further ones are chosen by hand.
DEEPER: Final = {"campaigns": ("adsets", "campaignId"), "adsets": ("ads", "adsetId")}
STATUS_KINDS: Final = {"ACTIVE": "good", "PAUSED": "warn", "ARCHIVED": ""}
MANAGER: Final = "/api/ads-manager"
POLL_SECONDS: Final = 0.7
SAID_SECONDS: Final = 1.5  # Time to read the message before the page reloads.
JOB_LEVELS: Final = {"CAMPAIGN": "campaigns", "ADSET": "adsets", "AD": "ads"}


class AdsQuery:
    """The filters in the address."""

    def __init__(self, query: Mapping[str, str], *, today: date, seller: str | None) -> None:
        days = parse_query(query, today=today)
        self.first, self.last = days.first, days.last
        level = query.get("level", "")
        self.level = level if level in LEVELS else "campaigns"
        self.seller = seller
        self.parents = {name: query[name] for name in ("campaignId", "adsetId") if query.get(name)}

    @property
    def is_of_pages(self) -> bool:
        """Whether it is about sell pages, which have other figures."""
        return self.level == "sellpages"

    @property
    def spend_field(self) -> str:
        return "adSpend" if self.is_of_pages else "spend"

    def query(self, **more: object) -> dict[str, object]:
        parents = {} if self.is_of_pages else self.parents
        return {"dateFrom": self.first, "dateTo": self.last, "sellerId": self.seller, **parents, **more}

    def build_address(self, **changes: object) -> str:
        """Return the address with some changes; None removes a parameter."""
        asked: dict[str, object] = {
            "sellerId": self.seller, "level": self.level, "from": self.first, "to": self.last, **self.parents, **changes,
        }  # fmt: skip
        return f"{ADDRESS}?{urlencode({name: value for name, value in asked.items() if value})}"


@register_page(ADDRESS, title="Stats sync", roles=ADVERTISER_SIDE)
async def show_ads(visit: PageVisit) -> None:
    is_own = visit.role is Role.ADVERTISER
    sellers = [] if is_own else await _read_sellers(visit)
    seller = None if is_own else visit.query.get("sellerId") or (sellers[0]["id"] if sellers else None)
    asked = AdsQuery(visit.query, today=visit.today, seller=seller)
    with add_heading(
        await _write_title(visit, asked),
        note="What ad accounts elsewhere have cost and brought, day by day.",
        crumbs=_list_crumbs(asked),
    ):
        if is_own:  # Those of the house are in the menu.
            add_link_button("Jobs", "/console/jobs?queue=stats-sync", look="flat")
        if is_own or seller:
            ui.button("Download CSV", icon="download", on_click=lambda: _download(visit, asked)).props(
                "outline"
            )
            if visit.may_write:
                ui.button("Sync now", icon="sync", on_click=lambda: ask_sync(visit, asked.query())).props(
                    "unelevated"
                )
    if not is_own and seller is None:
        add_empty_state(
            "storefront", strings.NO_ADVERTISERS, "A seller is an advertiser with ad accounts elsewhere. Make an advertiser first.", action=strings.TO_ADVERTISERS, href="/console/advertisers"
        )  # fmt: skip
        return
    _show_controls(asked, sellers, visit.today)
    add_view_links(
        [
            (label, asked.build_address(level=level, campaignId=None, adsetId=None))
            for level, label in LEVELS.items()
        ],
        current=asked.build_address(campaignId=None, adsetId=None),
        label="Levels",
    )
    await _report(visit, asked)


async def _read_sellers(visit: PageVisit) -> list[Json]:
    """List advertisers, the first one that has ad accounts first."""
    listed: list[Json] = await visit.api.get_items("/admin/advertisers", pageSize=LISTED_MAX, sort="name")
    if visit.query.get("sellerId"):
        return listed
    for one in listed[:CHECKED_MAX]:
        accounts = await visit.api.get("/api/ads-manager/accounts", sellerId=one["id"], pageSize=1)
        if accounts["totalCount"]:
            return [one, *(other for other in listed if other is not one)]
    return listed


async def _write_title(visit: PageVisit, asked: AdsQuery) -> str:
    """Return the name of the campaign or ad set, or the title of the page."""
    for name, noun in (("adsetId", "adsets"), ("campaignId", "campaigns")):
        if name in asked.parents and (asked.seller or visit.role is Role.ADVERTISER):
            path = f"/api/ads-manager/{noun}/{asked.parents[name]}"
            return (await visit.api.get(path, sellerId=asked.seller))["name"]
    return "Stats sync"


def _list_crumbs(asked: AdsQuery) -> list[tuple[str, str]]:
    if not asked.parents:
        return []
    crumbs = [(LEVELS["campaigns"], asked.build_address(level="campaigns", campaignId=None, adsetId=None))]
    if "adsetId" in asked.parents:
        crumbs.append((LEVELS["adsets"], asked.build_address(level="adsets", adsetId=None)))
    return crumbs


def _show_controls(asked: AdsQuery, sellers: Sequence[Json], today: date) -> None:
    with add_div("al-bar"):
        if sellers:
            names = {one["id"]: one["name"] for one in sellers}
            ui.select(names, label="Seller", value=asked.seller, with_input=True).props(
                'outlined dense options-dense data-field="seller"'
            ).on_value_change(
                lambda event: ui.navigate.to(
                    asked.build_address(sellerId=event.value, campaignId=None, adsetId=None)
                )
            )
        add_period_field(
            (asked.first, asked.last), today, lambda days: ui.navigate.to(asked.build_address(**days))
        )
        add_day_field(
            "from", "From", asked.first, lambda day: ui.navigate.to(asked.build_address(**{"from": day}))
        )
        add_day_field("to", "To", asked.last, lambda day: ui.navigate.to(asked.build_address(to=day)))


async def _report(visit: PageVisit, asked: AdsQuery) -> None:
    try:
        answer = await visit.api.get(f"{REPORTS}/{asked.level}", **asked.query())
    except ProblemError as error:
        add_notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    rows: list[Json] = answer["rows"]
    if not rows:
        add_empty_state(
            "sync",
            "No statistics of these days",
            "Sync them now, or add an ad account with campaigns for this seller: the guide says how.",
            action="How to add one",
            href=f"{GUIDE}/stats-sync",
        )
        return
    _show_totals(answer["summary"], asked)
    _show_chart(rows, asked)

    async def read(query: Mapping[str, str]) -> Json:
        narrowed = {name: query.get(name) for name in ("search", "status", "sort")}
        found = await visit.api.get(f"{REPORTS}/{asked.level}", **asked.query(**narrowed))
        return paginate(found["rows"], query)

    deeper = DEEPER.get(asked.level)
    table = DataTable(
        visit.query,
        _build_columns(asked),
        read,
        href=(lambda row: asked.build_address(level=deeper[0], **{deeper[1]: row["id"]})) if deeper else None,
        sort=f"-{asked.spend_field}",
    )
    table.search("Search names")
    if not asked.is_of_pages:
        table.filter("status", "Status", STATUSES)
    await table.show()


def _show_totals(summary: Json, asked: AdsQuery) -> None:
    currency = summary["currency"] or "several currencies"
    with add_div("grid-of tiles"):
        Tile("Spend").update(_write_money(summary[asked.spend_field]), note=currency)
        Tile("Impressions").update(fmt.format_count(summary["impressions"]))
        Tile("Link clicks").update(
            fmt.format_count(summary["linkClicks"]), note=fmt.format_percent(summary["ctr"])
        )
        Tile("Purchases").update(
            fmt.format_count(summary["purchases"]), note=_write_money(summary["purchaseValue"])
        )
        Tile("ROAS").update(_write_money(summary["roas"]))
        if asked.is_of_pages:
            Tile("Revenue").update(_write_money(summary["revenue"]))


def _show_chart(rows: Sequence[Json], asked: AdsQuery) -> None:
    field = asked.spend_field
    top = sorted(rows, key=lambda row: -(row[field] or 0))[:CHARTED_MAX]
    with add_card(SPEND_AND_ROAS):
        Chart(
            [_write_label(row) for row in top],
            [
                # Not as money: it is in the currency of the ad account, not in that of the installation.
                Series(name="Spend", values=[row[field] for row in top], kind="bar"),
                Series(name="ROAS", values=[row["roas"] for row in top], kind="bar", axis=1),
            ],
            description=SPEND_AND_ROAS,
        )


def _write_label(row: Json) -> str:
    source = row.get("adSource")
    return f"{row['name']} ({source.lower()})" if source else row["name"]


def _build_columns(asked: AdsQuery) -> list[Column]:
    first = [Column("Name", "name", sort="name")]
    if asked.is_of_pages:
        first.append(Column("Source", lambda row: row["adSource"] or strings.NONE, is_wide_only=True))
    else:
        first.append(
            Column(
                "Status",
                lambda row: build_badge(STATUSES[row["status"]].lower(), STATUS_KINDS[row["status"]]),
                is_wide_only=True,
            )
        )
    figures = [
        make_number_column("Spend", asked.spend_field, _write_money, is_sorted=True),
        make_number_column("Impressions", "impressions", is_sorted=True, is_wide_only=True),
        make_number_column("Link clicks", "linkClicks", is_sorted=True, is_wide_only=True),
        make_number_column("CTR", "ctr", fmt.format_percent, is_sorted=True, is_wide_only=True),
        make_number_column("Purchases", "purchases", is_sorted=True),
        make_number_column(
            "Per purchase", "costPerPurchase", _write_money, is_sorted=True, is_wide_only=True
        ),
        make_number_column("ROAS", "roas", _write_money, is_sorted=True),
    ]
    pages = [
        make_number_column("Orders", "ordersCount", is_sorted=True, is_wide_only=True),
        make_number_column("Revenue", "revenue", _write_money, is_sorted=True, is_wide_only=True),
        make_number_column("Bought of clicks", "cr2", fmt.format_percent, is_sorted=True, is_wide_only=True),
    ]
    return [*first, *figures, *(pages if asked.is_of_pages else ())]


async def _download(visit: PageVisit, asked: AdsQuery) -> None:
    text = await visit.api.get_text(f"{REPORTS}/{asked.level}", **asked.query(format="csv"))
    download_sheet(text, f"adloom-{asked.level}-{asked.first}-to-{asked.last}.csv")


def _write_money(amount: float | None) -> str:
    return strings.NONE if amount is None else f"{amount:,.2f}"


def ask_sync(visit: PageVisit, asked: Json) -> None:
    with open_dialog("Sync these days") as dialog:
        ui.label(f"The days {asked['dateFrom']} to {asked['dateTo']} are fetched again, one job per level.")
        progress = add_html("").classes("stack tight")

        async def start() -> None:
            button.disable()
            body = {name: str(asked[name]) for name in ("sellerId", "dateFrom", "dateTo") if asked[name]}
            answer = await visit.api.post(f"{MANAGER}/sync", body)
            notify_success(
                f"{answer['enqueued']} jobs are started." if answer["enqueued"] else "They run already."
            )
            with dialog:
                timer = ui.timer(POLL_SECONDS, lambda: poll(answer["jobIds"], timer))

        async def poll(job_ids: list[str], timer: ui.timer) -> None:
            jobs = [
                await visit.api.get(f"{MANAGER}/jobs/{one}", sellerId=asked["sellerId"]) for one in job_ids
            ]
            progress.content = "".join(_write_line(job) for job in jobs)
            if any(job["state"] in {"waiting", "active"} for job in jobs):
                return
            timer.deactivate()
            failed = next((job for job in jobs if job["state"] == "failed"), None)
            if failed is not None:
                notify_error(f"A job has failed: {failed['error'] or ''}")
                return
            notify_success("Synced. The figures are new.")
            with dialog:
                ui.timer(SAID_SECONDS, ui.navigate.reload, once=True)

        with add_div("al-actions"):
            ui.button("Close", on_click=dialog.close).props("flat")
            ui.button("To the jobs").props('flat href="/console/jobs?queue=stats-sync"')
            button = ui.button("Sync now", on_click=start).props("unelevated")


def _write_line(job: Json) -> str:
    share = 1.0 if job["state"] == "completed" else job["progress"]
    kind = {"completed": "good", "failed": "bad"}.get(job["state"], "")
    label = LEVELS[JOB_LEVELS[job["level"]]]
    return f'<div class="row-of apart small"><span>{label}</span><span class="quiet">{job["state"]}</span></div>{build_meter(share, kind)}'
