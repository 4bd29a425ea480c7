"""What a batch of the event log adds to the tables: a pure function of the batch and of what the tables hold.

An event whose correlation id is new becomes a row and is counted, whatever its marks. Marks that depend on the
other events of its offer are set here: second impression, second click, click without impression. The last one
is removed when the impression comes, so the order of arrival does not matter.
"""

# pure

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final, NamedTuple, TypeAlias, TypeVar, cast
from uuid import UUID

import msgspec

from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import (
    HARMLESS_MARKS,
    AuctionEntry,
    Click,
    Conversion,
    Event,
    Impression,
    LogEvent,
    Mark,
    Served,
    get_event_time,
    parse_entry_id,
)
from adloom.events.log.personal import remove_personal
from adloom.events.ports import DecodedEntry, EntryOf

IMPRESSIONS: Final = "banner_impressions"
CLICKS: Final = "banner_clicks"
KINDS: Final = (IMPRESSIONS, CLICKS)
# Clients may send any text as device; the counts know only these.
COUNTED_DEVICES: Final = frozenset({"mobile", "tablet", "desktop"})

NEVER: Final = datetime.min.replace(tzinfo=UTC)
# Marks that a row may have and be good by itself, whatever the other events of its offer are.
GOOD: Final = HARMLESS_MARKS | {Mark.CLICK_WITHOUT_IMPRESSION}

# The dimensions of rows, their marks, and whether they are valid. Hours are numbers: datetimes are slow to compare.
_Group: TypeAlias = tuple[int, int, int, int | None, str | None, str | None, tuple[str, ...], bool]
# The number of the request's id, and the slot: numbers are much faster to compare than ids.
Offer: TypeAlias = tuple[int, int]

E = TypeVar("E", bound=LogEvent)


class EventBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Entries by kind, in the order of the log."""

    impressions: Sequence[EntryOf[Impression]]
    clicks: Sequence[EntryOf[Click]]
    events: Sequence[Event]  # All impressions, and then all clicks.
    conversions: Sequence[EntryOf[Conversion]] = ()
    # What was only served to a user becomes no row; its entry must go when the user is erased.
    served: Sequence[EntryOf[Served | AuctionEntry]] = ()

    @property
    def users(self) -> list[UUID]:
        """The users of all entries, some of them several times."""
        every = (*self.impressions, *self.clicks, *self.served)
        return [user_id for entry in every if (user_id := entry.event.user_id) is not None]

    @property
    def first_entry_id(self) -> str:
        """The id of the first entry; a batch without events has none."""
        firsts = [entries[0].entry_id for entries in (self.impressions, self.clicks) if entries]
        return min(firsts, key=parse_entry_id)


class StoredOffers(msgspec.Struct, frozen=True, kw_only=True):
    """Offers with an impression, offers with a click, and clicks that are marked because their impression is missing."""

    impressions: Mapping[Offer, bool] = {}  # And whether one of its events is a good one.
    clicks: Mapping[Offer, bool] = {}
    clicks_alone: Mapping[Offer, Sequence[str]] = {}


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables hold of a batch: keys of the catalog by the numbers of ids, and known events."""

    banners: Mapping[int, int] = {}
    placements: Mapping[int, int] = {}
    campaigns: Mapping[int, int] = {}
    erased_at: dict[UUID, datetime] = {}
    impressions: frozenset[str] = frozenset()
    clicks: frozenset[str] = frozenset()
    offers: StoredOffers = StoredOffers()
    days: frozenset[date] = frozenset()


class EventRow(CountedEntry, frozen=True, gc=False):
    """A row of either table: an event that counts, without what is personal if its user was erased, and its keys."""

    event: Event  # pyright: ignore[reportIncompatibleVariableOverride] - nothing changes it
    banner_id: int = 0
    placement_id: int = 0
    campaign_id: int | None = None


class CountKey(NamedTuple):
    """The dimensions of the counts."""

    hour: datetime
    banner_id: int
    placement_id: int
    campaign_id: int | None
    country_code: str | None
    device_type: str | None


class Count(msgspec.Struct, gc=False):
    """What is added to the counts of a key; `invalid_…` are part of the first two, `unbound_…` are not."""

    impressions: int = 0
    clicks: int = 0
    invalid_impressions: int = 0
    invalid_clicks: int = 0
    unbound_impressions: int = 0
    unbound_clicks: int = 0


class DayCount(msgspec.Struct, gc=False):
    """What is added to a day: the number of rows, and the log's time of the last of them."""

    events: int = 0
    last_entry_ms: int = 0


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch adds to the tables."""

    impressions: list[EventRow] = []
    clicks: list[EventRow] = []
    repeated: int = 0
    dropped: int = 0
    # Clicks that were marked for a missing impression, which has come.
    clicks_now_seen: list[str] = []
    # Entries of the log that name erased users.
    erased_entries: list[str] = []
    days: Mapping[date, DayCount] = {}

    @property
    def size(self) -> int:
        return len(self.impressions) + len(self.clicks)


def split_by_kind(records: Sequence[DecodedEntry]) -> EventBatch:
    """Split a batch by kind; offers that were only served become no rows."""
    impressions = _select(records, Impression)
    clicks = _select(records, Click)
    conversions = _select(records, Conversion)
    served = (*_select(records, Served), *_select(records, AuctionEntry))
    return EventBatch(
        impressions=impressions,
        clicks=clicks,
        events=[entry.event for entry in (*impressions, *clicks)],
        conversions=conversions,
        served=[entry for entry in served if entry.event.user_id is not None],
    )


def _select(records: Sequence[DecodedEntry], kind: type[E]) -> Sequence[EntryOf[E]]:
    # To find out that an event is not an instance of a class takes ten times as long.
    return cast("list[EntryOf[E]]", [entry for entry in records if type(entry.event) is kind])


def get_offer(event: Event) -> Offer | None:
    """Return the offer of an event; entries from before slots were recorded have none."""
    if event.request_id is None or event.slot is None:
        return None
    return (event.request_id.int, event.slot)


def apply_batch(batch: EventBatch, state: TableState) -> Additions:
    """Choose the new events, in the order of the log, and add the marks that depend on other events of the offer."""
    stored = state.offers
    seen = _RowChooser(state, state.impressions, stored.impressions, Mark.SECOND_IMPRESSION)
    clicked = _RowChooser(state, state.clicks, stored.clicks, Mark.SECOND_CLICK)
    impressions = seen.choose(batch.impressions)
    clicks = clicked.choose(batch.clicks, seen=seen.offers)
    return Additions(
        impressions=impressions,
        clicks=clicks,
        repeated=seen.repeated + clicked.repeated,
        dropped=seen.dropped + clicked.dropped,
        days=_count_by_day(impressions, clicks),
        erased_entries=find_erased_entries(batch, state),
        clicks_now_seen=[
            click
            for offer, lone_clicks in stored.clicks_alone.items()
            if offer in seen.offers
            for click in lone_clicks
        ],
    )


def find_erased_entries(batch: EventBatch, state: TableState) -> list[str]:
    """Return the entries of users who were erased after them."""
    if not state.erased_at:
        return []
    return [
        entry.entry_id
        for entry in (*batch.impressions, *batch.clicks, *batch.served)
        if (event := entry.event).user_id
        and get_event_time(event) <= state.erased_at.get(event.user_id, NEVER)
    ]


class _RowChooser:
    """Keeps the events of a kind with a place in the catalog and a new correlation id; the first of several wins."""

    def __init__(
        self, state: TableState, known: Collection[str], offers: Mapping[Offer, bool], second: Mark
    ) -> None:
        self._state = state
        self._taken = set(known)
        self._second = second
        self.offers = dict(offers)
        self.repeated = self.dropped = 0

    def choose(
        self, entries: Sequence[EntryOf[Event]], seen: Collection[Offer] | None = None
    ) -> list[EventRow]:
        """Return rows in the order of the log; `seen` are the offers with an impression, for clicks."""
        taken, offers, erased_at = self._taken, self.offers, self._state.erased_at
        find_banner, find_placement = self._state.banners.get, self._state.placements.get
        find_campaign = self._state.campaigns.get
        rows: list[EventRow] = []
        for entry in entries:
            event = entry.event
            banner_id = find_banner(event.banner_id.int)
            placement_id = find_placement(event.placement_id.int)
            if banner_id is None or placement_id is None:
                self.dropped += 1
                continue
            if event.correlation_id in taken:
                self.repeated += 1
                continue
            taken.add(event.correlation_id)
            marks: tuple[str, ...] = event.marks
            if (request_id := event.request_id) is not None and event.slot is not None:
                offer = request_id.int, event.slot
                is_good, was_good = not marks or event.is_valid, offers.get(offer)
                # A browser that prefetches, or a crawler, must not take the place of the visitor who comes after
                # it: a good event is a second one only after a good one.
                if was_good or (was_good is not None and not is_good):
                    marks = (*marks, self._second)
                offers[offer] = was_good or is_good
                if seen is not None and offer not in seen:
                    marks = (*marks, Mark.CLICK_WITHOUT_IMPRESSION)
            user_id, campaign_id = event.user_id, event.campaign_id
            is_erased = erased_at and user_id and event.received_at <= erased_at.get(user_id, NEVER)
            rows.append(
                EventRow(
                    entry.entry_id,
                    remove_personal(event) if is_erased else event,
                    None if is_erased else user_id,
                    marks,
                    not marks or HARMLESS_MARKS.issuperset(marks),
                    banner_id,
                    placement_id,
                    None if campaign_id is None else find_campaign(campaign_id.int),
                )
            )
        return rows


def count_by_key(added: Additions) -> dict[CountKey, Count]:
    counted: dict[CountKey, Count] = {}
    for key, marks, is_valid, rows in _group_rows(added.impressions):
        count = counted.setdefault(key, Count())
        is_unbound = Mark.UNBOUND in marks
        count.unbound_impressions += rows if is_unbound else 0
        count.impressions += 0 if is_unbound else rows
        count.invalid_impressions += 0 if is_unbound or is_valid else rows
    for key, marks, is_valid, rows in _group_rows(added.clicks):
        count = counted.setdefault(key, Count())
        is_unbound = Mark.UNBOUND in marks
        count.unbound_clicks += rows if is_unbound else 0
        count.clicks += 0 if is_unbound else rows
        count.invalid_clicks += 0 if is_unbound or is_valid else rows
    return counted


def _group_rows(rows: Sequence[EventRow]) -> Iterator[tuple[CountKey, tuple[str, ...], bool, int]]:
    """Yield the number of rows by key, marks and validity; an event of what was never offered is not counted at all."""
    # What can be found out once for many rows is.
    groups: Counter[_Group] = Counter(
        [
            (
                (at := (event := row.event).occurred_at).toordinal() * 24 + at.hour,
                row.banner_id,
                row.placement_id,
                row.campaign_id,
                event.country_code,
                event.device_type,
                row.marks,
                row.is_valid,
            )
            for row in rows
        ]
    )
    for (
        hour,
        banner_id,
        placement_id,
        campaign_id,
        country_code,
        device,
        marks,
        is_valid,
    ), count in groups.items():
        if Mark.NOT_ASSIGNED not in marks:
            begin = datetime.fromordinal(hour // 24).replace(hour=hour % 24, tzinfo=UTC)
            known_device = device if device in COUNTED_DEVICES else None
            key = CountKey(begin, banner_id, placement_id, campaign_id, country_code, known_device)
            yield key, marks, is_valid, count


def _count_by_day(*kinds: Sequence[EventRow]) -> dict[date, DayCount]:
    counted: dict[date, DayCount] = {}
    for rows in kinds:
        days = [row.event.occurred_at.toordinal() for row in rows]
        last = dict(zip(days, rows, strict=True))  # They are in the order of the log.
        for day, events in Counter(days).items():
            count = counted.setdefault(date.fromordinal(day), DayCount())
            count.events += events
            count.last_entry_ms = max(count.last_entry_ms, parse_entry_id(last[day].entry_id)[0])
    return counted
