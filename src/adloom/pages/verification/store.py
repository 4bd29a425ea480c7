"""Proofs of sites in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.verification.model import FAILED_RECHECKED_AFTER, RECHECKED_AFTER, Verification
from adloom.runtime.postgres import Connection

COLUMNS: Final = """
    site.public_id AS site_id, it.token, it.domain, it.is_forced, it.failures, it.reason, it.checked_at,
    it.withdrawn_at, it.created_at
"""
FIND: Final = f"SELECT {COLUMNS} FROM site_verifications AS it JOIN sites AS site ON site.id = it.site_id WHERE site.public_id = $1"  # noqa: S608 - our own names
WRITE: Final = """
    INSERT INTO site_verifications (site_id, token, domain, is_forced, failures, reason, checked_at, withdrawn_at, created_at)
    SELECT id, $2, $3, $4, $5, $6, $7, $8, $9 FROM sites WHERE public_id = $1
    ON CONFLICT (site_id) DO UPDATE
       SET token = excluded.token, domain = excluded.domain, is_forced = excluded.is_forced,
           failures = excluded.failures, reason = excluded.reason, checked_at = excluded.checked_at,
           withdrawn_at = excluded.withdrawn_at, created_at = excluded.created_at
"""
RIVALS: Final = f"""
    SELECT {COLUMNS} FROM site_verifications AS it JOIN sites AS site ON site.id = it.site_id
     WHERE site.domain = $1 AND it.domain = $1 AND site.public_id <> $2 AND site.verified_at IS NOT NULL
"""  # noqa: S608 - our own names
DUE: Final = f"""
    SELECT {COLUMNS} FROM site_verifications AS it JOIN sites AS site ON site.id = it.site_id
     WHERE site.verified_at IS NOT NULL AND NOT it.is_forced AND it.domain = site.domain
       AND it.checked_at < CASE WHEN it.failures > 0 THEN $1::timestamptz ELSE $2::timestamptz END
     ORDER BY it.checked_at LIMIT $3
"""  # noqa: S608 - our own names


async def find_verification(connection: Connection, site_id: SiteId) -> Verification | None:
    row = await connection.fetchrow(FIND, site_id)
    return None if row is None else msgspec.convert(dict(row), Verification)


async def list_rivals(connection: Connection, site_id: SiteId, domain: str) -> Sequence[Verification]:
    """Read the proofs of other sites that are verified with a domain."""
    rows = await connection.fetch(RIVALS, domain, site_id)
    return [msgspec.convert(dict(row), Verification) for row in rows]


async def write_verification(connection: Connection, verification: Verification) -> None:
    await connection.execute(WRITE, *msgspec.structs.astuple(verification))


async def list_due(connection: Connection, *, now: datetime, count_max: int) -> Sequence[Verification]:
    """Read the verified sites whose file is to be looked at again, those that wait longest first."""
    rows = await connection.fetch(DUE, now - FAILED_RECHECKED_AFTER, now - RECHECKED_AFTER, count_max)
    return [msgspec.convert(dict(row), Verification) for row in rows]
