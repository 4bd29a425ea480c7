"""User accounts as admins see them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from pydantic import Field

from adloom.core.caller import Role
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """An account: an e-mail address, a password that is never shown, and a role."""

    virtual: ClassVar[Mapping[str, str]] = {
        "account_name": "coalesce(advertiser.name, publisher.name)",
        "has_password": "it.password_hash IS NOT NULL",
        "has_single_sign_on": "it.oidc_subject IS NOT NULL",
        "has_second_factor": """EXISTS (SELECT FROM second_factors AS factor
            WHERE factor.user_id = it.id AND factor.confirmed_at IS NOT NULL)""",
    }

    id: UUID
    email: str
    role: Role
    account_id: UUID | None
    account_name: Annotated[str | None, Field(description="Of the advertiser or publisher that it acts for.")]
    time_zone: Annotated[
        str | None, Field(description="Of its reports, charts and e-mails; null is UTC, until one is chosen.")
    ]
    has_password: Annotated[bool, Field(description="False until an invited person has chosen one.")]
    has_single_sign_on: Annotated[bool, Field(description="Whether they have logged in by the provider.")]
    has_second_factor: bool
    created_at: datetime
    disabled_at: datetime | None


PEOPLE = RowSource(
    columns=(
        "it.public_id AS id, it.email, it.role, it.account_id, it.time_zone, it.created_at, it.disabled_at, "
        + ", ".join(f"{sql} AS {name}" for name, sql in Person.virtual.items())
    ),
    tables="""users AS it
        LEFT JOIN advertisers AS advertiser
               ON it.role = 'advertiser' AND advertiser.public_id = it.account_id
        LEFT JOIN publishers AS publisher ON it.role = 'publisher' AND publisher.public_id = it.account_id""",
    tiebreak="it.id",
)
# Locked: two admins who disable each other do it one after the other, and one is refused.
LOCK_ADMINS = "SELECT public_id FROM users WHERE role = 'admin' AND disabled_at IS NULL FOR UPDATE"
BY_ID = f"SELECT {PEOPLE.columns} FROM {PEOPLE.tables} WHERE it.public_id = $1 FOR UPDATE OF it"  # noqa: S608 - our own column names
PASSWORD_HASH = "SELECT password_hash FROM users WHERE public_id = $1"  # noqa: S105 - a statement
SET_ROLE = "UPDATE users SET role = $2, account_id = $3 WHERE public_id = $1"
SET_EMAIL = """
    UPDATE users SET email = $2
     WHERE public_id = $1
       AND NOT EXISTS (SELECT FROM users WHERE lower(email) = lower($2) AND public_id <> $1)
    RETURNING true
"""
SET_TIME_ZONE = "UPDATE users SET time_zone = $2 WHERE public_id = $1"
TIME_ZONE = "SELECT time_zone FROM users WHERE public_id = $1"
SET_DISABLED = "UPDATE users SET disabled_at = $2 WHERE public_id = $1"
DELETE = "DELETE FROM users WHERE public_id = $1"


async def list_people(
    connection: Connection, page: PageRequest, *, role: Role | None, search: str | None
) -> Listed[Person]:
    filters = Filters()
    filters.add_given("it.role = {}", role.value if role else None)
    filters.add_search(["it.email", "advertiser.name", "publisher.name"], search)
    return await fetch_structs(connection, PEOPLE, filters, page, Person)


async def lock_person(connection: Connection, person_id: UUID) -> Person | None:
    """Find an account and lock it until the transaction ends."""
    row = await connection.fetchrow(BY_ID, person_id)
    return msgspec.convert(dict(row), Person) if row else None


async def lock_open_admins(connection: Connection) -> set[UUID]:
    """Return the admins who can log in, locked until the transaction ends."""
    return {row["public_id"] for row in await connection.fetch(LOCK_ADMINS)}


async def read_password_hash(connection: Connection, person_id: UUID) -> str | None:
    return await connection.fetchval(PASSWORD_HASH, person_id)


async def set_disabled(connection: Connection, person_id: UUID, at: datetime | None) -> None:
    """Disable an account at a moment, or enable it with None."""
    await connection.execute(SET_DISABLED, person_id, at)


async def set_role(connection: Connection, person_id: UUID, role: Role, account_id: UUID | None) -> None:
    await connection.execute(SET_ROLE, person_id, role.value, account_id)


async def set_email(connection: Connection, person_id: UUID, email: str) -> bool:
    """Change an e-mail address; False where another account has it."""
    return bool(await connection.fetchval(SET_EMAIL, person_id, email))


async def set_time_zone(connection: Connection, person_id: UUID, time_zone: str | None) -> None:
    await connection.execute(SET_TIME_ZONE, person_id, time_zone)


async def read_time_zone(connection: Connection, person_id: UUID) -> str | None:
    return await connection.fetchval(TIME_ZONE, person_id)


async def delete_person(connection: Connection, person_id: UUID) -> None:
    """Delete an account with its log-ins; the audit trail has what it did."""
    await connection.execute(DELETE, person_id)
