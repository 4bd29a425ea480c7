"""The refresher of the index: incremental updates from the catalog equal a rebuild."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.market.approval import ApprovalRules
from adloom.resource.changes import NOTICE_CHANNEL, Catalog, IndexedNoun
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.serving.background import index_refresh
from adloom.serving.background.index_refresh import CHECK_SECONDS, IndexRefresher
from adloom.serving.index.site import NO_SITES, compile_site
from tests.support.eventually import eventually
from tests.support.relay import Relay
from tests.support.rows import a_site_row

INSERT_PLACEMENT = """
    INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, $2, 'Label', 'full_slider') RETURNING id
"""
INSERT_SITE = "INSERT INTO sites (public_id, domain, name) VALUES ($1, $2, $2) RETURNING id"
TO_EXAMPLE = """
    UPDATE placements
       SET delivery = 'contextual', site_id = (SELECT id FROM sites WHERE domain = 'example.com') WHERE id = $1
"""
TO_OTHER = (
    "UPDATE placements SET site_id = (SELECT id FROM sites WHERE domain = 'another.example') WHERE id = $1"
)
INSERT_BANNER = (
    "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'T', 'https://x/') RETURNING id"
)
INSERT_CAMPAIGN = "INSERT INTO campaigns (public_id, name, status) VALUES ($1, 'C', 'active') RETURNING id"
LINK = "INSERT INTO campaign_placements (campaign_id, placement_id) VALUES ($1, $2)"
ASSIGN = "INSERT INTO banner_assignments (campaign_id, placement_id, banner_id) VALUES ($1, $2, $3)"


@pytest.fixture
def catalog(pool: Pool, valkey: Valkey) -> Catalog:
    return Catalog(pool, valkey)


@pytest.fixture
async def refresher(pool: Pool, valkey: Valkey) -> IndexRefresher:
    return IndexRefresher(pool, valkey, SystemClock())


@pytest.fixture
async def running_refresher(refresher: IndexRefresher) -> AsyncGenerator[IndexRefresher]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(refresher.run())
        yield refresher
        task.cancel()


async def wait_for_a_subscriber(valkey: Valkey) -> None:
    async with asyncio.timeout(60):
        while (await valkey.pubsub_numsub(NOTICE_CHANNEL))[0][1] == 0:  # noqa: ASYNC110 - the server sends no notice of it
            await asyncio.sleep(0.005)


def has_missed_a_check(refresher: IndexRefresher) -> bool:
    age = refresher.measure_age(SystemClock().now())
    return age is not None and age.total_seconds() > CHECK_SECONDS * 1.5


async def insert(catalog: Catalog, noun: IndexedNoun, sql: str, *values: object) -> tuple[UUID, int]:
    public_id = SystemIds().make()
    async with catalog.write() as write:
        key = await write.connection.fetchval(sql, public_id, *values)
        write.touch(noun, key)
    return public_id, key


async def insert_ad(catalog: Catalog, slug: str) -> tuple[int, int, int]:
    """Insert a placement and a campaign with a banner on it; return the keys of placement, banner, campaign."""
    _, placement = await insert(catalog, IndexedNoun.PLACEMENT, INSERT_PLACEMENT, slug)
    _, banner = await insert(catalog, IndexedNoun.BANNER, INSERT_BANNER)
    _, campaign = await insert(catalog, IndexedNoun.CAMPAIGN, INSERT_CAMPAIGN)
    async with catalog.write() as write:
        await write.connection.execute(LINK, campaign, placement)
        await write.connection.execute(ASSIGN, campaign, placement, banner)
        write.touch(IndexedNoun.PLACEMENT, placement)
    return placement, banner, campaign


async def change(catalog: Catalog, noun: IndexedNoun, key: int, sql: str) -> None:
    async with catalog.write() as write:
        await write.connection.execute(sql, key)
        write.touch(noun, key)


async def test_before_the_first_refresh_there_is_no_index(refresher: IndexRefresher) -> None:
    with pytest.raises(UnavailableError):
        _ = refresher.current


async def test_incremental_updates_equal_a_rebuild(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool, valkey: Valkey
) -> None:
    await refresher.refresh()
    first = await insert_ad(catalog, "first")
    second = await insert_ad(catalog, "second")
    steps = [
        (IndexedNoun.BANNER, first[1], "UPDATE banners SET headline = 'New' WHERE id = $1"),
        (IndexedNoun.CAMPAIGN, second[2], "UPDATE campaigns SET status = 'paused' WHERE id = $1"),
        (IndexedNoun.PLACEMENT, first[0], "UPDATE placements SET slug = 'renamed' WHERE id = $1"),
        (IndexedNoun.BANNER, second[1], "UPDATE banners SET deleted_at = now() WHERE id = $1"),
        (IndexedNoun.PLACEMENT, second[0], "DELETE FROM placements WHERE id = $1"),
        (IndexedNoun.CAMPAIGN, first[2], "UPDATE campaigns SET deleted_at = now() WHERE id = $1"),
    ]
    for noun, key, sql in steps:
        await change(catalog, noun, key, sql)

        await refresher.refresh()

        rebuilt = IndexRefresher(pool, valkey, SystemClock())
        await rebuilt.refresh()
        assert refresher.current == rebuilt.current


async def test_incremental_updates_of_sites_equal_a_rebuild(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool, valkey: Valkey
) -> None:
    await refresher.refresh()
    _, site = await insert(catalog, IndexedNoun.SITE, INSERT_SITE, "example.com")
    _, other = await insert(catalog, IndexedNoun.SITE, INSERT_SITE, "www.other.example")
    slot = (await insert_ad(catalog, "slot"))[0]
    steps = [
        (
            IndexedNoun.PLACEMENT,
            slot,
            TO_EXAMPLE,
        ),
        (
            IndexedNoun.SITE,
            site,
            "UPDATE sites SET verified_host = domain, verified_at = now() WHERE id = $1",
        ),
        (
            IndexedNoun.SITE,
            site,
            "UPDATE sites SET host_pattern = 'blog[.].*', is_suspended = true WHERE id = $1",
        ),
        (IndexedNoun.SITE, other, "UPDATE sites SET domain = 'another.example' WHERE id = $1"),
        (IndexedNoun.PLACEMENT, slot, TO_OTHER),
        (IndexedNoun.SITE, site, "DELETE FROM sites WHERE id = $1"),
        (IndexedNoun.SITE, other, "UPDATE sites SET host_pattern = '(' WHERE id = $1"),
    ]
    for noun, key, sql in steps:
        await change(catalog, noun, key, sql)

        await refresher.refresh()

        rebuilt = IndexRefresher(pool, valkey, SystemClock())
        await rebuilt.refresh()
        assert refresher.current == rebuilt.current
    assert refresher.current.find_slot(b"slot") is not None
    assert refresher.current.sites.find_by_host("another.example") == [], "its pattern cannot be read"


async def test_a_verified_site_is_known_as_verified_within_a_second(
    catalog: Catalog, running_refresher: IndexRefresher, valkey: Valkey
) -> None:
    await wait_for_a_subscriber(valkey)
    _, site = await insert(catalog, IndexedNoun.SITE, INSERT_SITE, "example.com")

    await change(
        catalog,
        IndexedNoun.SITE,
        site,
        "UPDATE sites SET verified_host = domain, verified_at = now() WHERE id = $1",
    )

    def is_verified() -> bool:
        return any(
            one.is_verified for one in running_refresher.current.sites.find_by_host("blog.example.com")
        )

    await running_refresher.wait_until_ready(seconds_max=30)
    await eventually(is_verified, seconds=30)


async def test_a_refresher_that_missed_changes_reads_the_whole_catalog(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    await refresher.refresh()
    await insert_ad(catalog, "home")
    await pool.execute("DELETE FROM catalog_changes WHERE version < 3")

    await refresher.refresh()

    assert set(refresher.current.by_slug) == {b"home"}


async def test_a_notice_brings_a_change_before_the_next_check(
    catalog: Catalog, valkey: Valkey, running_refresher: IndexRefresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_refresh, "CHECK_SECONDS", 3_600.0)
    await eventually(lambda: running_refresher.version == 0, seconds=30)
    await wait_for_a_subscriber(valkey)

    await insert_ad(catalog, "home")

    await eventually(lambda: running_refresher.version == 4, seconds=30)
    assert set(running_refresher.current.by_slug) == {b"home"}


async def test_a_change_without_a_notice_is_found_by_the_next_check(
    pool: Pool, running_refresher: IndexRefresher
) -> None:
    await eventually(lambda: running_refresher.version == 0, seconds=30)

    await pool.execute("UPDATE catalog_version SET version = 1")

    await eventually(lambda: running_refresher.version == 1, seconds=30)


async def test_a_dead_subscription_is_replaced(pool: Pool, valkey: Valkey, redis_url: str) -> None:
    server = urlsplit(redis_url)
    assert server.port is not None
    async with Relay(server.port).running() as relay:
        relayed_url = redis_url.replace(f":{server.port}", f":{relay.port}")
        async with open_valkey(relayed_url) as relayed, asyncio.TaskGroup() as group:
            refresher = IndexRefresher(pool, relayed, SystemClock(), quiet_seconds=0.1)
            refreshing = group.create_task(refresher.run())
            await wait_for_a_subscriber(valkey)

            relay.silence()

            await eventually(lambda: relay.connections == 2, seconds=30)
            await wait_for_a_subscriber(valkey)
            refreshing.cancel()


async def test_a_quiet_subscription_is_kept(pool: Pool, valkey: Valkey) -> None:
    async with asyncio.TaskGroup() as group:
        refresher = IndexRefresher(pool, valkey, SystemClock(), quiet_seconds=0.5)
        refreshing = group.create_task(refresher.run())
        await wait_for_a_subscriber(valkey)
        before = (await valkey.info("stats"))["total_connections_received"]

        await asyncio.sleep(1.2)  # more than twice `quiet_seconds`

        assert (await valkey.info("stats"))["total_connections_received"] == before
        refreshing.cancel()


async def test_an_unreadable_row_leaves_the_last_index_in_use(
    catalog: Catalog, running_refresher: IndexRefresher
) -> None:
    _, banner, _ = await insert_ad(catalog, "home")
    await eventually(lambda: running_refresher.version == 4, seconds=30)

    await change(
        catalog, IndexedNoun.BANNER, banner, "UPDATE banners SET media_variants = '[1]' WHERE id = $1"
    )
    await eventually(lambda: has_missed_a_check(running_refresher), seconds=30)
    await change(
        catalog, IndexedNoun.BANNER, banner, "UPDATE banners SET media_variants = '{}' WHERE id = $1"
    )

    await eventually(lambda: running_refresher.version == 6, seconds=30)
    assert set(running_refresher.current.by_slug) == {b"home"}


async def test_a_deleted_banner_still_has_a_destination_for_old_offers(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    placement, banner, campaign = await insert_ad(catalog, "home")
    await change(
        catalog, IndexedNoun.BANNER, banner, "UPDATE banners SET cta_url = 'https://shop/' WHERE id = $1"
    )
    await change(catalog, IndexedNoun.BANNER, banner, "UPDATE banners SET deleted_at = now() WHERE id = $1")
    ids = [
        await pool.fetchval(f"SELECT public_id FROM {table} WHERE id = $1", key)  # noqa: S608 - our own names
        for table, key in (("campaigns", campaign), ("placements", placement), ("banners", banner))
    ]

    await refresher.refresh()

    assert refresher.current.by_slug[b"home"].blocks == ()
    assert refresher.current.find_destination(*ids) == "https://shop/"


async def test_landing_pages_get_the_id_of_a_click_as_soon_as_the_campaign_asks_for_it(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    placement, _, campaign = await insert_ad(catalog, "home")
    ids = [
        await pool.fetchval(f"SELECT public_id FROM {table} WHERE id = $1", key)  # noqa: S608 - our own names
        for table, key in (("campaigns", campaign), ("placements", placement))
    ]
    await refresher.refresh()
    before = refresher.current.passes_click_id(*ids)
    statement = "UPDATE campaigns SET passes_click_id = true WHERE id = $1"
    await change(catalog, IndexedNoun.CAMPAIGN, campaign, statement)

    await refresher.refresh()

    assert (before, refresher.current.passes_click_id(*ids)) == (False, True)


async def test_a_catalog_that_was_restored_from_a_backup_is_read_again(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    async with catalog.write() as write:
        key = await write.connection.fetchval(INSERT_PLACEMENT, SystemIds().make(), "lost")
        write.touch(IndexedNoun.PLACEMENT, key)
    await refresher.refresh()
    await pool.execute("DELETE FROM placements")
    await pool.execute("DELETE FROM catalog_changes")
    await pool.execute("UPDATE catalog_version SET version = 0")

    await refresher.refresh()

    assert (refresher.version, dict(refresher.current.by_slug)) == (0, {})


async def test_a_campaign_is_excluded_when_it_reaches_its_cap_and_readmitted_when_the_cap_is_raised(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    placement, banner, campaign = await insert_ad(catalog, "home")
    cap = "UPDATE campaigns SET impression_cap = {} WHERE id = $1"
    await change(catalog, IndexedNoun.CAMPAIGN, campaign, cap.format(5))

    async def is_available() -> bool:
        await refresher.refresh()
        return bool(
            refresher.states.get(refresher.current.by_slug[b"home"], SystemClock().now()).available[0]
        )

    assert await is_available()
    await pool.execute(
        "INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, invalid_impressions)"
        " VALUES (current_date - 10, $1, $2, $3, 5, 2), (current_date, $1, $2, $3, 4, 2)",
        *(banner, placement, campaign),
    )
    await pool.execute("INSERT INTO events.event_days (day, events) VALUES (current_date - 10, 5)")
    await pool.execute("INSERT INTO projection_cursors (projection, entry_id) VALUES ('event_tables', '1-0')")
    await refresher.rebuild()
    assert not await is_available()
    await change(catalog, IndexedNoun.CAMPAIGN, campaign, cap.format(6))
    assert await is_available()


@pytest.mark.parametrize("written", ["events", "corrections"])
async def test_the_counts_of_a_past_day_are_summed_again_when_it_changes(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool, written: str
) -> None:
    placement, banner, campaign = await insert_ad(catalog, "home")
    await change(catalog, IndexedNoun.CAMPAIGN, campaign, "UPDATE campaigns SET click_cap = 2 WHERE id = $1")
    await pool.execute(
        "INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, clicks, invalid_clicks)"
        " VALUES (current_date - 10, $1, $2, $3, 2, 1)",
        *(banner, placement, campaign),
    )
    await pool.execute("INSERT INTO events.event_days (day, events) VALUES (current_date - 10, 2)")
    await refresher.refresh()
    assert refresher.states.find_reason(campaign) is None

    await pool.execute("UPDATE events.event_counts SET invalid_clicks = 0")
    await pool.execute(f"UPDATE events.event_days SET {written} = {written} + 1")  # noqa: S608 - our own names
    await refresher.rebuild()
    await refresher.refresh()

    assert refresher.states.find_reason(campaign) == "click_cap"


async def test_counts_of_today_are_read_when_the_cursor_of_the_projection_moves(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    placement, banner, campaign = await insert_ad(catalog, "home")
    await change(catalog, IndexedNoun.CAMPAIGN, campaign, "UPDATE campaigns SET click_cap = 1 WHERE id = $1")
    await refresher.refresh()

    await pool.execute(
        "INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, clicks, invalid_clicks)"
        " VALUES (current_date, $1, $2, $3, 3, 2)",
        *(banner, placement, campaign),
    )
    await pool.execute("INSERT INTO projection_cursors (projection, entry_id) VALUES ('event_tables', '1-0')")
    await refresher.refresh()

    assert refresher.states.find_reason(campaign) == "click_cap"


async def test_the_rules_of_a_campaign_are_in_the_index(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    _, _, campaign = await insert_ad(catalog, "home")
    await change(
        catalog,
        IndexedNoun.CAMPAIGN,
        campaign,
        "INSERT INTO campaign_targeting_rules (public_id, campaign_id, rule_type, operator, value)"
        """ VALUES (uuidv7(), $1, 'country', 'in', '["DE"]')""",
    )

    await refresher.refresh()

    [block] = refresher.current.by_slug[b"home"].blocks
    assert [rule.values for rule in block.candidates[0].rules] == [("DE",)]
    assert await pool.fetchval("SELECT count(*) FROM campaign_targeting_rules") == 1


async def test_a_campaign_with_an_unreadable_rule_is_not_served(
    catalog: Catalog, refresher: IndexRefresher
) -> None:
    _, _, campaign = await insert_ad(catalog, "home")
    await change(
        catalog,
        IndexedNoun.CAMPAIGN,
        campaign,
        "INSERT INTO campaign_targeting_rules (public_id, campaign_id, rule_type, operator, value)"
        """ VALUES (uuidv7(), $1, 'country', 'near', '["DE"]')""",
    )

    await refresher.refresh()

    assert refresher.current.by_slug[b"home"].blocks == ()


async def test_a_scheduled_campaign_serves_from_its_start_without_a_change_of_status(
    catalog: Catalog, refresher: IndexRefresher
) -> None:
    _, _, campaign = await insert_ad(catalog, "home")
    await change(
        catalog,
        IndexedNoun.CAMPAIGN,
        campaign,
        "UPDATE campaigns SET status = 'scheduled', starts_at = now() + interval '1 hour' WHERE id = $1",
    )
    await refresher.refresh()
    placement, now = refresher.current.by_slug[b"home"], SystemClock().now()

    assert not refresher.states.get(placement, now).available[0]
    assert refresher.states.get(placement, now + timedelta(hours=1)).available[0]


async def test_a_rebuild_keeps_placements_that_did_not_change(
    catalog: Catalog, refresher: IndexRefresher
) -> None:
    await insert_ad(catalog, "same")
    _, banner, _ = await insert_ad(catalog, "other")
    await refresher.refresh()
    before = refresher.current

    await change(catalog, IndexedNoun.BANNER, banner, "UPDATE banners SET headline = 'New' WHERE id = $1")
    await refresher.rebuild()

    assert refresher.current.by_slug[b"same"] is before.by_slug[b"same"]
    assert refresher.current.by_slug[b"other"] != before.by_slug[b"other"]


@pytest.mark.parametrize("owned", ["campaigns", "banners"])
async def test_campaigns_and_banners_of_a_deleted_advertiser_are_not_served(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool, owned: str
) -> None:
    _, banner, campaign = await insert_ad(catalog, "home")
    advertiser = await pool.fetchval(
        "INSERT INTO advertisers (public_id, name) VALUES ($1, 'A') RETURNING id", SystemIds().make()
    )
    key = {"campaigns": campaign, "banners": banner}[owned]
    await pool.execute(f"UPDATE {owned} SET advertiser_id = $1 WHERE id = $2", advertiser, key)  # noqa: S608 - our own names
    await refresher.refresh()
    assert refresher.current.by_slug[b"home"].blocks

    await pool.execute("UPDATE advertisers SET deleted_at = now()")
    await change(catalog, IndexedNoun.CAMPAIGN, campaign, "SELECT $1::integer")
    await refresher.refresh()

    assert refresher.current.by_slug[b"home"].blocks == ()


async def test_a_placement_of_a_deleted_publisher_is_not_served(
    catalog: Catalog, refresher: IndexRefresher, pool: Pool
) -> None:
    placement, _, _ = await insert_ad(catalog, "home")
    publisher = await pool.fetchval(
        "INSERT INTO publishers (public_id, name, deleted_at) VALUES ($1, 'P', now()) RETURNING id",
        SystemIds().make(),
    )
    await pool.execute("UPDATE placements SET publisher_id = $1 WHERE id = $2", publisher, placement)

    await refresher.refresh()

    assert not refresher.current.by_slug[b"home"].is_served


@pytest.mark.parametrize("verified", [1, 2, 3])
def test_of_several_sites_with_a_domain_the_verified_one_has_the_hosts(verified: int) -> None:
    rows = [
        a_site_row(key=key, domain=domain, verified_host=domain if key == verified else None)
        for key, domain in ((1, "paper.example"), (2, "www.paper.example"), (3, "paper.example"))
    ]
    sites = NO_SITES.replaced((), [compile_site(row, ApprovalRules()) for row in rows])
    unproven = NO_SITES.replaced(
        (), [compile_site(row, ApprovalRules()) for row in rows if row.key != verified]
    )

    assert [site.key for site in sites.find_by_host("blog.paper.example")] == [verified]
    assert [site.key for site in unproven.find_by_host("paper.example")] == [min({1, 2, 3} - {verified})]
