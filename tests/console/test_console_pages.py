"""The pages over HTTP: which role sees which, their headers, and that the API stays the same."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from adloom.console.page import REGISTERED, PageVisit, register_page
from adloom.console.shell import ENTRIES, list_entries
from adloom.core.caller import ACCOUNT_ROLES, Role
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor, make_person, redirect_of
from tests.support.builders import NOON
from tests.support.control import ControlPlane, control_settings, problem, running_control
from tests.support.for_each import for_each

ROOT = Path(__file__).resolve().parents[2]
NAVIGATION = re.compile(r'"href":"(/console[^"]*)"')


def list_files(folder: Path) -> list[Path]:
    """List the files of a folder, and those that the framework would leave in ours."""
    return [*folder.iterdir(), *ROOT.glob(".nicegui")]


def find_links(page: str) -> set[str]:
    return set(NAVIGATION.findall(page.replace("&quot;", '"')))


@pytest.mark.parametrize("role", Role)
async def test_a_role_sees_the_pages_it_can_use(role: Role, console: ControlPlane) -> None:
    account_id = uuid4() if role in ACCOUNT_ROLES else None
    await make_person(console, "bob@example.com", role, account_id=account_id)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        page = await bob.get("/console")

    shown = {one.path for one in list_entries(role, registered=REGISTERED, account_id=account_id)}
    hidden = {section.path for section in ENTRIES} - {one.path for one in ENTRIES if role in one.roles}
    assert page.status_code == 200
    assert shown <= find_links(page.text)
    assert not hidden & find_links(page.text)


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.ADMIN}))
async def test_the_system_page_is_for_admins(role: Role, console: ControlPlane) -> None:
    await make_person(console, "bob@example.com", role)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        answer = await bob.get("/console/system")

    assert answer.status_code == 403
    assert "This page is not for your role" in answer.text


@for_each("tab", ["processes", "ledger", "dead", "keys", "tokens", "accounts", "settings", "nothing"])
async def test_every_tab_of_the_system_page_is_shown(tab: str, ann: Visitor) -> None:
    answer = await ann.get(f"/console/system?tab={tab}")

    assert answer.status_code == 200
    assert "This could not be loaded" not in answer.text


async def test_tokens_of_the_command_line_show_whether_they_still_work(ann: Visitor, pool: Pool) -> None:
    valid, over, withdrawn = (uuid4() for _ in range(3))
    for token_id, hours, is_revoked in ((valid, 1, False), (over, -1, False), (withdrawn, 1, True)):
        await pool.execute(
            "INSERT INTO access_tokens (public_id, subject, role, issued_at, expires_at, revoked_at)"
            " VALUES ($1, 'cli', 'admin', $2, $3, $4)",
            token_id,
            NOON - timedelta(days=1),
            NOON + timedelta(hours=hours),
            NOON if is_revoked else None,
        )

    text = (await ann.get("/console/system?tab=tokens")).text

    assert all(state in text for state in ("in use", "expired", "revoked"))
    assert [str(one) in text for one in (valid, over, withdrawn)] == [True, False, False]  # In its button.


@pytest.mark.parametrize("span", ["today", "24h", "7d", "nothing"])
async def test_the_overview_is_shown_for_every_span(span: str, ann: Visitor) -> None:
    answer = await ann.get(f"/console?span={span}")

    assert answer.status_code == 200
    assert "This could not be loaded" not in answer.text


async def test_the_overview_is_there_without_valkey_and_says_so(database_url: str) -> None:
    settings = control_settings(
        database_url, f"redis://127.0.0.1:{find_port()}", public_url="http://control.test"
    )
    async with running_control(settings, has_console=True) as plane:
        await make_person(plane, "ann@example.com", Role.ADMIN)
        async with Visitor(plane) as ann:
            await ann.log_in("ann@example.com")

            overview = await ann.get("/console")
            jobs = await ann.get("/console/jobs")

    assert overview.status_code == 200
    assert "not known now" in overview.text
    assert '"class":["al-live","hidden"]' in overview.text
    assert "Valkey: does not answer" in overview.text
    assert "Valkey does not answer. Try again in a moment." in jobs.text


@register_page("/console/broken", title="Broken")
async def broken(visit: PageVisit) -> None:
    raise RuntimeError(visit.query["secret"])


REGISTERED.discard("/console/broken")  # It is no page of the product.


async def test_a_page_that_fails_is_one_line_in_the_log_without_secrets(ann: Visitor) -> None:
    with capture_logs() as lines:
        answer = await ann.get("/console/broken", params={"secret": "s3cret"})

    assert answer.status_code == 500
    assert "could not be built" in answer.text
    [line] = [line for line in lines if line["log_level"] in {"error", "warning"}]
    assert (line["event"], line["path"], line["error"]) == (
        "console_failed",
        "/console/broken",
        "RuntimeError",
    )
    assert line["where"].startswith("test_console_pages.py:")
    assert "s3cret" not in str(lines)


@pytest.mark.parametrize("lost", ["find", "mark_seen"])
async def test_a_page_whose_session_cannot_be_read_again_can_be_tried_again(
    lost: str, console: ControlPlane, ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL ends after the page was begun: the pages of the API's own errors say 503 too."""
    sessions = console.app.state.session_guard.sessions
    work, calls = getattr(sessions, lost), list[str]()

    async def fail_later(*about: Any, **more: Any) -> Any:
        calls.append(lost)
        if len(calls) > (lost == "find"):  # Whether somebody is logged in is asked before a page is begun.
            raise asyncpg.CannotConnectNowError("the database system is starting up")
        return await work(*about, **more)

    monkeypatch.setattr(sessions, lost, fail_later)
    with capture_logs() as lines:
        answer = await ann.get("/console/campaigns")

    assert answer.status_code == 503
    assert "Try again in a moment" in answer.text
    assert {line["event"] for line in lines if line["log_level"] != "info"} == {"request_unavailable"}


async def test_an_address_without_a_page_is_not_found(ann: Visitor) -> None:
    answer = await ann.get("/console/nothing/here")

    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.text


async def test_pages_load_nothing_from_elsewhere_and_cannot_be_framed(ann: Visitor) -> None:
    page, form = await ann.get("/console"), await ann.get("/console/login?next=x")

    assert form.status_code == 303
    policy = page.headers["content-security-policy"]
    assert {"default-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "object-src 'none'"} <= set(
        policy.split("; ")
    )
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-frame-options"] == "DENY"
    outside = re.findall(r'(?:src|href)="(https?://[^"]+)"', page.text)
    assert outside == []


async def test_the_log_in_page_runs_only_our_script(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        page = await visitor.get("/console/login")

    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert re.findall(r"<script(?! src=)|<style|style=| on\w+=", page.text) == []


async def test_browsers_cache_our_assets(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        page = (await visitor.get("/console/login")).text
        addresses = set(re.findall(r'"(/console/assets/[^"]+)"', page))
        answers = [await visitor.get(address) for address in addresses]
        plain = await visitor.get("/console/assets/console.css")
        unknown = await visitor.get("/console/assets/secrets.py")

    assert len(addresses) == 3
    assert {answer.headers["cache-control"] for answer in answers} == {"public, max-age=31536000, immutable"}
    assert plain.headers["cache-control"] == "no-cache"
    problem(unknown, 404, "NOT_FOUND")


async def test_browsers_cache_the_files_of_the_framework(ann: Visitor) -> None:
    page = (await ann.get("/console")).text
    [address] = set(re.findall(r'"(/_nicegui/[^"]+/quasar\.umd\.prod\.js)"', page))

    answer = await ann.get(address)

    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]


async def test_the_api_is_the_same_with_a_console(console: ControlPlane) -> None:
    async with console.client() as client, console.acting_as(Role.ADMIN) as admin:
        problem(await client.get("/nothing"), 404, "NOT_FOUND")
        problem(await client.get("/admin/campaigns"), 401, "UNAUTHENTICATED")
        problem(await admin.request("BREW", "/admin/campaigns"), 405, "METHOD_NOT_ALLOWED")
        assert redirect_of(await client.get("/", headers={"Accept": "text/html"})) == (303, "/console")


async def test_the_cookie_does_not_open_the_api(ann: Visitor) -> None:
    problem(await ann.get("/admin/campaigns"), 401, "UNAUTHENTICATED")


async def test_the_console_writes_no_files(
    ann: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert (await ann.get("/console")).status_code == 200

    assert list_files(tmp_path) == []


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}])
async def test_a_socket_needs_a_session_and_our_origin(
    headers: dict[str, str], console: ControlPlane, ann: Visitor
) -> None:
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    async with Visitor(console) as without_session:
        visitor = ann if headers else without_session
        answer = await visitor.get(path, headers=headers)

    assert answer.status_code == 403


async def test_the_page_before_stays_until_the_next_one_has_content(ann: Visitor) -> None:
    page, style = (await ann.get("/console/jobs")).text, (await ann.get("/console/assets/console.css")).text
    ann.cookies.clear()
    log_in = (await ann.get("/console/login")).text

    # Asked for when the button goes down, and never only because somebody points at it.
    assert '"selector_matches":".al-nav-link"},"eagerness":"conservative"' in page
    assert "speculationrules" not in log_in
    calm = style.partition("@media (prefers-reduced-motion: no-preference)")[2]
    assert calm.lstrip(" {\n").startswith("@view-transition { navigation: auto; }")
    assert style.count("@view-transition") == 1
