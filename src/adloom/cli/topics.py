"""`adloom ledger topics`: what there is to follow, how much of it there is, and what it looks like."""

from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Final, cast

from adloom.events.log.entry import parse_entry_id
from adloom.events.topics.payload import AD_SERVED, CLICK_TRACKED, IMPRESSION_TRACKED, TOPICS
from adloom.events.topics.schemas import read_schema
from adloom.runtime.valkey import VALKEY_AWAY, open_valkey

ABOUT: Final[Mapping[str, str]] = {
    IMPRESSION_TRACKED: "an ad was seen",
    CLICK_TRACKED: "an ad was clicked",
    AD_SERVED: "an ad was offered, where ADLOOM_SERVED_EVENTS is on",
}


class TopicsError(Exception):
    """The topics cannot be shown; the message says why."""


def schema_named(topic: str) -> str:
    """Give the schema of a topic that somebody has named."""
    if topic not in TOPICS:
        raise TopicsError(f"There is no topic {topic!r}; there are {', '.join(TOPICS)}.")
    return read_schema(topic)


async def topics_report(redis_url: str) -> AsyncGenerator[str]:
    """Say of each topic how much it has and when something last came."""
    try:
        async with open_valkey(redis_url) as valkey:
            for topic in TOPICS:
                entries: int = await valkey.xlen(topic)
                rows = cast("list[tuple[bytes, object]]", await valkey.xrevrange(topic, count=1))
                newest = f", the last at {_moment(rows[0][0])}" if rows else ""
                yield f"{topic:<27}{entries:>12,} entries{newest} ({ABOUT[topic]})"
    except VALKEY_AWAY as error:
        raise TopicsError(f"Valkey does not answer: {error}") from error


def _moment(entry_id: bytes) -> str:
    millis, _ = parse_entry_id(entry_id.decode())
    return datetime.fromtimestamp(millis // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
