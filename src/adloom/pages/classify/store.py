"""What the classifier reads of a page before it works, and renews where the text is the same."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.classify.request import ClassifyRequest
from adloom.pages.model import PageSource
from adloom.runtime.postgres import Connection

FIND: Final = """
    SELECT it.content_hash, it.classifier, it.classifier_version, it.classified_at, it.source, it.expires_at
      FROM site_pages AS it JOIN sites AS site ON site.id = it.site_id
     WHERE site.public_id = $1 AND it.url = $2
"""
RENEW: Final = """
    UPDATE site_pages AS it
       SET classified_at = $4, expires_at = $5, failure = NULL, source = $6, etag = $7, last_modified = $8,
           fetched_at = $9, updated_at = greatest($4, it.updated_at + interval '1 microsecond')
      FROM sites AS site
     WHERE site.id = it.site_id AND site.public_id = $1 AND it.url = $2 AND it.content_hash = $3
    RETURNING it.version
"""


RENEW_GIVEN: Final = """
    UPDATE site_pages AS it
       SET expires_at = $3, failure = NULL, updated_at = greatest($4, it.updated_at + interval '1 microsecond')
      FROM sites AS site
     WHERE site.id = it.site_id AND site.public_id = $1 AND it.url = $2 AND it.source = 'given'
    RETURNING it.version
"""


class ClassifiedText(msgspec.Struct, frozen=True):
    """Which text of a page was classified last, when and by what."""

    content_hash: bytes | None
    classifier: str | None
    classifier_version: str | None
    classified_at: datetime | None
    source: str
    expires_at: datetime | None

    def is_given(self, now: datetime) -> bool:
        """Whether somebody said what the page is about, and that still holds."""
        return self.source == PageSource.GIVEN and self.expires_at is not None and now < self.expires_at


async def find_classified(connection: Connection, site_id: SiteId, url: str) -> ClassifiedText | None:
    row = await connection.fetchrow(FIND, site_id, url)
    return None if row is None else ClassifiedText(*row)


async def renew_classification(
    connection: Connection,
    request: ClassifyRequest,
    *,
    classified_at: datetime,
    expires_at: datetime,
    fetched_at: datetime | None,
) -> int | None:
    """Make a page fresh again whose text is the one that was classified; returns its version, None if it is gone."""
    return await connection.fetchval(
        RENEW,
        request.site_id,
        request.url,
        request.content_hash,
        classified_at,
        expires_at,
        request.source,
        request.etag,
        request.last_modified,
        fetched_at,
    )


async def renew_given(
    connection: Connection, request: ClassifyRequest, *, now: datetime, expires_at: datetime
) -> int | None:
    """Make a page fresh again whose categories were given; returns its version, None if it is gone."""
    return await connection.fetchval(RENEW_GIVEN, request.site_id, request.url, expires_at, now)
