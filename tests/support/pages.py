"""Sites and pages, written straight into the database."""

from datetime import datetime

from adloom.core.ids import SiteId, SystemIds
from adloom.pages.model import expiry
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
    site_id = SiteId(SystemIds().new())
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
    expires_at = None if at is None else expiry(at)
    await connection.execute(WRITE_PAGE, SystemIds().new(), site_id, url, given, at, expires_at)
