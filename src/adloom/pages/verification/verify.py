"""Verifies a site, and withdraws that where its file stays away; the proofs are in PostgreSQL."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec
import structlog

from adloom.catalog.site import Site, sites
from adloom.core.clock import Clock
from adloom.core.errors import NotFoundError
from adloom.core.ids import SiteId
from adloom.pages.verification.model import (
    BYTES_MAX,
    FAILED_RECHECKED_AFTER,
    RECHECKED_AFTER,
    SiteNotVerifiedError,
    Verification,
    find_mistake,
)
from adloom.resource.access import EVERYTHING, Scope
from adloom.resource.changes import Catalog, CatalogWrite
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.outbound.client import BodyLimit, OutboundClient
from adloom.runtime.outbound.failure import OutboundError
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
LIMIT: Final = BodyLimit(bytes_max=BYTES_MAX, is_cut_taken=True)
TOKEN_BYTES: Final = 24
RECHECK_SITES: Final = "sites.verify"
EVERY_HOUR: Final = Cron("23 * * * *")
RECHECKED_AT_ONCE: Final = 200

log: structlog.stdlib.BoundLogger = structlog.get_logger()


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


async def check_site(client: OutboundClient, verification: Verification) -> str | None:
    """Return why the site is not proven, or None if it is. A redirect to another host proves nothing."""

    def may_follow(url: str) -> str | None:
        return None if urlsplit(url).hostname == verification.domain else "another host proves nothing"

    try:
        response = await client.get(verification.url, limit=LIMIT, may_follow=may_follow)
    except OutboundError as error:
        return str(error)
    return find_mistake(response.status, response.body, verification.token)


async def ensure_verification(connection: Connection, site: Site, *, now: datetime) -> Verification:
    """Return the proof that is asked of a site; its token stays the same until its domain changes."""
    found = await find_verification(connection, site.id)
    if found is not None and found.domain == site.domain:
        return found
    token = f"adloom-{secrets.token_urlsafe(TOKEN_BYTES)}"
    verification = Verification(site_id=site.id, token=token, domain=site.domain, created_at=now)
    await write_verification(connection, verification)
    return verification


async def verify_site(  # noqa: PLR0913 - who asks, and how
    catalog: Catalog, client: OutboundClient, scope: Scope, site: Site, *, is_forced: bool, now: datetime
) -> Site:
    """Verify a site by its file, or by an admin's word; raises with the reason.

    Then another site with the domain is not verified any more, unless it is proven too.
    """
    async with catalog.read() as connection:
        verification = await ensure_verification(connection, site, now=now)
        rivals = await list_rivals(connection, site.id, site.domain)
    reason = None
    if not is_forced:
        reason = await check_site(client, verification) or await _find_better_claim(client, rivals)
    async with catalog.write() as write:
        current = await sites.table.lock(write, scope, site.id)
        verification = await ensure_verification(write.connection, current, now=now)
        if verification.domain != site.domain:
            reason = "The site has another domain now."
        if reason is None:
            for rival in rivals:
                await _give_way(write, rival, now)
            await write_verification(write.connection, verification.proven(now=now, is_forced=is_forced))
            return await _set_verified(write, scope, current, now)
        failed = verification.failed(reason, now=now, is_verified=False)
        await write_verification(write.connection, failed)
    raise SiteNotVerifiedError(f"{verification.url} does not prove the site. {reason}")


async def _find_better_claim(client: OutboundClient, rivals: Sequence[Verification]) -> str | None:
    for rival in rivals:
        if rival.is_forced:
            return "An admin has verified the domain for another account: ask for it."
        if await check_site(client, rival) is None:
            return "The file has also the token of another account, which came first: remove that token."
    return None


async def _give_way(write: CatalogWrite, rival: Verification, now: datetime) -> None:
    """Withdraw the verification of a site whose domain another has proven."""
    try:
        site = await sites.table.lock(write, EVERYTHING, rival.site_id)
    except NotFoundError:
        return
    if site.verified_at is None or site.domain != rival.domain:
        return
    withdrawn = msgspec.structs.replace(
        rival,
        is_forced=False,
        reason="Another account has proven the domain.",
        checked_at=now,
        withdrawn_at=now,
    )
    await write_verification(write.connection, withdrawn)
    log.warning("verification_withdrawn", site=site.domain, reason=withdrawn.reason)
    await _set_verified(write, EVERYTHING, site, None)


async def _set_verified(write: CatalogWrite, scope: Scope, site: Site, now: datetime | None) -> Site:
    host = None if now is None else site.domain
    after = msgspec.structs.replace(site, verified_at=now, verified_host=host, updated_at=now or write.at)
    return await sites.update(write, scope, site, after)


def recheck_job() -> CronJob:
    return CronJob(
        name=RECHECK_SITES, cron=EVERY_HOUR, job_id=lambda moment: f"sites-verify-{moment:%Y-%m-%dT%H%M}"
    )


class VerificationRecheck:
    """Looks at the files of verified sites again: weekly, and after a failure daily."""

    def __init__(self, catalog: Catalog, client: OutboundClient, clock: Clock) -> None:
        self._catalog = catalog
        self._client = client
        self._clock = clock
        self.checked = 0
        self.withdrawn = 0

    async def handle(self, _job: JobAttempt) -> None:
        async with self._catalog.read() as connection:
            due = await list_due(connection, now=self._clock.now(), count_max=RECHECKED_AT_ONCE)
        for verification in due:
            reason = await check_site(self._client, verification)
            self.checked += 1
            await self._record(verification, reason)

    async def _record(self, verification: Verification, reason: str | None) -> None:
        now = self._clock.now()
        async with self._catalog.write() as write:
            try:
                site = await sites.table.lock(write, EVERYTHING, verification.site_id)
            except NotFoundError:
                return
            current = await find_verification(write.connection, site.id)
            if current is None or current.token != verification.token or site.verified_at is None:
                return
            if reason is None:
                await write_verification(write.connection, current.proven(now=now))
                return
            failed = current.failed(reason, now=now, is_verified=True)
            await write_verification(write.connection, failed)
            if failed.withdrawn_at == now:
                self.withdrawn += 1
                log.warning("verification_withdrawn", site=site.domain, reason=reason)
                await _set_verified(write, EVERYTHING, site, None)
