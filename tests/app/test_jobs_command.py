"""`adloom jobs`: listing dead jobs and retrying them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adloom.cli import jobs as command
from adloom.cli.jobs import JobsError
from adloom.runtime.jobs.queue import JobQueue, open_queue
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.ports import find_port
from tests.support.eventually import eventually
from tests.support.jobs import working
from tests.support.product import adloom

QUEUE = "banners"


async def fail(_job: JobAttempt) -> None:
    raise OSError("no space\nleft")


@pytest.fixture
async def queue(redis_url: str) -> AsyncIterator[JobQueue]:
    """A queue with two dead jobs and one waiting."""
    async with open_queue(QUEUE, redis_url, attempts_max=1) as queue:
        async with working(QUEUE, redis_url, fail) as worker:
            for job_id in ("one", "two"):
                await queue.put("work", job_id=job_id)
            await eventually(lambda: worker.dead == 2, seconds=30)
        await queue.put("work", job_id="waits")
        yield queue


@pytest.mark.usefixtures("queue")
async def test_dead_jobs_are_listed_one_per_line_with_the_reason(redis_url: str) -> None:
    lines: list[str] = []

    await command.list_dead(redis_url, [QUEUE], lines.append)

    assert [line.split()[0] for line in lines[:2]] == ["two", "one"]
    assert all(line.endswith("1 attempts  no space left") for line in lines[:2])
    assert lines[2:] == ["banners: 2 dead, 1 waiting, 0 active, 0 delayed"]


async def test_dead_jobs_are_retried_by_id_or_all_together(queue: JobQueue, redis_url: str) -> None:
    lines: list[str] = []

    await command.retry_dead(redis_url, [QUEUE], ["one"], lines.append)
    await queue.refresh_counts()
    assert (queue.counts.dead, queue.counts.waiting) == (1, 2)
    await command.retry_dead(redis_url, [QUEUE], None, lines.append)
    await queue.refresh_counts()

    await command.retry_dead(redis_url, [QUEUE], None, lines.append)

    assert (queue.counts.dead, queue.counts.waiting) == (0, 3)
    assert lines == ["one is tried again.", "two is tried again.", "There are no dead jobs."]


@pytest.mark.usefixtures("queue")
async def test_jobs_that_are_not_dead_are_named_and_the_others_are_retried(redis_url: str) -> None:
    lines: list[str] = []

    with pytest.raises(JobsError) as raised:
        await command.retry_dead(redis_url, [QUEUE], ["waits", "one", "nobody"], lines.append)

    assert str(raised.value) == "Not among the dead: waits, nobody."
    assert lines == ["one is tried again."]


async def test_an_unreachable_valkey_is_an_error_with_a_sentence() -> None:
    with pytest.raises(JobsError, match="The queue cannot be read"):
        await command.list_dead(f"redis://127.0.0.1:{find_port()}/0", [QUEUE], print)


@pytest.mark.usefixtures("queue")
async def test_the_commands_work_from_the_command_line(redis_url: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"REDIS_URL={redis_url}\n")

    listed = await asyncio.to_thread(adloom, "jobs", "list", cwd=tmp_path, env_file=".env")
    retried = await asyncio.to_thread(adloom, "jobs", "retry", "--all", cwd=tmp_path, env_file=".env")
    unknown = await asyncio.to_thread(
        adloom, "jobs", "list", "--queue", "nothing", cwd=tmp_path, env_file=".env"
    )
    without_ids = await asyncio.to_thread(adloom, "jobs", "retry", cwd=tmp_path, env_file=".env")

    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[2:] == [
        "banners: 2 dead, 1 waiting, 0 active, 0 delayed",
        "stats-sync: 0 dead, 0 waiting, 0 active, 0 delayed",
        "site-crawls: 0 dead, 0 waiting, 0 active, 0 delayed",
        "mail: 0 dead, 0 waiting, 0 active, 0 delayed",
    ]
    assert (retried.code, retried.out.count("is tried again")) == (0, 2)
    assert "There are banners, stats-sync, site-crawls, mail." in unknown.err
    assert (without_ids.code, without_ids.err.count("\n")) == (1, 1)
