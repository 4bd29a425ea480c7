"""SQL that creates up to 100,000 campaigns with budgets, and reads what was counted and charged."""

from typing import Final

import msgspec

from adloom.budgets.addresses import campaign_address
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool

CAMPAIGNS_AN_ADVERTISER: Final = 10
STATEMENT_SECONDS_MAX: Final = 120.0

ADD_ADVERTISERS: Final = """
    INSERT INTO advertisers (public_id, name, daily_budget_paisa, timezone)
    SELECT gen_random_uuid(), 'A', 1000000000000, 'UTC' FROM generate_series(1, $1::int)
"""
ADD_CAMPAIGNS: Final = """
    WITH payer AS (SELECT id, row_number() OVER () - 1 AS place FROM advertisers)
    INSERT INTO campaigns (
        public_id, name, advertiser_id, status, budget_daily_paisa, bid_type, bid_amount_micros, pacing_strategy
    )
    SELECT gen_random_uuid(), 'C', payer.id, 'active', 1000000000000, 'cpm', $3::bigint, 'Accelerated'
      FROM generate_series(0, $1::int - 1) AS n
      LEFT JOIN payer ON n % $4::int = 0 AND payer.place = n / $4::int % $2::int
"""
ADD_PLACEMENT: Final = """
    INSERT INTO placements (public_id, slug, label, layout_type)
    VALUES (gen_random_uuid(), 'bench', 'Bench', 'full_slider') RETURNING public_id
"""
ADD_BANNERS: Final = """
    INSERT INTO banners (public_id, title, primary_image_url)
    SELECT gen_random_uuid(), 'B', 'https://cdn.example/b.png' FROM generate_series(1, $1::int)
    RETURNING public_id
"""
CAMPAIGNS: Final = """
    SELECT campaign.public_id, payer.public_id AS payer_id
      FROM campaigns AS campaign LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     ORDER BY campaign.id
"""
CURSOR: Final = "SELECT entry_id FROM projection_cursors WHERE projection = $1"
CHARGED: Final = (
    "SELECT count(*), coalesce(sum(amount_micros), 0)::bigint FROM money_entries WHERE kind = 'charge'"
)
IMPRESSIONS: Final = "SELECT coalesce(sum(impressions), 0)::bigint FROM events.event_counts"


class BudgetCampaign(msgspec.Struct, frozen=True):
    """A campaign, its actor's address, and its banner and placement."""

    id: CampaignId
    address: Address
    banner_id: BannerId
    placement_id: PlacementId


async def add_campaigns(pool: Pool, count: int, *, cpm_micros: int, paid_every: int) -> list[BudgetCampaign]:
    """Create running campaigns with budgets; one in `paid_every` belongs to an advertiser with its own budget."""
    advertisers = max(1, count // paid_every // CAMPAIGNS_AN_ADVERTISER)
    await pool.execute(ADD_ADVERTISERS, advertisers)
    await pool.execute(
        ADD_CAMPAIGNS, count, advertisers, cpm_micros, paid_every, timeout=STATEMENT_SECONDS_MAX
    )
    placement_id = PlacementId(await pool.fetchval(ADD_PLACEMENT))
    banners = await pool.fetch(ADD_BANNERS, count, timeout=STATEMENT_SECONDS_MAX)
    await pool.execute("ANALYZE advertisers, campaigns, banners, placements")
    campaigns = await pool.fetch(CAMPAIGNS, timeout=STATEMENT_SECONDS_MAX)
    return [
        BudgetCampaign(
            CampaignId(row["public_id"]),
            campaign_address(
                CampaignId(row["public_id"]),
                None if row["payer_id"] is None else AdvertiserId(row["payer_id"]),
            ),
            BannerId(banner["public_id"]),
            placement_id,
        )
        for row, banner in zip(campaigns, banners, strict=True)
    ]


async def read_cursor(pool: Pool, projection: str) -> str | None:
    return await pool.fetchval(CURSOR, projection)


async def count_impressions(pool: Pool) -> int:
    return await pool.fetchval(IMPRESSIONS)


async def sum_charges(pool: Pool) -> tuple[int, int]:
    """Return the number of charges in the money ledger, and their sum."""
    row = await pool.fetchrow(CHARGED)
    assert row is not None
    return row[0], row[1]
