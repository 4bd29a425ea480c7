"""Users, refresh tokens and API keys, without the secrets themselves: only their hashes are kept."""

from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Caller, Role
from adloom.core.errors import UnauthenticatedError, make_field_error
from adloom.core.ids import UserId

PASSWORD_LENGTH_MIN: Final = 10
PASSWORD_LENGTH_MAX: Final = 1_024
# Of a key without one of its own.
KEY_LIFETIME: Final = timedelta(days=365)
# A key or a token that is used every second is not written down every second.
USED_STEP: Final = timedelta(minutes=1)


KEY_SUBJECT: Final = "key:"


class LogInEndedError(UnauthenticatedError):
    """What the person has shown to be let in does not hold any more."""

    def __init__(self) -> None:
        super().__init__("This log-in has ended: log in again.")


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person with a password."""

    id: UserId
    role: Role
    account_id: UUID | None
    disabled_at: datetime | None
    token_epoch: int = 0  # Tokens of an earlier one have ended.
    must_change_password: bool = False

    @property
    def caller(self) -> Caller:
        return Caller(subject=str(self.id), role=self.role, account_id=self.account_id)


class RefreshState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a refresh token: the log-in it continues, and whether it still may."""

    family_id: UUID
    expires_at: datetime
    began_at: datetime  # The log-in.
    used_at: datetime | None
    user: User


class RefreshVerdict(Enum):
    """What to do with a refresh token that is shown."""

    ROTATE = auto()
    REFUSE = auto()
    END_FAMILY = auto()


def judge_refresh(state: RefreshState | None, *, now: datetime) -> RefreshVerdict:
    """Decide about a refresh token: a used one was stolen or copied, so its log-in ends."""
    if state is None:
        return RefreshVerdict.REFUSE
    if state.used_at is not None or state.user.disabled_at is not None:
        return RefreshVerdict.END_FAMILY
    return RefreshVerdict.ROTATE if now < state.expires_at else RefreshVerdict.REFUSE


def is_use_due(last_used_at: datetime | None, *, now: datetime) -> bool:
    """Return whether a use is to be written down."""
    return last_used_at is None or now - last_used_at >= USED_STEP


def check_account(role: Role, account_id: UUID | None) -> None:
    """Raise unless advertisers and publishers name an account, and other roles none."""
    if (account_id is not None) != (role in ACCOUNT_ROLES):
        message = "is required" if role in ACCOUNT_ROLES else "must be left out"
        raise make_field_error("accountId", message, f"For the role {role} accountId {message}.")


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a machine; `key_hint` is how its owner recognizes it."""

    id: UUID
    name: str
    key_hint: str
    role: Role
    account_id: UUID | None
    created_at: datetime
    owner_id: UUID | None  # The person who made it, and with whom it ends; None for the command line.
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @property
    def caller(self) -> Caller:
        return Caller(subject=f"{KEY_SUBJECT}{self.id}", role=self.role, account_id=self.account_id)

    def is_open(self, *, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
