"""The console's client of the admin API."""

import pytest
from starlette.types import Receive, Scope, Send

from adloom.console.client import ApiClient, ProblemError, SessionEndedError
from adloom.console.sign_in.gate import SessionGuard
from tests.console.visitor import Visitor
from tests.support.control import ControlPlane


def make_client(console: ControlPlane, visitor: Visitor) -> ApiClient:
    door: SessionGuard = console.app.state.session_guard
    return door.make_client(visitor.token or "")


async def test_the_client_acts_as_the_logged_in_user(console: ControlPlane, ann: Visitor) -> None:
    api = make_client(console, ann)

    made = await api.post("/admin/campaigns", {"name": "Autumn"})
    listed = await api.get("/admin/campaigns", search="Autu", status=None)
    await api.delete(f"/admin/campaigns/{made['id']}")

    assert [item["id"] for item in listed["items"]] == [made["id"]]
    assert (await api.get("/admin/accounts/me"))["role"] == "admin"
    assert (await api.get("/admin/campaigns", includeDeleted=True))["totalCount"] == 1


async def test_a_refusal_has_the_message_of_the_api(console: ControlPlane, ann: Visitor) -> None:
    with pytest.raises(ProblemError) as caught:
        await make_client(console, ann).post("/admin/campaigns", {"name": " ", "priority": -1})

    assert (caught.value.status, caught.value.code) == (400, "VALIDATION_FAILED")
    assert caught.value.fields["name"] == "must not be blank"
    assert "priority" in caught.value.fields


async def test_a_bare_list_becomes_items(console: ControlPlane, ann: Visitor) -> None:
    assert await make_client(console, ann).get("/api/v1/admin/frequency/caps") == {"items": []}


async def test_after_a_log_out_no_request_is_sent(console: ControlPlane, ann: Visitor) -> None:
    api = make_client(console, ann)
    await ann.post("/console/logout")

    with pytest.raises(SessionEndedError):
        await api.get("/admin/campaigns")


async def test_an_error_in_another_format_is_a_problem_too() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 502, "headers": []})
        await send({"type": "http.response.body", "body": b"<html>"})

    async def token(_is_active: bool) -> str:  # noqa: FBT001 - as its type says
        return "token"

    with pytest.raises(ProblemError) as caught:
        await ApiClient(app, token).get("/anything")

    assert (caught.value.status, caught.value.message) == (502, "Bad Gateway")
