"""SQL that fills the database of a bench: a catalog, a day of events, and campaigns with budgets."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import msgspec

from adloom.budgets.addresses import make_campaign_address
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool

STATEMENT_SECONDS_MAX: Final = 3_600.0
CHUNK_EVENTS: Final = 500_000
DAY_SECONDS: Final = 24 * 3600
# One click in fifty impressions, and one invalid event in fifty.
CLICK_SHARE: Final = 50
INVALID_SHARE: Final = 50
CAMPAIGNS_AN_ADVERTISER: Final = 10

CATALOG = """
    INSERT INTO placements (public_id, slug, label, layout_type)
    SELECT gen_random_uuid(), 'placement-' || n, 'P', 'full_slider' FROM generate_series(1, $1::int) AS n;
    INSERT INTO advertisers (public_id, name)
    SELECT gen_random_uuid(), 'A' FROM generate_series(1, $1::int);
    INSERT INTO campaigns (public_id, name, advertiser_id)
    SELECT gen_random_uuid(), 'C', n FROM generate_series(1, $1::int) AS n;
    INSERT INTO banners (public_id, title, primary_image_url, advertiser_id)
    SELECT gen_random_uuid(), 'B', 'https://cdn.example.com/a.png', 1 + n % $1::int
      FROM generate_series(1, $2::int) AS n;
    ANALYZE placements, advertisers, campaigns, banners
"""
# Few banners are shown often and most rarely; each is in one campaign, and on a few placements.
EVENTS = """
    INSERT INTO events.banner_{name} (
        id, correlation_id, banner_id, placement_id, campaign_id, session_id, device_type, country_code, page_url,
        occurred_at, received_at, request_id, slot, marks, is_valid, entry_ms, entry_seq
    )
    SELECT n, gen_random_uuid(), banner, 1 + (banner * 7 + n % 3) % $3::int, 1 + banner % $3::int, md5(n::text),
           (ARRAY['mobile', 'desktop', 'tablet'])[1 + n % 3], (ARRAY['DE', 'FR', 'IN', 'US'])[1 + n % 4],
           'https://magazine.example.com/articles/' || n % 10007, moment, moment, gen_random_uuid(), 0,
           CASE WHEN n % $5::int = 0 THEN ARRAY['crawler'] END, n % $5::int <> 0, 0, n
      FROM (
          SELECT n, 1 + floor(power(random(), 2) * $4::int)::int AS banner,
                 $1::timestamptz + n * $2::double precision * interval '1 second' AS moment
            FROM generate_series($6::bigint, $7::bigint) AS n
      ) AS it
"""
# As `ensure_event_day` creates it, but with indexes after the rows: ten times as fast.
MAKE_PARTITION = "CREATE TABLE events.banner_{name} (LIKE events.banner_{kind} INCLUDING DEFAULTS)"
INDEX_PARTITION = "CREATE UNIQUE INDEX ON events.banner_{name} (correlation_id)"
ATTACH_PARTITION = """
    ALTER TABLE events.banner_{kind} ATTACH PARTITION events.banner_{name} FOR VALUES FROM ('{first}') TO ('{last}')
"""
NOTE_DAY = "INSERT INTO events.event_days (day, events) VALUES ($1, $2)"
ADD_ADVERTISERS: Final = """
    INSERT INTO advertisers (public_id, name, daily_budget_paisa, timezone)
    SELECT gen_random_uuid(), 'A', 1000000000000, 'UTC' FROM generate_series(1, $1::int)
"""
ADD_CAMPAIGNS: Final = """
    WITH payer AS (
        SELECT id, row_number() OVER () - 1 AS place FROM advertisers WHERE daily_budget_paisa IS NOT NULL
    )
    INSERT INTO campaigns (
        public_id, name, advertiser_id, status, budget_daily_paisa, bid_type, bid_amount_micros, pacing_strategy
    )
    SELECT gen_random_uuid(), 'C', payer.id, 'active', 1000000000000, 'cpm', $3::bigint, 'Accelerated'
      FROM generate_series(0, $1::int - 1) AS n
      LEFT JOIN payer ON n % $4::int = 0 AND payer.place = n / $4::int % $2::int
"""
CAMPAIGNS: Final = """
    SELECT campaign.public_id AS id, payer.public_id AS payer_id, banner.public_id AS banner_id,
           (SELECT public_id FROM placements LIMIT 1) AS placement_id
      FROM (SELECT *, row_number() OVER () AS place FROM campaigns WHERE status = 'active') AS campaign
      JOIN (SELECT public_id, row_number() OVER () AS place FROM banners) AS banner USING (place)
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
"""


class CatalogSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the catalog."""

    banners: int = 1
    # The number of placements, of campaigns and of advertisers.
    places: int = 1


class BudgetCampaign(msgspec.Struct, frozen=True):
    """A campaign, its actor's address, and its banner and placement."""

    id: CampaignId
    address: Address
    banner_id: BannerId
    placement_id: PlacementId


async def fill_catalog(pool: Pool, size: CatalogSize) -> None:
    for statement in CATALOG.replace("$1", str(size.places)).replace("$2", str(size.banners)).split(";"):
        await pool.execute(statement, timeout=STATEMENT_SECONDS_MAX)


async def fill_day(
    pool: Pool, day: date, events: int, size: CatalogSize, on_progress: Callable[[float], None]
) -> None:
    """Insert the events of a day in order of time, as the event log does."""
    clicks = events // CLICK_SHARE
    done = 0
    for kind, count in (("impressions", events - clicks), ("clicks", clicks)):
        name = f"{kind}_{day:%Y%m%d}"
        await pool.execute(MAKE_PARTITION.format(name=name, kind=kind))
        for first in range(0, count, CHUNK_EVENTS):
            numbers = range(first, min(first + CHUNK_EVENTS, count))
            await pool.execute(
                EVENTS.format(name=name),
                datetime.combine(day, time(), UTC),
                DAY_SECONDS / count,
                size.places,
                size.banners,
                INVALID_SHARE,
                numbers[0],
                numbers[-1],
                timeout=STATEMENT_SECONDS_MAX,
            )
            done += len(numbers)
            on_progress(done / events)
        bounds = {"first": f"{day} 00:00Z", "last": f"{day + timedelta(days=1)} 00:00Z"}
        for statement in (INDEX_PARTITION, ATTACH_PARTITION):
            await pool.execute(
                statement.format(name=name, kind=kind, **bounds), timeout=STATEMENT_SECONDS_MAX
            )
    await pool.execute(NOTE_DAY, day, events)
    # In production autovacuum has done this by night.
    await pool.execute(
        "VACUUM ANALYZE events.banner_impressions, events.banner_clicks", timeout=STATEMENT_SECONDS_MAX
    )


async def add_campaigns(pool: Pool, count: int, *, cpm_micros: int, paid_every: int) -> list[BudgetCampaign]:
    """Create running campaigns with budgets; one in `paid_every` belongs to an advertiser with its own budget."""
    advertisers = max(1, count // paid_every // CAMPAIGNS_AN_ADVERTISER)
    await pool.execute(ADD_ADVERTISERS, advertisers)
    values = (count, advertisers, cpm_micros, paid_every)
    await pool.execute(ADD_CAMPAIGNS, *values, timeout=STATEMENT_SECONDS_MAX)
    await pool.execute("ANALYZE advertisers, campaigns")
    return [
        BudgetCampaign(
            CampaignId(row["id"]),
            make_campaign_address(CampaignId(row["id"]), row["payer_id"] and AdvertiserId(row["payer_id"])),
            BannerId(row["banner_id"]),
            PlacementId(row["placement_id"]),
        )
        for row in await pool.fetch(CAMPAIGNS, timeout=STATEMENT_SECONDS_MAX)
    ]
