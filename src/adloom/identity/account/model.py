"""A user account as admins see it, and what can be wrong with one."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.actor import Role
from adloom.core.errors import ConflictError, ForbiddenError, NotFoundError

PASSWORD_LENGTH_MIN: Final = 10
PASSWORD_LENGTH_MAX: Final = 1_024


class AccountNotFoundError(NotFoundError):
    """No such account."""

    code = "ACCOUNT_NOT_FOUND"


class EmailTakenError(ConflictError):
    """Another account has this e-mail address."""

    code = "ACCOUNT_EMAIL_EXISTS"


class LastAdminError(ConflictError):
    """No admin would be left who can log in."""

    code = "ACCOUNT_LAST_ADMIN"


class NoPasswordError(ForbiddenError):
    """The client is no user with a password, but a key or a token from the command line."""

    code = "ACCOUNT_HAS_NO_PASSWORD"


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """An account: an e-mail address, a password that is never shown, and a role."""

    id: UUID
    email: str
    role: Role
    account_id: UUID | None
    created_at: datetime
    disabled_at: datetime | None
