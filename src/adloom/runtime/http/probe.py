"""Asks a process over HTTP whether it is ready, as any client would."""

import asyncio

from adloom.runtime.ports import LOOPBACK_OF, format_url_host

ANSWER_SECONDS_MAX = 5.0
POLL_SECONDS = 0.05
HTTP_OK = 200


async def wait_until_ok(host: str, port: int, path: str, *, connections: int = 1) -> None:
    """Wait until a path answers 200 on several connections at once.

    The kernel spreads connections over the processes that share a port, so with enough connections
    every process has answered.
    """
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(_wait_until_ok(host, port, path))


async def fetch(host: str, port: int, path: str) -> tuple[int, bytes]:
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        reader, writer = await asyncio.open_connection(LOOPBACK_OF.get(host, host), port)
        try:
            authority = f"{format_url_host(host)}:{port}"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
        finally:
            writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    _version, status, *_reason = head.split(b" ", 2)
    return int(status), body


async def _wait_until_ok(host: str, port: int, path: str) -> None:
    while not await _is_ok(host, port, path):  # noqa: ASYNC110 - it is in another process
        await asyncio.sleep(POLL_SECONDS)


async def _is_ok(host: str, port: int, path: str) -> bool:
    try:
        status, _ = await fetch(host, port, path)
    except (OSError, TimeoutError, ValueError):
        return False
    return status == HTTP_OK
