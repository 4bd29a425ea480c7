"""SQL of people who log in by a provider."""

from uuid import UUID

from adloom.runtime.postgres import Connection

BY_SUBJECT = "SELECT public_id FROM users WHERE oidc_issuer = $1 AND oidc_subject = $2"
BY_EMAIL = "SELECT public_id FROM users WHERE lower(email) = lower($1)"
# An account that another subject of the provider has is not given away.
LINK = """
    UPDATE users SET oidc_issuer = $2, oidc_subject = $3
     WHERE public_id = $1 AND (oidc_subject IS NULL OR oidc_issuer <> $2 OR oidc_subject = $3)
    RETURNING true
"""


async def find_by_subject(connection: Connection, issuer: str, subject: str) -> UUID | None:
    return await connection.fetchval(BY_SUBJECT, issuer, subject)


async def find_by_email(connection: Connection, email: str) -> UUID | None:
    return await connection.fetchval(BY_EMAIL, email)


async def link_person(connection: Connection, person_id: UUID, issuer: str, subject: str) -> bool:
    """Remember whom the provider means; False where the account is somebody else's there."""
    return bool(await connection.fetchval(LINK, person_id, issuer, subject))
