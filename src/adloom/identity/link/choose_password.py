"""Choosing a password by a link: it works once, and ends everything that lets the person in until now."""

from datetime import datetime

from adloom.core.errors import UnauthenticatedError, make_field_error
from adloom.identity import store as users
from adloom.identity.link import store
from adloom.identity.link.store import LinkedPerson
from adloom.identity.model import PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN
from adloom.identity.security_record import USER, make_stranger, record_event
from adloom.identity.sessions import PasswordLogInOffError
from adloom.runtime.auth.passwords import Passwords
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.postgres import Pool


class LinkNotValidError(UnauthenticatedError):
    """A link that was used, has ended, or was never made."""

    code = "LINK_NOT_VALID"

    def __init__(self) -> None:
        super().__init__("This link was used before, or is too old. Ask for a new one.")


class PasswordLinks:
    """Links with which people choose their password."""

    def __init__(self, pool: Pool, passwords: Passwords, *, takes_passwords: bool = True) -> None:
        self._pool = pool
        self._takes_passwords = takes_passwords
        self._passwords = passwords

    async def find(self, token: str, *, now: datetime) -> LinkedPerson:
        """Return whom a link is for, without using it up; raises LinkNotValidError."""
        if not self._takes_passwords:
            raise PasswordLogInOffError
        async with self._pool.acquire() as connection:
            person = await store.find_link(connection, token, now)
        if person is None:
            raise LinkNotValidError
        return person

    async def choose_password(
        self, token: str, new_password: str, *, now: datetime, origin: ClientOrigin
    ) -> LinkedPerson:
        """Set the password, and use the link up; all log-ins and other links of the person end."""
        person = await self.find(token, now=now)
        if not PASSWORD_LENGTH_MIN <= len(new_password) <= PASSWORD_LENGTH_MAX:
            message = f"must have {PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX:,} characters"
            raise make_field_error("newPassword", message, f"The new password {message}.")
        # No connection is held meanwhile: hashing takes longer than all queries.
        hashed = await self._passwords.hash(new_password, client=str(person.id))
        async with self._pool.acquire() as connection, connection.transaction():
            if not await store.take_link(connection, token, now):
                raise LinkNotValidError
            await users.set_password(connection, person.id, hashed)
            await users.end_log_ins(connection, person.id)
            author = make_stranger(origin, str(person.id))
            await record_event(connection, author, "password_set_by_link", USER, person.id, at=now)
        return person
