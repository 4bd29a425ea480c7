"""A pool that dies between any two statements, as if its process were killed by `kill -9`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from adloom.runtime.postgres import Pool


class Killed(BaseException):
    """The process is gone."""


class DyingPool:
    """Counts statements, and dies before one of them, or just after it."""

    def __init__(self, pool: Pool, *, dies_at: int | None = None) -> None:
        self._pool = pool
        self._dies_at = dies_at
        self.points = 0

    def step(self) -> None:
        """Pass a point at which a process may be killed."""
        self.points += 1
        if self._dies_at is not None and self.points >= self._dies_at:
            raise Killed

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator["DyingConnection"]:
        async with self._pool.acquire() as connection:
            yield DyingConnection(connection, self)


class DyingConnection:
    """Passes everything on, with a point before and after it."""

    def __init__(self, connection: Any, pool: DyingPool) -> None:
        self._connection = connection
        self._pool = pool

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return await self._passed_on("execute", *args, **kwargs)

    async def fetch(self, *args: Any, **kwargs: Any) -> Any:
        return await self._passed_on("fetch", *args, **kwargs)

    async def copy_records_to_table(self, *args: Any, **kwargs: Any) -> Any:
        return await self._passed_on("copy_records_to_table", *args, **kwargs)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        self._pool.step()
        async with self._connection.transaction():
            yield
            # Before the commit: all of it is undone.
            self._pool.step()
        self._pool.step()

    async def _passed_on(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self._pool.step()
        result = await getattr(self._connection, name)(*args, **kwargs)
        self._pool.step()
        return result
