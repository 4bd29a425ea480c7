"""Connections to PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeAlias, cast

import asyncpg
import msgspec
from asyncpg.pool import PoolAcquireContext, PoolConnectionProxy

from adloom.core.errors import UnavailableError
from adloom.runtime.failover.primary import PrimaryConnector
from adloom.runtime.loops import pause

CONNECT_SECONDS_MAX = 5.0
ACQUIRE_SECONDS_MAX = 5.0  # For a connection that others use: beyond, it is an outage like any other.
COMMAND_SECONDS_MAX = 30.0
IDLE_IN_TRANSACTION_SECONDS_MAX = 20  # Less than a command waits for a lock: the waiting ones go on.
# As the driver has it itself, in a function that knows only its own class.
QUERIES_PER_CONNECTION_MAX = 50_000
# The one that was returned last is taken first, so what many needed at once, as at a start, is closed soon. Each has
# 10 MB in the server; to open one takes some milliseconds.
IDLE_SECONDS_MAX = 20.0
# Many wake at the same moment, and use whatever is open, so that none would be idle. So one is closed after a while, and
# the next after twice as long: it is opened again, in some 20 ms, if the others do not come back in time for all.
SPARE_SECONDS = 4.0
SPARE_SECONDS_MAX = 600.0
# For one that others will have returned by then. Most use theirs for a millisecond, and many wake at the same moment.
PATIENCE_SECONDS = 0.1
PATIENCES_MAX = 3  # In all, where others are always faster.
# Types below are the server's own, the same in each: what one connection has learned of them holds for all. To learn of
# a few takes the server 15 ms, and each connection would do so for the arrays that it is given.
OWN_TYPES_FROM = 16_384

# Text, because the driver's classes are generic in its stubs only.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Record: TypeAlias = asyncpg.Record

# What a call raises when the server is away, or does not answer as it should. The last one: asyncpg stumbles over itself
# when the server is killed between two steps of connecting.
POSTGRES_AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


class _BoundedPool(asyncpg.Pool):  # pyright: ignore[reportMissingTypeArgument] - see above
    """A pool with a bounded wait for a connection, for every way to ask for one.

    It opens another only when those that are open were not returned for a moment.
    """

    def __init__(self, *arguments: object, patience_seconds: float, **options: object) -> None:
        super().__init__(*arguments, **options)  # pyright: ignore[reportArgumentType] - the driver's own
        self._patience_seconds = patience_seconds
        self._returned = asyncio.Event()
        self._spare_seconds = SPARE_SECONDS
        self._spared_at = asyncio.get_running_loop().time()  # When one was closed that others may do for.
        self._moved_at = 0.0  # When one was returned or opened.
        self._taking = 0  # How many are about to have one.

    def acquire(self, *, timeout: float | None = ACQUIRE_SECONDS_MAX) -> "PoolAcquireContext[asyncpg.Record]":
        """Take a connection, or raise TimeoutError."""
        return super().acquire(timeout=timeout)

    async def release(
        self,
        connection: "PoolConnectionProxy[asyncpg.Record]",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the driver's
    ) -> None:
        now = asyncio.get_running_loop().time()
        # One that is to be reset may have locks, and the server notices late that it is gone; one that is lost has nothing.
        is_spare = self.get_size() > 1 and not getattr(connection, "is_reset_due", True)
        if is_spare and now - self._spared_at > self._spare_seconds:
            self._spared_at, self._spare_seconds = now, min(2 * self._spare_seconds, SPARE_SECONDS_MAX)
            connection.terminate()
        try:
            await super().release(connection, timeout=timeout)
        finally:
            self._moved_at = asyncio.get_running_loop().time()
            self._returned.set()

    async def _acquire(
        self,
        timeout: float | None,  # noqa: ASYNC109 - the driver's
    ) -> "PoolConnectionProxy[asyncpg.Record]":
        if 0 < self.get_size() < self.get_max_size() and not self._has_free():
            await self._wait_for_free()
        self._taking += 1
        try:
            # It is the driver's own, and not in its stubs.
            return await cast("Any", super())._acquire(timeout)  # noqa: SLF001 - see above
        finally:
            self._taking -= 1

    def _has_free(self) -> bool:
        return self.get_idle_size() > self._taking

    async def _wait_for_free(self) -> None:
        """Wait until one is free, or none was returned or opened for a moment, or it takes too long."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        while not self._has_free():
            moved_at = max(began_at, self._moved_at)
            ends_at = min(
                moved_at + self._patience_seconds, began_at + PATIENCES_MAX * self._patience_seconds
            )
            if (seconds := ends_at - loop.time()) <= 0:
                self._moved_at = loop.time()  # We open one, and others that wait may use it after us.
                return
            self._returned.clear()
            await pause(seconds, self._returned)


class _LeanConnection(asyncpg.Connection):  # pyright: ignore[reportMissingTypeArgument] - see above
    """A connection that is reset after use only where that was asked for; an open transaction is always rolled back."""

    is_reset_due = False

    def ask_for_reset(self) -> None:
        self.is_reset_due = True

    async def executemany(
        self,
        command: str,
        args: Iterable[Sequence[Any]],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the driver's
    ) -> None:
        """Run a command for each row; for none, the driver would leave a transaction open that a reset has ended."""
        if rows := list(args):
            await super().executemany(command, rows, timeout=timeout)

    async def _introspect_types(
        self,
        typeoids: Iterable[int],
        timeout: float,  # noqa: ASYNC109 - the driver's
    ) -> tuple[Sequence[Any], Any]:
        asked = frozenset(typeoids)
        if asked in _known_types:
            return _known_types[asked], _NotAsked
        # It is the driver's own, and not in its stubs.
        found, statement = await cast("Any", super())._introspect_types(asked, timeout)  # noqa: SLF001 - likewise
        if max(asked) < OWN_TYPES_FROM:
            _known_types[asked] = found
        return found, statement

    def get_reset_query(self) -> str:
        """Skip a reset that is not due: it takes as long as a query."""
        if not self.is_reset_due:
            return ""
        self.is_reset_due = False
        return super().get_reset_query()


class _NotAsked:
    """Takes the place of a statement that was not needed; the driver wants to know whether it has lost another by it."""

    name = "none"


# By the types that were asked for together, of which there are as many as statements with arrays.
_known_types: dict[frozenset[int], Sequence[Any]] = {}


def parse_row_count(status: str) -> int:
    """Read how many rows a statement has written out of what the server says of it."""
    return int(status.rpartition(" ")[2])


def reset_after_use(connection: Connection) -> None:
    """Have a connection reset before others get it: for locks and settings that outlive a transaction."""
    if isinstance(connection, PoolConnectionProxy):
        # What the proxy does not have itself, it finds in its connection.
        cast("_LeanConnection", connection).ask_for_reset()


@asynccontextmanager
async def read_snapshot(pool: Pool) -> AsyncGenerator[Connection]:
    """Read everything inside the block as of one moment."""
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield connection


@asynccontextmanager
async def open_pool(
    database_url: str,
    *,
    size_max: int,
    command_seconds_max: float = COMMAND_SECONDS_MAX,
    idle_in_transaction_seconds_max: int = IDLE_IN_TRANSACTION_SECONDS_MAX,
    patience_seconds: float = PATIENCE_SECONDS,
) -> AsyncGenerator[Pool]:
    """Open a pool that connects when it is first used, to the server that takes writes, and close it at the end.

    Code that takes a lock of the session, or changes a setting for longer than a transaction, says so: `reset_after_use`.
    """
    pool = _BoundedPool(
        database_url,
        patience_seconds=patience_seconds,
        min_size=0,
        max_size=size_max,
        max_queries=QUERIES_PER_CONNECTION_MAX,
        max_inactive_connection_lifetime=IDLE_SECONDS_MAX,
        connect=PrimaryConnector(database_url).connect,
        timeout=CONNECT_SECONDS_MAX,
        command_timeout=command_seconds_max,
        init=_set_codecs,
        server_settings={
            # Else in the server's own zone, where a midnight may be missing: a series of days would lose its last one.
            "timezone": "UTC",
            # A plan for any value is a bad plan for the searches of lists, and planning takes less than a millisecond.
            "plan_cache_mode": "force_custom_plan",
            # A process that is frozen in a transaction would keep its locks, and all others waiting, for as long.
            "idle_in_transaction_session_timeout": f"{idle_in_transaction_seconds_max}s",
        },
        loop=None,
        connection_class=_LeanConnection,
        record_class=asyncpg.Record,
    )
    await pool
    try:
        yield pool
    finally:
        # A connection in use may hang on a server that is gone; do not wait for it for ever.
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await pool.close()
        except TimeoutError:
            pool.terminate()


async def is_reachable(pool: Pool) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            return await pool.fetchval("SELECT true")
    except POSTGRES_AWAY:
        return False


@contextmanager
def raise_if_away(message: str) -> Generator[None]:
    """Raise UnavailableError for whatever keeps PostgreSQL from answering."""
    try:
        yield
    except POSTGRES_AWAY as error:
        raise UnavailableError(f"{message}: {error!r}") from error


async def _set_codecs(connection: Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[1:]),
        format="binary",
    )
