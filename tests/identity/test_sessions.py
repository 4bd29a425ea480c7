"""Logging in, staying logged in, logging out."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds, UserId
from adloom.identity import store
from adloom.identity.attempt_limiter import ATTEMPTS_AT_ONCE_MAX
from adloom.identity.first_admin import ensure_first_admin
from adloom.identity.model import User
from adloom.runtime.auth.fair_turns import FairTurns
from adloom.runtime.auth.passwords import REFUSAL, Passwords
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON
from tests.support.control import FAST_PASSWORDS, Client, ControlPlane, problem

LOG_IN = {"email": "Ada@example.com", "password": "correct horse"}


@pytest.fixture
async def visitor(control: ControlPlane, pool: Pool) -> AsyncGenerator[Client]:
    user = User(id=UserId(SystemIds().make()), role=Role.ADMIN, account_id=None, disabled_at=None)
    password_hash = await Passwords(FAST_PASSWORDS).hash(LOG_IN["password"], client="ada")
    async with pool.acquire() as connection:
        await store.insert_user(
            connection, user, email=LOG_IN["email"], password_hash=password_hash, now=NOON
        )
    async with control.client() as client:
        yield client


async def logged_in(visitor: Client) -> dict[str, Any]:
    answer = await visitor.post("/auth/login", json=LOG_IN)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refreshed(visitor: Client, token: str) -> Any:
    return await visitor.post("/auth/refresh", json={"refreshToken": token})


async def test_logging_in_returns_tokens_for_the_control_plane(visitor: Client) -> None:
    tokens = await logged_in(visitor)

    answer = await visitor.get("/admin/banners", headers={"Authorization": f"Bearer {tokens['accessToken']}"})
    assert answer.status_code == 200
    assert set(tokens) == {"accessToken", "refreshToken", "expiresIn"}
    assert tokens["expiresIn"] == 900


async def test_an_email_address_is_case_insensitive(visitor: Client) -> None:
    answer = await visitor.post("/auth/login", json={**LOG_IN, "email": "ada@EXAMPLE.com"})

    assert answer.status_code == 200


async def test_a_wrong_password_and_an_unknown_address_look_the_same(visitor: Client) -> None:
    wrong = await visitor.post("/auth/login", json={**LOG_IN, "password": "wrong"})
    unknown = await visitor.post("/auth/login", json={**LOG_IN, "email": "nobody@example.com"})

    assert problem(wrong, 401, "UNAUTHENTICATED") == problem(unknown, 401, "UNAUTHENTICATED")


async def test_log_ins_that_wait_for_too_long_are_refused_and_count_as_no_attempt(
    visitor: Client, control: ControlPlane
) -> None:
    passwords: Passwords = control.app.state.passwords
    passwords.turns = FairTurns(1, refusal=REFUSAL, wait_seconds_max=0.01)
    async with passwords.turns.hold("others", is_known=False):
        for _ in range(ATTEMPTS_AT_ONCE_MAX + 1):
            answer = await visitor.post("/auth/login", json=LOG_IN)
            problem(answer, 503, "UNAVAILABLE")
            assert answer.headers["retry-after"] == "1"

    assert (await visitor.post("/auth/login", json=LOG_IN)).status_code == 200


async def test_an_access_token_expires_after_15_minutes(visitor: Client, control: ControlPlane) -> None:
    tokens = await logged_in(visitor)
    control.clock.advance(timedelta(minutes=15))

    answer = await visitor.get("/admin/banners", headers={"Authorization": f"Bearer {tokens['accessToken']}"})

    problem(answer, 401, "UNAUTHENTICATED")


async def test_a_refresh_token_works_once(visitor: Client) -> None:
    first = (await logged_in(visitor))["refreshToken"]
    fresh = await refreshed(visitor, first)
    assert fresh.status_code == 200

    problem(await refreshed(visitor, first), 401, "UNAUTHENTICATED")


async def test_a_used_refresh_token_ends_its_family(visitor: Client) -> None:
    first = (await logged_in(visitor))["refreshToken"]
    second = (await refreshed(visitor, first)).json()["refreshToken"]

    problem(await refreshed(visitor, first), 401, "UNAUTHENTICATED")

    problem(await refreshed(visitor, second), 401, "UNAUTHENTICATED")


async def test_a_used_refresh_token_leaves_other_families_alone(visitor: Client) -> None:
    first, other = (await logged_in(visitor))["refreshToken"], (await logged_in(visitor))["refreshToken"]
    await refreshed(visitor, first)
    await refreshed(visitor, first)

    assert (await refreshed(visitor, other)).status_code == 200


async def test_a_refresh_token_used_twice_at_the_same_time_works_once(visitor: Client) -> None:
    token = (await logged_in(visitor))["refreshToken"]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(refreshed(visitor, token)) for _ in range(5)]

    assert sorted(task.result().status_code for task in tasks) == [200, 401, 401, 401, 401]


async def test_a_refresh_token_expires_after_7_days(visitor: Client, control: ControlPlane) -> None:
    token = (await logged_in(visitor))["refreshToken"]
    control.clock.advance(timedelta(days=7))

    problem(await refreshed(visitor, token), 401, "UNAUTHENTICATED")


async def test_logging_out_ends_the_family(visitor: Client) -> None:
    first = (await logged_in(visitor))["refreshToken"]
    second = (await refreshed(visitor, first)).json()["refreshToken"]

    answer = await visitor.post("/auth/logout", json={"refreshToken": second})

    assert answer.status_code == 204
    problem(await refreshed(visitor, second), 401, "UNAUTHENTICATED")


async def test_a_disabled_user_is_logged_out(visitor: Client, pool: Pool) -> None:
    token = (await logged_in(visitor))["refreshToken"]
    await pool.execute("UPDATE users SET disabled_at = now()")

    problem(await refreshed(visitor, token), 401, "UNAUTHENTICATED")
    problem(await visitor.post("/auth/login", json=LOG_IN), 401, "UNAUTHENTICATED")


async def test_no_secret_is_stored_in_plain_text(visitor: Client, pool: Pool) -> None:
    tokens = await logged_in(visitor)

    stored = str(await pool.fetch("SELECT users.*, refresh_tokens.* FROM users, refresh_tokens"))
    assert tokens["refreshToken"] not in stored
    assert LOG_IN["password"] not in stored


async def test_the_first_admin_is_created_once(pool: Pool) -> None:
    ids = SystemIds()

    made = [
        await ensure_first_admin(pool, email, "secret", NOON, ids) for email in ("a@b.c", "a@b.c", "d@e.f")
    ]

    assert made == [True, False, False]
    assert await pool.fetchval("SELECT count(*) FROM users WHERE role = 'admin'") == 1
