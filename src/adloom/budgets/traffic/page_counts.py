"""Counts of contextual requests in Valkey: a hash for each day (UTC) by slot and hour, and one by slot and page."""

from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, cast

import msgspec

from adloom.runtime.valkey import Valkey

KEPT: Final = timedelta(days=2)
FIELDS_A_SCAN: Final = 1_000


class SlotOnPage(msgspec.Struct, frozen=True, gc=False):
    """A slot of a page, by the placement's key and the page's normalised URL."""

    placement_key: int
    url: str


class SlotCounts(msgspec.Struct):
    """Requests of a slot, and how many of them were filled."""

    requests: int = 0
    filled: int = 0


def make_slots_key(day: date) -> str:
    return f"adloom:traffic:slots:{day}"


def make_pages_key(day: date) -> str:
    return f"adloom:traffic:pages:{day}"


async def add_page_counts(
    valkey: Valkey, slots: Mapping[int, SlotCounts], pages: Mapping[tuple[int, str], int], now: datetime
) -> None:
    """Add requests of the current hour by slot, and of the day by slot and page."""
    at = now.astimezone(UTC)
    of_slots, of_pages = make_slots_key(at.date()), make_pages_key(at.date())
    pipe = valkey.pipeline(transaction=False)
    for placement_key, counts in slots.items():
        pipe.hincrby(of_slots, f"{at.hour}:{placement_key}:requests", counts.requests)
        pipe.hincrby(of_slots, f"{at.hour}:{placement_key}:filled", counts.filled)
    for (placement_key, url), requests in pages.items():
        pipe.hincrby(of_pages, f"{placement_key}:{url}", requests)
    for key in (of_slots, of_pages):
        pipe.expire(key, KEPT)
    await pipe.execute()


async def read_slot_counts(valkey: Valkey, day: date) -> dict[tuple[int, datetime], SlotCounts]:
    """Return the counts of a day by placement and hour."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    found: dict[tuple[int, datetime], SlotCounts] = {}
    async for fields in _scan(valkey, make_slots_key(day)):
        for field, value in fields:
            hour, placement_key, kind = field.split(":")
            counts = found.setdefault(
                (int(placement_key), midnight + timedelta(hours=int(hour))), SlotCounts()
            )
            setattr(counts, kind, value)
    return found


async def iter_page_counts(valkey: Valkey, day: date) -> AsyncGenerator[dict[SlotOnPage, int]]:
    """Yield the requests of a day by slot and page, some at a time; one may come twice, with the same number."""
    async for fields in _scan(valkey, make_pages_key(day)):
        found: dict[SlotOnPage, int] = {}
        for field, value in fields:
            placement_key, _, url = field.partition(":")
            found[SlotOnPage(int(placement_key), url)] = value
        if found:
            yield found


async def _scan(valkey: Valkey, key: str) -> AsyncGenerator[list[tuple[str, int]]]:
    cursor: int | None = None
    while cursor != 0:
        # The stubs do not know what a scan of a hash returns.
        cursor, fields = await cast("Any", valkey).hscan(key, cursor or 0, count=FIELDS_A_SCAN)
        yield [(field.decode(), int(value)) for field, value in fields.items()]
