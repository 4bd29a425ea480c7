"""Verification of sites over HTTP."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import Body as BodyOf
from pydantic import Field

from adloom.catalog.site import sites
from adloom.core.errors import RateLimitedError
from adloom.pages.verification.verify import ensure_verification, verify_site
from adloom.resource.access import require_admin
from adloom.resource.api import CurrentCatalog, PublisherWrites, make_catalog_router
from adloom.runtime.http.api.dependencies import CurrentCaller, CurrentValkey, Now, depend_on
from adloom.runtime.http.api.shapes import Answer, Body, Flag
from adloom.runtime.outbound.client import OutboundClient
from adloom.runtime.valkey import Valkey, raise_if_away

# A stranger's server is asked on somebody's word: not often.
CHECKS_PER_MINUTE: Final = 20
MINUTE: Final = 60


class VerificationAnswer(Answer):
    """What to put where: a file at `url` with the token on a line of its own."""

    token: str
    url: str


class VerifyBody(Body):
    """How a site is verified."""

    force: Annotated[Flag, Field(description="Without a file, by an admin's word.")] = False


Outbound = Annotated[OutboundClient, depend_on("outbound")]

router = make_catalog_router("/admin/sites/{site_id}", tag="verification")


@router.post("/verification")
async def ask_verification(
    site_id: UUID, scope: PublisherWrites, catalog: CurrentCatalog, now: Now
) -> VerificationAnswer:
    """Read the token that proves a site; it stays the same until the site has another domain."""
    async with catalog.read() as connection, connection.transaction():
        site = await sites.table.find(connection, scope, site_id)
        verification = await ensure_verification(connection, site, now=now)
    return VerificationAnswer(token=verification.token, url=verification.url)


@router.post("/verify", response_model=sites.answer)
async def verify(  # noqa: PLR0913, PLR0917 - what a handler asks for
    site_id: UUID,
    scope: PublisherWrites,
    caller: CurrentCaller,
    catalog: CurrentCatalog,
    client: Outbound,
    valkey: CurrentValkey,
    now: Now,
    body: Annotated[VerifyBody | None, BodyOf()] = None,
) -> Answer:
    """Look for the token on the site. An admin may say that a site is its publisher's (`force`)."""
    is_forced = body is not None and body.force
    if is_forced:
        require_admin(caller)
    async with catalog.read() as connection:
        site = await sites.table.find(connection, scope, site_id)
    if not is_forced:
        await limit_checks(valkey, site_id)
    verified = await verify_site(catalog, client, scope, site, is_forced=is_forced, now=now)
    return sites.answer.model_validate(verified)


async def limit_checks(valkey: Valkey, site_id: UUID) -> None:
    """Count a look at a site; RateLimitedError if there were too many in a minute."""
    key = f"adloom:verify:{site_id}"
    with raise_if_away():
        async with valkey.pipeline(transaction=True) as at_once:
            at_once.incr(key)
            at_once.expire(key, MINUTE, nx=True)
            count, _ = await at_once.execute()
    if int(count) > CHECKS_PER_MINUTE:
        raise RateLimitedError(
            "This site was checked too often. Try again later.", retry_after_seconds=MINUTE
        )
