"""A browser without a page: it keeps cookies and does not follow redirects."""

from uuid import UUID

import httpx

from adloom.console.sign_in.gate import COOKIE
from adloom.core.caller import ACCOUNT_ROLES, Role
from adloom.core.ids import SystemIds
from tests.support.control import ControlPlane

PASSWORD = "a good password"


class Visitor(httpx.AsyncClient):
    """A browser with an empty profile."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(transport=httpx.ASGITransport(plane.app), base_url="http://control.test")

    async def log_in(
        self, email: str, password: str = PASSWORD, *, goal: str | None = None, **headers: str
    ) -> httpx.Response:
        fields = {"email": email, "password": password} | ({} if goal is None else {"next": goal})
        return await self.post("/console/login", data=fields, headers=headers)

    @property
    def token(self) -> str | None:
        return self.cookies.get(COOKIE)


async def make_person(plane: ControlPlane, email: str, role: Role, *, account_id: UUID | None = None) -> str:
    """Create an account, and return its id."""
    if role in ACCOUNT_ROLES and account_id is None:
        account_id = SystemIds().make()
    if account_id is not None:
        async with plane.acting_as(role, account_id) as account:
            await account.get("/admin/accounts/me")  # The first request of an account creates it.
    body = {"email": email, "password": PASSWORD, "role": role.value}
    async with plane.acting_as(Role.ADMIN) as admin:
        made = await admin.made(
            "/admin/accounts", body | ({} if account_id is None else {"accountId": str(account_id)})
        )
    return made["id"]


def redirect_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.headers.get("location", "")
