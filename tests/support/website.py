"""A website on the loopback that answers as it is told, and remembers what it was asked for."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import cast

import msgspec

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Asked(msgspec.Struct, frozen=True):
    """One request."""

    path: str
    headers: Mapping[str, str]


class Website:
    """Replies by path; a path without a reply is 404."""

    def __init__(self) -> None:
        self.replies: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.connections = 0
        self.at_once = 0
        self.at_once_most = 0
        self.delay = 0.0
        self.port = 0

    @property
    def paths(self) -> list[str]:
        return [one.path for one in self.asked]

    def say(
        self,
        path: str,
        body: str | bytes,
        kind: str = "text/html; charset=utf-8",
        *,
        status: int = 200,
        **headers: str,
    ) -> None:
        """Answer a path; names of headers are written with underscores."""
        content = body.encode() if isinstance(body, str) else body

        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write(
                head(status, {"Content-Type": kind, "Content-Length": str(len(content)), **headers}) + content
            )

        self.replies[path] = answer

    def say_with(self, path: str, answer: Answer, **headers: str) -> None:
        """Add headers to an answer."""

        async def answer_with(writer: asyncio.StreamWriter) -> None:
            lines = "".join(f"\r\n{name.replace('_', '-')}: {value}" for name, value in headers.items())
            written = _Written(writer)
            await answer(cast("asyncio.StreamWriter", written))
            first, end, rest = written.data.partition(b"\r\n")
            writer.write(first + lines.encode() + end + rest)

        self.replies[path] = answer_with

    def redirect(self, path: str, location: str, *, status: int = 302) -> None:
        self.say(path, b"", status=status, Location=location)

    def article(
        self, path: str, title: str, text: str, links: tuple[str, ...] = (), *, in_head: str = ""
    ) -> None:
        related = "".join(f'<li><a href="{link}">Read on</a></li>' for link in links)
        self.say(
            path,
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{in_head}</head><body>'
            f"<main><article><h1>{title}</h1><p>{text}</p></article></main><ul>{related}</ul></body></html>",
        )

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                self.asked.append(request)
                self.at_once += 1
                self.at_once_most = max(self.at_once, self.at_once_most)
                try:
                    await asyncio.sleep(self.delay)
                    answer = self.replies.get(request.path) or self.replies.get("*")
                    if answer is None:
                        writer.write(head(404, {"Content-Length": "0"}))
                    else:
                        await answer(writer)
                    await writer.drain()
                finally:
                    self.at_once -= 1
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # A handler that ends as cancelled, with the test's loop, would be reported as an exception of a callback.
            pass
        finally:
            writer.close()


class _Written:
    """Takes what an answer writes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.data = b""
        self.drain = writer.drain

    def write(self, data: bytes) -> None:
        self.data += data


@asynccontextmanager
async def running_website() -> AsyncGenerator[Website]:
    website = Website()
    server = await asyncio.start_server(website._handle, "127.0.0.1", 0)  # noqa: SLF001 - its own starter  # pyright: ignore[reportPrivateUsage]
    website.port = server.sockets[0].getsockname()[1]
    try:
        yield website
    finally:
        server.close()
        # Connections that are still open would keep `wait_closed` waiting.
        await asyncio.sleep(0)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Said",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def gzipped(body: str | bytes) -> bytes:
    return gzip.compress(body.encode() if isinstance(body, str) else body)


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = text.split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)
    }
    return Asked(first.split(" ")[1], headers)
