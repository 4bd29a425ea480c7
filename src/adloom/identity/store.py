"""SQL of users and API keys."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.core.actor import Role
from adloom.identity.model import ApiKey, User
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection, Record

USER_BY_EMAIL = """
    SELECT public_id AS id, role, account_id, disabled_at, password_hash
      FROM users WHERE lower(email) = lower($1)
"""
HAS_ADMIN = "SELECT EXISTS (SELECT FROM users WHERE role = 'admin' AND disabled_at IS NULL)"
INSERT_USER = """
    INSERT INTO users (public_id, email, password_hash, role, account_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING
    RETURNING true
"""

API_KEYS = RowSource(
    columns="it.public_id AS id, it.name, it.key_hint, it.role, it.account_id, it.created_at, it.revoked_at",
    tables="api_keys AS it",
    tiebreak="it.id",
)
API_KEY_BY_HASH = f"""
    SELECT {API_KEYS.columns} FROM {API_KEYS.tables} WHERE key_hash = $1 AND revoked_at IS NULL
"""  # noqa: S608 - our own column names
INSERT_API_KEY = """
    INSERT INTO api_keys (public_id, name, key_hash, key_hint, role, account_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
REVOKE_API_KEY = """
    UPDATE api_keys SET revoked_at = $2 WHERE public_id = $1 AND revoked_at IS NULL RETURNING true
"""


async def find_user(connection: Connection, email: str) -> tuple[User, str] | None:
    row = await connection.fetchrow(USER_BY_EMAIL, email)
    return (read_user(row), row["password_hash"]) if row else None


async def has_admin(connection: Connection) -> bool:
    return await connection.fetchval(HAS_ADMIN)


async def insert_user(
    connection: Connection, user: User, *, email: str, password_hash: str, now: datetime
) -> bool:
    """Add a user; False where the e-mail address is taken."""
    is_new = await connection.fetchval(
        INSERT_USER, user.id, email, password_hash, user.role.value, user.account_id, now
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
    )


async def revoke_api_key(connection: Connection, key_id: UUID, now: datetime) -> bool:
    """Revoke a key; False where there is none."""
    return bool(await connection.fetchval(REVOKE_API_KEY, key_id, now))


async def list_api_keys(connection: Connection, page: PageRequest) -> Listed[ApiKey]:
    return await fetch_structs(connection, API_KEYS, Filters(), page, ApiKey)


def read_user(row: Record) -> User:
    return User(
        id=row["id"], role=Role(row["role"]), account_id=row["account_id"], disabled_at=row["disabled_at"]
    )
