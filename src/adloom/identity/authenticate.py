"""Authentication by header: a user's access token, or a machine's API key."""

from adloom.core.actor import Actor
from adloom.core.clock import Clock
from adloom.core.errors import UnauthenticatedError
from adloom.identity import store
from adloom.resource.accounts import AccountRegistry
from adloom.runtime.auth import verify_access_token
from adloom.runtime.postgres import Pool
from adloom.runtime.secret_hash import API_KEY_PREFIX, hash_secret


class HeaderAuthenticator:
    """Turns `Authorization` or `X-API-Key` into an actor."""

    def __init__(self, pool: Pool, *, jwt_secret: str, clock: Clock, accounts: AccountRegistry) -> None:
        self._pool = pool
        self._jwt_secret = jwt_secret
        self._clock = clock
        self._accounts = accounts

    async def actor_of(self, *, authorization: str | None, api_key: str | None) -> Actor:
        """Return the actor; raises UnauthenticatedError."""
        actor = await self._actor_of(extract_secret(authorization, api_key))
        if actor.account_id is not None and not await self._accounts.is_open(actor.role, actor.account_id):
            raise UnauthenticatedError("The account of this token is closed.")
        return actor

    async def _actor_of(self, secret: str) -> Actor:
        if not secret.startswith(API_KEY_PREFIX):
            return verify_access_token(self._jwt_secret, secret, now=self._clock.now())
        async with self._pool.acquire() as connection:
            key = await store.find_api_key(connection, hash_secret(secret))
        if key is None:
            raise UnauthenticatedError("The API key is not valid: it may have been revoked.")
        return key.actor


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
