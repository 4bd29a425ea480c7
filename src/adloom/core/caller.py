"""The caller of a request: a role, and the account that it acts for."""

from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec


class Role(StrEnum):
    """The role of a user."""

    ADMIN = "admin"
    VIEWER = "viewer"
    ADVERTISER = "advertiser"
    PUBLISHER = "publisher"


ACCOUNT_ROLES = frozenset({Role.ADVERTISER, Role.PUBLISHER})
# The subjects of tokens that belong to no person and no key.
COMMAND_LINE: Final = "adloom-cli"
SAMPLE: Final = "adloom-sample"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A user or program with a valid token or key."""

    subject: str
    role: Role
    account_id: UUID | None = None

    def __post_init__(self) -> None:
        assert (self.account_id is not None) == (self.role in ACCOUNT_ROLES), (
            "advertisers and publishers act for an account, admins and viewers for none"
        )

    @property
    def sees_all(self) -> bool:
        """Whether the caller reads every account's data."""
        return self.role not in ACCOUNT_ROLES

    @property
    def person_id(self) -> UUID | None:
        """The account of the person who asks; keys and tokens of machines have none."""
        try:
            return UUID(self.subject)
        except ValueError:
            return None

    @property
    def advertiser_id(self) -> UUID | None:
        return self.account_id if self.role is Role.ADVERTISER else None

    @property
    def publisher_id(self) -> UUID | None:
        return self.account_id if self.role is Role.PUBLISHER else None
