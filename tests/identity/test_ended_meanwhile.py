"""What is ended while a person is being let in stays ended."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from adloom.core.errors import UnauthenticatedError
from adloom.identity import api as identity_api
from adloom.identity.account.store import set_email
from adloom.identity.link.store import create_link
from adloom.identity.second_factor.second_factors import SecondFactors
from adloom.identity.sessions import Credentials, UserSessions
from adloom.identity.store import delete_links
from adloom.runtime.auth.passwords import Passwords
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.postgres import Pool
from tests.support.control import Client, ControlPlane

PASSWORD = "a password of hers"
NEW = "another one of hers"
ANN = {"email": "ann@example.com", "password": PASSWORD, "role": "admin"}
LOG_IN = {"email": ANN["email"], "password": PASSWORD}
WAIT = 0.5  # For what has to wait for a lock.

End = Callable[[Client, str], Coroutine[Any, Any, int]]


class Gate:
    """Stops a method before it begins, until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        method = getattr(owner, name)

        async def stopped(*arguments: Any, **named: Any) -> Any:
            self.reached.set()
            await self.opened.wait()
            return await method(*arguments, **named)

        patch.setattr(owner, name, stopped)


@pytest.fixture
async def visitor(control: ControlPlane, admin: Client) -> AsyncGenerator[Client]:
    await admin.made("/admin/accounts", {**ANN, "email": "bob@example.com"})
    async with control.client() as client:
        yield client


@pytest.fixture
async def ann_id(admin: Client) -> str:
    return (await admin.made("/admin/accounts", ANN))["id"]


async def set_password(admin: Client, ann_id: str) -> int:
    return (await admin.put(f"/admin/accounts/{ann_id}/password", json={"password": NEW})).status_code


async def disable(admin: Client, ann_id: str) -> int:
    return (await admin.patch(f"/admin/accounts/{ann_id}/disable")).status_code


async def change_role(admin: Client, ann_id: str) -> int:
    return (await admin.put(f"/admin/accounts/{ann_id}/role", json={"role": "viewer"})).status_code


async def refresh(visitor: Client, token: str) -> int:
    return (await visitor.post("/auth/refresh", json={"refreshToken": token})).status_code


ENDS = pytest.mark.parametrize("end", [set_password, disable, change_role])


@ENDS
async def test_a_log_in_does_not_outlive_what_ends_it_meanwhile(
    admin: Client, visitor: Client, ann_id: str, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, SecondFactors, "check_log_in")
    log_in = asyncio.create_task(visitor.post("/auth/login", json=LOG_IN))
    await gate.reached.wait()
    assert await end(admin, ann_id) in {200, 204}
    gate.opened.set()

    assert (await log_in).status_code == 401


@ENDS
@pytest.mark.usefixtures("visitor")
async def test_a_log_in_of_a_browser_does_not_either(
    control: ControlPlane, admin: Client, ann_id: str, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, SecondFactors, "check_log_in")
    log_in = asyncio.create_task(
        control.app.state.console_sessions.log_in(
            Credentials(**LOG_IN), now=control.clock.now(), origin=ClientOrigin("request", "192.0.2.1")
        )
    )
    await gate.reached.wait()
    assert await end(admin, ann_id) in {200, 204}
    gate.opened.set()

    with pytest.raises(UnauthenticatedError):
        await log_in


@ENDS
async def test_a_refreshed_log_in_does_not_outlive_what_ends_it_meanwhile(
    admin: Client, visitor: Client, ann_id: str, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await visitor.post("/auth/login", json=LOG_IN)).json()["refreshToken"]
    gate = Gate(monkeypatch, UserSessions, "_issue_tokens")
    refreshing = asyncio.create_task(visitor.post("/auth/refresh", json={"refreshToken": token}))
    await gate.reached.wait()
    ending = asyncio.create_task(end(admin, ann_id))
    await asyncio.wait({ending}, timeout=WAIT)
    gate.opened.set()

    assert await ending in {200, 204}
    assert (await refreshing).status_code == 200
    assert await refresh(visitor, (await refreshing).json()["refreshToken"]) == 401


@pytest.mark.usefixtures("ann_id")
async def test_a_log_in_that_is_refreshed_while_it_is_logged_out_ends(
    visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await visitor.post("/auth/login", json=LOG_IN)).json()["refreshToken"]
    gate = Gate(monkeypatch, UserSessions, "_issue_tokens")
    refreshing = asyncio.create_task(visitor.post("/auth/refresh", json={"refreshToken": token}))
    await gate.reached.wait()
    out = asyncio.create_task(visitor.post("/auth/logout", json={"refreshToken": token}))
    await asyncio.wait({out}, timeout=WAIT)
    gate.opened.set()

    assert (await out).status_code == 204
    assert await refresh(visitor, (await refreshing).json()["refreshToken"]) == 401


@ENDS
async def test_a_password_that_is_replaced_meanwhile_stays(
    admin: Client, visitor: Client, ann_id: str, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = (await visitor.post("/auth/login", json=LOG_IN)).json()
    gate = Gate(monkeypatch, Passwords, "hash")
    changing = asyncio.create_task(
        visitor.put(
            "/admin/accounts/me/password",
            json={"currentPassword": PASSWORD, "newPassword": "of a thief"},
            headers={"Authorization": f"Bearer {tokens['accessToken']}"},
        )
    )
    await gate.reached.wait()
    monkeypatch.undo()
    assert await end(admin, ann_id) in {200, 204}
    gate.opened.set()

    assert (await changing).status_code == 401
    assert (await visitor.post("/auth/login", json={**LOG_IN, "password": "of a thief"})).status_code == 401


@pytest.mark.parametrize("end", [disable, change_role])
async def test_no_key_is_made_for_a_person_who_is_no_admin_any_more(
    admin: Client, visitor: Client, ann_id: str, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = (await visitor.post("/auth/login", json=LOG_IN)).json()
    gate = Gate(monkeypatch, identity_api, "check_acts_for")
    making = asyncio.create_task(
        visitor.post(
            "/admin/api-keys",
            json={"name": "left behind", "role": "admin"},
            headers={"Authorization": f"Bearer {tokens['accessToken']}"},
        )
    )
    await gate.reached.wait()
    assert await end(admin, ann_id) in {200, 204}
    gate.opened.set()

    assert (await making).status_code == 401
    assert (await admin.get("/admin/api-keys")).json()["items"] == []


async def test_no_link_is_left_for_an_address_that_is_changed_meanwhile(
    pool: Pool, ann_id: str, control: ControlPlane
) -> None:
    now = control.clock.now()
    async with pool.acquire() as changing, pool.acquire() as mailing:
        async with changing.transaction():
            await set_email(changing, UUID(ann_id), "ann@elsewhere.example.com")
            await delete_links(changing, UUID(ann_id))
            made = asyncio.create_task(create_link(mailing, UUID(ann_id), now))
            await asyncio.wait({made}, timeout=WAIT)
        link = await made

    assert link is not None
    assert link.person.email == "ann@elsewhere.example.com"


async def test_a_first_password_is_replaced_once(
    control: ControlPlane, visitor: Client, pool: Pool, ann_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pool.execute("UPDATE users SET must_change_password = true WHERE public_id = $1", UUID(ann_id))
    gate = Gate(monkeypatch, Passwords, "hash")
    thief = asyncio.create_task(visitor.post("/auth/login", json={**LOG_IN, "newPassword": "of a thief"}))
    await gate.reached.wait()
    monkeypatch.undo()
    async with control.client() as owner:
        assert (await owner.post("/auth/login", json={**LOG_IN, "newPassword": NEW})).status_code == 200
    gate.opened.set()

    assert (await thief).status_code == 401
    assert (await visitor.post("/auth/login", json={**LOG_IN, "password": NEW})).status_code == 200
