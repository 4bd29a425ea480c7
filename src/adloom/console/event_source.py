"""Server-sent events of the API within the process: the console follows what any program can follow."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import msgspec
from nicegui import ui

from adloom.console.client import Json, ProblemError
from adloom.console.page import PageVisit

# A stream ends after a while, or with its server; one that is refused is asked for less often.
RETRY_SECONDS: Final = 1.0
REFUSED_RETRY_SECONDS: Final = 30.0
BLANK_LINE: Final = b"\n\n"
GONE: Final = frozenset({401, 403, 404})

Event = tuple[str, Json]


def parse_events(text: bytes) -> list[Event]:
    """Parse events with a name and JSON; comments are left out."""
    events: list[Event] = []
    for part in text.split(BLANK_LINE):
        lines = dict(line.split(b": ", 1) for line in part.split(b"\n") if b": " in line and line[:1] != b":")
        if b"event" in lines:
            events.append((lines[b"event"].decode(), msgspec.json.decode(lines.get(b"data", b"{}"))))
    return events


async def read_events(parts: AsyncIterator[bytes]) -> AsyncGenerator[Sequence[Event]]:
    """Yield the events that came together; what is not complete waits for its end."""
    rest = b""
    async for part in parts:
        whole, separator, rest = (rest + part).rpartition(BLANK_LINE)
        if separator and (events := parse_events(whole)):
            yield events


def follow_site(
    visit: PageVisit, site_id: str, on_events: Callable[[Sequence[Event]], Awaitable[None]]
) -> None:
    """Call a function with what happens on a site, while the page is open.

    It is also called with `listening`, each time that a stream begins: what happened before is not told.
    """

    async def follow() -> None:
        while True:
            seconds = RETRY_SECONDS
            try:
                async with visit.api.stream(f"/admin/sites/{site_id}/events") as answer:
                    async for events in read_events(answer.aiter_bytes()):
                        await on_events(events)
            except ProblemError as error:
                if error.status in GONE:
                    return
                seconds = REFUSED_RETRY_SECONDS
            await asyncio.sleep(seconds)

    # A timer begins when the browser has connected, and ends with its page.
    ui.timer(0, follow, once=True)
