"""What a batch of the event log adds to the tables: a pure function of the batch and of what the tables hold.

An event whose correlation id is new becomes a row and is counted, whatever its marks. Marks that depend on the
other events of its offer are set here: second impression, second click, click without impression. The last one
is removed when the impression comes, so the order of arrival does not matter.
"""

# pure

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, date, datetime
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import (
    HARMLESS_MARKS,
    Auctioned,
    Click,
    Conversion,
    Event,
    Impression,
    Mark,
    Served,
    get_event_time,
    parse_entry_id,
)
from adloom.events.ports import DecodedEntry

IMPRESSIONS: Final = "banner_impressions"
CLICKS: Final = "banner_clicks"
KINDS: Final = (IMPRESSIONS, CLICKS)
# Clients may send any text as device; the counts know only these.
COUNTED_DEVICES: Final = frozenset({"mobile", "tablet", "desktop"})

NEVER: Final = datetime.min.replace(tzinfo=UTC)
_SERVED: Final = (Served, Auctioned)
# Marks that a row may have and be good by itself, whatever the other events of its offer are.
GOOD: Final = HARMLESS_MARKS | {Mark.CLICK_WITHOUT_IMPRESSION}

E = TypeVar("E", bound=Event)
# The dimensions of rows, their marks, and whether they are valid. Hours are numbers: datetimes are slow to compare.
_Group: TypeAlias = tuple[int, int, int, int | None, str | None, str | None, tuple[str, ...], bool]
# The number of the request's id, and the slot: numbers are much faster to compare than ids.
Offer: TypeAlias = tuple[int, int]


class EventBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Events with the ids of their entries, in the order of the log."""

    impressions: list[tuple[str, Impression]]
    clicks: list[tuple[str, Click]]
    events: list[Event]  # All impressions, and then all clicks.
    conversions: list[tuple[str, Conversion]] = []
    # What was only served to a user becomes no row; its entry must go when the user is erased.
    served: list[tuple[str, Served | Auctioned]] = []

    @property
    def users(self) -> list[UUID]:
        """The users of all entries, some of them several times."""
        every = (*self.impressions, *self.clicks, *self.served)
        return [event.user_id for _, event in every if event.user_id is not None]

    @property
    def first_entry_id(self) -> str:
        """The id of the first entry; a batch without events has none."""
        firsts = [events[0][0] for events in (self.impressions, self.clicks) if events]
        return min(firsts, key=parse_entry_id)


class OfferSet(msgspec.Struct, frozen=True, kw_only=True):
    """Offers with an event of a kind, and those of them with a good one."""

    all: Set[Offer] = frozenset()
    valid: Set[Offer] = frozenset()


class StoredOffers(msgspec.Struct, frozen=True, kw_only=True):
    """Offers with an impression, offers with a click, and clicks that are marked because their impression is missing."""

    impressions: OfferSet = OfferSet()
    clicks: OfferSet = OfferSet()
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


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """A row of either table, in the order in which its columns are written."""

    correlation_id: str
    banner_id: int
    placement_id: int
    campaign_id: int | None
    session_id: str | None
    user_id: UUID | None
    device_type: str | None
    country_code: str | None
    page_url: str | None
    address: str | None  # The referrer of an impression, or the destination of a click.
    occurred_at: datetime
    received_at: datetime
    request_id: UUID | None
    slot: int | None
    client_network: str | None
    marks: Sequence[str] | None
    is_valid: bool
    entry_ms: int
    entry_seq: int


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


class _NewEvents(NamedTuple, Generic[E]):
    kept: list[tuple[str, E, int, int]]  # With the keys of its banner and its placement.
    repeated: int
    dropped: int


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
    # The entries that the rows of the impressions were made from.
    impression_entries: list[tuple[str, Impression]] = []

    @property
    def size(self) -> int:
        return len(self.impressions) + len(self.clicks)

    def list_counted(self) -> list[CountedEntry]:
        """Return the impressions, for the followers of the tables."""
        return [
            CountedEntry(entry_id, event, row.user_id, tuple(row.marks or ()), row.is_valid)
            for (entry_id, event), row in zip(self.impression_entries, self.impressions, strict=True)
        ]


def split_by_kind(records: Sequence[DecodedEntry]) -> EventBatch:
    """Split a batch by kind; offers that were only served become no rows."""
    impressions: list[tuple[str, Impression]] = []
    clicks: list[tuple[str, Click]] = []
    conversions: list[tuple[str, Conversion]] = []
    served: list[tuple[str, Served | Auctioned]] = []
    for entry_id, event in records:
        if isinstance(event, Impression):
            impressions.append((entry_id, event))
        elif isinstance(event, Click):
            clicks.append((entry_id, event))
        elif isinstance(event, Conversion):
            conversions.append((entry_id, event))
        elif isinstance(event, _SERVED) and event.user_id is not None:
            served.append((entry_id, event))
    return EventBatch(
        impressions=impressions,
        clicks=clicks,
        events=[event for _, event in (*impressions, *clicks)],
        conversions=conversions,
        served=served,
    )


def get_offer(event: Event) -> Offer | None:
    """Return the offer of an event; entries from before slots were recorded have none."""
    if event.request_id is None or event.slot is None:
        return None
    return (event.request_id.int, event.slot)


def apply_batch(batch: EventBatch, state: TableState) -> Additions:
    """Choose the new events, in the order of the log, and add the marks that depend on other events of the offer."""
    impressions = _select_new(batch.impressions, state, set(state.impressions))
    clicks = _select_new(batch.clicks, state, set(state.clicks))
    seen, clicked = _SecondEvents(state.offers.impressions), _SecondEvents(state.offers.clicks)
    impression_rows: list[EventRow] = []
    for kept in impressions.kept:
        event = kept[1]
        marks = [*event.marks, Mark.SECOND_IMPRESSION] if seen.is_second(event) else event.marks
        impression_rows.append(_build_row(kept, event.referrer_url, marks, state))
    click_rows: list[EventRow] = []
    for kept in clicks.kept:
        event = kept[1]
        marks = [*event.marks, Mark.SECOND_CLICK] if clicked.is_second(event) else list(event.marks)
        offer = get_offer(event)
        if offer is not None and offer not in seen.all:
            marks.append(Mark.CLICK_WITHOUT_IMPRESSION)
        click_rows.append(_build_row(kept, event.destination_url, marks, state))
    return Additions(
        impressions=impression_rows,
        clicks=click_rows,
        repeated=impressions.repeated + clicks.repeated,
        dropped=impressions.dropped + clicks.dropped,
        impression_entries=[(entry_id, event) for entry_id, event, _, _ in impressions.kept],
        erased_entries=find_erased_entries(batch, state),
        clicks_now_seen=[
            click
            for offer, lone_clicks in state.offers.clicks_alone.items()
            if offer in seen.all
            for click in lone_clicks
        ],
    )


def find_erased_entries(batch: EventBatch, state: TableState) -> list[str]:
    """Return the entries of users who were erased after them."""
    if not state.erased_at:
        return []
    return [
        entry_id
        for entry_id, event in (*batch.impressions, *batch.clicks, *batch.served)
        if event.user_id and get_event_time(event) <= state.erased_at.get(event.user_id, NEVER)
    ]


class _SecondEvents:
    """Finds second events of an offer, kind by kind, in the order of the log."""

    def __init__(self, stored: OfferSet) -> None:
        self.all = set(stored.all)
        self._valid = set(stored.valid)

    def is_second(self, event: Event) -> bool:
        """Return whether an event is not the first of its offer, and add it.

        A browser that prefetches, or a crawler, must not take the place of the visitor who comes after it: a
        good event is a second one only after a good one.
        """
        offer = get_offer(event)
        if offer is None:
            return False
        is_valid = not event.marks or event.is_valid
        is_second = offer in (self._valid if is_valid else self.all)
        self.all.add(offer)
        if is_valid:
            self._valid.add(offer)
        return is_second


def _select_new(events: Sequence[tuple[str, E]], state: TableState, taken: set[str]) -> _NewEvents[E]:
    """Keep events with a place in the catalog and a new correlation id; the first of several wins."""
    kept: list[tuple[str, E, int, int]] = []
    banners, placements = state.banners, state.placements
    repeated = dropped = 0
    for entry_id, event in events:
        banner_id = banners.get(event.banner_id.int)
        placement_id = placements.get(event.placement_id.int)
        if banner_id is None or placement_id is None:
            dropped += 1
        elif event.correlation_id in taken:
            repeated += 1
        else:
            taken.add(event.correlation_id)
            kept.append((entry_id, event, banner_id, placement_id))
    return _NewEvents(kept, repeated, dropped)


def _build_row(
    kept: tuple[str, Event, int, int], address: str | None, marks: Sequence[str], state: TableState
) -> EventRow:
    entry_id, event, banner_id, placement_id = kept
    entry_ms, entry_seq = parse_entry_id(entry_id)
    session_id, user_id, page_url = event.session_id, event.user_id, event.page_url
    network = event.client_network
    if state.erased_at and user_id and event.received_at <= state.erased_at.get(user_id, NEVER):
        session_id = user_id = page_url = address = network = None
    return EventRow(
        event.correlation_id,
        banner_id,
        placement_id,
        None if event.campaign_id is None else state.campaigns.get(event.campaign_id.int),
        session_id,
        user_id,
        event.device_type,
        event.country_code,
        page_url,
        address,
        at if (at := event.occurred_at).tzinfo is UTC else at.astimezone(UTC),
        event.received_at,
        event.request_id,
        event.slot,
        network,
        marks or None,
        not marks or HARMLESS_MARKS.issuperset(marks),
        entry_ms,
        entry_seq,
    )


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
                (at := row.occurred_at).toordinal() * 24 + at.hour,
                row.banner_id,
                row.placement_id,
                row.campaign_id,
                row.country_code,
                row.device_type,
                tuple(row.marks) if row.marks else (),
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


def count_by_day(added: Additions) -> dict[date, DayCount]:
    rows = [*added.impressions, *added.clicks]
    counted: dict[date, DayCount] = {}
    for day in {row.occurred_at.toordinal() for row in rows}:  # One, or two around midnight.
        millis = [row.entry_ms for row in rows if row.occurred_at.toordinal() == day]
        counted[date.fromordinal(day)] = DayCount(len(millis), max(millis))
    return counted
