"""The first admin and its link, for `adloom up`: it stays loaded there, and so imports little."""

from datetime import datetime, timedelta
from typing import Final

from adloom.core.caller import Role
from adloom.core.ids import IdSource, UserId
from adloom.identity import store
from adloom.identity.model import User
from adloom.runtime.auth.passwords import Passwords, make_opaque_token
from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.postgres import Pool

WELCOME_LIFETIME: Final = timedelta(hours=24)

INSERT_WELCOME = """
    INSERT INTO console_welcomes (token_hash, user_id, expires_at)
    SELECT $1, id, $3 FROM users WHERE lower(email) = lower($2)
"""


async def has_first_password(pool: Pool, email: str) -> bool:
    """Return whether a person still has the password that was made for the first log-in."""
    return bool(await pool.fetchval(store.HAS_FIRST_PASSWORD, email))


async def ensure_first_admin(pool: Pool, email: str, password: str, now: datetime, ids: IdSource) -> bool:
    """Make an admin where there is none; return whether it did. Two calls at once make one.

    The password is for the first log-in, which replaces it.
    """
    async with pool.acquire() as connection:
        if await store.has_admin(connection):
            return False
    password_hash = await Passwords().hash(password, client=email)
    user = User(
        id=UserId(ids.make()), role=Role.ADMIN, account_id=None, disabled_at=None, must_change_password=True
    )
    async with pool.acquire() as connection:
        return await store.insert_user(connection, user, email=email, password_hash=password_hash, now=now)


async def create_welcome(pool: Pool, email: str, *, now: datetime) -> str:
    """Make the token of a link that logs a user in once."""
    token = make_opaque_token()
    await pool.execute(INSERT_WELCOME, hash_secret(token), email, now + WELCOME_LIFETIME)
    return token
