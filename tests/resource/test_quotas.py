"""Quotas of accounts, and bounds on what one caller asks for at once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from adloom.core.caller import Caller, Role
from adloom.core.errors import RateLimitedError
from adloom.runtime.http.rate_limit import WAITING_MAX, CallerLimits
from adloom.runtime.settings import QuotaSettings
from tests.support.builders import NOON, banner_body, campaign_body, placement_body
from tests.support.control import ControlPlane, control_settings, problem, running_control

SMALL = QuotaSettings(
    campaigns_max=2,
    banners_max=2,
    placements_max=1,
    links_max=2,
    import_items_max=3,
    requests_per_minute=1_000,
)


@pytest.fixture
async def plane(database_url: str, redis_url: str) -> Any:
    async with running_control(control_settings(database_url, redis_url, quotas=SMALL)) as running:
        yield running


async def test_an_account_has_as_many_as_its_quota(plane: ControlPlane) -> None:
    async with plane.acting_as(Role.ADVERTISER) as advertiser, plane.acting_as(Role.ADMIN) as admin:
        campaigns = [await advertiser.make_campaign() for _ in range(2)]
        banners = [await advertiser.make_banner() for _ in range(2)]
        refused = await advertiser.post("/admin/campaigns", json=campaign_body())
        problem(refused, 409, "ACCOUNT_QUOTA_REACHED")
        problem(await advertiser.post("/admin/banners", json=banner_body()), 409, "ACCOUNT_QUOTA_REACHED")
        assert (await advertiser.get("/admin/banners")).json()["totalCount"] == 2

        # Others, and what was deleted, do not count.
        for _ in range(3):
            await admin.make_campaign()
        assert (await advertiser.delete(f"/admin/campaigns/{campaigns[0]['id']}")).status_code == 204
        await advertiser.make_campaign()
        restored = await advertiser.post(f"/admin/campaigns/{campaigns[0]['id']}/restore")
        problem(restored, 409, "ACCOUNT_QUOTA_REACHED")

        places = [await admin.make_placement() for _ in range(3)]
        for place in places[:2]:
            await advertiser.link(campaigns[1], place)
        path = f"/admin/campaigns/{campaigns[1]['id']}/placements"
        third = await advertiser.post(path, json={"placementId": places[2]["id"]})
        problem(third, 409, "ACCOUNT_QUOTA_REACHED")
        assert banners


async def test_writes_at_once_do_not_exceed_a_quota(plane: ControlPlane) -> None:
    async with plane.acting_as(Role.ADVERTISER) as advertiser:
        made = await asyncio.gather(
            *(advertiser.post("/admin/campaigns", json=campaign_body()) for _ in range(12))
        )
        assert sorted(one.status_code for one in made) == [201] * 2 + [409] * 10


async def test_a_publisher_has_a_quota_too(plane: ControlPlane) -> None:
    async with plane.acting_as(Role.PUBLISHER) as publisher:
        await publisher.make_placement()
        answer = await publisher.post("/admin/placements", json=placement_body())
        problem(answer, 409, "ACCOUNT_QUOTA_REACHED")


async def test_an_import_keeps_the_quotas(plane: ControlPlane) -> None:
    async with plane.acting_as(Role.ADVERTISER) as advertiser:
        three = {"banners": [banner_body(title=f"B{n}") for n in range(3)]}
        problem(await advertiser.post("/admin/import", json=three), 409, "ACCOUNT_QUOTA_REACHED")
        assert (await advertiser.get("/admin/banners")).json()["totalCount"] == 0
        four = {"banners": [banner_body(title=f"B{n}") for n in range(4)]}
        problem(await advertiser.post("/admin/import", json=four), 400, "VALIDATION_FAILED")
    async with plane.acting_as(Role.ADMIN) as admin:
        assert (await admin.post("/admin/import", json=four)).status_code == 200


def a_caller(subject: str = "a") -> Caller:
    return Caller(subject=subject, role=Role.ADMIN)


async def test_requests_of_one_actor_wait_for_each_other_and_not_for_others() -> None:
    limits = CallerLimits(at_once_max=2, per_minute=1_000)
    running: list[str] = []
    go = asyncio.Event()

    async def ask(subject: str) -> None:
        async with limits.hold(a_caller(subject), now=NOON):
            running.append(subject)
            await go.wait()

    async with asyncio.TaskGroup() as group:
        for subject in "aaaab":
            group.create_task(ask(subject))
        await asyncio.sleep(0.01)
        assert sorted(running) == ["a", "a", "b"]
        go.set()
    assert sorted(running) == ["a", "a", "a", "a", "b"]
    assert limits.present == 0


async def test_an_actor_with_too_many_waiting_requests_is_refused() -> None:
    limits = CallerLimits(at_once_max=1, per_minute=10_000)
    go = asyncio.Event()

    async def ask() -> None:
        async with limits.hold(a_caller(), now=NOON):
            await go.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(1 + WAITING_MAX):
            group.create_task(ask())
        await asyncio.sleep(0.01)
        with pytest.raises(RateLimitedError):
            await ask()
        go.set()


async def test_an_actor_has_a_rate() -> None:
    limits = CallerLimits(at_once_max=1, per_minute=2)

    async def ask(seconds: int = 0) -> None:
        async with limits.hold(a_caller(), now=NOON + timedelta(seconds=seconds)):
            pass

    await ask()
    await ask()
    with pytest.raises(RateLimitedError):
        await ask()
    await ask(60)
