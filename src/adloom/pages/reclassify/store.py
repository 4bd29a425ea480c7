"""Which sites are to be classified again, and the texts that are kept for it."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.model import PageSource
from adloom.runtime.postgres import Connection

# Categories that were given came from no classifier.
CLASSIFIED: Final = "it.source <> 'given' AND it.classified_at IS NOT NULL"
ASK: Final = """
    INSERT INTO classify_again (site_id, requested_at) SELECT id, $2 FROM sites WHERE public_id = $1
    ON CONFLICT (site_id) DO UPDATE SET requested_at = excluded.requested_at, after_page = 0
"""
COUNT: Final = f"""
    SELECT count(it.text_start), count(*) - count(it.text_start)
      FROM site_pages AS it JOIN sites AS site ON site.id = it.site_id
     WHERE site.public_id = $1 AND {CLASSIFIED}
"""  # noqa: S608 - a constant
# Then the next crawl does not take them for unchanged.
FORGET_TEXTLESS: Final = f"""
    UPDATE site_pages AS it SET content_hash = NULL, etag = NULL, last_modified = NULL
      FROM sites AS site
     WHERE site.id = it.site_id AND site.public_id = $1 AND {CLASSIFIED} AND it.text_start IS NULL
       AND num_nonnulls(it.content_hash, it.etag, it.last_modified) > 0
"""  # noqa: S608 - a constant
NEXT_SITE: Final = """
    SELECT again.site_id AS key, site.public_id AS id, again.requested_at, again.after_page
      FROM classify_again AS again JOIN sites AS site ON site.id = again.site_id
     ORDER BY again.requested_at LIMIT 1 FOR UPDATE OF again SKIP LOCKED
"""
TEXTS: Final = f"""
    SELECT it.id AS key, it.url, it.title, it.language, it.source, it.text_start, it.content_hash, it.etag, it.last_modified
      FROM site_pages AS it
     WHERE it.site_id = $1 AND it.id > $2 AND it.classified_at < $3 AND it.text_start IS NOT NULL AND {CLASSIFIED}
     ORDER BY it.id LIMIT $4
"""  # noqa: S608 - a constant
ADVANCE: Final = "UPDATE classify_again SET after_page = $2 WHERE site_id = $1"
FINISH: Final = "DELETE FROM classify_again WHERE site_id = $1"


class ReclassifiedCount(msgspec.Struct, frozen=True):
    """How many pages are classified again from the text that is kept, and how many with the next crawl."""

    from_text: int
    at_next_crawl: int


class ReclassifiedSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site whose pages are classified again; those up to `after_page` were asked for."""

    key: int
    id: SiteId
    requested_at: datetime
    after_page: int


class KeptText(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a page's text, as it was classified the last time."""

    key: int
    url: str
    title: str | None
    language: str | None
    source: PageSource
    text_start: str
    content_hash: bytes | None
    etag: str | None
    last_modified: str | None


async def request_reclassification(
    connection: Connection, site_id: SiteId, *, now: datetime
) -> ReclassifiedCount:
    """Note that the pages of a site are to be classified again, from the first on."""
    row = await connection.fetchrow(COUNT, site_id)
    assert row is not None, "a count has a row"
    await connection.execute(FORGET_TEXTLESS, site_id)
    await connection.execute(ASK, site_id, now)
    return ReclassifiedCount(*row)


async def find_next_site(connection: Connection) -> ReclassifiedSite | None:
    """Lock the site that has waited longest; one that another worker has is passed over."""
    row = await connection.fetchrow(NEXT_SITE)
    return None if row is None else msgspec.convert(dict(row), ReclassifiedSite)


async def read_texts(connection: Connection, site: ReclassifiedSite, *, count_max: int) -> list[KeptText]:
    rows = await connection.fetch(TEXTS, site.key, site.after_page, site.requested_at, count_max)
    return [msgspec.convert(dict(row), KeptText) for row in rows]


async def advance(connection: Connection, site: ReclassifiedSite, after_page: int) -> None:
    await connection.execute(ADVANCE, site.key, after_page)


async def finish(connection: Connection, site: ReclassifiedSite) -> None:
    await connection.execute(FINISH, site.key)
