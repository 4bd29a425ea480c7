"""The account that a person or a key acts for: an existing advertiser or publisher, or none."""

from uuid import UUID

from adloom.core.caller import ACCOUNT_ROLES, Role
from adloom.core.errors import make_field_error
from adloom.identity.model import check_account
from adloom.resource.accounts import is_open, make_unknown_account_error
from adloom.runtime.postgres import Connection

FIELD = "accountId"


async def check_acts_for(connection: Connection, role: Role, account_id: UUID | None) -> None:
    """Raise unless a role has an account where it needs one, and that account is there and of its kind."""
    check_account(role, account_id)
    if account_id is None:
        return
    known = await is_open(connection, role, account_id)
    if known:
        return
    if known is False:
        raise make_field_error(FIELD, f"names a deleted {role}", f"This {role} is deleted. Restore it first.")
    for other in ACCOUNT_ROLES - {role}:
        if await is_open(connection, other, account_id) is not None:
            message = f"names {_with_article(other)}, not {_with_article(role)}"
            raise make_field_error(FIELD, message, f"{FIELD} {message}: change it, or the role.")
    raise make_unknown_account_error(role, FIELD)


def _with_article(role: Role) -> str:
    return f"an {role}" if role is Role.ADVERTISER else f"a {role}"
