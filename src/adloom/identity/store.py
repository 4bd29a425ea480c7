"""SQL of users and API keys."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.identity.model import ApiKey, LogInEndedError, User
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection, Record

USER_BY_EMAIL = """
    SELECT account.public_id AS id, role, account_id, disabled_at, token_epoch, must_change_password, password_hash,
           EXISTS (SELECT FROM user_networks AS known
                    WHERE known.user_id = account.id AND known.network = $2 AND known.seen_at > $3) AS is_known
      FROM users AS account WHERE lower(email) = lower($1)
"""
# What is asked for with every request of a person: two indexed look-ups.
USER_BY_TOKEN = """
    SELECT public_id AS id, role, account_id, disabled_at, token_epoch, must_change_password,
           $2::uuid IS NULL OR EXISTS (SELECT FROM refresh_tokens WHERE family_id = $2) AS is_logged_in
      FROM users WHERE public_id = $1
"""  # noqa: S105 - a statement
# Who ends log-ins waits, or has ended them.
LOCK_UNCHANGED = """
    SELECT true FROM users WHERE public_id = $1 AND token_epoch = $2 AND disabled_at IS NULL FOR NO KEY UPDATE
"""
LOCK_OPEN_ADMIN = """
    SELECT true FROM users
     WHERE public_id = $1 AND role = 'admin' AND disabled_at IS NULL FOR NO KEY UPDATE
"""
HAS_FIRST_PASSWORD = "SELECT must_change_password FROM users WHERE lower(email) = lower($1)"  # noqa: S105 - a statement
HAS_ADMIN = "SELECT EXISTS (SELECT FROM users WHERE role = 'admin' AND disabled_at IS NULL)"
INSERT_USER = """
    INSERT INTO users (public_id, email, password_hash, role, account_id, created_at, must_change_password)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
    RETURNING true
"""

API_KEYS = RowSource(
    columns=(
        "it.public_id AS id, it.name, it.key_hint, it.role, it.account_id, it.created_at, it.owner_id,"
        " it.expires_at, it.last_used_at, it.revoked_at"
    ),
    tables="api_keys AS it",
    tiebreak="it.id",
)
API_KEY_BY_HASH = f"""
    SELECT {API_KEYS.columns} FROM {API_KEYS.tables} WHERE key_hash = $1
"""  # noqa: S608 - our own column names
INSERT_API_KEY = """
    INSERT INTO api_keys (public_id, name, key_hash, key_hint, role, account_id, created_at, owner_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
REVOKE_API_KEY = """
    UPDATE api_keys SET revoked_at = $2 WHERE public_id = $1 AND revoked_at IS NULL RETURNING true
"""
REVOKE_KEYS_OF = """
    UPDATE api_keys SET revoked_at = $2 WHERE owner_id = $1 AND revoked_at IS NULL RETURNING public_id
"""
MARK_KEY_USED = "UPDATE api_keys SET last_used_at = $2 WHERE public_id = $1"
HAS_API_KEY = "SELECT true FROM api_keys WHERE public_id = $1"
OWNER_OF_KEY = "SELECT owner_id FROM api_keys WHERE public_id = $1"
SEE_NETWORK = """
    INSERT INTO user_networks (user_id, network, seen_at)
    SELECT id, $2, $3 FROM users WHERE public_id = $1
    ON CONFLICT (user_id, network) DO UPDATE SET seen_at = excluded.seen_at
"""
FORGET_NETWORKS = "DELETE FROM user_networks WHERE seen_at <= $1"
# How long a network stays known after a log-in from it.
NETWORK_KEPT: Final = timedelta(days=90)
SET_PASSWORD = "UPDATE users SET password_hash = $2, must_change_password = false WHERE public_id = $1"  # noqa: S105 - a statement
DELETE_LINKS = "DELETE FROM account_links WHERE user_id = (SELECT id FROM users WHERE public_id = $1)"
# Access tokens end with their epoch, the others by being deleted.
END_LOG_INS = (
    "UPDATE users SET token_epoch = token_epoch + 1 WHERE public_id = $1",
    *(
        f"DELETE FROM {table} WHERE user_id = (SELECT id FROM users WHERE public_id = $1)"  # noqa: S608 - our own tables
        for table in ("refresh_tokens", "console_sessions", "console_welcomes", "account_links")
    ),
    # The person who has begun to set one up may be the one to keep out.
    "DELETE FROM second_factors WHERE confirmed_at IS NULL AND user_id = (SELECT id FROM users WHERE public_id = $1)",
)


class FoundUser(msgspec.Struct, frozen=True):
    """A person who wants to log in; `is_known` says that they did so from the same network before."""

    user: User
    password_hash: str | None
    is_known: bool


async def find_user(connection: Connection, email: str, network: str, now: datetime) -> FoundUser | None:
    row = await connection.fetchrow(USER_BY_EMAIL, email, network, now - NETWORK_KEPT)
    return FoundUser(read_user(row), row["password_hash"], row["is_known"]) if row else None


async def find_user_of_token(
    connection: Connection, user_id: UUID, log_in_id: UUID | None
) -> tuple[User, bool] | None:
    """Return a person, and whether the log-in is still open."""
    row = await connection.fetchrow(USER_BY_TOKEN, user_id, log_in_id)
    return (read_user(row), row["is_logged_in"]) if row else None


async def lock_unchanged(connection: Connection, user: User) -> None:
    """Lock a person until the transaction ends; raise where their log-ins were ended since the person was read."""
    if not await connection.fetchval(LOCK_UNCHANGED, user.id, user.token_epoch):
        raise LogInEndedError


async def lock_open_admin(connection: Connection, person_id: UUID) -> None:
    """Lock an admin likewise; raise where the person is none any more."""
    if not await connection.fetchval(LOCK_OPEN_ADMIN, person_id):
        raise LogInEndedError


async def see_network(connection: Connection, user_id: UUID, network: str, now: datetime) -> None:
    """Remember where a person has logged in from."""
    await connection.execute(FORGET_NETWORKS, now - NETWORK_KEPT)
    await connection.execute(SEE_NETWORK, user_id, network, now)


async def has_admin(connection: Connection) -> bool:
    return await connection.fetchval(HAS_ADMIN)


async def insert_user(
    connection: Connection, user: User, *, email: str, password_hash: str | None, now: datetime
) -> bool:
    """Add a user; False where the e-mail address is taken."""
    is_new = await connection.fetchval(
        INSERT_USER,
        user.id,
        email,
        password_hash,
        user.role.value,
        user.account_id,
        now,
        user.must_change_password,
    )
    return bool(is_new)


async def find_api_key(connection: Connection, key_hash: bytes) -> ApiKey | None:
    row = await connection.fetchrow(API_KEY_BY_HASH, key_hash)
    return msgspec.convert(dict(row), ApiKey) if row else None


async def insert_api_key(connection: Connection, key: ApiKey, key_hash: bytes) -> None:
    await connection.execute(
        INSERT_API_KEY,
        key.id,
        key.name,
        key_hash,
        key.key_hint,
        key.role.value,
        key.account_id,
        key.created_at,
        key.owner_id,
        key.expires_at,
    )


async def revoke_api_key(connection: Connection, key_id: UUID, now: datetime) -> bool:
    """Revoke a key; False where there is none that is not revoked yet."""
    return bool(await connection.fetchval(REVOKE_API_KEY, key_id, now))


async def has_api_key(connection: Connection, key_id: UUID) -> bool:
    """Return whether there is such a key, revoked or not."""
    return bool(await connection.fetchval(HAS_API_KEY, key_id))


async def revoke_keys_of(connection: Connection, owner_id: UUID, now: datetime) -> list[UUID]:
    """Revoke the keys that a person has made, and return them."""
    return [row["public_id"] for row in await connection.fetch(REVOKE_KEYS_OF, owner_id, now)]


async def mark_key_used(connection: Connection, key_id: UUID, now: datetime) -> None:
    await connection.execute(MARK_KEY_USED, key_id, now)


async def find_key_owner(connection: Connection, key_id: UUID) -> UUID | None:
    return await connection.fetchval(OWNER_OF_KEY, key_id)


async def list_api_keys(connection: Connection, page: PageRequest) -> Listed[ApiKey]:
    return await fetch_structs(connection, API_KEYS, Filters(), page, ApiKey)


def read_user(row: Record) -> User:
    return msgspec.convert(dict(row), User)


async def set_password(connection: Connection, person_id: UUID, hashed: str) -> None:
    await connection.execute(SET_PASSWORD, person_id, hashed)


async def delete_links(connection: Connection, person_id: UUID) -> None:
    await connection.execute(DELETE_LINKS, person_id)


async def end_log_ins(connection: Connection, person_id: UUID) -> None:
    """End all that lets a user in: access tokens, log-ins of programs and browsers, links."""
    for statement in END_LOG_INS:
        await connection.execute(statement, person_id)
