"""A raw HTTP connection: tests send bytes as they like and read answers one by one."""

import socket
from types import TracebackType
from typing import Self

import msgspec

READ_SECONDS_MAX = 5.0


class ClosedError(Exception):
    """The server closed the connection before an answer was whole."""


class WireAnswer(msgspec.Struct, frozen=True):
    """One answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """One connection to a server under test."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=READ_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> Self:
        self._socket.sendall(data)
        return self

    def send_some(self, data: bytes) -> int:
        """Send what the kernel accepts within a moment, and return how much that was."""
        self._socket.settimeout(0.2)
        sent = 0
        try:
            while sent < len(data):
                sent += self._socket.send(data[sent:])
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self._socket.settimeout(READ_SECONDS_MAX)
        return sent

    def end(self) -> Self:
        """Close our half."""
        self._socket.shutdown(socket.SHUT_WR)
        return self

    def answer(self, *, to_head: bool = False) -> WireAnswer:
        """Read the next answer; raise ClosedError where there is none."""
        head = self._read_until(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = dict(line.split(": ", 1) for line in lines)
        assert len(headers) == len(lines), "no header is sent twice"
        status = int(status_line.split(" ")[1])
        return WireAnswer(status, headers, b"" if to_head else self._read_body(headers))

    def rest(self) -> bytes:
        """Read until the server closes; a time-out is a failure."""
        while self._receive():
            pass
        rest, self._buffer = self._buffer, b""
        return rest

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self._read(int(headers.get("content-length", "0")))
        body = b""
        while size := int(self._read_until(b"\r\n"), 16):
            body += self._read(size + 2)[:-2]
        self._read(2)
        return body

    def _read_until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            if not self._receive():
                raise ClosedError(self._buffer)
        return self._read(self._buffer.index(end) + len(end))

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._receive():
                raise ClosedError(self._buffer)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _receive(self) -> bool:
        try:
            data = self._socket.recv(65536)
        except ConnectionError:
            return False
        self._buffer += data
        return bool(data)
