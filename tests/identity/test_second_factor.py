"""Second factors over HTTP: set up, asked for at the log-in, used once, taken off."""

import base64
from collections.abc import AsyncGenerator
from datetime import timedelta

import httpx
import pytest

from adloom.core.caller import Role
from adloom.core.setting import Secret
from adloom.identity.second_factor.totp import STEP_SECONDS, make_code
from adloom.runtime.log_in_settings import LogInSettings
from adloom.runtime.postgres import Pool
from tests.support.builders import Json
from tests.support.control import (
    Client,
    ControlPlane,
    control_settings,
    error_fields,
    problem,
    running_control,
)

EMAIL, PASSWORD = "ann@example.com", "a good password"
OWN = "/admin/accounts/me/second-factor"
SEALED = {"sealing_secrets": (Secret("a-secret-that-seals-things-for-the-tests"),)}


@pytest.fixture
async def control(database_url: str, redis_url: str) -> AsyncGenerator[ControlPlane]:
    async with running_control(control_settings(database_url, redis_url, **SEALED)) as plane:
        yield plane


@pytest.fixture
async def admin(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADMIN) as client:
        yield client


class Person:
    """Somebody with an app."""

    def __init__(self, control: ControlPlane, client: Client) -> None:
        self.control = control
        self.client = client
        self.secret = b""
        self.codes: list[str] = []

    def code(self, steps: int = 0) -> str:
        step = int(self.control.clock.now().timestamp()) // STEP_SECONDS + steps
        return make_code(self.secret, step)

    def wait(self) -> None:
        self.control.clock.advance(timedelta(seconds=STEP_SECONDS))

    async def log_in(self, **fields: str) -> httpx.Response:
        async with self.control.client() as anybody:
            return await anybody.post("/auth/login", json={"email": EMAIL, "password": PASSWORD, **fields})

    async def begin(self) -> httpx.Response:
        begun = await self.client.post(OWN, json={"currentPassword": PASSWORD})
        if begun.status_code == 201:
            self.secret = base64.b32decode(begun.json()["secret"])
        return begun

    async def set_up(self) -> None:
        await self.begin()
        confirmed = await self.client.put(OWN, json={"code": self.code()})
        assert confirmed.status_code == 200, confirmed.text
        self.codes = confirmed.json()["recoveryCodes"]
        self.wait()


@pytest.fixture
async def made(admin: Client) -> Json:
    return await admin.made("/admin/accounts", {"email": EMAIL, "password": PASSWORD, "role": "viewer"})


@pytest.fixture
async def ann(control: ControlPlane, made: Json) -> AsyncGenerator[Person]:
    assert made
    async with control.client() as client:
        ann = Person(control, client)
        client.headers["Authorization"] = f"Bearer {(await ann.log_in()).json()['accessToken']}"
        yield ann


async def test_a_log_in_asks_for_a_code_and_each_works_once(ann: Person) -> None:
    await ann.set_up()

    problem(await ann.log_in(), 403, "SECOND_FACTOR_REQUIRED")
    problem(await ann.log_in(code="000000"), 401, "SECOND_FACTOR_WRONG")
    problem(await ann.log_in(password="a wrong password", code=ann.code()), 401, "UNAUTHENTICATED")
    assert (await ann.log_in(code=ann.code())).status_code == 200
    problem(await ann.log_in(code=ann.code()), 401, "SECOND_FACTOR_WRONG")
    problem(await ann.log_in(code=ann.code(-1)), 401, "SECOND_FACTOR_WRONG")
    ann.wait()
    assert (await ann.log_in(code=f" {ann.code()[:3]} {ann.code()[3:]}")).status_code == 200


async def test_it_counts_only_once_it_was_confirmed(ann: Person) -> None:
    first, second = await ann.begin(), await ann.begin()

    assert first.json()["secret"] == second.json()["secret"], "a second look breaks nothing"
    assert first.json()["svg"].startswith("<svg")
    assert (await ann.log_in()).status_code == 200
    wrong = await ann.client.put(OWN, json={"code": "12"})
    assert error_fields(problem(wrong, 400, "VALIDATION_FAILED")) == {"code"}
    await ann.set_up()
    problem(await ann.begin(), 409, "SECOND_FACTOR_IS_ON")


async def test_a_secret_that_was_begun_is_shown_again_for_minutes_only(ann: Person, pool: Pool) -> None:
    begun, again = await ann.begin(), await ann.begin()
    await pool.execute("UPDATE second_factors SET begun_at = begun_at - interval '11 minutes'")
    late = await ann.client.put(OWN, json={"code": ann.code()})
    anew = await ann.begin()

    assert begun.json()["secret"] == again.json()["secret"] != anew.json()["secret"]
    assert late.status_code != 200


async def test_a_new_password_ends_a_set_up_that_somebody_else_has_begun(
    ann: Person, made: Json, admin: Client
) -> None:
    begun = await ann.begin()
    await admin.put(f"/admin/accounts/{made['id']}/password", json={"password": PASSWORD})
    ann.client.headers["Authorization"] = f"Bearer {(await ann.log_in()).json()['accessToken']}"

    anew = await ann.begin()

    assert begun.json()["secret"] != anew.json()["secret"]


async def test_it_takes_the_password_to_begin_and_a_guess_is_recorded(
    ann: Person, made: Json, admin: Client
) -> None:
    wrong = await ann.client.post(OWN, json={"currentPassword": "a wrong password"})

    assert error_fields(problem(wrong, 400, "VALIDATION_FAILED")) == {"currentPassword"}
    record = (await admin.get("/admin/audit", params={"noun": "user", "nounId": made["id"]})).json()["items"]
    assert "password_guessed" in [one["action"] for one in record]


async def test_recovery_codes_work_once_each(ann: Person) -> None:
    await ann.set_up()

    assert len(set(ann.codes)) == 10
    assert (await ann.log_in(code=ann.codes[0].upper())).status_code == 200
    problem(await ann.log_in(code=ann.codes[0]), 401, "SECOND_FACTOR_WRONG")
    state = (await ann.client.get(OWN)).json()
    assert state == {"isOn": True, "isRequired": False, "recoveryCodesLeft": 9}
    made = await ann.client.post(f"{OWN}/recovery-codes", json={"code": ann.code()})
    problem(await ann.log_in(code=ann.codes[1]), 401, "SECOND_FACTOR_WRONG")
    assert (await ann.log_in(code=made.json()["recoveryCodes"][0])).status_code == 200


async def test_neither_secret_nor_codes_are_stored_as_they_are(ann: Person, pool: Pool) -> None:
    await ann.set_up()

    sealed = await pool.fetchval("SELECT sealed_secret FROM second_factors")
    hashes = await pool.fetch("SELECT code_hash FROM recovery_codes")

    assert ann.secret not in sealed
    assert ann.secret.hex().encode() not in sealed
    assert {len(row["code_hash"]) for row in hashes} == {32}


async def test_guessing_codes_is_slowed_down(ann: Person) -> None:
    await ann.set_up()

    statuses = [(await ann.log_in(code="000000")).status_code for _ in range(6)]
    right = await ann.log_in(code=ann.code())
    ann.control.clock.advance(timedelta(minutes=1))

    assert statuses == [401] * 5 + [429]
    problem(right, 429, "RATE_LIMITED")
    assert (await ann.log_in(code=ann.code())).status_code == 200


async def test_a_code_takes_it_off(ann: Person) -> None:
    await ann.set_up()

    problem(await ann.client.post(f"{OWN}/remove", json={"code": "000000"}), 401, "SECOND_FACTOR_WRONG")
    assert (await ann.client.post(f"{OWN}/remove", json={"code": ann.code()})).status_code == 204
    assert (await ann.log_in()).status_code == 200
    problem(await ann.client.post(f"{OWN}/remove", json={"code": "000000"}), 409, "SECOND_FACTOR_IS_OFF")


async def test_an_admin_takes_a_lost_one_off(ann: Person, made: Json, admin: Client, pool: Pool) -> None:
    await ann.set_up()
    path = f"/admin/accounts/{made['id']}/second-factor"

    [listed] = (await admin.get("/admin/accounts")).json()["items"]
    removed = await admin.delete(path)

    assert listed["hasSecondFactor"]
    assert removed.status_code == 204
    assert (await ann.log_in()).status_code == 200
    problem(await admin.delete(path), 409, "SECOND_FACTOR_IS_OFF")
    actions = await pool.fetch("SELECT action, subject FROM audit_entries WHERE noun = 'user' ORDER BY id")
    taken = [row["subject"] for row in actions if row["action"] == "second_factor_removed"]
    assert taken == ["test"]
    assert "second_factor_set_up" in {row["action"] for row in actions}


async def test_keys_and_tokens_need_no_code(ann: Person, admin: Client, control: ControlPlane) -> None:
    await ann.set_up()
    key = await admin.made("/admin/api-keys", {"name": "shop", "role": "viewer"})

    async with control.client(**{"X-API-Key": key["key"]}) as machine:
        assert (await machine.get("/admin/banners")).status_code == 200
    assert (await admin.get("/admin/banners")).status_code == 200


async def test_a_new_password_does_not_take_it_off(ann: Person, made: Json, admin: Client) -> None:
    await ann.set_up()

    await admin.put(f"/admin/accounts/{made['id']}/password", json={"password": "another password"})

    problem(await ann.log_in(password="another password"), 403, "SECOND_FACTOR_REQUIRED")


async def test_a_role_may_need_one(database_url: str, redis_url: str, ann: Person) -> None:
    """The setting is new: who is logged in without a second factor is logged out."""
    bearer = {"Authorization": ann.client.headers["Authorization"]}
    settings = control_settings(
        database_url, redis_url, **SEALED, log_in=LogInSettings(second_factor_roles=(Role.VIEWER,))
    )
    assert (await ann.client.get("/admin/accounts/me")).status_code == 200

    async with running_control(settings) as strict, strict.client(**bearer) as client:
        problem(await client.get("/admin/accounts/me"), 401, "UNAUTHENTICATED")
        answer = await client.post("/auth/login", json={"email": EMAIL, "password": PASSWORD})
        problem(answer, 403, "SECOND_FACTOR_SET_UP_REQUIRED")


async def test_without_a_secret_nothing_can_be_sealed(database_url: str, redis_url: str, made: Json) -> None:
    assert made
    async with running_control(control_settings(database_url, redis_url)) as plane, plane.client() as client:
        ann = Person(plane, client)
        client.headers["Authorization"] = f"Bearer {(await ann.log_in()).json()['accessToken']}"

        problem(await ann.begin(), 409, "SECRET_NOT_SET")
