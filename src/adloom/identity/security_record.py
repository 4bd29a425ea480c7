"""Security events on the audit record: who, from which network, did what to which account, key or token."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from adloom.core.caller import Caller
from adloom.core.errors import RateLimitedError
from adloom.resource.audit import store as audit_store
from adloom.resource.audit.entry import AuditSubject, Author, NewAuditEntry, build_author
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.http.rate_limit import RateLimiter
from adloom.runtime.postgres import Connection, Pool

USER: Final = "user"
API_KEY: Final = "api_key"
ACCESS_TOKEN: Final = "access_token"  # noqa: S105 - a noun
UNKNOWN: Final = "unknown"
NOBODY: Final = "none"  # The role of a person who is not logged in.
# Attempts of people whom nobody knows, and uses of a dead key: more of one kind a minute are not written down.
REPEATS_AT_ONCE_MAX: Final = 60


def make_author(caller: Caller, origin: ClientOrigin) -> Author:
    return build_author(caller, origin.request_id, origin.network)


def make_stranger(origin: ClientOrigin, subject: str = UNKNOWN) -> Author:
    """Return the author of what was done by somebody who is not logged in."""
    return Author(subject=subject, role=NOBODY, request_id=origin.request_id, network=origin.network)


async def record_event(  # noqa: PLR0913 - what an entry says
    connection: Connection,
    author: Author,
    action: str,
    noun: str,
    noun_id: UUID | str,
    *,
    at: datetime,
    changes: dict[str, Any] | None = None,
) -> None:
    entry = NewAuditEntry(AuditSubject(noun, str(noun_id), None), action, changes or {})
    await audit_store.append(connection, author, [entry], at=at)


class RepeatedEvents:
    """Records what anybody can cause as often as they like: no more than some of a kind."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._unknown = RateLimiter(REPEATS_AT_ONCE_MAX)
        self._known = RateLimiter(1)

    async def record_failed_log_in(self, user_id: UUID | None, origin: ClientOrigin, *, at: datetime) -> None:
        """Record a failure; those of an account are as few as its limit of attempts allows."""
        about = UNKNOWN if user_id is None else str(user_id)
        try:
            if user_id is None:
                self._unknown.check(about, now=at)
        except RateLimitedError:
            return
        await self._pool_record(make_stranger(origin, about), "log_in_failed", USER, about, at)

    async def record_dead_secret(
        self, noun: str, noun_id: UUID, origin: ClientOrigin, *, at: datetime
    ) -> None:
        """Record the use of a key or token that was revoked."""
        try:
            self._known.check(f"{noun}:{noun_id}", now=at)
        except RateLimitedError:
            return
        await self._pool_record(
            make_stranger(origin, f"{noun}:{noun_id}"), "used_after_revocation", noun, str(noun_id), at
        )

    async def _pool_record(self, author: Author, action: str, noun: str, noun_id: str, at: datetime) -> None:
        async with self._pool.acquire() as connection:
            await record_event(connection, author, action, noun, noun_id, at=at)
