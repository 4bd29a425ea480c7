"""The event tables in memory, by the rules of the real ones, their rollup, and a topic that follows them; with faults.

They promise what a database promises: a transaction is whole or not at all. All else may go wrong at
either end of any await.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from datetime import date
from typing import Final

import msgspec

from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import (
    BEGINNING,
    HARMLESS_MARKS,
    Click,
    Conversion,
    Event,
    Impression,
    Mark,
    Unsold,
)
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry, EntryOf, PoisonEntryError
from adloom.events.tables.apply_batch import (
    GOOD,
    Additions,
    EventBatch,
    EventRow,
    Offer,
    StoredOffers,
    TableState,
    apply_batch,
    count_by_key,
    get_offer,
    split_by_kind,
)
from simulation.faults import Connection, Faults, Host, Outages
from simulation.laws import KINDS, Counts, EventKey, Row

UNFOLDABLE: Final = "unfoldable"  # The correlation id of an event that no table takes.
SURPRISING: Final = "surprising"  # Of one that makes the program fail unexpectedly.


class CatalogKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The integer keys of what the catalog has, by the numbers that their ids are."""

    banners: dict[int, int]
    placements: dict[int, int]
    campaigns: dict[int, int]


class TablesServer:
    """The event tables; the real `apply_batch` decides what a batch adds."""

    def __init__(self, faults: Faults, keys: CatalogKeys) -> None:
        self.faults = faults
        self.outages = Outages("tables", faults)
        self.cursor = BEGINNING
        self.rows: dict[EventKey, EventRow] = {}
        self.counts: Counter[tuple[date, str]] = Counter()
        self.invalid_counts: Counter[tuple[date, str]] = Counter()
        self.day_events: Counter[date] = Counter()
        self.rolled_up: dict[tuple[date, str], int] = {}
        self.rolled_events: dict[date, int] = {}
        self._keys = keys
        self._of_offer: defaultdict[tuple[str, Offer], list[EventKey]] = defaultdict(list)

    def fold(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Do what the transaction does, at once."""
        if self.cursor != after:
            raise CursorMovedError
        for event in (record.event for record in records):
            if isinstance(event, Impression | Click) and event.correlation_id.startswith(UNFOLDABLE):
                raise PoisonEntryError("No column takes this.")
            if isinstance(event, Impression | Click) and event.correlation_id.startswith(SURPRISING):
                raise RuntimeError("Unexpected.")
        batch = split_by_kind(records)
        added = apply_batch(batch, self.read_state(batch))
        self.apply(added)
        self.cursor = cursor
        self.faults.trace.note("folded", cursor.encode())
        counted = len(added.impressions) + len(added.clicks)
        return BatchResult(counted=counted, repeated=added.repeated, dropped=added.dropped)

    def read_state(self, batch: EventBatch) -> TableState:
        offers = {offer for event in batch.events if (offer := get_offer(event))}
        unseen = {
            offer: [
                key.correlation_id
                for key in self._of_offer.get(("click", offer), ())
                if Mark.CLICK_WITHOUT_IMPRESSION in self.rows[key].marks
            ]
            for offer in offers
        }
        return TableState(
            banners=self._keys.banners,
            placements=self._keys.placements,
            campaigns=self._keys.campaigns,
            impressions=self.find_taken("impression", batch.impressions),
            clicks=self.find_taken("click", batch.clicks),
            offers=StoredOffers(
                impressions=self.find_reported("impression", offers),
                clicks=self.find_reported("click", offers),
                clicks_alone=unseen,
            ),
        )

    def find_reported(self, kind: str, offers: Set[Offer]) -> dict[Offer, bool]:
        """Return the offers that have an event of a kind, and whether a good one."""
        known = {offer: self._of_offer.get((kind, offer), ()) for offer in offers}
        return {
            offer: any(GOOD.issuperset(self.rows[key].marks) for key in keys)
            for offer, keys in known.items()
            if keys
        }

    def find_taken(self, kind: str, entries: Sequence[EntryOf[Event]]) -> frozenset[str]:
        return frozenset(
            name for entry in entries if EventKey(kind, name := entry.event.correlation_id) in self.rows
        )

    def apply(self, added: Additions) -> None:
        for kind, rows in (("impression", added.impressions), ("click", added.clicks)):
            for row in rows:
                key = EventKey(kind, row.event.correlation_id)
                self.rows[key] = row
                if offer := get_offer(row.event):
                    self._of_offer[kind, offer].append(key)
        for key, count in count_by_key(added).items():
            day = key.hour.date()
            self.counts[day, "impression"] += count.impressions + count.unbound_impressions
            self.counts[day, "click"] += count.clicks + count.unbound_clicks
            self.invalid_counts[day, "impression"] += count.invalid_impressions + count.unbound_impressions
            self.invalid_counts[day, "click"] += count.invalid_clicks + count.unbound_clicks
        for day, count in added.days.items():
            self.day_events[day] += count.events
        self.take_back(added.clicks_now_seen)

    def take_back(self, now_seen: Sequence[str]) -> None:
        for correlation_id in now_seen:
            key = EventKey("click", correlation_id)
            row = self.rows[key]
            marks = tuple(mark for mark in row.marks if mark != Mark.CLICK_WITHOUT_IMPRESSION)
            is_valid = HARMLESS_MARKS.issuperset(marks)
            self.rows[key] = msgspec.structs.replace(row, marks=marks, is_valid=is_valid)
            self.invalid_counts[row.event.occurred_at.date(), "click"] -= is_valid and not row.is_valid

    def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        """Return the entries that the rows were made from."""
        found: list[CountedEntry] = []
        for record in records:
            entry_id, happening = record.entry_id, record.event
            if isinstance(happening, Unsold | Conversion):
                continue
            if not isinstance(happening, Impression | Click):
                found.append(CountedEntry(entry_id, happening, happening.user_id))
                continue
            row = self.rows.get(get_key(happening))
            if row is not None and row.entry_id == entry_id:
                found.append(row)
        return found

    def roll_up(self, day: date) -> None:
        for kind in KINDS:
            self.rolled_up[day, kind] = sum(
                row.event.occurred_at.date() == day and key.kind == kind for key, row in self.rows.items()
            )
        self.rolled_events[day] = self.day_events[day]
        self.faults.trace.note("rolled up", day.isoformat().encode())

    def list_stale_days(self, *, before: date) -> list[date]:
        """Return past days whose events changed since their rollup."""
        days = sorted(self.day_events)
        return [day for day in days if day < before and self.rolled_events.get(day) != self.day_events[day]]

    def list_rows(self) -> list[Row]:
        return [
            Row(key, row.event.occurred_at.date(), _get_offer(row.event), frozenset(row.marks))
            for key, row in self.rows.items()
        ]

    def compute_statistics(self) -> Counts:
        """Answer as the statistics do: a fresh day from its rollup, any other from the counts."""
        return {
            (day, kind): self.rolled_up[day, kind]
            if self.rolled_events.get(day) == self.day_events[day]
            else count
            for (day, kind), count in self.counts.items()
        }


class TablesConnection(Connection):
    """One process's way to the tables."""

    def __init__(self, server: TablesServer, host: Host) -> None:
        super().__init__(server.faults, server.outages, host)
        self._server = server

    async def read_cursor(self) -> str:
        await self.begin("cursor")
        return self._server.cursor

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        return await self.transact(
            "commit",
            lambda: self._server.fold(records, after=after, cursor=cursor),
            *(CursorMovedError, PoisonEntryError, RuntimeError),
        )

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        await self.begin("lookup")
        return self._server.find_counted(records)

    async def roll_up_stale(self, *, before: date) -> None:
        """Roll up past days; a kill in the middle leaves some for the next time."""
        await self.begin("rollup")
        for day in self._server.list_stale_days(before=before):
            await self.begin("rollup")
            self._server.roll_up(day)


def get_key(event: Event) -> EventKey:
    return EventKey("impression" if isinstance(event, Impression) else "click", event.correlation_id)


def _get_offer(event: Event) -> tuple[str, int] | None:
    return None if event.request_id is None or event.slot is None else (str(event.request_id), event.slot)


class TopicServer:
    """A topic and the cursor of its projection, on the event log's server."""

    def __init__(self, faults: Faults, outages: Outages) -> None:
        self.faults = faults
        self.outages = outages
        self.cursor = BEGINNING
        self.published: list[EventKey] = []

    def publish(self, keys: Sequence[EventKey], *, after: str, cursor: str) -> None:
        """Compare, publish and move the cursor at once, as the script does."""
        if self.cursor != after:
            raise CursorMovedError
        self.published += keys
        self.cursor = cursor
        self.faults.trace.note("published", cursor.encode())


class TopicConnection(Connection):
    """One process's way to the topic."""

    def __init__(self, server: TopicServer, tables: TablesConnection, host: Host) -> None:
        super().__init__(server.faults, server.outages, host)
        self._server = server
        self._tables = tables

    async def read_cursor(self) -> str:
        await self.begin("topic cursor")
        return self._server.cursor

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Publish what counted of a batch; the answer may be lost."""
        counted = await self._tables.find_counted(records)
        keys = [get_key(one.event) for one in counted if isinstance(one.event, Impression | Click)]
        await self.transact(
            "topic", lambda: self._server.publish(keys, after=after, cursor=cursor), CursorMovedError
        )
        return BatchResult(counted=len(keys), repeated=len(records) - len(counted))
