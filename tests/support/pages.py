"""Sites and pages, written straight into the database."""

from datetime import datetime

from adloom.core.ids import SiteId, SystemIds
from adloom.pages.model import compute_expiry
from adloom.runtime.postgres import Connection, Pool

INSERT_SITE = "INSERT INTO sites (public_id, domain, name) VALUES ($1, $2, $2)"
WRITE_PAGE = """
    INSERT INTO site_pages (public_id, site_id, url, categories, source, classified_at, expires_at, created_at, updated_at)
    SELECT $1, site.id, $3, $4, 'given', $5, $6, now(), now() FROM sites AS site WHERE site.public_id = $2
    ON CONFLICT (site_id, url) DO UPDATE
       SET categories = excluded.categories, classified_at = excluded.classified_at,
           expires_at = excluded.expires_at
"""


async def insert_site(pool: Pool, domain: str) -> SiteId:
    site_id = SiteId(SystemIds().make())
    await pool.execute(INSERT_SITE, site_id, domain)
    return site_id


async def write_page(
    connection: "Pool | Connection",
    site_id: SiteId,
    url: str,
    *,
    at: datetime | None,
    categories: dict[str, float] | None = None,
) -> None:
    """Write what a page is about, as of a moment; with None it waits for its first classification."""
    given = [{"id": one, "confidence": share} for one, share in (categories or {"483": 0.9}).items()]
    expires_at = None if at is None else compute_expiry(at)
    await connection.execute(WRITE_PAGE, SystemIds().make(), site_id, url, given, at, expires_at)


INSERT_APPROVAL = """
    INSERT INTO site_approvals (site_id, banner_id, campaign_id, state, first_seen_at)
    SELECT site.id, banner.id, campaign.id, $4, $5 FROM sites AS site, banners AS banner, campaigns AS campaign
     WHERE site.public_id = $1 AND banner.public_id = $2 AND campaign.public_id = $3
"""
INSERT_CREATIVE = """
    INSERT INTO creatives (campaign_id, banner_id, created_at)
    SELECT campaign.id, banner.id, now() FROM banners AS banner, campaigns AS campaign
     WHERE banner.public_id = $1 AND campaign.public_id = $2
    ON CONFLICT DO NOTHING
"""
WRITE_SHORTLIST = """
    INSERT INTO shortlists (site_id, url, version, slots, updated_at, expires_at)
    SELECT site.id, $2, $3, $4, $5, $6 FROM sites AS site WHERE site.public_id = $1
    ON CONFLICT (site_id, url) DO UPDATE SET slots = excluded.slots, version = excluded.version
"""


async def insert_approval(  # noqa: PLR0913 - a row
    pool: Pool, site_id: str, banner_id: str, campaign_id: str, *, at: datetime, state: str = "pending"
) -> None:
    """Let a banner of a campaign that runs be a candidate on a site, as the market writes it."""
    await pool.execute(INSERT_APPROVAL, site_id, banner_id, campaign_id, state, at)
    await insert_creative(pool, banner_id, campaign_id)
    await pool.execute("UPDATE campaigns SET status = 'active' WHERE public_id = $1", campaign_id)


async def insert_creative(pool: Pool, banner_id: str, campaign_id: str) -> None:
    await pool.execute(INSERT_CREATIVE, banner_id, campaign_id)


async def write_shortlist(
    pool: Pool, site_id: str, url: str, slots: dict[str, list[dict[str, object]]], *, at: datetime
) -> None:
    """Write what competes for the slots of a page, as the market does."""
    listed = [{"slot": slot, "candidates": candidates} for slot, candidates in slots.items()]
    await pool.execute(WRITE_SHORTLIST, site_id, url, 1, listed, at, compute_expiry(at))


def a_candidate(banner_id: str, campaign_id: str, **fields: object) -> dict[str, object]:
    """Return a candidate of a shortlist."""
    return {
        "banner_id": banner_id,
        "campaign_id": campaign_id,
        "advertiser_id": None,
        "category": "424",
        "category_score": 0.5,
        "cpm": 2_000_000,
        **fields,
    }
