"""People with accounts, who save reports."""

from datetime import timedelta
from uuid import UUID

from adloom.core.caller import Caller, Role
from adloom.runtime.auth.access_token import issue_access_token
from tests.support.builders import Json
from tests.support.control import SECRET, Client, ControlPlane

PATH = "/admin/saved-reports"


async def a_person(admin: Client, role: str = "admin", **fields: object) -> Json:
    """Make an account; advertisers and publishers name `accountId`."""
    body = {"email": f"{role}@example.com", "role": role, **fields}
    return await admin.made("/admin/accounts", body)


def logged_in(control: ControlPlane, person: Json, *, epoch: int = 0) -> Client:
    """Act as a person; each change of role begins another epoch."""
    account_id = UUID(person["accountId"]) if person["accountId"] else None
    caller = Caller(subject=person["id"], role=Role(person["role"]), account_id=account_id)
    now = control.clock.now()
    token = issue_access_token(SECRET, caller, now=now, lifetime=timedelta(hours=1), epoch=epoch)
    return control.client(Authorization=f"Bearer {token}")
