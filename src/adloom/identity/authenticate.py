"""Authentication by header: a user's access token, a token of the command line, or a machine's API key.

A signature is not enough: each request asks the database whether what it was made for still holds. That is one indexed
query (1 ms with its connection, on a busy machine). Nothing is cached: a revocation counts at once in every process.
"""

from collections.abc import Callable

from adloom.core.caller import Caller
from adloom.core.clock import Clock
from adloom.core.errors import UnauthenticatedError
from adloom.identity import store
from adloom.identity.issued_tokens import find_issued, insert_issued, mark_used
from adloom.identity.model import LogInEndedError, User, is_use_due
from adloom.identity.security_record import ACCESS_TOKEN, API_KEY, RepeatedEvents
from adloom.resource.accounts import AccountRegistry
from adloom.runtime.auth.access_token import AccessToken, verify_access_token
from adloom.runtime.auth.secret_hash import API_KEY_PREFIX, hash_secret
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import TokenSettings


class HeaderAuthenticator:
    """Turns `Authorization` or `X-API-Key` into a caller."""

    def __init__(  # noqa: PLR0913 - what it asks
        self,
        pool: Pool,
        *,
        jwt_secret: str,
        clock: Clock,
        accounts: AccountRegistry,
        record: RepeatedEvents,
        tokens: TokenSettings,
    ) -> None:
        self._pool = pool
        self._jwt_secret = jwt_secret
        self._clock = clock
        self._accounts = accounts
        self._record = record
        self._tokens = tokens

    async def authenticate(
        self, *, authorization: str | None, api_key: str | None, origin: Callable[[], ClientOrigin]
    ) -> Caller:
        """Return the caller; raises UnauthenticatedError."""
        caller = await self._authenticate(extract_secret(authorization, api_key), origin)
        if caller.account_id is not None and not await self._accounts.is_open(caller.role, caller.account_id):
            raise UnauthenticatedError("The account of this token is closed.")
        return caller

    async def _authenticate(self, secret: str, origin: Callable[[], ClientOrigin]) -> Caller:
        if secret.startswith(API_KEY_PREFIX):
            return await self._authenticate_key(secret, origin)
        token = verify_access_token(self._jwt_secret, secret, now=self._clock.now(), tokens=self._tokens)
        if token.user_id is None:
            return await self._authenticate_issued(token, origin)
        async with self._pool.acquire() as connection:
            found = await store.find_user_of_token(connection, token.user_id, token.log_in_id)
        if found is None or not _is_current(token, found[0], is_logged_in=found[1]):
            raise LogInEndedError
        return token.caller

    async def _authenticate_issued(self, token: AccessToken, origin: Callable[[], ClientOrigin]) -> Caller:
        """Return the caller of a token that no log-in has made; one that is new here is written down."""
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            issued = await find_issued(connection, token.id)
            if issued is None:
                await insert_issued(connection, token, now=now, used_at=now)
            elif issued.revoked_at is None and is_use_due(issued.last_used_at, now=now):
                await mark_used(connection, token.id, now)
        if issued is not None and issued.revoked_at is not None:
            await self._record.record_dead_secret(ACCESS_TOKEN, token.id, origin(), at=now)
            raise UnauthenticatedError("This token was revoked.")
        return token.caller

    async def _authenticate_key(self, secret: str, origin: Callable[[], ClientOrigin]) -> Caller:
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            key = await store.find_api_key(connection, hash_secret(secret))
            if key is not None and key.is_open(now=now) and is_use_due(key.last_used_at, now=now):
                await store.mark_key_used(connection, key.id, now)
        if key is None or not key.is_open(now=now):
            if key is not None and key.revoked_at is not None:
                await self._record.record_dead_secret(API_KEY, key.id, origin(), at=now)
            raise UnauthenticatedError("The API key is not valid: it may have been revoked, or has expired.")
        return key.caller


def extract_secret(authorization: str | None, api_key: str | None) -> str:
    if authorization is None:
        if api_key is None:
            raise UnauthenticatedError("Send a header Authorization: Bearer <token>.")
        if not api_key.startswith(API_KEY_PREFIX):
            raise UnauthenticatedError(f"An API key begins with {API_KEY_PREFIX}.")
        return api_key
    scheme, _, secret = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise UnauthenticatedError("The header must be Authorization: Bearer <token>.")
    return secret.strip()


def _is_current(token: AccessToken, user: User, *, is_logged_in: bool) -> bool:
    """Return whether a token still holds: nothing that it was signed for may have changed since."""
    return (
        user.disabled_at is None
        and is_logged_in
        and token.epoch == user.token_epoch
        and token.caller == user.caller
    )
