"""Jobs on a real Valkey: put once, retried, kept when dead, and not lost with the process that ran them."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import bullmq.worker
import pytest
from redis.asyncio import SSLConnection

from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.jobs.queue import PREFIX, JobQueue, make_jobs_client, open_queue
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.ports import find_port
from adloom.runtime.valkey import Valkey
from tests.support.eventually import eventually
from tests.support.jobs import working
from tests.support.services import running

QUEUE = "testing"


class Work:
    """A handler that records its jobs, and fails or waits as a test asks."""

    def __init__(self, *, failures: int = 0, waits_for: asyncio.Event | None = None) -> None:
        self.seen: list[JobAttempt] = []
        self.finished = 0
        self._failures = failures
        self._waits_for = waits_for

    async def __call__(self, job: JobAttempt) -> None:
        self.seen.append(job)
        if len(self.seen) <= self._failures:
            raise OSError(f"failure {len(self.seen)}")
        if self._waits_for is not None:
            await self._waits_for.wait()
        self.finished += 1

    @property
    def ids(self) -> list[str]:
        return [job.id for job in self.seen]


@pytest.fixture
async def queue(redis_url: str) -> AsyncIterator[JobQueue]:
    async with open_queue(QUEUE, redis_url, attempts_max=3, backoff_milliseconds=50) as queue:
        yield queue


async def test_a_job_reaches_the_handler_of_its_name(queue: JobQueue, redis_url: str) -> None:
    work = Work()

    async with working(QUEUE, redis_url, work) as worker:
        await queue.put("work", job_id="one", data={"day": "2026-11-15"})
        await eventually(lambda: worker.done == 1, seconds=30)

    (seen,) = work.seen
    assert (seen.name, seen.id, seen.data, seen.attempt) == ("work", "one", {"day": "2026-11-15"}, 1)


async def test_a_job_id_is_put_once_whether_it_waits_runs_or_is_done(queue: JobQueue, redis_url: str) -> None:
    goes_on = asyncio.Event()
    work = Work(waits_for=goes_on)

    await queue.put("work", job_id="one")
    await queue.put("work", job_id="one")
    assert queue.counts.waiting == 1
    async with working(QUEUE, redis_url, work) as worker:
        await eventually(lambda: len(work.seen) == 1, seconds=30)
        assert worker.running == 1
        await queue.put("work", job_id="one")
        goes_on.set()
        await eventually(lambda: worker.done == 1, seconds=30)
        assert worker.running == 0
        await queue.put("work", job_id="one")
        await queue.put("work", job_id="two")
        await eventually(lambda: worker.done == 2, seconds=30)

    assert work.ids == ["one", "two"]


async def test_two_workers_run_a_job_once(queue: JobQueue, redis_url: str) -> None:
    work = Work()

    async with working(QUEUE, redis_url, work) as one, working(QUEUE, redis_url, work) as other:
        for number in range(50):
            await queue.put("work", job_id=f"job-{number}")
            await queue.put("work", job_id=f"job-{number}")
        await eventually(lambda: one.done + other.done == 50, seconds=30)
        await asyncio.sleep(0.1)

    assert sorted(work.ids) == sorted(f"job-{number}" for number in range(50))


async def test_a_failed_job_is_retried_after_a_delay(queue: JobQueue, redis_url: str) -> None:
    work = Work(failures=2)

    before = time.monotonic()
    async with working(QUEUE, redis_url, work) as worker:
        await queue.put("work", job_id="one")
        await eventually(lambda: worker.done == 1, seconds=30)

    assert [job.attempt for job in work.seen] == [1, 2, 3]
    assert time.monotonic() - before >= 0.150  # 50 and 100 ms
    assert (worker.failed, worker.dead) == (2, 0)


async def test_a_job_without_attempts_left_is_kept_as_dead(queue: JobQueue, redis_url: str) -> None:
    work = Work(failures=100)

    async with working(QUEUE, redis_url, work) as worker:
        await queue.put("work", job_id="one")
        await eventually(lambda: worker.dead == 1, seconds=30)
        await queue.refresh_counts()
        await queue.put("work", job_id="one")

    assert len(work.seen) == worker.failed == 3
    assert queue.counts.dead == 1
    assert await reason_of_death(redis_url, "one") == "failure 3"


async def test_a_job_without_a_handler_is_dead_immediately(queue: JobQueue, redis_url: str) -> None:
    async with working(QUEUE, redis_url, Work()) as worker:
        await queue.put("other", job_id="one")
        await eventually(lambda: worker.dead == 1, seconds=30)

    assert worker.failed == 1
    assert await reason_of_death(redis_url, "one") == "There is no handler for other."


async def reason_of_death(redis_url: str, job_id: str) -> str:
    client = make_jobs_client(redis_url)
    try:
        assert await client.zrange(f"{PREFIX}:{QUEUE}:failed", 0, -1) == [job_id]
        reason = await client.hget(f"{PREFIX}:{QUEUE}:{job_id}", "failedReason")
        assert isinstance(reason, str)
        return reason
    finally:
        await client.aclose()


async def test_a_stopping_worker_lets_its_job_finish(queue: JobQueue, redis_url: str) -> None:
    goes_on = asyncio.Event()
    work = Work(waits_for=goes_on)

    async with working(QUEUE, redis_url, work) as worker:
        await queue.put("work", job_id="one")
        await eventually(lambda: len(work.seen) == 1, seconds=30)
        asyncio.get_running_loop().call_later(0.3, goes_on.set)

    assert (work.finished, worker.done) == (1, 1)
    await queue.refresh_counts()
    assert queue.counts.active == 0


@pytest.mark.parametrize("failures", [0, 1])
async def test_the_lock_of_a_job_is_renewed_while_it_runs(
    queue: JobQueue, redis_url: str, valkey: Valkey, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """Also if the library has failed before: then its worker returns, and is run again."""

    async def get_completed(*arguments: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise RuntimeError("The library fails.")
        return await of_library(*arguments)

    of_library: Any = cast("Any", bullmq.worker).getCompleted
    monkeypatch.setattr("bullmq.worker.getCompleted", get_completed)

    async def find_millis() -> int:
        return await valkey.pttl(f"bull:{QUEUE}:one:lock")

    goes_on = asyncio.Event()
    work = Work(waits_for=goes_on)
    async with working(QUEUE, redis_url, work, lock_seconds=2.0) as worker:
        await queue.put("work", job_id="one")
        await eventually(lambda: len(work.seen) == 1, seconds=30)
        async with asyncio.timeout(30):
            before, now = 0, await find_millis()
            while now <= before or not before:
                await asyncio.sleep(0.05)
                before, now = now, await find_millis()
        goes_on.set()
        await eventually(lambda: worker.done == 1, seconds=30)


async def test_a_stopping_worker_abandons_a_long_job_which_runs_again(
    queue: JobQueue, redis_url: str
) -> None:
    work = Work(waits_for=asyncio.Event())

    async with working(QUEUE, redis_url, work, lock_seconds=0.5):
        await queue.put("work", job_id="one")
        await eventually(lambda: len(work.seen) == 1, seconds=30)
    assert work.finished == 0

    again = Work()
    async with working(QUEUE, redis_url, again, lock_seconds=0.5) as worker:
        await eventually(lambda: worker.done == 1, seconds=30)
    assert again.ids == ["one"]


async def test_an_idle_worker_writes_nothing_and_stops_waiting_for_jobs(
    redis_url: str, valkey: Valkey
) -> None:
    async def waiting() -> int:
        clients = await valkey.info("clients")
        return clients["blocked_clients"]

    async def count_looks() -> int:
        commands = await valkey.info("commandstats")
        return commands.get("cmdstat_llen", {"calls": 0})["calls"]

    looks = await count_looks()
    async with working(QUEUE, redis_url, Work(), lock_seconds=0.5) as worker:
        while await waiting() == 0 or await count_looks() < looks + 2:  # noqa: ASYNC110 - Valkey is asked
            await asyncio.sleep(0.01)
        assert not await valkey.exists(f"bull:{QUEUE}:stalled-check")

    assert await waiting() == 0
    assert worker.errors == 0


async def test_an_idle_worker_asks_for_a_job_once_however_many_it_may_run(
    redis_url: str, valkey: Valkey
) -> None:
    async def count(command: str) -> int:
        commands = await valkey.info("commandstats")
        return commands.get(f"cmdstat_{command}", {"calls": 0})["calls"]

    async def wait_for_more_waits(number: int) -> None:
        enough = await count("bzpopmin") + number
        while await count("bzpopmin") < enough:  # noqa: ASYNC110 - Valkey is asked
            await asyncio.sleep(0.01)

    async with working(QUEUE, redis_url, Work(), concurrency=20, poll_seconds=0.1) as worker:
        await wait_for_more_waits(
            2
        )  # At the start all of them ask: it is not known yet that there is nothing.
        before = await count("evalsha")
        await wait_for_more_waits(3)
        asked = await count("evalsha") - before

    assert asked < 10
    assert worker.errors == 0


async def test_jobs_put_at_once_run_beside_each_other(queue: JobQueue, redis_url: str) -> None:
    goes_on = asyncio.Event()
    work = Work(waits_for=goes_on)

    async with working(QUEUE, redis_url, work, concurrency=3) as worker:
        await queue.put("work", job_id="first")
        await eventually(lambda: len(work.seen) == 1, seconds=30)
        for number in range(3):
            await queue.put("work", job_id=f"later-{number}")
        await eventually(lambda: worker.running == 3, seconds=5)
        goes_on.set()
        await eventually(lambda: worker.done == 4, seconds=30)


@pytest.mark.server
async def test_a_worker_waits_for_a_valkey_that_is_away() -> None:
    folder = Path(tempfile.mkdtemp(prefix="adloom-tests-"))
    valkey = EmbeddedValkey(
        folder, listening=Listening(port=find_port()), password="a-password", appendfsync="no"
    )
    await valkey.prepare()
    work = Work()

    async with working(QUEUE, valkey.url, work) as worker:
        await eventually(lambda: worker.errors > 0, seconds=30)
        for number in range(2):  # It comes, goes, and comes again.
            with running(valkey.program):
                await valkey.wait_until_ready()
                async with open_queue(QUEUE, valkey.url) as queue:
                    await queue.put("work", job_id=f"job-{number}")
                await eventually(lambda: worker.done == number + 1, seconds=30)  # noqa: B023 - awaited here

    assert work.ids == ["job-0", "job-1"]
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("url", "is_secure"),
    [
        ("redis://:secret@127.0.0.1:1/0", False),
        ("valkey://name:secret@127.0.0.1:1/0", False),
        ("rediss://:secret@127.0.0.1:1/0", True),
        ("valkeys://:secret@127.0.0.1:1/0", True),
    ],
)
def test_the_url_may_have_a_password_and_use_tls(url: str, is_secure: bool) -> None:  # noqa: FBT001 - a column of the table
    pool = make_jobs_client(url).connection_pool

    assert pool.connection_kwargs["password"] == "secret"
    assert issubclass(pool.connection_class, SSLConnection) is is_secure


async def test_a_job_of_a_killed_process_runs_again(queue: JobQueue, redis_url: str) -> None:
    await queue.put("work", job_id="one")
    with subprocess.Popen(  # noqa: ASYNC220 - it is killed, not awaited
        [sys.executable, "-c", KILLED_WORKER],
        env={**os.environ, "REDIS_URL": redis_url},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"begun\n"
        process.send_signal(signal.SIGKILL)

    work = Work()
    async with working(QUEUE, redis_url, work, lock_seconds=0.5) as worker:
        await eventually(lambda: worker.done == 1, seconds=30)

    assert work.ids == ["one"]
    assert worker.lost == 1


KILLED_WORKER = f"""
import asyncio, os
from adloom.runtime.jobs.worker import JobAttempt, JobWorker

async def begin(job: JobAttempt) -> None:
    print("begun", flush=True)
    await asyncio.sleep(60)

worker = JobWorker({QUEUE!r}, os.environ["REDIS_URL"], {{"work": begin}}, lock_seconds=0.5)
asyncio.run(worker.run(asyncio.Event()))
"""
