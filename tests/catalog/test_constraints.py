"""The database refuses what the API refuses: a bug above it cannot store such a row."""

import asyncpg
import pytest

from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool

PLACEMENT = (
    "INSERT INTO placements (public_id, slug, label, layout_type, {0}) VALUES ($1, 'a', 'A', 'popup', {1})"
)
BANNER = "INSERT INTO banners (public_id, title, primary_image_url, {0}) VALUES ($1, 'B', 'https://x/', {1})"
CAMPAIGN = "INSERT INTO campaigns (public_id, name, {0}) VALUES ($1, 'C', {1})"
ADVERTISER = "INSERT INTO advertisers (public_id, name, {0}) VALUES ($1, 'D', {1})"
JOINED = """
    WITH placement AS (
        INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, 'a', 'A', 'popup') RETURNING id
    ), campaign AS (INSERT INTO campaigns (public_id, name) VALUES ($1, 'C') RETURNING id
    ), banner AS (
        INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'B', 'https://x/') RETURNING id
    ), link AS (
        INSERT INTO campaign_placements (campaign_id, placement_id, state)
        SELECT campaign.id, placement.id, {state} FROM campaign, placement RETURNING campaign_id
    )
"""
ASSIGNMENT = (
    JOINED.replace("{state}", "'accepted'")  # noqa: S608 - our own names
    + "INSERT INTO banner_assignments (campaign_id, placement_id, banner_id, {0})"
    " SELECT campaign.id, placement.id, banner.id, {1} FROM campaign, placement, banner, link"
)
LINK = JOINED.replace("{state}", "{1}") + "SELECT {0} FROM link"  # noqa: S608 - our own names
STATS = (
    JOINED.replace("{state}", "'accepted'")  # noqa: S608 - our own names
    + "INSERT INTO banner_stats (banner_id, placement_id, campaign_id, stat_date, {0})"
    " SELECT banner.id, placement.id, campaign.id, '2026-11-15', {1} FROM banner, placement, campaign"
)
CAP = (
    "WITH banner AS (INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'B', 'https://x/')"
    ' RETURNING id) INSERT INTO frequency_caps (public_id, banner_id, "window", max_impressions_per_user)'
    " SELECT $1, id, {0}, {1} FROM banner"
)
CASES = [
    (PLACEMENT, "max_banners", "0", "1"),
    (PLACEMENT, "sort_order", "-1", "0"),
    (PLACEMENT, "recommended_width", "0", "1"),
    (PLACEMENT, "recommended_height", "0", "1"),
    (PLACEMENT, "floor_cpm_micros", "-1", "0"),
    (PLACEMENT, "auction_scoring", "'magic'", "'learned'"),
    (PLACEMENT, "rotation", "'magic'", "'best'"),
    (BANNER, "priority", "-1", "0"),
    (BANNER, "bg_color", "'#ff'", "'#fff'"),
    (BANNER, "bg_color", "'red'", "'#ff8800'"),
    (BANNER, "publish_at, expires_at", "now(), now()", "now(), now() + interval '1 s'"),
    (CAMPAIGN, "priority", "-1", "0"),
    (CAMPAIGN, "starts_at, ends_at", "now(), now()", "now(), now() + interval '1 s'"),
    (CAMPAIGN, "budget_total_paisa", "-1", "0"),
    (CAMPAIGN, "budget_daily_paisa", "-1", "0"),
    (CAMPAIGN, "impression_cap", "-1", "0"),
    (CAMPAIGN, "click_cap", "-1", "0"),
    (CAMPAIGN, "bid_amount_micros", "-1", "0"),
    (ADVERTISER, "daily_budget_paisa", "-1", "0"),
    (ASSIGNMENT, "display_order", "-1", "0"),
    (ASSIGNMENT, "weight", "-1", "0"),
    (ASSIGNMENT, "transition_duration_ms", "-1", "0"),
    (LINK, "campaign_id", "'perhaps'", "'refused'"),
    (STATS, "impressions", "-1", "0"),
    (STATS, "clicks", "-1", "0"),
    (STATS, "spend_paisa", "-1", "0"),
    (CAP, "'Day'", "0", "1"),
    (CAP, "'Decade'", "", ""),
]


@pytest.mark.parametrize(("statement", "columns", "wrong", "right"), CASES)
async def test_a_row_out_of_bounds_is_refused_and_one_at_the_bound_is_not(
    statement: str, columns: str, wrong: str, right: str, pool: Pool
) -> None:
    row_id = SystemIds().make()

    with pytest.raises(asyncpg.CheckViolationError):
        await pool.execute(statement.format(columns, wrong or "1"), row_id)
    await pool.execute(statement.format(columns if right else "'Week'", right or "1"), row_id)
