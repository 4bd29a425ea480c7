"""Issued tokens: written down when they are made or first used, so that they can be listed and revoked."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.caller import Role
from adloom.runtime.auth.access_token import AccessToken
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection

# Expired ones are listed for a while: somebody may ask what a token was used for.
KEPT: Final = timedelta(days=30)

ISSUED = RowSource(
    columns=(
        "it.public_id AS id, it.subject, it.role, it.account_id, it.issued_at, it.expires_at,"
        " it.last_used_at, it.revoked_at"
    ),
    tables="access_tokens AS it",
    tiebreak="it.id",
)
FIND = f"SELECT {ISSUED.columns} FROM {ISSUED.tables} WHERE it.public_id = $1"  # noqa: S608 - our own column names
INSERT = """
    INSERT INTO access_tokens (public_id, subject, role, account_id, issued_at, expires_at, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""
MARK_USED = "UPDATE access_tokens SET last_used_at = $2 WHERE public_id = $1"
REVOKE = """
    UPDATE access_tokens SET revoked_at = $2
     WHERE public_id = $1 AND revoked_at IS NULL AND expires_at > $2
    RETURNING true
"""
VALID = f"""
    SELECT {ISSUED.columns} FROM {ISSUED.tables}
     WHERE it.expires_at > $1 AND it.revoked_at IS NULL ORDER BY it.issued_at, it.id LIMIT 1000
"""  # noqa: S608 - our own column names
DELETE_OLD = "DELETE FROM access_tokens WHERE expires_at <= $1"


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token of a machine or of the command line, without the token itself."""

    id: UUID
    subject: str
    role: Role
    account_id: UUID | None
    issued_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


async def find_issued(connection: Connection, token_id: UUID) -> IssuedToken | None:
    row = await connection.fetchrow(FIND, token_id)
    return msgspec.convert(dict(row), IssuedToken) if row else None


async def insert_issued(
    connection: Connection, token: AccessToken, *, now: datetime, used_at: datetime | None
) -> None:
    """Write a token down, and delete those that ended long ago."""
    caller = token.caller
    await connection.execute(DELETE_OLD, now - KEPT)
    await connection.execute(
        INSERT,
        token.id,
        caller.subject,
        caller.role.value,
        caller.account_id,
        token.issued_at,
        token.expires_at,
        used_at,
    )


async def mark_used(connection: Connection, token_id: UUID, now: datetime) -> None:
    await connection.execute(MARK_USED, token_id, now)


async def revoke_issued(connection: Connection, token_id: UUID, now: datetime) -> bool:
    """Revoke a token; False where there is none that is valid."""
    return bool(await connection.fetchval(REVOKE, token_id, now))


async def list_issued(connection: Connection, page: PageRequest) -> Listed[IssuedToken]:
    return await fetch_structs(connection, ISSUED, Filters(), page, IssuedToken)


async def list_valid(connection: Connection, now: datetime) -> list[IssuedToken]:
    return [msgspec.convert(dict(row), IssuedToken) for row in await connection.fetch(VALID, now)]
