"""Logging in, staying logged in, logging out."""

from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import msgspec

from adloom.core.errors import ForbiddenError, UnauthenticatedError, UnavailableError, make_field_error
from adloom.core.ids import IdSource
from adloom.identity import store
from adloom.identity.attempt_limiter import SharedAttemptLimiter
from adloom.identity.model import PASSWORD_LENGTH_MIN, RefreshState, RefreshVerdict, User, judge_refresh
from adloom.identity.security_record import USER, RepeatedEvents, make_author, make_stranger, record_event
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.auth.passwords import Passwords, make_opaque_token
from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.settings import TokenSettings

INSERT_REFRESH = """
    INSERT INTO refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at, began_at)
    SELECT $1, $2, id, $4, $5, $6 FROM users WHERE public_id = $3
"""
# First, so that a token is neither exchanged twice at once nor while its log-in ends: the new one would be left.
LOCK_PERSON_OF = """
    SELECT FROM users WHERE id = (SELECT user_id FROM refresh_tokens WHERE token_hash = $1) FOR NO KEY UPDATE
"""
REFRESH = """
    SELECT token.family_id, token.expires_at, token.began_at, token.used_at, account.public_id AS id, account.role,
           account.account_id, account.disabled_at, account.token_epoch, account.must_change_password
      FROM refresh_tokens AS token JOIN users AS account ON account.id = token.user_id
     WHERE token.token_hash = $1
"""
MARK_USED = "UPDATE refresh_tokens SET used_at = $2 WHERE token_hash = $1"
END_FAMILY = "DELETE FROM refresh_tokens WHERE family_id = $1"
END_FAMILY_OF = """
    WITH ended AS (
        DELETE FROM refresh_tokens
         WHERE family_id = (SELECT family_id FROM refresh_tokens WHERE token_hash = $1)
        RETURNING user_id
    )
    SELECT public_id FROM users WHERE id IN (SELECT user_id FROM ended)
"""
DELETE_EXPIRED = "DELETE FROM refresh_tokens WHERE expires_at <= $1"


class PasswordChangeRequiredError(ForbiddenError):
    """The password is right, and was made for the first log-in only."""

    code = "PASSWORD_CHANGE_REQUIRED"


class PasswordLogInOffError(ForbiddenError):
    """People log in by the provider of single sign-on only."""

    code = "PASSWORD_LOG_IN_OFF"

    def __init__(self) -> None:
        super().__init__("Passwords are turned off here: log in to the console by single sign-on.")


class TokenPair(msgspec.Struct, frozen=True, kw_only=True):
    """What a client gets when it logs in or refreshes."""

    access_token: str
    refresh_token: str
    expires_in_seconds: int

    def __repr__(self) -> str:
        """Show nothing: a repr ends up in a log one day."""
        return "TokenPair(…)"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody shows who wants to log in; `new_password` replaces a first password."""

    email: str
    password: str
    new_password: str | None = None
    code: str | None = None  # Of the second factor.

    def __repr__(self) -> str:
        """Show nothing."""
        return "Credentials(…)"


class SecondFactorCheck(Protocol):
    """Asks for a second factor where there is one, or must be."""

    async def check_log_in(
        self, user: User, code: str | None, *, now: datetime, origin: ClientOrigin
    ) -> None: ...


class UserSessions:
    """The log-ins of users; each is a family of refresh tokens that replace one another."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        pool: Pool,
        *,
        jwt_secret: str,
        passwords: Passwords,
        ids: IdSource,
        record: RepeatedEvents,
        tokens: TokenSettings,
        second_factors: SecondFactorCheck,
        attempts: SharedAttemptLimiter,
        takes_passwords: bool = True,
    ) -> None:
        self._pool = pool
        self._jwt_secret = jwt_secret
        self._passwords = passwords
        self._ids = ids
        self._record = record
        self._tokens = tokens
        self._second_factors = second_factors
        self._takes_passwords = takes_passwords
        self.attempts = attempts

    async def log_in(self, shown: Credentials, *, now: datetime, origin: ClientOrigin) -> TokenPair:
        """Begin a log-in with refresh tokens."""
        user = await self.verify_password(shown, now=now, origin=origin)
        await self._second_factors.check_log_in(user, shown.code, now=now, origin=origin)
        async with self._pool.acquire() as connection, connection.transaction():
            await record_log_in(connection, user, now=now, origin=origin)
            await connection.execute(DELETE_EXPIRED, now)
            return await self._issue_tokens(connection, user, self._ids.make(), now, began_at=now)

    async def verify_password(self, shown: Credentials, *, now: datetime, origin: ClientOrigin) -> User:
        """Return the user, or raise; an unknown address costs the same work as a wrong password."""
        if not self._takes_passwords:
            raise PasswordLogInOffError
        async with self._pool.acquire() as connection:
            found = await store.find_user(connection, shown.email, origin.network, now)
        is_known = found is not None and found.is_known
        tried = str(found.user.id) if found else shown.email.lower()
        if is_known:
            tried = f"{tried}:{origin.network}"
        await self.attempts.take(tried, now=now)
        # No connection is held meanwhile: hashing takes longer than all queries of a log-in.
        password_hash = found.password_hash if found else None
        try:
            is_right = await self._passwords.matches(
                shown.password, password_hash, client=origin.network, is_known=is_known
            )
        except UnavailableError:
            await self.attempts.give_back(tried)  # Nothing was tried.
            raise
        if found is None or not is_right or found.user.disabled_at is not None:
            await self._record.record_failed_log_in(found.user.id if found else None, origin, at=now)
            raise UnauthenticatedError("The e-mail address or the password is wrong.")
        await self.attempts.give_back(tried)
        if found.user.must_change_password:
            return await self._replace_first_password(found.user, shown, now=now, origin=origin)
        return found.user

    async def _replace_first_password(
        self, user: User, shown: Credentials, *, now: datetime, origin: ClientOrigin
    ) -> User:
        new = shown.new_password
        if new is None:
            raise PasswordChangeRequiredError(
                "This is the first password: choose your own. Send it as newPassword beside the first one."
            )
        if len(new) < PASSWORD_LENGTH_MIN or new == shown.password:
            message = f"must have at least {PASSWORD_LENGTH_MIN} characters, and not be the first password"
            raise make_field_error("newPassword", message, f"The new password {message}.")
        hashed = await self._passwords.hash(new, client=str(user.id))
        async with self._pool.acquire() as connection, connection.transaction():
            await store.lock_unchanged(connection, user)
            await store.set_password(connection, user.id, hashed)
            await store.end_log_ins(connection, user.id)
            author = make_author(user.caller, origin)
            await record_event(connection, author, "password_changed", USER, user.id, at=now)
            found = await store.find_user_of_token(connection, user.id, None)
        assert found is not None
        return found[0]

    async def refresh(self, refresh_token: str, *, now: datetime, origin: ClientOrigin) -> TokenPair:
        """Exchange a refresh token for a new pair; it works once."""
        token_hash = hash_secret(refresh_token)
        # The verdict leaves the transaction before it becomes an error: ending a family must be committed.
        async with self._pool.acquire() as connection, connection.transaction():
            state = await _lock_refresh(connection, token_hash)
            verdict = judge_refresh(state, now=now)
            if state is not None and verdict is RefreshVerdict.END_FAMILY:
                await connection.execute(END_FAMILY, state.family_id)
                author = make_stranger(origin, str(state.user.id))
                await record_event(connection, author, "refresh_token_reused", USER, state.user.id, at=now)
            if state is not None and verdict is RefreshVerdict.ROTATE:
                await connection.execute(MARK_USED, token_hash, now)
                return await self._issue_tokens(
                    connection, state.user, state.family_id, now, began_at=state.began_at
                )
        raise UnauthenticatedError("The refresh token is not valid any more: log in again.")

    async def log_out(self, refresh_token: str, *, now: datetime, origin: ClientOrigin) -> None:
        """End the log-in of a refresh token; one that is unknown has nothing to end."""
        async with self._pool.acquire() as connection, connection.transaction():
            token_hash = hash_secret(refresh_token)
            await connection.execute(LOCK_PERSON_OF, token_hash)
            user_id: UUID | None = await connection.fetchval(END_FAMILY_OF, token_hash)
            if user_id is not None:
                author = make_stranger(origin, str(user_id))
                await record_event(connection, author, "log_out", USER, user_id, at=now)

    async def _issue_tokens(
        self, connection: Connection, user: User, family_id: UUID, now: datetime, *, began_at: datetime
    ) -> TokenPair:
        refresh_token = make_opaque_token()
        ends_at = began_at + timedelta(days=self._tokens.log_in_days)
        expires_at = min(now + timedelta(days=self._tokens.refresh_days), ends_at)
        # The log-in ends with its refresh token, and access tokens with the log-in.
        lifetime = min(timedelta(minutes=self._tokens.access_minutes), expires_at - now)
        await connection.execute(
            INSERT_REFRESH, hash_secret(refresh_token), family_id, user.id, now, expires_at, began_at
        )
        return TokenPair(
            access_token=issue_access_token(
                self._jwt_secret,
                user.caller,
                now=now,
                lifetime=lifetime,
                tokens=self._tokens,
                log_in_id=family_id,
                epoch=user.token_epoch,
            ),
            refresh_token=refresh_token,
            expires_in_seconds=int(lifetime.total_seconds()),
        )


async def record_log_in(connection: Connection, user: User, *, now: datetime, origin: ClientOrigin) -> None:
    """Write down that a person logs in, and from where; raise where their log-ins were ended since they were checked."""
    await store.lock_unchanged(connection, user)
    await store.see_network(connection, user.id, origin.network, now)
    await record_event(connection, make_author(user.caller, origin), "log_in", USER, user.id, at=now)


async def _lock_refresh(connection: Connection, token_hash: bytes) -> RefreshState | None:
    await connection.execute(LOCK_PERSON_OF, token_hash)
    row = await connection.fetchrow(REFRESH, token_hash)
    if row is None:
        return None
    return RefreshState(
        family_id=row["family_id"],
        expires_at=row["expires_at"],
        began_at=row["began_at"],
        used_at=row["used_at"],
        user=store.read_user(row),
    )
