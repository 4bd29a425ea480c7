"""Connections to Valkey."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError  # noqa: A004 - the driver's, which is not the system's

CONNECT_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 5.0

Valkey = Redis
T = TypeVar("T")

# What a call raises when the server is away, or does not answer as it should.
VALKEY_AWAY: Final = (RedisError, OSError)


@asynccontextmanager
async def open_valkey(redis_url: str) -> AsyncGenerator[Valkey]:
    """Open a client that connects when it is first used, and close it at the end.

    It does not repeat a command by itself: only the caller knows whether that is safe.
    """
    client = Redis.from_url(
        redis_url.replace("valkey", "redis", 1) if redis_url.startswith("valkey") else redis_url,
        socket_connect_timeout=CONNECT_SECONDS_MAX,
        socket_timeout=ANSWER_SECONDS_MAX,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=30,
    )
    try:
        yield client
    finally:
        await client.aclose()


async def again_if_cut_off(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call that may safely be made twice, and make it again where it met a dead connection.

    A connection that waited in the pool while the server was started anew is found dead only by using it.
    """
    try:
        return await call()
    except ConnectionError:
        return await call()


async def is_reachable(client: Valkey) -> bool:
    """Tell whether Valkey answers."""
    try:
        return bool(await again_if_cut_off(lambda: client.ping()))  # noqa: PLW0108 - the stubs know the call only
    except VALKEY_AWAY:
        return False
