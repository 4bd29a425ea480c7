"""The queue of e-mail: a job has the recipient and the reason, and the worker writes the text when it sends it."""

from functools import partial
from typing import Final

from adloom.runtime.jobs.queue import open_queue

QUEUE: Final = "mail"
ENDED_KEPT: Final = 100

# 15, 30, 60 … seconds between the attempts: a quarter of an hour in all, as greylisting asks for.
open_mail_queue: Final = partial(
    open_queue,
    QUEUE,
    attempts_max=7,
    backoff_milliseconds=15_000,
    done_kept=ENDED_KEPT,
    dead_kept=ENDED_KEPT,
)
