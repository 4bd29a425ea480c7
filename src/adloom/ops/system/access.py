"""Who may see how the installation is doing: those who read everything."""

from adloom.core.actor import Actor, Role
from adloom.core.errors import ForbiddenError


def check_house(actor: Actor) -> None:
    """Let admins and viewers pass: it is the house's own, and no account's."""
    if not actor.sees_all:
        raise ForbiddenError("Only admins and viewers see how the installation is doing.")


def check_admin(actor: Actor) -> None:
    """Let admins pass."""
    if actor.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may see and do this.")
