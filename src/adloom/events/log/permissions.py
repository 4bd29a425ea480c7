"""Which commands Valkey refuses to our user: without some of them no event is accepted, and nothing says why."""

import asyncio
from contextlib import suppress
from typing import Any, Final, cast

import structlog
from redis.exceptions import ExecAbortError, NoPermissionError

from adloom.runtime.valkey import VALKEY_AWAY, Valkey

_KEY: Final = "adloom:permissions"  # It does not exist, and no command makes it.
_JOBS_KEY: Final = "bull:permissions"  # Likewise.
# One of each kind that we use, with arguments that change nothing.
_HARMLESS: Final = (
    ("MULTI",),
    ("EXEC",),
    ("INFO", "memory"),
    ("TIME",),
    ("EVAL", "return 1", "0"),
    ("EVALSHA", "0" * 40, "0"),
    ("SCRIPT LOAD", "return 1"),
    ("PUBLISH", _KEY, ""),
    ("XADD", _KEY, "NOMKSTREAM", "*", "field", "value"),
    ("XREAD", "COUNT", "1", "STREAMS", _KEY, "0"),
    ("XREVRANGE", _KEY, "+", "-", "COUNT", "1"),
    ("XTRIM", _KEY, "MAXLEN", "0"),
    ("XINFO GROUPS", _KEY),
    ("MEMORY USAGE", _KEY),
    ("HGETALL", _KEY),
    ("HDEL", _KEY, "field"),
    ("GET", _JOBS_KEY),
    ("TYPE", _KEY),
    ("EXPIRE", _JOBS_KEY, "1"),
    ("XDEL", _KEY, "0-1"),
    ("SET", _KEY, "", "XX"),
    ("DEL", _KEY),
    ("LREM", _KEY, "0", ""),
    ("SREM", _KEY, ""),
    ("ZREM", _KEY, ""),
    ("ZPOPMIN", _KEY),
)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def find_refused(valkey: Valkey) -> list[str]:
    """Return the commands that Valkey refuses to our user, of those that are tried; RedisError or OSError when it is away."""
    asked = valkey.pipeline(transaction=False)
    for command in _HARMLESS:
        cast("Any", asked).execute_command(*command)  # The stubs have each call wait for its own answer.
    answers = await asked.execute(raise_on_error=False)
    return [
        command[0]
        for command, answer in zip(_HARMLESS, answers, strict=True)
        if isinstance(answer, NoPermissionError | ExecAbortError)  # The latter where EXEC is refused.
    ]


class PermissionCheck:
    """Logs once what Valkey refuses, if it answers."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def run(self, stop: asyncio.Event) -> None:
        del stop
        with suppress(*VALKEY_AWAY):
            if refused := await find_refused(self._valkey):
                log.error("valkey_refuses_commands", commands=refused, see="docs/guide/connections.md")
