"""Raw rows, daily figures, and figures of sell pages: summed by the database, and the same on every run."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.runtime.postgres import Pool
from adloom.sync.figures import Figures, compute_ratio, compute_ratios
from adloom.sync.jobs import list_days
from adloom.sync.pipeline import store
from adloom.sync.pipeline.store import FetchSource, SyncKey
from adloom.sync.providers.protocol import StatRow
from adloom.sync.words import Level, Platform, Semantics
from tests.sync.builders import a_row, an_entity
from tests.sync.shop import DAY, NOW, Seller, a_job, a_processor, a_seller, daily, insert, stamps, tables

PART = ("00", "01", "02")
LATER = DAY + timedelta(days=1)


@pytest.fixture
async def seller(pool: Pool) -> Seller:
    await store.ensure_months(pool, [DAY])
    return await a_seller(pool)


async def append(
    pool: Pool,
    seller: Seller,
    rows: Sequence[StatRow],
    *,
    semantics: Semantics = Semantics.SNAPSHOT,
    minutes: int = 0,
) -> None:
    fetched = FetchSource(provider=Platform.MOCK, semantics=semantics, at=NOW + timedelta(minutes=minutes))
    await store.append_raw(pool, key_of(seller), fetched, rows)


def key_of(seller: Seller, level: Level = Level.CAMPAIGN) -> SyncKey:
    return SyncKey(seller_id=seller.id, level=level, first=DAY, last=DAY)


async def test_every_level_is_synced_and_summed_by_sell_page(pool: Pool, seller: Seller) -> None:
    processor = a_processor(pool)

    outcomes = [await processor.sync(a_job(seller, level)) for level in Level]

    assert [one.raw_inserted for one in outcomes] == [2, 2, 4]
    assert [one.daily_upserted for one in outcomes] == [2, 2, 4]
    assert [one.sellpage_upserted for one in outcomes] == [1, 0, 0]
    row = await pool.fetchrow("SELECT * FROM sync.sellpage_stats_daily")
    assert row is not None
    campaigns = [await daily(pool, campaign) or {} for campaign in seller.campaigns]
    assert row["ad_spend"] == sum(one["spend"] for one in campaigns)
    assert row["ad_source"] == "META"
    assert (row["orders_count"], row["revenue"]) == (row["purchases"], row["purchase_value"])
    assert row["cr2"] == compute_ratio(row["purchases"], row["link_clicks"])
    assert row["cr3"] == compute_ratio(row["purchases"], row["content_views"])


async def test_a_second_run_changes_nothing_not_even_timestamps(pool: Pool, seller: Seller) -> None:
    clock = ManualClock(NOW)
    processor = a_processor(pool, clock=clock)
    for level in Level:
        await processor.sync(a_job(seller, level))
    before, stamped = await tables(pool), await stamps(pool)
    clock.advance(timedelta(minutes=5))

    outcomes = [await processor.sync(a_job(seller, level)) for level in Level]

    assert (await tables(pool), await stamps(pool)) == (before, stamped)
    assert [(one.daily_upserted, one.sellpage_upserted) for one in outcomes] == [(0, 0)] * 3
    assert await pool.fetchval("SELECT count(*) FROM sync.ad_stats_raw") == 16, "raw rows are appended"


async def test_the_latest_snapshot_counts(pool: Pool, seller: Seller) -> None:
    campaign = an_entity(id=seller.campaigns[0])
    await append(pool, seller, [a_row(campaign, spend=Decimal(7), impressions=700)], minutes=5)
    await append(pool, seller, [a_row(campaign, spend=Decimal(5), impressions=500)])

    await store.add_up_days(pool, key_of(seller), now=NOW)

    row = await daily(pool, campaign.id)
    assert row is not None
    assert (row["spend"], row["impressions"]) == (7, 700)


async def test_deltas_are_summed_and_a_repeated_part_replaces_itself(pool: Pool, seller: Seller) -> None:
    campaign = an_entity(id=seller.campaigns[0])
    first = [
        a_row(campaign, part="00", spend=Decimal("1.10")),
        a_row(campaign, part="01", spend=Decimal("2.20")),
    ]
    await append(pool, seller, first, semantics=Semantics.DELTA)
    again = [
        a_row(campaign, part="01", spend=Decimal("2.30")),
        a_row(campaign, part="02", spend=Decimal("4.40")),
    ]
    await append(pool, seller, again, semantics=Semantics.DELTA, minutes=5)

    await store.add_up_days(pool, key_of(seller), now=NOW)

    row = await daily(pool, campaign.id)
    assert row is not None
    assert row["spend"] == Decimal("7.80")


async def test_the_last_row_decides_whether_snapshots_or_deltas_count(pool: Pool, seller: Seller) -> None:
    campaign = an_entity(id=seller.campaigns[0])
    await append(pool, seller, [a_row(campaign, spend=Decimal(100))])
    await append(
        pool, seller, [a_row(campaign, part="00", spend=Decimal(3))], semantics=Semantics.DELTA, minutes=1
    )

    await store.add_up_days(pool, key_of(seller), now=NOW)

    row = await daily(pool, campaign.id)
    assert row is not None
    assert row["spend"] == 3


async def test_ratios_without_figures_are_zero(pool: Pool, seller: Seller) -> None:
    campaign = an_entity(id=seller.campaigns[0])
    await append(pool, seller, [a_row(campaign)])

    await store.add_up_days(pool, key_of(seller), now=NOW)
    await store.add_up_sellpages(pool, key_of(seller), now=NOW)

    row = await daily(pool, campaign.id)
    page = await pool.fetchrow("SELECT * FROM sync.sellpage_stats_daily")
    assert row is not None
    assert page is not None
    assert [row[name] for name in ("cpm", "ctr", "cpc", "cost_per_purchase", "roas")] == [0] * 5
    assert [page[name] for name in ("cpm", "ctr", "cost_per_purchase", "roas", "cr1", "cr2", "cr3")] == [
        0
    ] * 7


async def test_the_figures_of_a_campaign_move_with_it(pool: Pool) -> None:
    seller = await a_seller(pool, campaigns=1, pages=2)
    processor = a_processor(pool)
    await processor.sync(a_job(seller))
    await pool.execute(
        "UPDATE sync.campaigns SET sellpage_id = (SELECT id FROM sync.sellpages WHERE public_id = $1)",
        seller.sellpages[1],
    )

    await processor.sync(a_job(seller))

    rows = await pool.fetch("SELECT sellpage_id FROM sync.sellpage_stats_daily")
    assert [row["sellpage_id"] for row in rows] == [seller.sellpages[1]]


async def test_figures_of_deleted_entities_stay(pool: Pool, seller: Seller) -> None:
    processor = a_processor(pool)
    await processor.sync(a_job(seller))
    before = await tables(pool)
    await pool.execute(
        "UPDATE sync.campaigns SET deleted_at = now() WHERE public_id = $1", seller.campaigns[0]
    )

    outcome = await processor.sync(a_job(seller))

    assert outcome.raw_inserted == 1
    assert await tables(pool) == before


async def test_what_is_entered_again_after_it_was_deleted_counts_once(pool: Pool, seller: Seller) -> None:
    """Whatever is deleted and entered again, its id on the platform has the figures of a day once."""
    first, second, third = (
        an_entity(id=campaign, external_id="c1")
        for campaign in (*seller.campaigns, (await another_campaign(pool, seller)))
    )
    await append(pool, seller, [a_row(first, spend=Decimal(5)), a_row(first, LATER, spend=Decimal(6))])
    await add_up(pool, seller)

    await append(pool, seller, [a_row(second, LATER, spend=Decimal(7))], minutes=1)
    changed = await add_up(pool, seller)
    again = await add_up(pool, seller)
    await append(pool, seller, [a_row(third, LATER, spend=Decimal(8))], minutes=2)
    await add_up(pool, seller)

    found = await pool.fetch("SELECT entity_id, stat_date, spend FROM sync.ad_stats_daily ORDER BY stat_date")
    assert (changed, again) == (1, 0)
    assert [tuple(row) for row in found] == [(first.id, DAY, 5), (third.id, LATER, 8)]
    pages = await pool.fetch("SELECT ad_spend FROM sync.sellpage_stats_daily ORDER BY stat_date")
    assert [row["ad_spend"] for row in pages] == [5, 8]


@pytest.mark.parametrize("external_id", ["c1", "c2"])
async def test_what_is_entered_again_counts_once_without_the_raw_rows_of_before(
    pool: Pool, seller: Seller, external_id: str
) -> None:
    """An operator may drop a month of raw rows; the daily figures of a deleted campaign stay until it is synced again."""
    first, second = (an_entity(id=campaign, external_id="c1") for campaign in seller.campaigns)
    await append(pool, seller, [a_row(first, spend=Decimal(5)), a_row(first, LATER, spend=Decimal(6))])
    await add_up(pool, seller)
    await pool.execute("DELETE FROM sync.ad_stats_raw")
    await pool.execute(
        "UPDATE sync.campaigns SET external_campaign_id = $2, deleted_at = now() WHERE public_id = $1",
        first.id,
        external_id,
    )

    unchanged = await add_up(pool, seller)
    await append(pool, seller, [a_row(second, LATER, spend=Decimal(7))], minutes=1)
    await add_up(pool, seller)
    again = await add_up(pool, seller)

    found = await pool.fetch("SELECT entity_id, stat_date, spend FROM sync.ad_stats_daily ORDER BY 2, 3")
    entered_again = [(first.id, DAY, 5), (second.id, LATER, 7)]
    another = [(first.id, DAY, 5), (first.id, LATER, 6), (second.id, LATER, 7)]
    assert (unchanged, again) == (0, 0)
    assert [tuple(row) for row in found] == (entered_again if external_id == "c1" else another)


@pytest.mark.parametrize(("platform", "counted"), [(Platform.META, 1), (Platform.ADLOOM, 2)])
async def test_the_same_placement_in_two_campaigns_counts_for_both(
    pool: Pool, seller: Seller, platform: Platform, counted: int
) -> None:
    fetched = FetchSource(provider=platform, semantics=Semantics.SNAPSHOT, at=NOW)
    rows = [a_row(an_entity(id=adset, external_id="p1"), spend=Decimal(5)) for adset in seller.adsets]

    await store.append_raw(pool, key_of(seller, Level.ADSET), fetched, rows)
    await store.add_up_days(pool, key_of(seller, Level.ADSET), now=NOW)

    assert await pool.fetchval("SELECT count(*) FROM sync.ad_stats_daily") == counted


async def another_campaign(pool: Pool, seller: Seller) -> UUID:
    copied = "advertiser_id, ad_account_id, sellpage_id, name, budget"
    return await pool.fetchval(
        f"INSERT INTO sync.campaigns (public_id, {copied})"  # noqa: S608 - our own names
        f" SELECT gen_random_uuid(), {copied} FROM sync.campaigns WHERE public_id = $1 RETURNING public_id",
        seller.campaigns[0],
    )


async def add_up(pool: Pool, seller: Seller) -> int:
    key = msgspec.structs.replace(key_of(seller), last=LATER)
    changed = await store.add_up_days(pool, key, now=NOW)
    await store.add_up_sellpages(pool, key, now=NOW)
    return changed


async def test_our_own_delivery_is_a_separate_source(pool: Pool, seller: Seller) -> None:
    key = await pool.fetchval("SELECT id FROM advertisers WHERE public_id = $1", seller.id)
    account, _ = await insert(pool, "sync.ad_accounts", advertiser_id=key, name="ours", platform="adloom")
    page = await pool.fetchval("SELECT id FROM sync.sellpages")
    fields = {"advertiser_id": key, "ad_account_id": account, "sellpage_id": page, "name": "own", "budget": 1}
    _, campaign_id = await insert(pool, "sync.campaigns", **fields)
    other = an_entity(id=seller.campaigns[0])
    rows = [a_row(an_entity(id=campaign_id), spend=Decimal(3)), a_row(other, spend=Decimal(4))]
    await append(pool, seller, rows)

    await store.add_up_days(pool, key_of(seller), now=NOW)
    await store.add_up_sellpages(pool, key_of(seller), now=NOW)

    found = await pool.fetch("SELECT ad_source, ad_spend FROM sync.sellpage_stats_daily ORDER BY 1")
    assert [tuple(row) for row in found] == [("ADLOOM", 3), ("META", 4)]


async def test_a_late_backfill_creates_its_monthly_partitions(pool: Pool) -> None:
    seller = await a_seller(pool, campaigns=1)
    first, last = date(2023, 12, 30), date(2024, 3, 2)

    outcome = await a_processor(pool).sync(a_job(seller, date_from=first, date_to=last))

    assert outcome.daily_upserted == len(list(list_days(first, last)))
    parts = await pool.fetch(
        "SELECT relname FROM pg_class WHERE relname ~ '^ad_stats_daily_2[0-9]{5}$' ORDER BY 1"
    )
    assert [row["relname"][-6:] for row in parts] == ["202312", "202401", "202402", "202403"]


amounts = st.decimals(0, 10_000, places=2)
figures = st.builds(
    Figures,
    spend=amounts,
    purchase_value=amounts,
    **dict.fromkeys(
        ("impressions", "link_clicks", "content_views", "add_to_cart", "checkout_initiated", "purchases"),
        st.integers(0, 10**6),
    ),
)
fetches = st.lists(
    st.tuples(st.booleans(), st.integers(0, 1), st.sampled_from(PART), st.integers(0, 3), figures),
    max_size=12,
)


def modelled(fetched: list[tuple[bool, int, str, int, Figures]], entity: int) -> Figures | None:
    """The rule in Python: the last row decides; a snapshot counts alone, of each part the last delta counts."""
    mine = [
        (minute, number, one) for number, one in enumerate(fetched) if one[1] == entity for minute in [one[3]]
    ]
    mine.sort(key=lambda one: one[:2])
    if not mine:
        return None
    *_, (_, _, (is_delta, _, _, _, last)) = mine
    if not is_delta:
        return last
    parts = {one[2]: one[4] for _, _, one in mine if one[0]}
    sums: dict[str, Any] = {
        name: sum(getattr(part, name) for part in parts.values()) for name in Figures.__struct_fields__
    }
    return Figures(**sums)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(fetched=fetches, runs=st.integers(1, 3))
async def test_the_sums_of_the_database_equal_the_rule(
    pool: Pool, seller: Seller, fetched: list[tuple[bool, int, str, int, Figures]], runs: int
) -> None:
    await pool.execute("TRUNCATE sync.ad_stats_raw, sync.ad_stats_daily, sync.sellpage_stats_daily")
    entities = [an_entity(id=campaign) for campaign in seller.campaigns]
    for is_delta, entity, part, minute, one in fetched:
        row = a_row(entities[entity], part=part if is_delta else "", **as_given(one))
        semantics = Semantics.DELTA if is_delta else Semantics.SNAPSHOT
        await append(pool, seller, [row], semantics=semantics, minutes=minute)

    for _ in range(runs):
        await store.add_up_days(pool, key_of(seller), now=NOW)

    for number, entity in enumerate(entities):
        assert await figures_of(pool, entity.id) == modelled(fetched, number)


async def figures_of(pool: Pool, entity_id: UUID) -> Figures | None:
    row = await daily(pool, entity_id)
    if row is None:
        return None
    found = Figures(**{name: row[name] for name in Figures.__struct_fields__})
    ratios = compute_ratios(found)
    assert {name: row[name] for name in ratios.__struct_fields__} == as_given(ratios)
    return found


def as_given(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
