"""Knows the API keys of servers that report events for their visitors, or conversions of their customers.

An admin's key may report for every placement and campaign, a publisher's for its own placements, an advertiser's the
conversions of its own campaigns. The keys are read again every few seconds, and the index knows the owners: requests
never use the database.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from adloom.core.caller import Role
from adloom.core.errors import ForbiddenError, UnauthenticatedError
from adloom.core.ids import CampaignId, PlacementId
from adloom.runtime.auth.secret_hash import API_KEY_PREFIX, hash_secret
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.serving.index.index import Index

REFRESH_SECONDS: Final = 2.0
KEY_BYTES_MAX: Final = 256

KEYS: Final = """
    SELECT it.key_hash, it.role, publisher.id AS publisher_key, advertiser.id AS advertiser_key
      FROM api_keys AS it
      LEFT JOIN publishers AS publisher
             ON publisher.public_id = it.account_id AND publisher.deleted_at IS NULL
      LEFT JOIN advertisers AS advertiser
             ON advertiser.public_id = it.account_id AND advertiser.deleted_at IS NULL
     WHERE it.revoked_at IS NULL AND (it.expires_at IS NULL OR it.expires_at > now())
"""
_PREFIX: Final = API_KEY_PREFIX.encode()
_BEARER: Final = b"bearer "


class Reporter(msgspec.Struct, frozen=True, gc=False):
    """Whose placements a key may report for, and of whose campaigns it may report conversions; an admin's: of all."""

    is_admin: bool
    publisher_key: int | None
    advertiser_key: int | None


class ReporterKeys:
    """The keys as of a few seconds ago, by their hashes."""

    def __init__(self, pool: Pool, index: Callable[[], Index]) -> None:
        self._pool = pool
        self._index = index
        self._keys: Mapping[bytes, Reporter] = {}

    def is_reporter(self, request: FastRequest, placement_id: PlacementId) -> bool:
        """Return whether a request has a key, which must be for the placement; raise where it is not."""
        reporter = self._find_reporter(request)
        if reporter is None:
            return False
        owner_key = self._index().find_publisher(placement_id)
        if not reporter.is_admin and (owner_key is None or owner_key != reporter.publisher_key):
            raise ForbiddenError(
                f"This API key may not report for the placement {placement_id}: use one of its publisher or an admin's."
            )
        return True

    def is_conversion_reporter(self, request: FastRequest, campaign_id: CampaignId) -> bool:
        """Return whether a request has a key, which must be for the campaign; raise where it is not."""
        reporter = self._find_reporter(request)
        if reporter is None:
            return False
        owner_key = self._index().find_advertiser(campaign_id)
        if not reporter.is_admin and (owner_key is None or owner_key != reporter.advertiser_key):
            raise ForbiddenError(
                "This API key may not report conversions of the token's campaign: use one of its advertiser or an admin's."
            )
        return True

    def _find_reporter(self, request: FastRequest) -> Reporter | None:
        key = find_key(request)
        if key is None:
            return None
        reporter = self._keys.get(hash_secret(key)) if len(key) <= KEY_BYTES_MAX else None
        if reporter is None:
            raise UnauthenticatedError("The API key is not valid: it may have been revoked, or has expired.")
        return reporter

    async def run(self, stop: asyncio.Event) -> None:
        reading = PollLoop(
            self.refresh, every_seconds=REFRESH_SECONDS, away=POSTGRES_AWAY, name="reporter_keys"
        )
        await reading.run(stop)

    async def refresh(self) -> None:
        rows = await self._pool.fetch(KEYS)
        self._keys = {
            row["key_hash"]: Reporter(row["role"] == Role.ADMIN, row["publisher_key"], row["advertiser_key"])
            for row in rows
        }


def find_key(request: FastRequest) -> str | None:
    """Return the API key of a request; other credentials are not for us."""
    if request.first_values is None:
        request.first_values = index_headers(request.headers)
    key = request.first_values.get(b"x-api-key")
    if key is None:
        authorization = request.first_values.get(b"authorization", b"")
        if authorization[: len(_BEARER)].lower() != _BEARER:
            return None
        key = authorization[len(_BEARER) :].strip()
    return key.decode("latin-1") if key.startswith(_PREFIX) else None
