"""What kinds of account there are, and the errors of naming one."""

from typing import Final

from adloom.core.actor import Role
from adloom.core.errors import FieldProblem, ValidationFailedError

ACCOUNT_TABLES: Final = {Role.ADVERTISER: "advertisers", Role.PUBLISHER: "publishers"}


def unknown_account(role: Role) -> ValidationFailedError:
    """Say that a body names an account that is not there."""
    field = f"{role}Id"
    return ValidationFailedError(
        f"There is no {role} with this id.", errors=[FieldProblem(field, f"names no {role}")]
    )
