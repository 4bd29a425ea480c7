"""The queue of e-mail: a job says whom it is for and why, and the worker writes it when it sends it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from adloom.runtime.jobs.queue import ANSWER_SECONDS_MAX, JobQueue, open_queue

QUEUE: Final = "mail"
ATTEMPTS_MAX: Final = 7
BACKOFF_MILLISECONDS: Final = (
    15_000  # 15, 30, 60 … seconds: a quarter of an hour in all, as greylisting asks for.
)
ENDED_KEPT: Final = 100


@asynccontextmanager
async def open_mail_queue(
    redis_url: str, *, answer_seconds_max: float = ANSWER_SECONDS_MAX
) -> AsyncGenerator[JobQueue]:
    async with open_queue(
        QUEUE,
        redis_url,
        attempts_max=ATTEMPTS_MAX,
        backoff_milliseconds=BACKOFF_MILLISECONDS,
        done_kept=ENDED_KEPT,
        dead_kept=ENDED_KEPT,
        answer_seconds_max=answer_seconds_max,
    ) as queue:
        yield queue
