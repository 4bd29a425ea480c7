"""SQL of users, refresh tokens and API keys."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.core.actor import Role
from adloom.identity.model import ApiKey, RefreshState, User
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
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
    return (_user(row), row["password_hash"]) if row else None


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


async def insert_refresh(
    connection: Connection, token_hash: bytes, session: RefreshState, now: datetime
) -> None:
    await connection.execute(
        INSERT_REFRESH, token_hash, session.family_id, session.user.id, now, session.expires_at
    )


async def lock_refresh(connection: Connection, token_hash: bytes) -> RefreshState | None:
    """Find a refresh token and lock it until the transaction ends."""
    row = await connection.fetchrow(REFRESH_LOCKED, token_hash)
    if row is None:
        return None
    return RefreshState(
        family_id=row["family_id"], expires_at=row["expires_at"], used_at=row["used_at"], user=_user(row)
    )


async def mark_used(connection: Connection, token_hash: bytes, now: datetime) -> None:
    await connection.execute(MARK_USED, token_hash, now)


async def end_family(connection: Connection, family_id: UUID) -> None:
    """End a log-in: none of its refresh tokens works any more."""
    await connection.execute(END_FAMILY, family_id)


async def end_family_of(connection: Connection, token_hash: bytes) -> None:
    """End the log-in that a refresh token belongs to, if there is one."""
    await connection.execute(END_FAMILY_OF, token_hash)


async def delete_expired(connection: Connection, now: datetime) -> None:
    """Delete refresh tokens that have expired."""
    await connection.execute(DELETE_EXPIRED, now)


async def find_api_key(connection: Connection, key_hash: bytes) -> ApiKey | None:
    row = await connection.fetchrow(API_KEY_BY_HASH, key_hash)
    return _api_key(row) if row else None


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
    rows = await fetch_page(connection, API_KEYS, Filters(), page)
    return Listed(items=[_api_key(row) for row in rows.items], total_count=rows.total_count)


def _user(row: Record) -> User:
    return User(
        id=row["id"], role=Role(row["role"]), account_id=row["account_id"], disabled_at=row["disabled_at"]
    )


def _api_key(row: Record) -> ApiKey:
    return msgspec.convert(dict(row), ApiKey)
