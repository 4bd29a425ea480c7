"""Changes of accounts that several routes and log-ins make: what they lock, what they end, what they record."""

from datetime import datetime
from uuid import UUID

from adloom.core.caller import Role
from adloom.core.errors import ConflictError, NotFoundError, make_taken_error
from adloom.identity import store as users
from adloom.identity.account import store
from adloom.identity.account.store import Person
from adloom.identity.acting_for import check_acts_for
from adloom.identity.security_record import API_KEY, USER, record_event
from adloom.resource.audit.difference import describe_change
from adloom.resource.audit.entry import Author
from adloom.runtime.postgres import Connection


async def lock_person(connection: Connection, person_id: UUID) -> Person:
    """Return an account, locked until the transaction ends; raises NotFoundError."""
    person = await store.lock_person(connection, person_id)
    if person is None:
        raise NotFoundError("There is no such account.", code="ACCOUNT_NOT_FOUND")
    return person


async def lock_with_admins(connection: Connection, person_id: UUID) -> tuple[Person, bool]:
    """Lock a user, after the admins; return also whether it is the last admin who can log in."""
    admins = await store.lock_open_admins(connection)
    person = await lock_person(connection, person_id)
    return person, admins == {person.id}


async def lock_person_who_may_go(connection: Connection, person_id: UUID) -> Person:
    """Lock a user; raise where the last admin would be gone."""
    person, is_last_admin = await lock_with_admins(connection, person_id)
    if is_last_admin:
        raise make_last_admin_error()
    return person


def make_last_admin_error() -> ConflictError:
    return ConflictError(
        "This is the last admin who can log in; make another one first.", code="ACCOUNT_LAST_ADMIN"
    )


def make_email_taken_error(email: str) -> ConflictError:
    return make_taken_error("email", f"{email} has an account already.", code="ACCOUNT_EMAIL_EXISTS")


async def move_person(  # noqa: PLR0913 - what it changes, and how that is recorded
    connection: Connection,
    person: Person,
    to: tuple[Role, UUID | None],
    author: Author,
    now: datetime,
    *,
    is_last_admin: bool,
) -> Person:
    """Give a person a role and an account to act for; where that changes something, their access ends."""
    role, account_id = to
    await check_acts_for(connection, role, account_id)
    if is_last_admin and role is not Role.ADMIN:
        raise make_last_admin_error()
    if (role, account_id) == (person.role, person.account_id):
        return person
    await store.set_role(connection, person.id, role, account_id)
    await end_access(connection, person.id, author, now)
    changed = await lock_person(connection, person.id)
    changes = describe_change(person, changed)
    await record_event(connection, author, "role_changed", USER, person.id, at=now, changes=changes)
    return changed


async def change_time_zone(
    connection: Connection, person: Person, time_zone: str | None, author: Author, now: datetime
) -> Person:
    """Set the time zone of a person who is locked; nothing is recorded where it stays the same."""
    if time_zone == person.time_zone:
        return person
    await store.set_time_zone(connection, person.id, time_zone)
    changed = await lock_person(connection, person.id)
    changes = describe_change(person, changed)
    await record_event(connection, author, "update", USER, person.id, at=now, changes=changes)
    return changed


async def end_access(connection: Connection, person_id: UUID, author: Author, now: datetime) -> None:
    """End a user's log-ins, and revoke the keys that the user has made."""
    await users.end_log_ins(connection, person_id)
    for key_id in await users.revoke_keys_of(connection, person_id, now):
        await record_event(connection, author, "revoke", API_KEY, key_id, at=now)
