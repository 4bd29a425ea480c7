"""Reports: costs and results of campaigns, ad sets, ads and sell pages over some days."""

import csv
import io
from collections.abc import AsyncGenerator
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from adloom.sync.figures import ZERO, Figures, compute_ratios
from adloom.sync.pipeline import store
from adloom.sync.reports.model import MONEY, Order, ReportRow, build_entity_report
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.for_each import for_each
from tests.sync.http.seller import API, DAY, Seller, a_seller

LEVELS = {"campaigns": "CAMPAIGN", "adsets": "ADSET", "ads": "AD"}
COUNTS = ("impressions", "linkClicks", "contentViews", "addToCart", "checkoutInitiated", "purchases")
FIGURES = ("spend", *COUNTS, "purchaseValue")
RATIOS = ("cpm", "ctr", "cpc", "costPerPurchase", "roas")
INSERT_DAILY = """
    INSERT INTO sync.ad_stats_daily
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, 0, 0, 0, now(), now())
"""
INSERT_PAGE = """
    INSERT INTO sync.sellpage_stats_daily
    VALUES ($1, $2, $3, 'META', $4, $5, $6, $7, $8, $9, $10, $11, $10, $11, 0, 0, 0, 0, 0, 0, 0, now(), now())
"""


class DailyStats:
    """Writes figures straight into the tables, so that a test knows them."""

    def __init__(self, pool: Pool, seller: Seller) -> None:
        self._pool = pool
        self._seller = seller

    async def write(self, what: str, thing: Json, *figures: float, day: str = DAY) -> None:
        """Write some of the figures, in order; the others are 0."""
        at = date.fromisoformat(day)
        await store.ensure_months(self._pool, [at])
        spend, *counts = [*figures, *[0] * (8 - len(figures))]
        values = (Decimal(str(spend)), *counts[:-1], Decimal(str(counts[-1])))
        entity = UUID(thing["id"])
        if what == "sellpages":
            await self._pool.execute(INSERT_PAGE, self._seller.id, entity, at, *values)
        else:
            await self._pool.execute(INSERT_DAILY, self._seller.id, LEVELS[what], entity, at, *values)


@pytest.fixture
def daily_stats(pool: Pool, seller: Seller) -> DailyStats:
    return DailyStats(pool, seller)


@pytest.fixture
async def viewer(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.VIEWER) as client:
        yield client


@pytest.mark.parametrize("what", LEVELS)
async def test_a_row_has_the_entity_and_its_figures(
    what: str, seller: Seller, daily_stats: DailyStats
) -> None:
    thing = seller.made[what]
    await daily_stats.write(what, thing, 100.1, 10_000, 200, 140, 16, 8, 3, 350.7)

    body = await seller.report(what)

    [row] = body["rows"]
    assert thing.items() <= row.items()
    assert {name: row[name] for name in FIGURES} == dict(
        zip(FIGURES, (100.1, 10_000, 200, 140, 16, 8, 3, 350.7), strict=True)
    )
    assert {name: row[name] for name in RATIOS} == {
        "cpm": 10.01,
        "ctr": 0.02,
        "cpc": 0.5005,
        "costPerPurchase": 33.3667,
        "roas": 3.5035,
    }
    assert (row["currency"], row["timezone"]) == ("USD", "UTC")
    assert body["meta"] == {"dateFrom": DAY, "dateTo": DAY, "level": LEVELS[what], "totalRows": 1}


async def test_days_are_added_up_and_ratios_come_from_the_sums(
    seller: Seller, daily_stats: DailyStats
) -> None:
    campaign = seller.made["campaigns"]
    await daily_stats.write("campaigns", campaign, 10, 1_000, 1, day="2026-01-31")
    await daily_stats.write("campaigns", campaign, 20, 1_000, 99, day="2026-02-01")
    await daily_stats.write("campaigns", campaign, 400, 1_000, 1, day="2026-02-02")

    two = await seller.report("campaigns", dateFrom="2026-01-31", dateTo="2026-02-01")
    none = await seller.report("campaigns", dateFrom="2025-01-01", dateTo="2025-12-31")

    [row] = two["rows"]
    assert (row["spend"], row["impressions"], row["linkClicks"]) == (30, 2_000, 100)
    assert (row["cpm"], row["ctr"], row["cpc"]) == (15, 0.05, 0.3)
    [row] = none["rows"]
    assert {row[name] for name in (*FIGURES, *RATIOS)} == {0}


async def test_the_summary_adds_up_the_rows(seller: Seller, daily_stats: DailyStats) -> None:
    other = await seller.make("campaigns")
    await daily_stats.write("campaigns", seller.made["campaigns"], 10, 1_000, 1, 1, 1, 1, 1, 5)
    await daily_stats.write("campaigns", other, 20.5, 3_000, 79, 2, 2, 2, 1, 0.25)

    body = await seller.report("campaigns")

    summary = body["summary"]
    assert {name: summary[name] for name in FIGURES} == {
        name: sum(row[name] for row in body["rows"]) for name in FIGURES
    }
    assert (summary["ctr"], summary["cpm"], summary["costPerPurchase"]) == (0.02, 7.625, 15.25)
    assert summary["currency"] == "USD"
    assert body["summaries"] == [summary]


async def test_a_seller_without_entities_has_an_empty_report(other_client: Client) -> None:
    empty = Seller(other_client, UNKNOWN_ID)

    for what in (*LEVELS, "sellpages"):
        body = await empty.report(what)

        assert (body["rows"], body["summaries"], body["meta"]["totalRows"]) == ([], [], 0)
        assert body["summary"]["currency"] is None
        assert {value for name, value in body["summary"].items() if name != "currency"} == {0}


async def test_a_report_can_drill_down_from_campaign_to_ads(seller: Seller, daily_stats: DailyStats) -> None:
    campaign = await seller.make("campaigns")
    adsets = [await seller.make("adsets", campaignId=campaign["id"]) for _ in range(2)]
    ads = [await seller.make("ads", adsetId=adset["id"]) for adset in adsets]
    await daily_stats.write("ads", ads[0], 7)

    def ids(body: Json) -> set[str]:
        return {row["id"] for row in body["rows"]}

    assert ids(await seller.report("campaigns")) == {campaign["id"], seller.id_of("campaigns")}
    assert ids(await seller.report("adsets", campaignId=campaign["id"])) == {one["id"] for one in adsets}
    assert ids(await seller.report("ads", campaignId=campaign["id"])) == {one["id"] for one in ads}
    of_one = await seller.report("ads", adsetId=adsets[0]["id"])
    assert ids(of_one) == {ads[0]["id"]}
    assert of_one["summary"]["spend"] == 7
    assert ids(await seller.report("adsets", adsetId=adsets[0]["id"])) == {adsets[0]["id"]}
    assert ids(await seller.report("campaigns", adsetId=adsets[0]["id"])) == {campaign["id"]}
    assert (
        ids(await seller.report("ads", campaignId=seller.id_of("campaigns"), adsetId=adsets[0]["id"]))
        == set()
    )


async def test_rows_can_be_filtered(seller: Seller) -> None:
    page, account = await seller.make("sellpages"), await seller.make("accounts", currency="EUR")
    other = await seller.make(
        "campaigns",
        name="100% Zebra",
        status="PAUSED",
        sellpageId=page["id"],
        adAccountId=account["id"],
        externalCampaignId="x-77",
    )

    for query in (
        {"status": "PAUSED"},
        {"search": "zeBRA"},
        {"search": "0%"},
        {"search": "X-7"},
        {"sellpageId": page["id"]},
        {"adAccountId": account["id"]},
        {"currency": "EUR"},
        {"campaignId": other["id"], "status": "PAUSED"},
    ):
        rows = (await seller.report("campaigns", **query))["rows"]
        assert [row["id"] for row in rows] == [other["id"]], query
    assert (await seller.report("campaigns", status="ARCHIVED"))["rows"] == []


async def test_rows_can_be_sorted_by_any_column(seller: Seller, daily_stats: DailyStats) -> None:
    dear, cheap = await seller.make("campaigns", name="B"), await seller.make("campaigns", name="A")
    none = seller.made["campaigns"]
    await seller.client.patch(seller.path("campaigns"), json={"name": "C"})
    await daily_stats.write("campaigns", dear, 90, 1_000, 10, 0, 0, 0, 1, 90)
    await daily_stats.write("campaigns", cheap, 10, 1_000, 40, 0, 0, 0, 5, 90)

    async def ids(sort: str) -> list[str]:
        return [row["id"] for row in (await seller.report("campaigns", sort=sort))["rows"]]

    by_spend = [dear["id"], cheap["id"], none["id"]]
    assert [row["id"] for row in (await seller.report("campaigns"))["rows"]] == by_spend
    assert await ids("-spend") == by_spend
    assert await ids("spend") == by_spend[::-1]
    assert await ids("-cpc") == [dear["id"], cheap["id"], none["id"]]
    assert await ids("costPerPurchase") == [none["id"], cheap["id"], dear["id"]]
    assert await ids("-roas") == [cheap["id"], dear["id"], none["id"]]
    assert await ids("name") == [cheap["id"], dear["id"], none["id"]]
    for column in (await seller.report("campaigns"))["rows"][0]:
        assert len(await ids(column)) == 3, column


@pytest.mark.parametrize("what", ["adsets", "ads", "sellpages"])
async def test_every_report_can_be_sorted_by_every_column(
    what: str, seller: Seller, daily_stats: DailyStats
) -> None:
    await daily_stats.write(what, seller.made[what], 1, 2)
    [row] = (await seller.report(what))["rows"]

    for column in row:
        assert (await seller.report(what, sort=f"-{column}"))["rows"] == [row], column


async def test_a_deleted_entity_is_shown_if_it_has_spend(seller: Seller, daily_stats: DailyStats) -> None:
    ad = seller.made["ads"]
    await daily_stats.write("ads", ad, 3)
    await seller.client.delete(seller.path("ads"))

    [row] = (await seller.report("ads", adsetId=seller.id_of("adsets")))["rows"]
    later = await seller.report("ads", dateFrom="2026-03-01", dateTo="2026-03-01")

    assert (row["id"], row["spend"]) == (ad["id"], 3)
    assert row["deletedAt"] is not None
    assert later["rows"] == []


# --- currencies


async def test_money_of_several_currencies_is_not_added_up(seller: Seller, daily_stats: DailyStats) -> None:
    euros = await seller.make("accounts", currency="EUR")
    campaign = await seller.make("campaigns", adAccountId=euros["id"])
    await daily_stats.write("campaigns", seller.made["campaigns"], 10, 1_000, 10, 0, 0, 0, 2, 30)
    await daily_stats.write("campaigns", campaign, 7, 3_000, 90, 0, 0, 0, 1, 7)

    body = await seller.report("campaigns", sort="-currency")
    narrowed = await seller.report("campaigns", currency="EUR")

    assert [(row["currency"], row["spend"]) for row in body["rows"]] == [("USD", 10), ("EUR", 7)]
    summary = body["summary"]
    assert {summary[name] for name in (*MONEY & summary.keys(), "currency")} == {None}
    assert (summary["impressions"], summary["ctr"], summary["purchases"]) == (4_000, 0.025, 3)
    assert [(one["currency"], one["spend"], one["roas"]) for one in body["summaries"]] == [
        ("EUR", 7, 1),
        ("USD", 10, 3),
    ]
    assert (narrowed["summary"]["currency"], narrowed["summary"]["spend"]) == ("EUR", 7)


async def test_a_sell_page_with_two_currencies_has_no_sum_of_money(
    seller: Seller, daily_stats: DailyStats
) -> None:
    euros = await seller.make("accounts", currency="EUR")
    await seller.make("campaigns", adAccountId=euros["id"])
    dollars = await seller.make("sellpages")
    campaign = await seller.make("campaigns", sellpageId=dollars["id"])
    await daily_stats.write("sellpages", seller.made["sellpages"], 17, 1_000, 20, 10, 0, 0, 2, 30)
    await daily_stats.write("campaigns", campaign, 5, 1_000)
    await daily_stats.write("sellpages", dollars, 5, 1_000)

    body = await seller.report("sellpages", sort="-adSpend")

    single, mixed = body["rows"]
    assert {mixed[name] for name in (*MONEY & mixed.keys(), "currency")} == {None}
    assert (mixed["impressions"], mixed["ctr"], mixed["cr3"]) == (1_000, 0.02, 0.2)
    assert (single["currency"], single["adSpend"]) == ("USD", 5)
    assert (body["summary"]["adSpend"], body["summary"]["impressions"]) == (None, 2_000)
    assert [(one["currency"], one["adSpend"]) for one in body["summaries"]] == [("USD", 5)]


@pytest.mark.usefixtures("worker")
async def test_the_money_of_days_before_a_move_is_not_taken_for_another_currency(seller: Seller) -> None:
    """What a campaign in euros spent for a page stays there when it moves, and becomes no dollars."""
    euros = await seller.make("accounts", currency="EUR")
    moving = await seller.make("campaigns", adAccountId=euros["id"])
    await seller.synced(date=DAY)
    other = await seller.make("sellpages")

    await seller.client.patch(f"{API}/campaigns/{moving['id']}", json={"sellpageId": other["id"]})
    moved = {row["id"]: row for row in (await seller.report("sellpages"))["rows"]}
    await seller.synced(date=DAY)
    again = {row["id"]: row for row in (await seller.report("sellpages"))["rows"]}

    page = seller.id_of("sellpages")
    assert (moved[page]["currency"], moved[page]["adSpend"]) == (None, None)
    spent = {row["currency"]: row["spend"] for row in (await seller.report("campaigns"))["rows"]}
    assert {again[one]["currency"]: again[one]["adSpend"] for one in (page, other["id"])} == spent


amounts = st.decimals(min_value=0, max_value=10**9, places=2)
counts = st.integers(min_value=0, max_value=10**12)
rows = st.builds(
    ReportRow,
    entity=st.just({"id": UNKNOWN_ID}),
    currency=st.sampled_from(["USD", "EUR", "JPY"]),
    figures=st.builds(
        Figures,
        spend=amounts,
        impressions=counts,
        link_clicks=counts,
        purchases=counts,
        purchase_value=amounts,
    ),
)


@given(st.lists(rows, max_size=8))
def test_a_summary_is_computed_from_sums_of_one_currency(given_rows: list[ReportRow]) -> None:
    report = build_entity_report(given_rows, Order("spend", is_descending=True))

    for summary in report.summaries:
        own = [row.figures for row in given_rows if row.currency == summary["currency"]]
        spend = sum((one.spend for one in own), ZERO)
        impressions = sum(one.impressions for one in own)
        assert (summary["spend"], summary["impressions"]) == (spend, impressions)
        assert summary["cpm"] == compute_ratios(Figures(spend=spend, impressions=impressions)).cpm
    assert report.summary["impressions"] == sum(row.figures.impressions for row in given_rows)
    is_mixed = len({row.currency for row in given_rows}) > 1
    assert (report.summary["spend"] is None) == is_mixed
    assert is_mixed or report.summaries in ([report.summary], [])
    spends = [row["spend"] for row in report.rows]
    assert spends == sorted(spends, reverse=True)


async def test_a_sell_page_without_campaigns_has_no_currency_and_does_not_affect_the_sum(
    seller: Seller, daily_stats: DailyStats
) -> None:
    await seller.make("accounts", currency="EUR")
    await seller.make("sellpages")
    await daily_stats.write("sellpages", seller.made["sellpages"], 5)

    body = await seller.report("sellpages")

    assert [(row["currency"], row["adSpend"]) for row in body["rows"]] == [("USD", 5), (None, 0)]
    assert (body["summary"]["currency"], body["summary"]["adSpend"]) == ("USD", 5)


# --- sell pages


async def test_a_sell_page_has_a_row_with_its_ad_source(seller: Seller, daily_stats: DailyStats) -> None:
    unused = await seller.make("sellpages", name="Unused")
    await daily_stats.write("sellpages", seller.made["sellpages"], 50, 10_000, 200, 100, 0, 0, 4, 120)
    await daily_stats.write(
        "sellpages", seller.made["sellpages"], 50, 10_000, 200, 100, 0, 0, 4, 80, day="2026-02-20"
    )

    body = await seller.report("sellpages", dateTo="2026-02-20")

    row, empty = body["rows"]
    assert row == {
        "id": seller.id_of("sellpages"),
        "name": seller.made["sellpages"]["name"],
        "url": None,
        "adSource": "META",
        "currency": "USD",
        "adSpend": 100,
        "impressions": 20_000,
        "linkClicks": 400,
        "contentViews": 200,
        "addToCart": 0,
        "checkoutInitiated": 0,
        "purchases": 8,
        "purchaseValue": 200,
        "ordersCount": 8,
        "revenue": 200,
        "cpm": 5,
        "ctr": 0.02,
        "costPerPurchase": 12.5,
        "roas": 2,
        "cr1": 0.02,
        "cr2": 0.02,
        "cr3": 0.04,
    }
    assert (empty["id"], empty["adSource"], empty["adSpend"]) == (unused["id"], None, 0)
    assert body["meta"]["level"] == "SELLPAGE"
    assert (await seller.report("sellpages", adSource="ADLOOM"))["rows"] == []
    assert len((await seller.report("sellpages", search="unu"))["rows"]) == 1


# --- sheets


async def test_a_csv_sheet_has_the_names_and_figures_of_the_json(
    seller: Seller, daily_stats: DailyStats
) -> None:
    await seller.client.patch(seller.path("campaigns"), json={"name": '=HYPERLINK("x"), "y"'})
    await daily_stats.write("campaigns", seller.made["campaigns"], 1234567.89, 3, 1)
    [row] = (await seller.report("campaigns"))["rows"]

    answer = await seller.asked("campaigns", format="csv")

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="adloom-campaigns-{DAY}-to-{DAY}.csv"'
    )
    [written] = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert written.keys() == row.keys()
    assert written["name"] == '\'=HYPERLINK("x"), "y"'
    assert (written["spend"], written["cpm"], written["deletedAt"]) == ("1234567.89", "411522630.0000", "")


@for_each("what", [*LEVELS, "sellpages"])
async def test_every_report_is_csv_for_a_client_that_accepts_it(what: str, seller: Seller) -> None:
    params = {"dateFrom": DAY, "dateTo": DAY}
    answer = await seller.client.get(f"{API}/reports/{what}", params=params, headers={"Accept": "text/csv"})

    [written] = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert written["id"] == seller.id_of(what)
    assert list(written) == list((await seller.report(what))["rows"][0])


# --- refused queries


@for_each(
    ("query", "field"),
    [
        ({"dateFrom": "x"}, "dateFrom"),
        ({"dateTo": "2026-02-30"}, "dateTo"),
        ({"dateTo": "2026-02-18"}, "dateTo"),
        ({"dateFrom": "2020-02-18"}, "dateFrom"),
        ({"sort": "color"}, "sort"),
        ({"sort": "spend;--"}, "sort"),
        ({"status": "RUNNING"}, "status"),
        ({"campaignId": "mine"}, "campaignId"),
        ({"currency": "euro"}, "currency"),
        ({"format": "pdf"}, "format"),
        ({"color": "red"}, "color"),
    ],
)
async def test_an_invalid_report_query_is_refused(query: dict[str, Any], field: str, seller: Seller) -> None:
    answer = await seller.asked("campaigns", **query)

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {field}


@for_each("what", [*LEVELS, "sellpages"])
async def test_a_report_without_days_is_refused(what: str, seller: Seller) -> None:
    answer = await seller.client.get(f"{API}/reports/{what}")

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"dateFrom", "dateTo"}


# --- access


@pytest.mark.parametrize("what", [*LEVELS, "sellpages"])
async def test_a_seller_sees_only_its_own_figures(
    what: str, seller: Seller, daily_stats: DailyStats, other_client: Client, admin: Client
) -> None:
    await daily_stats.write(what, seller.made[what], 4711)
    other, params = Seller(other_client, UNKNOWN_ID), {"dateFrom": DAY, "dateTo": DAY}

    assert (await other.report(what))["rows"] == []
    named = await other.asked(what, sellerId=seller.id)
    problem(named, 404, "SELLER_NOT_FOUND")
    unnamed = await admin.get(f"{API}/reports/{what}", params=params)
    assert error_fields(problem(unnamed, 400, "VALIDATION_FAILED")) == {"sellerId"}
    theirs = await admin.get(f"{API}/reports/{what}", params={**params, "sellerId": str(seller.id)})
    assert theirs.json() == await seller.report(what)


@pytest.mark.parametrize(
    ("field", "noun", "code"),
    [
        ("campaignId", "campaigns", "SYNCED_CAMPAIGN_NOT_FOUND"),
        ("adsetId", "adsets", "ADSET_NOT_FOUND"),
        ("adAccountId", "accounts", "AD_ACCOUNT_NOT_FOUND"),
        ("sellpageId", "sellpages", "SELLPAGE_NOT_FOUND"),
    ],
)
async def test_a_report_on_entities_of_another_seller_is_not_found(
    field: str, noun: str, code: str, seller: Seller, other_client: Client
) -> None:
    other = await a_seller(other_client, UNKNOWN_ID)

    for what in LEVELS:
        problem(await other.asked(what, **{field: seller.id_of(noun)}), 404, code)


async def test_a_viewer_reads_reports_and_a_publisher_does_not(
    control: ControlPlane, seller: Seller, viewer: Client
) -> None:
    read = await viewer.get(
        f"{API}/reports/ads", params={"dateFrom": DAY, "dateTo": DAY, "sellerId": str(seller.id)}
    )
    async with control.acting_as(Role.PUBLISHER) as publisher:
        refused = await publisher.get(f"{API}/reports/ads", params={"dateFrom": DAY, "dateTo": DAY})

    assert read.json()["meta"]["totalRows"] == 1
    problem(refused, 403, "FORBIDDEN")
