"""Connections to Valkey."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError,  # noqa: A004 - the driver's, which is not the system's
    RedisError,
    ResponseError,
)

from adloom.core.errors import UnavailableError

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


class DedicatedConnection:
    """One connection for one caller, who makes calls one after another and says how long each may take.

    What the pool and its time-outs cost is more than most calls are worth: 68 and 27 µs for a `GET`.
    """

    def __init__(self, valkey: Valkey) -> None:
        self._pool = valkey.connection_pool
        self._connection: AbstractConnection | None = None

    async def execute_command(self, *words: str | bytes | int) -> object:
        """Make a call, as a client does; whatever goes wrong, and be it that nobody waits any more, the next one connects anew."""
        connection = self._connection
        if connection is None:
            connection = self._pool.make_connection()
            connection.socket_timeout = None
        self._connection = None
        try:
            await connection.send_command(*words, check_health=False)
            answer = cast("object", await connection.read_response())
        except ResponseError:
            self._connection = connection
            raise
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return answer

    async def aclose(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect()


async def retry_if_disconnected(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call that may safely be made twice, and make it again where it met a dead connection.

    A connection that waited in the pool while the server was started anew is found dead only by using it.
    """
    try:
        return await call()
    except ConnectionError:
        return await call()


@contextmanager
def unavailable_when_away(message: str = "The ledger does not answer") -> Generator[None]:
    """Raise UnavailableError for whatever keeps Valkey from answering."""
    try:
        yield
    except VALKEY_AWAY as error:
        raise UnavailableError(f"{message}: {error!r}") from error


async def is_reachable(client: Valkey) -> bool:
    """Tell whether Valkey answers."""
    try:
        return bool(await retry_if_disconnected(lambda: client.ping()))  # noqa: PLW0108 - the stubs know the call only
    except VALKEY_AWAY:
        return False
