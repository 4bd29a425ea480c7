"""SQL of second factors and recovery codes."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import msgspec

from adloom.core.caller import Role
from adloom.runtime.postgres import Connection

USER_ID = "(SELECT id FROM users WHERE public_id = $1)"
# The secret of one that was begun is shown again only for a while: somebody else may have begun it with a stolen
# password, and waits for its owner to confirm it.
FIND = """
    SELECT CASE WHEN factor.confirmed_at IS NOT NULL OR factor.begun_at > now() - interval '10 minutes'
                THEN factor.sealed_secret END AS sealed_secret,
           factor.confirmed_at, factor.last_step, account.email,
           (SELECT count(*) FROM recovery_codes AS code WHERE code.user_id = account.id)::int AS codes_left
      FROM users AS account LEFT JOIN second_factors AS factor ON factor.user_id = account.id
     WHERE account.public_id = $1
"""
# One that was begun, and whose secret is too old or cannot be read any more, is begun anew.
BEGIN = """
    INSERT INTO second_factors (user_id, sealed_secret) SELECT id, $2 FROM users WHERE public_id = $1
    ON CONFLICT (user_id) DO UPDATE
       SET sealed_secret = excluded.sealed_secret, begun_at = now(), last_step = 0
     WHERE second_factors.confirmed_at IS NULL
    RETURNING true
"""
CONFIRM = f"""
    UPDATE second_factors SET confirmed_at = $2, last_step = $3
     WHERE user_id = {USER_ID} AND confirmed_at IS NULL
    RETURNING true
"""  # noqa: S608 - our own words, here and below
# Of two that show the same code at once, one finds the step taken.
TAKE_STEP = f"""
    UPDATE second_factors SET last_step = $2 WHERE user_id = {USER_ID} AND last_step < $2 RETURNING true
"""  # noqa: S608
TAKE_CODE = f"DELETE FROM recovery_codes WHERE user_id = {USER_ID} AND code_hash = $2 RETURNING true"  # noqa: S608
DELETE_CODES = f"DELETE FROM recovery_codes WHERE user_id = {USER_ID}"  # noqa: S608
INSERT_CODES = """
    INSERT INTO recovery_codes (user_id, code_hash)
    SELECT id, unnest($2::bytea[]) FROM users WHERE public_id = $1
"""
DELETE = f"DELETE FROM second_factors WHERE user_id = {USER_ID} RETURNING confirmed_at IS NOT NULL"  # noqa: S608
# Log-ins from before a role needed a second factor. People of single sign-on have that of their provider.
WITHOUT = """
    SELECT account.public_id FROM users AS account
     WHERE account.role = ANY($1::text[]) AND account.oidc_subject IS NULL
       AND NOT EXISTS (SELECT FROM second_factors AS factor
                        WHERE factor.user_id = account.id AND factor.confirmed_at IS NOT NULL)
       AND (EXISTS (SELECT FROM refresh_tokens AS token WHERE token.user_id = account.id)
            OR EXISTS (SELECT FROM console_sessions AS session WHERE session.user_id = account.id))
"""


class StoredFactor(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a person's second factor; without a secret there is none."""

    email: str
    sealed_secret: bytes | None
    confirmed_at: datetime | None
    last_step: int | None
    codes_left: int

    @property
    def is_on(self) -> bool:
        return self.confirmed_at is not None


async def find_factor(connection: Connection, person_id: UUID) -> StoredFactor | None:
    row = await connection.fetchrow(FIND, person_id)
    return StoredFactor(**dict(row)) if row else None


async def begin_factor(connection: Connection, person_id: UUID, sealed_secret: bytes) -> bool:
    """Keep the secret of a set-up; False where there is a second factor already."""
    return bool(await connection.fetchval(BEGIN, person_id, sealed_secret))


async def confirm_factor(connection: Connection, person_id: UUID, *, step: int, now: datetime) -> bool:
    return bool(await connection.fetchval(CONFIRM, person_id, now, step))


async def take_step(connection: Connection, person_id: UUID, step: int) -> bool:
    """Use the code of a half minute up; False where it, or a later one, was used."""
    return bool(await connection.fetchval(TAKE_STEP, person_id, step))


async def take_recovery_code(connection: Connection, person_id: UUID, code_hash: bytes) -> bool:
    """Use a recovery code up; False where there is none."""
    return bool(await connection.fetchval(TAKE_CODE, person_id, code_hash))


async def replace_recovery_codes(connection: Connection, person_id: UUID, hashes: Iterable[bytes]) -> None:
    await connection.execute(DELETE_CODES, person_id)
    await connection.execute(INSERT_CODES, person_id, list(hashes))


async def delete_factor(connection: Connection, person_id: UUID) -> bool:
    """Delete a second factor with its recovery codes; False where none was on."""
    await connection.execute(DELETE_CODES, person_id)
    return bool(await connection.fetchval(DELETE, person_id))


async def list_logged_in_without(connection: Connection, roles: Iterable[Role]) -> list[UUID]:
    """Return who is logged in without a second factor, of some roles."""
    rows = await connection.fetch(WITHOUT, [role.value for role in roles])
    return [row["public_id"] for row in rows]
