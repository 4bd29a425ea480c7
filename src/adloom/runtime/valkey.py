"""Connections to Valkey."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

CONNECT_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 5.0

Valkey = Redis


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


async def is_reachable(client: Valkey) -> bool:
    """Tell whether Valkey answers."""
    try:
        return bool(await client.ping())
    except (RedisError, OSError):
        return False
