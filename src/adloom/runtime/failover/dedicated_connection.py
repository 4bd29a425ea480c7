"""A connection to Valkey for one caller: the driver connects, and finds the primary, then its streams are left out.

They and the driver's timeouts cost more than most calls are worth: of a call that appends a batch of events, two thirds.
Many commands at once are packed by their caller: the driver takes longer for each than the server does.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias, cast

import hiredis
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.asyncio import Redis
from redis.exceptions import (
    ConnectionError,  # noqa: A004 - the driver's, which is not the system's
    InvalidResponse,
    ReadOnlyError,
    ResponseError,
)

_pack: Final = cast("Callable[[tuple[str | bytes | int, ...]], bytes]", hiredis.pack_command)
_NOTHING: Final = object()  # Of an answer that is not here whole.

# Sends commands that are packed, and returns as many answers.
ExecutePacked: TypeAlias = Callable[[bytes, int], Awaitable[Sequence[Any]]]


def pack_command(*words: str | bytes | int) -> bytes:
    return _pack(words)


@asynccontextmanager
async def borrow_connection(valkey: Redis) -> AsyncGenerator[ExecutePacked]:
    """Take a connection of the driver's for packed commands; after an error it is closed, with all it watches."""
    pool = valkey.connection_pool
    connection = await pool.get_connection()
    try:
        yield partial(_execute_packed, connection)
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)


async def _execute_packed(connection: Any, packed: bytes, count: int) -> Sequence[Any]:  # noqa: ANN401 - as below
    await connection.send_packed_command(packed)
    read_next = connection._parser._reader.gets  # noqa: SLF001 - what has arrived is read without the driver
    answers: list[object] = []
    while len(answers) < count:
        answers.append(await connection.read_response())
        while len(answers) < count and (answer := read_next()) is not NOT_ENOUGH_DATA:
            answers.append(answer)
    raise_first_error(answers)
    return answers


def has_error(answers: Sequence[object]) -> bool:
    """Return whether an answer is an error, by their types: many answers have few."""
    return any(issubclass(kind, Exception) for kind in set(map(type, answers)))


def raise_first_error(answers: Sequence[object]) -> None:
    """Raise what the server refused first; commands after it may say only that they were not run."""
    if not has_error(answers):
        return
    for answer in answers:
        if isinstance(answer, ReadOnlyError):
            raise ConnectionError("This server is not the primary any more.") from answer
        if isinstance(answer, Exception):
            raise answer


class DedicatedConnection:
    """One connection for one caller, which sends one command after another and sets its own timeouts."""

    def __init__(self, valkey: Redis) -> None:
        self._pool = valkey.connection_pool
        self._line: _Line | None = None

    async def execute_command(self, *words: str | bytes | int) -> object:
        """Send a command; after any failure, cancellation included, the next one connects again."""
        return (await self.execute_packed(_pack(words), 1))[0]

    async def execute_packed(self, packed: bytes, count: int) -> Sequence[Any]:
        """Send so many packed commands at once; return all answers, or raise the first error among them."""
        line, self._line = self._line, None
        if line is None or line.transport.is_closing():
            made = self._pool.make_connection()
            await made.connect()
            line = _Line(made)
        try:
            answers = await line.send(packed, count)
            raise_first_error(answers)
        except ResponseError:
            self._line = line
            raise
        except BaseException:
            line.close()
            raise
        self._line = line
        return answers

    async def aclose(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()


class _Line(asyncio.Protocol):
    """A connection that the driver has made, and what is read from it since."""

    def __init__(self, made: Any) -> None:  # noqa: ANN401 - what the driver keeps to itself
        self.close = made._close  # noqa: SLF001 - likewise
        self.transport: asyncio.Transport = made._writer.transport  # noqa: SLF001 - likewise
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=made._parser.parse_error,  # noqa: SLF001 - likewise
            notEnoughData=_NOTHING,
        )
        self._coming: asyncio.Future[Sequence[object]] | None = None
        self._answers: list[object] = []
        self._count = 0
        self.transport.set_protocol(self)

    def send(self, packed: bytes, count: int) -> asyncio.Future[Sequence[object]]:
        self._coming = coming = asyncio.get_running_loop().create_future()
        self._answers, self._count = [], count
        self.transport.write(packed)
        return coming

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        answers, read_next = self._answers, self._reader.gets
        while len(answers) < self._count and (answer := read_next()) is not _NOTHING:
            answers.append(answer)
        if len(answers) == self._count and self._coming is not None and not self._coming.done():
            self._coming.set_result(answers)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()
        if self._coming is not None and not self._coming.done():
            self._coming.set_exception(ConnectionError(f"Valkey has closed the connection: {exc}."))
