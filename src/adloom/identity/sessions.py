"""Logging in, staying logged in, logging out."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.core.actor import Role
from adloom.core.errors import UnauthenticatedError
from adloom.core.ids import IdSource, UserId
from adloom.identity import store
from adloom.identity.model import (
    ACCESS_LIFETIME,
    REFRESH_LIFETIME,
    RefreshState,
    RefreshVerdict,
    User,
    judge_refresh,
)
from adloom.runtime.auth import Passwords, issue_access_token, new_opaque_token
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.secret_hash import hash_secret

INSERT_REFRESH = """
    INSERT INTO refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at)
    SELECT $1, $2, id, $4, $5 FROM users WHERE public_id = $3
"""
# Locked, so that a token cannot be exchanged twice at once.
REFRESH_LOCKED = """
    SELECT token.family_id, token.expires_at, token.used_at,
           account.public_id AS id, account.role, account.account_id, account.disabled_at
      FROM refresh_tokens AS token JOIN users AS account ON account.id = token.user_id
     WHERE token.token_hash = $1
       FOR UPDATE OF token
"""
MARK_USED = "UPDATE refresh_tokens SET used_at = $2 WHERE token_hash = $1"
END_FAMILY = "DELETE FROM refresh_tokens WHERE family_id = $1"
END_FAMILY_OF = """
    DELETE FROM refresh_tokens
     WHERE family_id = (SELECT family_id FROM refresh_tokens WHERE token_hash = $1)
"""
DELETE_EXPIRED = "DELETE FROM refresh_tokens WHERE expires_at <= $1"


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
            await connection.execute(DELETE_EXPIRED, now)
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
            state = await _lock_refresh(connection, token_hash)
            verdict = judge_refresh(state, now=now)
            if state is not None and verdict is RefreshVerdict.END_FAMILY:
                await connection.execute(END_FAMILY, state.family_id)
            if state is not None and verdict is RefreshVerdict.ROTATE:
                await connection.execute(MARK_USED, token_hash, now)
                return await self._issue_tokens(connection, state.user, state.family_id, now)
        raise UnauthenticatedError("The refresh token is not valid any more: log in again.")

    async def log_out(self, refresh_token: str) -> None:
        """End the log-in of a refresh token; one that is unknown has nothing to end."""
        await self._pool.execute(END_FAMILY_OF, hash_secret(refresh_token))

    async def _issue_tokens(
        self, connection: Connection, user: User, family_id: UUID, now: datetime
    ) -> TokenPair:
        refresh_token = new_opaque_token()
        token_hash = hash_secret(refresh_token)
        await connection.execute(INSERT_REFRESH, token_hash, family_id, user.id, now, now + REFRESH_LIFETIME)
        return TokenPair(
            access_token=issue_access_token(self._jwt_secret, user.actor, now=now, lifetime=ACCESS_LIFETIME),
            refresh_token=refresh_token,
            expires_in_seconds=int(ACCESS_LIFETIME.total_seconds()),
        )


async def _lock_refresh(connection: Connection, token_hash: bytes) -> RefreshState | None:
    row = await connection.fetchrow(REFRESH_LOCKED, token_hash)
    if row is None:
        return None
    return RefreshState(
        family_id=row["family_id"],
        expires_at=row["expires_at"],
        used_at=row["used_at"],
        user=store.read_user(row),
    )


async def ensure_first_admin(pool: Pool, email: str, password: str, now: datetime, ids: IdSource) -> bool:
    """Make an admin where there is none; return whether it did. Two calls at once make one."""
    async with pool.acquire() as connection:
        if await store.has_admin(connection):
            return False
    password_hash = await Passwords().hash(password)
    user = User(id=UserId(ids.new()), role=Role.ADMIN, account_id=None, disabled_at=None)
    async with pool.acquire() as connection:
        return await store.insert_user(connection, user, email=email, password_hash=password_hash, now=now)
