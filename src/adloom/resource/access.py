"""Whose rows an actor may read and change: all, or those of one account.

Every query of a table takes a `Scope`, so that none can forget it.
"""

# pure

from uuid import UUID

import msgspec

from adloom.core.actor import Actor, Role
from adloom.core.errors import ForbiddenError, wrong_field


class Scope(msgspec.Struct, frozen=True):
    """The rows of one account, or all rows where there is no account."""

    account_id: UUID | None


def require_read(actor: Actor, owner: Role) -> Scope:
    """Return what an actor may read of rows that accounts of a role own, or raise."""
    if actor.sees_all or actor.role is owner:
        return Scope(actor.account_id)
    raise ForbiddenError(f"The role {actor.role} has no access to what belongs to a role {owner}.")


def require_write(actor: Actor, owner: Role) -> Scope:
    """Return what an actor may change of such rows, or raise."""
    if actor.role is Role.VIEWER:
        raise ForbiddenError("A viewer may read, but not change anything.")
    return require_read(actor, owner)


def require_admin(actor: Actor) -> Scope:
    """Return the scope of an admin, or raise for any other role."""
    if actor.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may change this.")
    return Scope(actor.account_id)


def choose_owner(scope: Scope, named: UUID | None, *, field: str) -> UUID | None:
    """Return the owner of a new row: an account owns what it makes, an admin names an owner or none."""
    if scope.account_id is None:
        return named
    if named not in {None, scope.account_id}:
        raise wrong_field(field, "must be your own account, or left out")
    return scope.account_id
