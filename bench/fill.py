"""SQL that fills the database of a bench: a catalog, and campaigns with budgets."""

from typing import Final

import msgspec

from adloom.budgets.addresses import make_campaign_address
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool

STATEMENT_SECONDS_MAX: Final = 3_600.0
CAMPAIGNS_AN_ADVERTISER: Final = 10

# One placement, and banners of one advertiser.
ADD_PLACEMENT: Final = """
    INSERT INTO placements (public_id, slug, label, layout_type)
    VALUES (gen_random_uuid(), 'placement-1', 'P', 'full_slider')
"""
ADD_BANNERS: Final = """
    WITH owner AS (
        INSERT INTO advertisers (public_id, name) VALUES (gen_random_uuid(), 'A') RETURNING id
    )
    INSERT INTO banners (public_id, title, primary_image_url, advertiser_id)
    SELECT gen_random_uuid(), 'B', 'https://cdn.example.com/a.png', id FROM owner, generate_series(1, $1::int)
"""
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


class BudgetCampaign(msgspec.Struct, frozen=True):
    """A campaign, its actor's address, and its banner and placement."""

    id: CampaignId
    address: Address
    banner_id: BannerId
    placement_id: PlacementId


async def fill_catalog(pool: Pool, banners: int) -> None:
    await pool.execute(ADD_PLACEMENT)
    await pool.execute(ADD_BANNERS, banners, timeout=STATEMENT_SECONDS_MAX)
    await pool.execute("ANALYZE placements, advertisers, banners")


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
