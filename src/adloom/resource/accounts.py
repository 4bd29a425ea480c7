"""Accounts: the advertisers and publishers that own rows. Their tables are alike but for the name."""

from datetime import datetime
from typing import Final
from uuid import UUID

from adloom.core.caller import Role
from adloom.core.clock import Clock
from adloom.core.errors import ValidationFailedError, make_field_error
from adloom.resource.audit import store as audit_store
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry, make_system_author
from adloom.runtime.postgres import Connection, Pool

ACCOUNT_TABLES: Final = {Role.ADVERTISER: "advertisers", Role.PUBLISHER: "publishers"}

# The names of the tables are our own words.
IS_OPEN = {
    role: f"SELECT deleted_at IS NULL FROM {table} WHERE public_id = $1"  # noqa: S608
    for role, table in ACCOUNT_TABLES.items()
}
INSERT = {
    role: f"""
        INSERT INTO {table} (public_id, name, created_at, updated_at) VALUES ($1, $2, $3, $3)
        ON CONFLICT DO NOTHING
        RETURNING true
    """  # noqa: S608
    for role, table in ACCOUNT_TABLES.items()
}


def make_unknown_account_error(role: Role, field: str) -> ValidationFailedError:
    """Return the error for a field that names no account."""
    return make_field_error(field, f"names no {role}", f"There is no {role} with this id.")


async def is_open(connection: Connection, role: Role, account_id: UUID) -> bool | None:
    """Return whether an account may act; None where it is unknown."""
    return await connection.fetchval(IS_OPEN[role], account_id)


async def insert_account(connection: Connection, role: Role, account_id: UUID, *, now: datetime) -> None:
    """Make an account, unless another request has made it meanwhile."""
    name = f"{role.value.title()} {account_id}"
    about = AuditSubject(role.value, str(account_id), account_id)
    async with connection.transaction():
        if await connection.fetchval(INSERT[role], account_id, name, now):
            entry = NewAuditEntry(about, "create", {"name": {"from": None, "to": name}})
            await audit_store.append(connection, make_system_author("tokens"), [entry], at=now)


class AccountRegistry:
    """Makes accounts on their first use: a token may be signed while the installation is stopped."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    async def is_open(self, role: Role, account_id: UUID) -> bool:
        """Return whether an account may act; an unknown one is made."""
        async with self._pool.acquire() as connection:
            known = await is_open(connection, role, account_id)
            if known is not None:
                return known
            await insert_account(connection, role, account_id, now=self._clock.now())
            return bool(await is_open(connection, role, account_id))
