"""Links of accounts: the database has the hash of each, and when it ends. Light, because the worker makes them too."""

import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.postgres import Connection

PAGE: Final = "/console/password"
TOKEN_BYTES: Final = 32

# Locked: who changes the address deletes the links of the old one, this one too.
PERSON = """
    SELECT public_id AS id, email, password_hash IS NULL AS is_invited, disabled_at FROM users WHERE public_id = $1
       FOR NO KEY UPDATE
"""
INSERT = """
    INSERT INTO account_links (token_hash, user_id, expires_at)
    SELECT $1, id, $3 FROM users WHERE public_id = $2
"""
FIND = """
    SELECT account.public_id AS id, account.email, account.password_hash IS NULL AS is_invited, account.disabled_at
      FROM account_links AS link JOIN users AS account ON account.id = link.user_id
     WHERE link.token_hash = $1 AND link.expires_at > $2 AND account.disabled_at IS NULL
"""
# Deleted as it is used: of two at once, the second finds nothing.
TAKE = "DELETE FROM account_links WHERE token_hash = $1 AND expires_at > $2 RETURNING true"
DELETE_EXPIRED = "DELETE FROM account_links WHERE expires_at <= $1"


class LinkPurpose(StrEnum):
    """What a link is for."""

    INVITATION = "invitation"
    RESET = "reset"


LIFETIMES: Final = {LinkPurpose.INVITATION: timedelta(days=7), LinkPurpose.RESET: timedelta(days=1)}


class LinkedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """The person whom a link is for; an invited one has no password yet."""

    id: UUID
    email: str
    is_invited: bool
    disabled_at: datetime | None

    @property
    def purpose(self) -> LinkPurpose:
        return LinkPurpose.INVITATION if self.is_invited else LinkPurpose.RESET


class NewLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link when it is made: the only time that its token is known."""

    person: LinkedPerson
    token: str
    expires_at: datetime

    def __repr__(self) -> str:
        """Show nothing: a repr ends up in a log one day."""
        return "NewLink(…)"

    def make_url(self, public_url: str) -> str:
        return f"{public_url}{PAGE}?token={self.token}"


async def create_link(connection: Connection, person_id: UUID, now: datetime) -> NewLink | None:
    """Make a link for a person who may log in; earlier ones work until one of them is used."""
    row = await connection.fetchrow(PERSON, person_id)
    if row is None or row["disabled_at"] is not None:
        return None
    person = msgspec.convert(dict(row), LinkedPerson)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    expires_at = now + LIFETIMES[person.purpose]
    await connection.execute(DELETE_EXPIRED, now)
    await connection.execute(INSERT, hash_secret(token), person_id, expires_at)
    return NewLink(person=person, token=token, expires_at=expires_at)


async def find_link(connection: Connection, token: str, now: datetime) -> LinkedPerson | None:
    """Return the person of a link that works; it is not used up."""
    row = await connection.fetchrow(FIND, hash_secret(token), now)
    return msgspec.convert(dict(row), LinkedPerson) if row else None


async def take_link(connection: Connection, token: str, now: datetime) -> bool:
    """Use a link up; False where it was used meanwhile."""
    return bool(await connection.fetchval(TAKE, hash_secret(token), now))
