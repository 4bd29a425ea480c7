"""Which commands Valkey refuses to our user: without some of them no event is accepted, and nothing says why."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, cast

import structlog
from redis.exceptions import ExecAbortError, NoPermissionError

from adloom.runtime.valkey import VALKEY_AWAY, Valkey

_KEY: Final = "adloom:permissions"  # It does not exist, and no command makes it.
_JOBS_KEY: Final = "bull:permissions"  # Likewise.
# All that we call, with arguments that change nothing; SUBSCRIBE would change the connection. A test compares them with
# the code. What jobs call besides is in scripts of their library, so there is one of each kind.
_HARMLESS: Final = (
    ("MULTI",),
    ("EXEC",),
    ("DISCARD",),
    ("watch", _KEY),  # In capitals, the driver would send it at once and the rest alone.
    ("UNWATCH",),
    ("PING",),
    ("INFO", "memory"),
    ("TIME",),
    ("WAIT", "0", "1"),
    ("EVAL", "return 1", "0"),
    ("EVALSHA", "0" * 40, "0"),
    ("SCRIPT LOAD", "return 1"),
    ("PUBLISH", _KEY, ""),
    ("XADD", _KEY, "NOMKSTREAM", "*", "field", "value"),
    ("XREAD", "COUNT", "1", "STREAMS", _KEY, "0"),
    ("XRANGE", _KEY, "-", "+", "COUNT", "1"),
    ("XREVRANGE", _KEY, "+", "-", "COUNT", "1"),
    ("XLEN", _KEY),
    ("XTRIM", _KEY, "MAXLEN", "0"),
    ("XDEL", _KEY, "0-1"),
    ("XSETID", _KEY, "0-1"),
    ("XGROUP CREATE", _KEY, "group", "0"),
    ("XGROUP SETID", _KEY, "group", "0"),
    ("XGROUP DELCONSUMER", _KEY, "group", "consumer"),
    ("XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", _KEY, ">"),
    ("XACK", _KEY, "group", "0-1"),
    ("XPENDING", _KEY, "group"),
    ("XCLAIM", _KEY, "group", "consumer", "0", "0-1"),
    ("XAUTOCLAIM", _KEY, "group", "consumer", "0", "0"),
    ("XINFO STREAM", _KEY),
    ("XINFO GROUPS", _KEY),
    ("XINFO CONSUMERS", _KEY, "group"),
    ("MEMORY USAGE", _KEY),
    ("HGETALL", _KEY),
    ("HMGET", _KEY, "field"),
    ("HKEYS", _KEY),
    ("HVALS", _KEY),
    ("HSCAN", _KEY, "0"),
    ("HEXISTS", _KEY, "field"),
    ("HDEL", _KEY, "field"),
    ("GET", _JOBS_KEY),
    ("SET", _KEY, "", "XX"),
    ("TYPE", _KEY),
    ("EXISTS", _KEY),
    ("EXPIRE", _JOBS_KEY, "1"),
    ("PEXPIRE", _KEY, "1"),
    ("EXPIREAT", _KEY, "1"),
    ("EXPIRETIME", _KEY),
    ("PTTL", _KEY),
    ("SCAN", "0", "COUNT", "1"),
    ("DEL", _KEY),
    ("UNLINK", _KEY),
    ("LRANGE", _KEY, "0", "0"),
    ("LTRIM", _KEY, "0", "0"),
    ("LREM", _KEY, "0", ""),
    ("SREM", _KEY, ""),
    ("ZREM", _KEY, ""),
    ("ZPOPMIN", _KEY),
)
# These make a key, so they are put into a transaction that is given up: the server refuses a command when it comes.
_GIVEN_UP: Final = (
    ("MULTI",),
    ("HSET", _KEY, "field", "value"),
    ("HINCRBY", _KEY, "field", "1"),
    ("INCR", _KEY),
    ("RPUSH", _KEY, "value"),
    ("DISCARD",),
)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def find_refused(valkey: Valkey) -> list[str]:
    """Return the commands that Valkey refuses to our user, of those that we call; RedisError or OSError when it is away."""
    refused = await _try(valkey, _HARMLESS)
    if not {"MULTI", "DISCARD"}.intersection(refused):
        refused += await _try(valkey, _GIVEN_UP)
    return refused


async def _try(valkey: Valkey, commands: Sequence[tuple[str, ...]]) -> list[str]:
    asked = valkey.pipeline(transaction=False)
    for command in commands:
        cast("Any", asked).execute_command(*command)  # The stubs have each call wait for its own answer.
    answers = await asked.execute(raise_on_error=False)
    return [
        command[0].upper()
        for command, answer in zip(commands, answers, strict=True)
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
