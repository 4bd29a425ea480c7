"""Whether PostgreSQL or Valkey answers at all, asked over a connection of its own and before any log-in.

A pool may be used up by requests that wait; a frozen server still takes connections, and says nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

ANSWER_SECONDS_MAX: Final = 0.4
# What a server answers before it knows who asks: whether it speaks TLS, or that a password is missing.
POSTGRES_QUESTION: Final = (8).to_bytes(4) + (80877103).to_bytes(4)
VALKEY_QUESTION: Final = b"PING\r\n"
POSTGRES_PORT: Final = 5432


LOOPBACK: Final = "127.0.0.1"

# A unix socket, or a port of a host; without a host, of loopback.
Address: TypeAlias = tuple[str | Path | None, int | None]


async def is_answering(address: Address, question: bytes, *, expected: bytes = b"") -> bool:
    """Return whether a server gives the expected answer, or any; raise OSError if nothing listens there."""
    place, port = address
    if place is not None and str(place).startswith("/"):
        reader, writer = await asyncio.open_unix_connection(place)
    else:
        reader, writer = await asyncio.open_connection(str(place or LOOPBACK), port)
    try:
        writer.write(question)
        if expected:
            return await reader.readexactly(len(expected)) == expected
        return bool(await reader.read(1))
    finally:
        writer.close()


def find_postgres(database_url: str) -> Address | None:
    """Find where PostgreSQL listens; None if its URL names no single address."""
    try:
        parts = urlsplit(database_url)
        given = parse_qs(parts.query)
        host = unquote(given.get("host", [parts.hostname or ""])[0])
        port = int(given.get("port", [parts.port or POSTGRES_PORT])[0])
    except ValueError:
        return None
    if not host or "," in host or "," in parts.netloc:
        return None
    return (f"{host}/.s.PGSQL.{port}" if host.startswith("/") else host), port


def make_postgres_question(database_url: str) -> Callable[[], Awaitable[bool]]:
    """Make the question whether PostgreSQL answers in time; where its address is not known, it is taken to."""
    address = find_postgres(database_url)

    async def has_answered() -> bool:
        if address is None:
            return True
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await is_answering(address, POSTGRES_QUESTION)
        except (OSError, TimeoutError):
            return False

    return has_answered
