"""Logging in, staying logged in, logging out."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.core.errors import UnauthenticatedError
from adloom.core.ids import IdSource
from adloom.identity import store
from adloom.identity.model import (
    ACCESS_LIFETIME,
    REFRESH_LIFETIME,
    RefreshState,
    RefreshVerdict,
    User,
    judge_refresh,
)
from adloom.runtime.auth import Passwords, hash_secret, issue_access_token, new_opaque_token
from adloom.runtime.postgres import Connection, Pool


class TokenPair(msgspec.Struct, frozen=True, kw_only=True):
    """What a client gets when it logs in or refreshes."""

    access_token: str
    refresh_token: str
    expires_in_seconds: int

    def __repr__(self) -> str:
        """Show nothing: a repr ends up in a log one day."""
        return "TokenPair(…)"


class UserSessions:
    """The log-ins of users; each is a family of refresh tokens that replace one another."""

    def __init__(self, pool: Pool, *, jwt_secret: str, passwords: Passwords, ids: IdSource) -> None:
        self._pool = pool
        self._jwt_secret = jwt_secret
        self._passwords = passwords
        self._ids = ids

    async def log_in(self, email: str, password: str, *, now: datetime) -> TokenPair:
        """Begin a log-in with refresh tokens."""
        user = await self.verify_password(email, password)
        async with self._pool.acquire() as connection, connection.transaction():
            await store.delete_expired(connection, now)
            return await self._issue_tokens(connection, user, self._ids.new(), now)

    async def verify_password(self, email: str, password: str) -> User:
        """Return the user, or raise; an unknown address costs the same work as a wrong password."""
        async with self._pool.acquire() as connection:
            found = await store.find_user(connection, email)
        # No connection is held meanwhile: hashing takes longer than all queries of a log-in.
        is_right = await self._passwords.matches(password, found[1] if found else None)
        if found is None or not is_right or found[0].disabled_at is not None:
            raise UnauthenticatedError("The e-mail address or the password is wrong.")
        return found[0]

    async def refresh(self, refresh_token: str, *, now: datetime) -> TokenPair:
        """Exchange a refresh token for a new pair; it works once."""
        token_hash = hash_secret(refresh_token)
        # The verdict leaves the transaction before it becomes an error: ending a family must be committed.
        async with self._pool.acquire() as connection, connection.transaction():
            state = await store.lock_refresh(connection, token_hash)
            verdict = judge_refresh(state, now=now)
            if state is not None and verdict is RefreshVerdict.END_FAMILY:
                await store.end_family(connection, state.family_id)
            if state is not None and verdict is RefreshVerdict.ROTATE:
                await store.mark_used(connection, token_hash, now)
                return await self._issue_tokens(connection, state.user, state.family_id, now)
        raise UnauthenticatedError("The refresh token is not valid any more: log in again.")

    async def log_out(self, refresh_token: str) -> None:
        """End the log-in of a refresh token; one that is unknown has nothing to end."""
        async with self._pool.acquire() as connection:
            await store.end_family_of(connection, hash_secret(refresh_token))

    async def _issue_tokens(
        self, connection: Connection, user: User, family_id: UUID, now: datetime
    ) -> TokenPair:
        refresh_token = new_opaque_token()
        session = RefreshState(
            family_id=family_id, expires_at=now + REFRESH_LIFETIME, used_at=None, user=user
        )
        await store.insert_refresh(connection, hash_secret(refresh_token), session, now)
        return TokenPair(
            access_token=issue_access_token(self._jwt_secret, user.actor, now=now, lifetime=ACCESS_LIFETIME),
            refresh_token=refresh_token,
            expires_in_seconds=int(ACCESS_LIFETIME.total_seconds()),
        )
