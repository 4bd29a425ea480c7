"""Whose rows someone may see and change: everyone's, or one account's own.

Every query of the stores takes a `Scope`, so that none can forget to ask.
"""

# pure

from uuid import UUID

import msgspec

from adloom.core.actor import Actor, Role
from adloom.core.errors import FieldProblem, ForbiddenError, ValidationFailedError


class Scope(msgspec.Struct, frozen=True):
    """The rows of one account, or everyone's where there is no account."""

    account_id: UUID | None


def require_read(actor: Actor, owner: Role) -> Scope:
    """Tell what someone may read of nouns that belong to accounts of a role."""
    if actor.sees_all or actor.role is owner:
        return Scope(actor.account_id)
    raise ForbiddenError(f"The role {actor.role} has no access to what belongs to a role {owner}.")


def require_write(actor: Actor, owner: Role) -> Scope:
    """Tell what someone may change of nouns that belong to accounts of a role."""
    if actor.role is Role.VIEWER:
        raise ForbiddenError("A viewer may read, but not change anything.")
    return require_read(actor, owner)


def require_admin(actor: Actor) -> Scope:
    """Tell what someone may change of what only admins change: everything, or nothing."""
    if actor.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may change this.")
    return Scope(actor.account_id)


def choose_owner(scope: Scope, named: UUID | None, *, field: str) -> UUID | None:
    """Tell whose a new thing will be: an account's things are its own, whatever it says."""
    if scope.account_id is None:
        return named
    if named not in {None, scope.account_id}:
        problem = FieldProblem(field, "must be your own account, or left out")
        raise ValidationFailedError(f"{field} must be your own account, or left out.", errors=[problem])
    return scope.account_id
