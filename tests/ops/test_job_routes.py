"""The queues of background jobs over HTTP: listing jobs, and retrying failed ones."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Final

import pytest

from adloom.catalog.schedule_sync import QUEUE
from adloom.core.caller import Role
from adloom.runtime.jobs.queue import JobQueue, open_queue
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.valkey import Valkey
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, problem
from tests.support.eventually import eventually
from tests.support.jobs import working

PATH = f"/admin/jobs/{QUEUE}"


async def fail_job(job: JobAttempt) -> None:
    raise PermanentJobError(f"{job.id} is hopeless")


@pytest.fixture
async def queue(redis_url: str) -> AsyncGenerator[JobQueue]:
    async with open_queue(QUEUE, redis_url) as queue:
        yield queue


async def listed(client: Client, **params: str) -> Json:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_queues_are_listed_with_their_number_of_jobs(admin: Client, queue: JobQueue) -> None:
    await queue.put("work", job_id="one")
    await queue.put("work", job_id="two", priority=3)

    answer = (await admin.get("/admin/jobs")).json()

    assert answer == {
        "items": [
            {"name": "banners", "waiting": 2, "active": 0, "delayed": 0, "failed": 0},
            {"name": "stats-sync", "waiting": 0, "active": 0, "delayed": 0, "failed": 0},
            {"name": "site-crawls", "waiting": 0, "active": 0, "delayed": 0, "failed": 0},
            {"name": "mail", "waiting": 0, "active": 0, "delayed": 0, "failed": 0},
        ]
    }


async def test_jobs_are_listed_page_by_page_in_one_state(admin: Client, queue: JobQueue) -> None:
    for number in range(3):
        await queue.put("work", job_id=f"plain-{number}")
        await queue.put("work", job_id=f"later-{number}", priority=3)

    first = await listed(admin, state="waiting", pageSize="4")
    second = await listed(admin, state="waiting", pageSize="4", page="2")

    assert (first["totalCount"], first["totalPages"], len(first["items"]), len(second["items"])) == (
        6,
        2,
        4,
        2,
    )
    assert {job["id"] for page in (first, second) for job in page["items"]} == {
        f"{kind}-{number}" for kind in ("plain", "later") for number in range(3)
    }
    assert (await listed(admin))["items"] == []


async def test_a_failed_job_shows_its_error_and_can_be_retried_by_an_admin(
    admin: Client, control: ControlPlane, queue: JobQueue, redis_url: str
) -> None:
    async with working(QUEUE, redis_url, fail_job) as worker:
        await queue.put("work", job_id="one")
        await queue.put("work", job_id="two")
        await eventually(lambda: worker.dead == 2, seconds=30)

    [first, _] = (await listed(admin))["items"]
    assert (first["state"], first["error"]) == ("failed", f"{first['id']} is hopeless")
    async with control.acting_as(Role.VIEWER) as viewer:
        assert (await listed(viewer))["totalCount"] == 2
        problem(await viewer.post(f"{PATH}/one/retry"), 403, "FORBIDDEN")
        problem(await viewer.post(f"{PATH}/retry"), 403, "FORBIDDEN")

    assert (await admin.post(f"{PATH}/one/retry")).json() == {"retried": 1}
    assert (await admin.post(f"{PATH}/retry")).json() == {"retried": 1}

    assert (await listed(admin, state="waiting"))["totalCount"] == 2
    problem(await admin.post(f"{PATH}/one/retry"), 409, "JOB_NOT_FAILED")


async def test_other_roles_and_other_queues_are_refused(admin: Client, control: ControlPlane) -> None:
    problem(await admin.get("/admin/jobs/nothing"), 404, "QUEUE_NOT_FOUND")
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        problem(await advertiser.get("/admin/jobs"), 403, "FORBIDDEN")
        problem(await advertiser.get(PATH), 403, "FORBIDDEN")


# What another program may leave in a queue of ours: each is in a list, and its job cannot be read.
BROKEN: Final[Mapping[str, Mapping[str, str | bytes]]] = {
    "no-json": {"name": "work", "data": "{", "timestamp": "1"},
    "a-list": {"name": "work", "data": "[1, 2]", "timestamp": "1"},
    "numbers": {"name": "work", "data": '{"a": 1}', "timestamp": "1"},
    "no-name": {"data": "{}", "timestamp": "1"},
    "no-time": {"name": "work", "data": "{}", "timestamp": "soon"},
    "far-future": {"name": "work", "data": "{}", "timestamp": "9" * 30},
    "no-text": {"name": "work", "data": b"\xff\xfe", "timestamp": "1"},
    "deep": {"name": "work", "data": "[" * 100_000, "timestamp": "1"},
}


async def test_jobs_that_cannot_be_read_are_shown_as_such_and_harm_no_others(
    admin: Client, queue: JobQueue, valkey: Valkey, redis_url: str
) -> None:
    now = time.time() * 1000  # Older ones are not kept.
    for job_id, fields in BROKEN.items():
        for state in ("wait", "failed"):
            await valkey.hset(
                f"bull:{QUEUE}:{state}-{job_id}", items=[it for pair in fields.items() for it in pair]
            )
        await valkey.zadd(f"bull:{QUEUE}:failed", {f"failed-{job_id}": now})
        await valkey.lpush(f"bull:{QUEUE}:wait", f"wait-{job_id}")
    await valkey.set(f"bull:{QUEUE}:failed-no-hash", "text")
    await valkey.zadd(f"bull:{QUEUE}:failed", {"failed-no-hash": now})
    async with working(QUEUE, redis_url, fail_job), asyncio.timeout(60):
        await queue.put("work", job_id="good")
        while not any(job.id == "good" for job in await queue.list_dead(count_max=50)):  # noqa: ASYNC110 - the worker's work
            await asyncio.sleep(0.05)

        dead = {job["id"]: job for job in (await listed(admin, pageSize="50"))["items"]}

    broken = [dead[f"failed-{job_id}"] for job_id in (*BROKEN, "no-hash")]
    assert {(job["name"], "cannot be read" in job["error"]) for job in broken} == {("unreadable", True)}
    assert dead["good"]["error"] == "good is hopeless"
    for path in ("/admin/jobs", "/admin/attention", "/admin/system/processes"):
        assert (await admin.get(path)).status_code == 200
    assert (await admin.post(f"{PATH}/retry")).status_code == 202
    problem(await admin.post(f"{PATH}/failed-no-json/retry"), 409, "JOB_NOT_FAILED")
