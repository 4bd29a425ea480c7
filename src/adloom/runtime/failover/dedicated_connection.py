"""A connection to Valkey for one caller: the driver connects, and finds the primary, then its streams are left out.

They and the driver's timeouts cost more than most calls are worth: of a call that appends a batch of events, two thirds.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import (
    ConnectionError,  # noqa: A004 - the driver's, which is not the system's
    InvalidResponse,
    ReadOnlyError,
    ResponseError,
)

_pack: Final = cast("Callable[[tuple[str | bytes | int, ...]], bytes]", hiredis.pack_command)
_NOTHING: Final = object()  # Of an answer that is not here whole.


class DedicatedConnection:
    """One connection for one caller, which sends one command after another and sets its own timeouts."""

    def __init__(self, valkey: Redis) -> None:
        self._pool = valkey.connection_pool
        self._line: _Line | None = None

    async def execute_command(self, *words: str | bytes | int) -> object:
        """Send a command; after any failure, cancellation included, the next one connects again."""
        line, self._line = self._line, None
        if line is None or line.transport.is_closing():
            made = self._pool.make_connection()
            await made.connect()
            line = _Line(made)
        try:
            answer = await line.send(words)
        except ReadOnlyError as error:
            line.close()
            raise ConnectionError("This server is not the primary any more.") from error
        except ResponseError:
            self._line = line
            raise
        except BaseException:
            line.close()
            raise
        self._line = line
        return answer

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
        self._coming: asyncio.Future[object] | None = None
        self.transport.set_protocol(self)

    def send(self, words: tuple[str | bytes | int, ...]) -> asyncio.Future[object]:
        self._coming = coming = asyncio.get_running_loop().create_future()
        self.transport.write(_pack(words))
        return coming

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        answer = self._reader.gets()
        coming = self._coming
        if answer is _NOTHING or coming is None or coming.done():
            return
        if isinstance(answer, Exception):
            coming.set_exception(answer)
        else:
            coming.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()
        if self._coming is not None and not self._coming.done():
            self._coming.set_exception(ConnectionError(f"Valkey has closed the connection: {exc}."))
