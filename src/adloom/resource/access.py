"""The owners of rows, and which rows a caller may read and change: all, or those of one account.

Every query of a table takes a `Scope`, so that none can forget it.
"""

# pure

from typing import Final
from uuid import UUID

import msgspec

from adloom.core.caller import Caller, Role
from adloom.core.errors import ForbiddenError, make_field_error


class Scope(msgspec.Struct, frozen=True):
    """The rows of one account, or all rows where there is no account."""

    account_id: UUID | None


EVERYTHING: Final = Scope(None)


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts of which role own the rows, and how clients call the field that names the account.

    `is_itself`: the rows are the accounts. `is_in_patch`: a patch may name the owner too, but not change it.
    """

    role: Role
    alias: str
    description: str | None = None
    is_itself: bool = False
    is_in_patch: bool = False

    @property
    def field(self) -> str:
        """The struct's field with the owner's id."""
        return f"{self.role}_id"


ADVERTISER: Final = Owner(role=Role.ADVERTISER, alias="advertiserId")
PUBLISHER: Final = Owner(role=Role.PUBLISHER, alias="publisherId")


def require_read(caller: Caller, owner: Role) -> Scope:
    """Return what a caller may read of rows that accounts of a role own, or raise."""
    if caller.sees_all or caller.role is owner:
        return Scope(caller.account_id)
    raise ForbiddenError(f"The role {caller.role} has no access to what belongs to a role {owner}.")


def require_write(caller: Caller, owner: Role) -> Scope:
    """Return what a caller may change of such rows, or raise."""
    if caller.role is Role.VIEWER:
        raise ForbiddenError("A viewer may read, but not change anything.")
    return require_read(caller, owner)


def require_admin(caller: Caller) -> Scope:
    """Return the scope of an admin, or raise for any other role."""
    if caller.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may change this.")
    return Scope(caller.account_id)


def choose_owner(scope: Scope, named: UUID | None, *, field: str) -> UUID | None:
    """Return the owner of a new row: an account owns what it makes, an admin names an owner or none."""
    if scope.account_id is None:
        return named
    if named not in {None, scope.account_id}:
        raise make_field_error(field, "must be your own account, or left out")
    return scope.account_id
