"""Runs the jobs of one queue until stopped.

A job that fails is tried again after a while; one that ran out of attempts stays among the dead.
A job whose process was killed comes back when its lock has run out. So every handler must be
able to run twice.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, cast

import bullmq
import msgspec
import structlog
from bullmq.custom_errors import UnrecoverableError
from bullmq.lock_manager import LockManager

from adloom.runtime.jobs.queue import PREFIX, make_jobs_client
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

CONCURRENCY: Final = 1
# Renewed while the job runs. A job whose process was killed comes back within twice this time.
LOCK_SECONDS: Final = 10.0
LOST_MAX: Final = 3  # A job that takes its process down with it is not tried for ever.
RECONNECT_SECONDS: Final = 1.0
# A new job wakes its worker at once. Without one it looks again after so long.
POLL_SECONDS: Final = 10
# For the jobs under way; those that take longer are cut off, and come again.
STOP_SECONDS_MAX: Final = 1.5

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class PermanentJobError(UnrecoverableError):
    """Another attempt at the job would not help."""


class JobAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a job; its handler may report the share that is done."""

    name: str
    id: str
    data: dict[str, str]
    attempt: int
    report_progress: Callable[[float], Awaitable[None]] | None = None


Handler = Callable[[JobAttempt], Awaitable[None]]
Backoff = Callable[[int, Exception], timedelta]


class JobWorker:
    """Passes the jobs of a queue to the handlers of their names."""

    def __init__(  # noqa: PLR0913 - how a queue is worked off
        self,
        queue: str,
        redis_url: str,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = CONCURRENCY,
        lock_seconds: float = LOCK_SECONDS,
        lost_max: int = LOST_MAX,
        poll_seconds: float = POLL_SECONDS,
        backoff: Backoff | None = None,
        is_quiet: bool = False,
    ) -> None:
        self._queue = queue
        self._redis_url = redis_url
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._lock_seconds = lock_seconds
        self._lost_max = lost_max
        self._poll_seconds = poll_seconds
        self._backoff = backoff
        # Its handlers log their failures themselves: a failed job has one line.
        self._is_quiet = is_quiet
        self._log_error = RepeatedLine(log, "job_worker_failed", seconds=OUTAGE_SECONDS)
        # Plain counters, read by a collector.
        self.running = 0
        self.done = 0
        self.failed = 0
        self.dead = 0
        self.lost = 0
        self.errors = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Run jobs until stopped; jobs that have begun get a while to finish."""
        worker = self._build_worker()
        running = asyncio.ensure_future(self._keep_running(worker, stop))
        try:
            await stop.wait()
        finally:
            await _close(worker, running)

    def _build_worker(self) -> bullmq.Worker:
        options: dict[str, object] = {
            "connection": make_jobs_client(self._redis_url),
            "prefix": PREFIX,
            "skipVersionCheck": True,
            "autorun": False,
            "concurrency": self._concurrency,
            "lockDuration": int(self._lock_seconds * 1000),
            "stalledInterval": int(self._lock_seconds * 500),
            "maxStalledCount": self._lost_max,
            "drainDelay": self._poll_seconds,
            "runRetryDelay": int(RECONNECT_SECONDS * 1000),
        }
        if self._backoff is not None:
            options["settings"] = {"backoffStrategy": self._compute_backoff_milliseconds}
        # The library's types lack an option, and ask for a Future where it awaits.
        worker = _RestingWorker(self._queue, self._process_job, options)  # pyright: ignore[reportArgumentType] - see above
        worker.on("completed", self._on_completed)
        worker.on("failed", self._on_failed)
        worker.on("stalled", self._on_lost)
        worker.on("error", self._on_error)
        return worker

    async def _keep_running(self, worker: bullmq.Worker, stop: asyncio.Event) -> None:
        """Start again if Valkey was away at the start; later the library waits by itself."""
        while not stop.is_set():
            try:
                await worker.run()
            except VALKEY_AWAY as error:
                self._on_error(error)
            if not stop.is_set():
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _process_job(self, job: bullmq.Job, _token: str) -> None:
        handler = self._handlers.get(job.name)
        if handler is None:
            raise UnrecoverableError(f"There is no handler for {job.name}.")
        data = cast("dict[str, str]", job.data)

        async def report(share: float) -> None:
            await job.updateProgress(share)

        attempt = JobAttempt(
            name=job.name, id=str(job.id), data=data, attempt=job.attemptsMade + 1, report_progress=report
        )
        self.running += 1
        try:
            await handler(attempt)
        finally:
            self.running -= 1

    def _compute_backoff_milliseconds(
        self, attempt: int, _kind: str, error: Exception, _job: bullmq.Job
    ) -> int:
        assert self._backoff is not None
        return int(self._backoff(attempt, error).total_seconds() * 1000)

    def _on_completed(self, _job: bullmq.Job, _result: object) -> None:
        self.done += 1

    def _on_failed(self, job: bullmq.Job, error: Exception) -> None:
        self.failed += 1
        attempts_left = max(0, int(job.opts.get("attempts") or 0) - job.attemptsMade)
        about = log.bind(queue=self._queue, job=job.name, id=job.id)
        is_dead = isinstance(error, UnrecoverableError) or not attempts_left
        self.dead += is_dead
        if self._is_quiet:
            about.debug("job_failed", exc_info=error)
        elif is_dead:
            about.error("job_buried", error=repr(error), attempts=job.attemptsMade)
            about.debug("job_failed", exc_info=error)  # One line is enough, except for debugging.
        else:
            about.warning("job_failed", error=repr(error), attempts_left=attempts_left)

    def _on_lost(self, job_id: str) -> None:
        self.lost += 1
        log.warning("job_came_back", queue=self._queue, id=job_id)

    def _on_error(self, error: Exception, *_: object) -> None:
        self.errors += 1
        self._log_error(queue=self._queue, error=repr(error))


class _RestingWorker(bullmq.Worker):
    """A worker that wakes rarely and writes nothing while no job is under way: several of them wait in a process."""

    _found_none = False  # By the last check for jobs whose process was killed.

    async def run(self) -> None:
        """Run with new locks: the library closes them when it returns, which it does also where it fails."""
        of_library = self.lockManager
        self.lockManager = _LocksOfJobs(
            self, of_library.lock_renew_time, of_library.lock_duration, of_library.worker_id
        )
        await super().run()

    async def getNextJob(self, token: str) -> bullmq.Job | None:  # noqa: N802 - the library's
        """Return the next job; while one of those that this worker may run waits for it, the others do not ask too."""
        if self.drained and self.waiting is not None:
            return None
        return await super().getNextJob(token)

    async def runStalledJobsCheck(self) -> None:  # noqa: N802 - the library's
        """Look for jobs whose process was killed; the library's check writes to Valkey, so it runs only while a job is active."""
        if self._found_none:
            # Once is left out: a job that began since then has its lock for two intervals, and so comes back no later.
            self._found_none = False
            return
        try:
            is_under_way = await cast("Valkey", self.client).llen(
                cast("Mapping[str, str]", self.keys)["active"]
            )
        except VALKEY_AWAY as error:
            self.emit("error", error)
        else:
            self._found_none = not is_under_way
            if is_under_way:
                await super().runStalledJobsCheck()


class _LocksOfJobs(LockManager):
    """Renews the locks of jobs while there are any."""

    def start(self) -> None:
        if self.tracked_jobs:
            super().start()

    def track_job(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the library's
        controller = super().track_job(*arguments, **options)
        self.start()
        return controller

    def untrack_job(self, job_id: str) -> None:
        super().untrack_job(job_id)
        if self._renewal_task is not None and not self.tracked_jobs:
            self._renewal_task.cancel()
            self._renewal_task = None


async def _close(worker: bullmq.Worker, running: "asyncio.Future[None]") -> None:
    # Not `worker.close()` first: it would take the connection from a job that was just fetched.
    worker.closing = True
    if worker.waiting is not None:
        worker.waiting.cancel()
    await asyncio.wait([running], timeout=STOP_SECONDS_MAX)
    await worker.close(force=not running.done() or len(cast("set[object]", worker.jobs)) > 0)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
