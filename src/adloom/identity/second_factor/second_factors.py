"""Setting a second factor up, asking for it, and taking it off."""

import secrets
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.caller import Role
from adloom.core.errors import ConflictError, ForbiddenError, UnauthenticatedError, make_field_error
from adloom.identity import store as users
from adloom.identity.attempt_limiter import SharedAttemptLimiter
from adloom.identity.model import LogInEndedError, User
from adloom.identity.second_factor import store
from adloom.identity.second_factor.store import StoredFactor
from adloom.identity.second_factor.totp import (
    clean_code,
    encode_secret,
    find_step,
    group,
    make_app_url,
)
from adloom.identity.security_record import USER, make_stranger, record_event
from adloom.resource.audit.entry import Author, make_system_author
from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.encryption import DecryptionError, SecretCipher
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.postgres import Pool

SECRET_BYTES: Final = 20  # As RFC 4226 recommends.
RECOVERY_CODES: Final = 10
# 80 bits: a fast hash without salt is enough.
RECOVERY_CHARACTERS: Final = 16
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
# A code has six digits and three are right: after these, one a minute.
ATTEMPTS_AT_ONCE_MAX: Final = 5
ATTEMPTS_PER_MINUTE: Final = 1
OWNER: Final = "second factor of "


class SecondFactorRequiredError(ForbiddenError):
    """The password is right, and a code is missing."""

    code = "SECOND_FACTOR_REQUIRED"

    def __init__(self) -> None:
        super().__init__("Send the code of your authenticator app, or a recovery code, as code.")


class SecondFactorSetUpRequiredError(ForbiddenError):
    """The role needs a second factor, and the person has none."""

    code = "SECOND_FACTOR_SET_UP_REQUIRED"

    def __init__(self) -> None:
        super().__init__("Your role needs a second factor: log in to the console once to set it up.")


class SecondFactorWrongError(UnauthenticatedError):
    """The code is wrong, too old, or was used."""

    code = "SECOND_FACTOR_WRONG"

    def __init__(self) -> None:
        super().__init__("The code is wrong, too old, or was used before. Wait for the next one.")


class FactorState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a person has a second factor, whether they must, and how many recovery codes are left."""

    is_on: bool
    is_required: bool
    recovery_codes_left: int


class FactorSetUp(msgspec.Struct, frozen=True, kw_only=True):
    """What an app needs: the secret to type, or the address in the picture."""

    secret: str
    app_url: str

    def __repr__(self) -> str:
        """Show nothing."""
        return "FactorSetUp(…)"


class SecondFactors:
    """The second factors of all people."""

    def __init__(
        self,
        pool: Pool,
        cipher: SecretCipher | None,
        required_roles: AbstractSet[Role],
        attempts: SharedAttemptLimiter,
    ) -> None:
        self._pool = pool
        self._cipher = cipher
        self._required = required_roles
        self._attempts = attempts

    def is_required_of(self, role: Role) -> bool:
        return role in self._required

    async def end_log_ins_without(self, now: datetime) -> None:
        """End the log-ins of people who need a second factor and have none: the setting is new."""
        if not self._required:
            return
        async with self._pool.acquire() as connection, connection.transaction():
            for person_id in await store.list_logged_in_without(connection, self._required):
                await users.end_log_ins(connection, person_id)
                author = make_system_author("second factor")
                await record_event(connection, author, "log_ins_ended", USER, person_id, at=now)

    async def check_log_in(
        self, user: User, code: str | None, *, now: datetime, origin: ClientOrigin
    ) -> None:
        """Raise unless the person needs no second factor, or has shown it."""
        factor = await self._find(user.id)
        if factor.is_on:
            if not code:
                raise SecondFactorRequiredError
            await self.check_code(user.id, code, now=now, author=make_stranger(origin, str(user.id)))
        elif self.is_required_of(user.role):
            raise SecondFactorSetUpRequiredError

    async def read_state(self, person_id: UUID, role: Role) -> FactorState:
        factor = await self._find(person_id)
        return FactorState(
            is_on=factor.is_on,
            is_required=self.is_required_of(role),
            recovery_codes_left=factor.codes_left,
        )

    async def begin(self, person_id: UUID) -> FactorSetUp:
        """Begin to set one up, or go on; it counts once a code of it was shown."""
        factor = await self._find(person_id)
        if factor.is_on:
            raise _is_on()
        secret = self._read_secret(person_id, factor)
        if secret is None:
            secret = secrets.token_bytes(SECRET_BYTES)
            sealed = self._require_cipher().encrypt(secret.hex(), belongs_to=f"{OWNER}{person_id}")
            async with self._pool.acquire() as connection:
                if not await store.begin_factor(connection, person_id, sealed):
                    raise _is_on()
        return FactorSetUp(secret=encode_secret(secret), app_url=make_app_url(secret, factor.email))

    async def confirm(self, person_id: UUID, code: str, *, now: datetime, author: Author) -> list[str]:
        """Turn it on with its first code, and return the recovery codes: the only time that they are shown."""
        await self._attempts.take(str(person_id), now=now)
        factor = await self._find(person_id)
        secret = None if factor.is_on else self._read_secret(person_id, factor)
        if secret is None:
            raise ConflictError("Begin to set a second factor up first.", code="SECOND_FACTOR_NOT_BEGUN")
        step = find_step(secret, clean_code(code), now=now, after=0)
        if step is None:
            message = "is not the code that the app shows now"
            raise make_field_error("code", message, f"This {message}. Check the clock of your phone.")
        await self._attempts.give_back(str(person_id))
        codes = _make_recovery_codes()
        async with self._pool.acquire() as connection, connection.transaction():
            if not await store.confirm_factor(connection, person_id, step=step, now=now):
                raise _is_on()
            await store.replace_recovery_codes(connection, person_id, map(hash_secret, codes))
            await record_event(connection, author, "second_factor_set_up", USER, person_id, at=now)
        return [group(one) for one in codes]

    async def check_code(self, person_id: UUID, code: str, *, now: datetime, author: Author) -> None:
        """Use a code of the app, or a recovery code, up; raises SecondFactorWrongError."""
        await self._attempts.take(str(person_id), now=now)
        typed, factor = clean_code(code), await self._find(person_id)
        secret = self._read_secret(person_id, factor)
        step = None
        if secret is not None:
            step = find_step(secret, typed, now=now, after=factor.last_step or 0)
        async with self._pool.acquire() as connection, connection.transaction():
            if step is not None:
                is_right = await store.take_step(connection, person_id, step)
            else:
                is_right = await store.take_recovery_code(connection, person_id, hash_secret(typed))
            if not is_right or step is None:
                action = "recovery_code_used" if is_right else "second_factor_failed"
                await record_event(connection, author, action, USER, person_id, at=now)
        if not is_right:
            raise SecondFactorWrongError
        await self._attempts.give_back(str(person_id))

    async def replace_recovery_codes(
        self, person_id: UUID, code: str, *, now: datetime, author: Author
    ) -> list[str]:
        """Make new recovery codes, in place of all that are left."""
        await self._require_on(person_id)
        await self.check_code(person_id, code, now=now, author=author)
        codes = _make_recovery_codes()
        async with self._pool.acquire() as connection, connection.transaction():
            await store.replace_recovery_codes(connection, person_id, map(hash_secret, codes))
            await record_event(connection, author, "recovery_codes_made", USER, person_id, at=now)
        return [group(one) for one in codes]

    async def remove_own(
        self, person_id: UUID, role: Role, code: str, *, now: datetime, author: Author
    ) -> None:
        """Take one's own off; it takes a code."""
        await self._require_on(person_id)
        if self.is_required_of(role):
            raise ConflictError("Your role needs a second factor.", code="SECOND_FACTOR_IS_REQUIRED")
        await self.check_code(person_id, code, now=now, author=author)
        await self.remove(person_id, now=now, author=author)

    async def remove(self, person_id: UUID, *, now: datetime, author: Author) -> None:
        """Take off the second factor of a person who has lost it."""
        async with self._pool.acquire() as connection, connection.transaction():
            if not await store.delete_factor(connection, person_id):
                raise _is_off()
            await record_event(connection, author, "second_factor_removed", USER, person_id, at=now)

    async def _find(self, person_id: UUID) -> StoredFactor:
        async with self._pool.acquire() as connection:
            factor = await store.find_factor(connection, person_id)
        if factor is None:
            raise LogInEndedError
        return factor

    async def _require_on(self, person_id: UUID) -> None:
        if not (await self._find(person_id)).is_on:
            raise _is_off()

    def _require_cipher(self) -> SecretCipher:
        if self._cipher is None:
            raise ConflictError(
                "A second factor cannot be kept: ADLOOM_SECRET is not set.", code="SECRET_NOT_SET"
            )
        return self._cipher

    def _read_secret(self, person_id: UUID, factor: StoredFactor) -> bytes | None:
        """Return the secret; None where there is none, or none that can be read: recovery codes still work then."""
        if factor.sealed_secret is None or self._cipher is None:
            return None
        try:
            return bytes.fromhex(self._cipher.decrypt(factor.sealed_secret, belongs_to=f"{OWNER}{person_id}"))
        except DecryptionError:
            return None


def _make_recovery_codes() -> list[str]:
    return [
        "".join(secrets.choice(ALPHABET) for _ in range(RECOVERY_CHARACTERS)) for _ in range(RECOVERY_CODES)
    ]


def _is_on() -> ConflictError:
    return ConflictError("You have a second factor already; take it off first.", code="SECOND_FACTOR_IS_ON")


def _is_off() -> ConflictError:
    return ConflictError("There is no second factor to change.", code="SECOND_FACTOR_IS_OFF")
