"""Logging in with a browser: a random token in a cookie; the database has its hash."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import UnauthenticatedError
from adloom.identity.model import LogInEndedError, User
from adloom.identity.pending import read_pending, sign_pending
from adloom.identity.second_factor.second_factors import (
    FactorSetUp,
    SecondFactorRequiredError,
    SecondFactors,
    SecondFactorSetUpRequiredError,
)
from adloom.identity.security_record import USER, make_author, make_stranger, record_event
from adloom.identity.sessions import Credentials, UserSessions, record_log_in
from adloom.identity.store import find_user_of_token, read_user
from adloom.runtime.auth.passwords import make_opaque_token
from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.postgres import Pool

IDLE_MAX: Final = timedelta(hours=12)
LIFETIME_MAX: Final = timedelta(days=7)
PENDING: Final = "second factor"
# A user who loads a page every second is not written down every second.
SEEN_STEP: Final = timedelta(minutes=1)

INSERT = """
    INSERT INTO console_sessions (token_hash, user_id, began_at, seen_at, expires_at)
    SELECT $1, id, $3, $3, $4 FROM users WHERE public_id = $2
"""
FIND = """
    SELECT account.public_id AS id, account.email, account.role, account.account_id, account.disabled_at,
           account.token_epoch, account.must_change_password, account.time_zone, session.seen_at, session.expires_at
      FROM console_sessions AS session JOIN users AS account ON account.id = session.user_id
     WHERE session.token_hash = $1
"""
MARK_SEEN = "UPDATE console_sessions SET seen_at = $2 WHERE token_hash = $1 AND seen_at < $2"
END = """
    DELETE FROM console_sessions AS session USING users AS account
     WHERE session.token_hash = $1 AND account.id = session.user_id
    RETURNING account.public_id
"""
DELETE_EXPIRED = (
    "DELETE FROM console_sessions WHERE expires_at <= $1",
    "DELETE FROM console_welcomes WHERE expires_at <= $1",
)

# Deleted as it is used, so that it cannot be used twice.
TAKE_WELCOME = """
    DELETE FROM console_welcomes AS welcome USING users AS account
     WHERE welcome.token_hash = $1 AND account.id = welcome.user_id
    RETURNING account.public_id AS id, account.role, account.account_id, account.disabled_at, account.token_epoch,
              account.must_change_password, welcome.expires_at
"""


class HalfLoggedInError(Exception):
    """The password is right, and the second factor is missing, or has to be set up."""

    def __init__(self, pending: str, *, is_set_up: bool) -> None:
        super().__init__("half logged in")
        self.pending = pending
        self.is_set_up = is_set_up


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """A user who has logged in with a browser."""

    user: User
    email: str
    time_zone: str | None
    seen_at: datetime
    expires_at: datetime

    def is_open(self, *, now: datetime) -> bool:
        """Return whether it is valid: neither idle for too long, nor too old, nor of a disabled user."""
        return self.user.disabled_at is None and now < min(self.expires_at, self.seen_at + IDLE_MAX)


class ConsoleSessions:
    """The log-ins of users in browsers."""

    def __init__(
        self, pool: Pool, sessions: UserSessions, second_factors: SecondFactors, *, jwt_secret: str
    ) -> None:
        self._pool = pool
        self._jwt_secret = jwt_secret
        self._sessions = sessions
        self._second_factors = second_factors

    async def log_in(self, shown: Credentials, *, now: datetime, origin: ClientOrigin) -> str:
        """Begin a log-in and return its token; raises HalfLoggedInError where a second factor is missing."""
        user = await self._sessions.verify_password(shown, now=now, origin=origin)
        return await self._begin_checked(user, shown.code, now, origin)

    async def go_on(self, pending: str, code: str, *, now: datetime, origin: ClientOrigin) -> str:
        """Begin a log-in that lacks only the code of a second factor, and return its token."""
        user = await self.find_pending(pending, now=now)
        await self._second_factors.check_log_in(user, code, now=now, origin=origin)
        return await self._begin(user, now, origin)

    async def set_up(
        self, pending: str, code: str, *, now: datetime, origin: ClientOrigin
    ) -> tuple[str, list[str]]:
        """Turn on the second factor that a role needs; return the token of the log-in, and recovery codes."""
        user = await self.find_pending(pending, now=now)
        author = make_author(user.caller, origin)
        codes = await self._second_factors.confirm(user.id, code, now=now, author=author)
        return await self._begin(user, now, origin), codes

    async def begin_set_up(self, pending: str, *, now: datetime) -> FactorSetUp:
        """Return what an app needs for the second factor of somebody who is half logged in."""
        user = await self.find_pending(pending, now=now)
        return await self._second_factors.begin(user.id)

    async def find_pending(self, pending: str, *, now: datetime) -> User:
        """Return who is half logged in, unless their log-ins were ended meanwhile."""
        said = read_pending(self._jwt_secret, PENDING, pending, now=now)
        async with self._pool.acquire() as connection:
            found = await find_user_of_token(connection, UUID(said["user"]), None)
        if found is None or found[0].disabled_at is not None or str(found[0].token_epoch) != said["epoch"]:
            raise LogInEndedError
        return found[0]

    async def redeem_welcome(self, token: str, *, now: datetime, origin: ClientOrigin) -> str:
        """Begin a log-in by a link that works once, and return its token."""
        row = await self._pool.fetchrow(TAKE_WELCOME, hash_secret(token))
        if row is None or row["expires_at"] <= now or row["disabled_at"] is not None:
            raise UnauthenticatedError("This link was used before, or is too old. Log in with your password.")
        return await self._begin_checked(read_user(row), None, now, origin)

    async def begin_single_sign_on(self, user: User, *, now: datetime, origin: ClientOrigin) -> str:
        """Begin a log-in of somebody whom the provider vouches for, second factors included."""
        return await self._begin(user, now, origin)

    async def find(self, token: str, *, now: datetime) -> ConsoleSession | None:
        """Return the log-in of a token, if it is still valid."""
        row = await self._pool.fetchrow(FIND, hash_secret(token))
        if row is None:
            return None
        session = ConsoleSession(
            user=read_user(row),
            email=row["email"],
            time_zone=row["time_zone"],
            seen_at=row["seen_at"],
            expires_at=row["expires_at"],
        )
        return session if session.is_open(now=now) else None

    async def mark_seen(self, token: str, session: ConsoleSession, *, now: datetime) -> None:
        """Record that the user is active; a page that refreshes itself does not count."""
        if now - session.seen_at >= SEEN_STEP:
            await self._pool.execute(MARK_SEEN, hash_secret(token), now)

    async def log_out(self, token: str, *, now: datetime, origin: ClientOrigin) -> None:
        """End a log-in; one that is unknown has nothing to end."""
        async with self._pool.acquire() as connection, connection.transaction():
            user_id: UUID | None = await connection.fetchval(END, hash_secret(token))
            if user_id is not None:
                author = make_stranger(origin, str(user_id))
                await record_event(connection, author, "log_out", USER, user_id, at=now)

    async def _begin_checked(self, user: User, code: str | None, now: datetime, origin: ClientOrigin) -> str:
        try:
            await self._second_factors.check_log_in(user, code, now=now, origin=origin)
        except (SecondFactorRequiredError, SecondFactorSetUpRequiredError) as error:
            said = {"user": str(user.id), "epoch": str(user.token_epoch)}
            pending = sign_pending(self._jwt_secret, PENDING, said, now=now)
            is_set_up = isinstance(error, SecondFactorSetUpRequiredError)
            raise HalfLoggedInError(pending, is_set_up=is_set_up) from error
        return await self._begin(user, now, origin)

    async def _begin(self, user: User, now: datetime, origin: ClientOrigin) -> str:
        token = make_opaque_token()
        async with self._pool.acquire() as connection, connection.transaction():
            await record_log_in(connection, user, now=now, origin=origin)
            for statement in DELETE_EXPIRED:
                await connection.execute(statement, now)
            await connection.execute(INSERT, hash_secret(token), user.id, now, now + LIFETIME_MAX)
        return token
