"""The event log and its tables, applied by hand, so that a test may stop anywhere."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, RequestId, digest_user
from adloom.events.followers.counted_store import CountedStore
from adloom.events.frequency.capped_store import CappedBannerStore
from adloom.events.log.event import LogEvent, Served, decode_event, encode_event
from adloom.events.log.stream import ValkeyEventLog
from adloom.events.ports import BatchResult, DecodedEntry, ProjectionStore
from adloom.events.tables.store import EventTables
from adloom.events.topics.publish import TOPICS
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, REQUEST

USER = UUID("01890000-0000-7000-8000-0000000000d1")
OTHER_USER = UUID("01890000-0000-7000-8000-0000000000d2")
OTHER_BANNER = BannerId(UUID("01890000-0000-7000-8000-0000000000b2"))
# Valkey's own clock decides which buckets have expired. A test may run long after it was collected, so
# the tests use the next hour, which has not expired then.
NEXT_HOUR = datetime.now(UTC) + timedelta(hours=1)


def a_served(**fields: Any) -> Served:
    return msgspec.structs.replace(
        Served(
            request_id=RequestId(REQUEST),
            slot=0,
            banner_id=BANNER,
            placement_id=PLACEMENT,
            campaign_id=CAMPAIGN,
            placement_type="banner",
            served_at=NOW,
        ),
        **fields,
    )


class Followed:
    """The log and the event tables, without followers."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.ledger = ValkeyEventLog(valkey)
        self.tables = EventTables(pool)
        self.lookup = CountedStore(pool)
        self.find_capped = CappedBannerStore(pool).find

    async def append(self, *events: LogEvent) -> None:
        await self.ledger.append([encode_event(event) for event in events])

    async def record(self, *events: LogEvent) -> None:
        """Append events, and let the tables apply them."""
        await self.append(*events)
        await self.apply(self.tables)

    async def apply(self, store: ProjectionStore) -> BatchResult:
        """Let a store apply all entries that it has not applied yet."""
        after = await store.read_cursor()
        records = await self.records(after)
        if not records:
            return BatchResult()
        return await store.commit(records, after=after, cursor=records[-1].entry_id)

    async def records(self, after: str = "0-0") -> list[DecodedEntry]:
        entries = await self.ledger.read(after, count_max=100_000, wait_seconds=0)
        return [DecodedEntry(entry.id, decode_event(entry.data)) for entry in entries]

    async def topic(self, name: str) -> list[dict[str, Any]]:
        rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", await self.valkey.xrange(name))
        return [msgspec.json.decode(fields[b"event"]) for _, fields in rows]

    async def erase(self, user_id: UUID, *, at: datetime | None = None) -> None:
        """Remove a user from the tables, as the control plane does."""
        await self.pool.execute(
            "INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)",
            digest_user(user_id),
            at or NEXT_HOUR,
        )
        for table in ("banner_impressions", "banner_clicks"):
            await self.pool.execute(f"UPDATE events.{table} SET user_id = NULL WHERE user_id = $1", user_id)  # noqa: S608 - one of two


def ids_of(payloads: Sequence[dict[str, Any]]) -> list[str]:
    return [payload["correlationId"] for payload in payloads]


async def begin_topics(valkey: Valkey) -> None:
    """Make a consumer group of every topic, so that it is published."""
    for name in TOPICS:
        await valkey.xgroup_create(name, "reader", mkstream=True)
