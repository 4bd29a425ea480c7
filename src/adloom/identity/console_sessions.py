"""Logging in with a browser: a random token in a cookie; the database has its hash."""

from datetime import datetime

from adloom.core.errors import UnauthenticatedError
from adloom.identity import console_store as store
from adloom.identity.console_session import LIFETIME_MAX, WELCOME_LIFETIME, ConsoleSession
from adloom.identity.model import User
from adloom.identity.sessions import UserSessions
from adloom.runtime.auth import hash_secret, new_opaque_token
from adloom.runtime.postgres import Pool


class ConsoleSessions:
    """The log-ins of users in browsers."""

    def __init__(self, pool: Pool, sessions: UserSessions) -> None:
        self._pool = pool
        self._sessions = sessions

    async def log_in(self, email: str, password: str, *, now: datetime) -> str:
        """Begin a log-in and return its token."""
        return await self._begin(await self._sessions.verify_password(email, password), now)

    async def welcome(self, token: str, *, now: datetime) -> str:
        """Begin a log-in by a link that works once, and return its token."""
        async with self._pool.acquire() as connection:
            user = await store.take_welcome(connection, hash_secret(token), now)
        if user is None or user.disabled_at is not None:
            raise UnauthenticatedError("This link was used before, or is too old. Log in with your password.")
        return await self._begin(user, now)

    async def find(self, token: str, *, now: datetime) -> ConsoleSession | None:
        """Return the log-in of a token, if it is still valid."""
        async with self._pool.acquire() as connection:
            session = await store.find(connection, hash_secret(token))
        return session if session is not None and session.is_open(now=now) else None

    async def mark_seen(self, token: str, session: ConsoleSession, *, now: datetime) -> None:
        """Record that the user is active; a page that refreshes itself does not count."""
        if session.is_seen_late(now=now):
            async with self._pool.acquire() as connection:
                await store.mark_seen(connection, hash_secret(token), now)

    async def log_out(self, token: str) -> None:
        """End a log-in; one that is unknown has nothing to end."""
        async with self._pool.acquire() as connection:
            await store.end(connection, hash_secret(token))

    async def _begin(self, user: User, now: datetime) -> str:
        token = new_opaque_token()
        async with self._pool.acquire() as connection, connection.transaction():
            await store.delete_expired(connection, now)
            await store.insert(
                connection, hash_secret(token), user.id, now=now, expires_at=now + LIFETIME_MAX
            )
        return token


async def create_welcome(pool: Pool, email: str, *, now: datetime) -> str:
    """Make the token of a link that logs a user in once."""
    token = new_opaque_token()
    async with pool.acquire() as connection:
        await store.insert_welcome(connection, hash_secret(token), email, now + WELCOME_LIFETIME)
    return token
