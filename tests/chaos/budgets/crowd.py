"""Readers who ask for ads all at once, each over a connection of its own, so that every process is met."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

ANSWER_SECONDS_MAX = 60.0


class Offer(NamedTuple):
    """One banner of an answer: its exact key, and where it is reported."""

    request_id: str
    slot: int
    impression_url: str
    click_url: str


async def asked(url: str, slugs: Sequence[str]) -> list[Offer]:
    """Ask once for each slug of direct delivery."""
    answers = await ask_all(url, [f"/banners/serve/{slug}" for slug in slugs])
    return [offer for answer in answers for offer in offers_of(answer)]


async def ask_all(url: str, paths: Sequence[str]) -> list[dict[str, Any]]:
    """Ask once for each path: nobody asks before everybody is connected, and nobody waits for anybody."""
    place = urlsplit(url)
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        async with asyncio.TaskGroup() as group:
            opening = [group.create_task(asyncio.open_connection(place.hostname, place.port)) for _ in paths]
        connections = [task.result() for task in opening]
        for path, (_, writer) in zip(paths, connections, strict=True):
            request = f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(_answer(reader, writer)) for reader, writer in connections]
    return [task.result() for task in answers]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, Any]:
    said = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = said.partition(b"\r\n\r\n")
    # Right after it is created, a placement is not yet known to every process.
    assert head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 204 ")) or b"PLACEMENT_NOT_FOUND" in body, said
    return msgspec.json.decode(body) if head.startswith(b"HTTP/1.1 200 ") else {}


def offers_of(served: dict[str, Any]) -> list[Offer]:
    """List what was offered in an answer."""
    return [
        Offer(served["requestId"], slot, banner["impressionUrl"], banner["clickUrl"])
        for slot, banner in enumerate(served.get("banners", []))
    ]
