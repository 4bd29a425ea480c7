"""What a batch of the ledger adds to the tables, as a pure function of the batch and of what the tables know.

An event whose correlation id is new becomes a row and is counted, whatever is noticed about it. What
the other events of its offer tell is noticed here: a second impression or click, a click without an
impression. That last one is taken back when the impression comes, so the order of arrival does not matter.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from adloom.events.followers.counted import CountedEntry
from adloom.events.log.entry import parse_entry_id
from adloom.events.log.event import HARMLESS_MARKS, Click, Event, Impression, Mark
from adloom.events.ports import DecodedEntry

IMPRESSIONS: Final = "banner_impressions"
CLICKS: Final = "banner_clicks"
KINDS: Final = (IMPRESSIONS, CLICKS)
# Clients may send anything as their device; what counts are kept by has few values.
COUNTED_DEVICES: Final = frozenset({"mobile", "tablet", "desktop"})

NEVER: Final = datetime.min.replace(tzinfo=UTC)
# What a row may be marked with and be good by itself, whatever the other events of its offer tell.
GOOD: Final = HARMLESS_MARKS | {Mark.CLICK_WITHOUT_IMPRESSION}

E = TypeVar("E", bound=Event)
# Hours are numbered here, because moments are slow to tell apart.
_CountedBy: TypeAlias = tuple[int, int, int, int | None, str | None, str | None, bool]
# The request, as the number that its id is, and which of its slots: ids are told apart much faster so.
Offer: TypeAlias = tuple[int, int]


class EventBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Events with the ids of their entries, in the ledger's order."""

    impressions: list[tuple[str, Impression]]
    clicks: list[tuple[str, Click]]

    @property
    def events(self) -> list[Event]:
        """All events of both kinds."""
        return [event for _, event in (*self.impressions, *self.clicks)]

    @property
    def first_entry_id(self) -> str:
        """The id of the first entry; there is one."""
        firsts = [events[0][0] for events in (self.impressions, self.clicks) if events]
        return min(firsts, key=parse_entry_id)


class OfferSet(msgspec.Struct, frozen=True, kw_only=True):
    """Offers of which an event of a kind is known, and those of them of which a good one is."""

    all: Set[Offer] = frozenset()
    valid: Set[Offer] = frozenset()


class StoredOffers(msgspec.Struct, frozen=True, kw_only=True):
    """Offers that have an impression, that have a click, and the clicks that were marked for want of an impression."""

    impressions: OfferSet = OfferSet()
    clicks: OfferSet = OfferSet()
    clicks_alone: Mapping[Offer, Sequence[str]] = {}


class StoredState(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables know of a batch: keys of the catalog, by the numbers that ids are, and events that are there."""

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
    address: str | None  # Where an impression's reader came from, or where a click leads.
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
    """By what counts are kept."""

    hour: datetime
    banner_id: int
    placement_id: int
    campaign_id: int | None
    country_code: str | None
    device_type: str | None


class Count(msgspec.Struct, gc=False):
    """What is added to the counts of a key; `invalid_…` are among the others."""

    impressions: int = 0
    clicks: int = 0
    invalid_impressions: int = 0
    invalid_clicks: int = 0


class DayCount(msgspec.Struct, gc=False):
    """What is added to a day: how many rows, and the ledger's time of the last of them."""

    events: int = 0
    last_entry_ms: int = 0


class _New(NamedTuple, Generic[E]):
    kept: list[tuple[str, E, int, int]]  # With the keys of its banner and its placement.
    repeated: int
    dropped: int


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch adds to the tables."""

    impressions: list[EventRow] = []
    clicks: list[EventRow] = []
    repeated: int = 0
    dropped: int = 0
    # Clicks that were marked for want of an impression, which has come.
    clicks_now_seen: list[str] = []
    # The entries that the rows of the impressions were made from.
    impression_entries: list[tuple[str, Impression]] = []

    @property
    def size(self) -> int:
        """How many rows are added."""
        return len(self.impressions) + len(self.clicks)

    def list_counted(self) -> list[CountedEntry]:
        """Tell of the impressions what those who follow the tables want to know."""
        return [
            CountedEntry(entry_id, event, row.user_id, tuple(row.marks or ()), row.is_valid)
            for (entry_id, event), row in zip(self.impression_entries, self.impressions, strict=True)
        ]


def split_by_kind(records: Sequence[DecodedEntry]) -> EventBatch:
    """Part a batch by kind; offers that were only served become no rows."""
    impressions: list[tuple[str, Impression]] = []
    clicks: list[tuple[str, Click]] = []
    for entry_id, happening in records:
        if isinstance(happening, Impression):
            impressions.append((entry_id, happening))
        elif isinstance(happening, Click):
            clicks.append((entry_id, happening))
    return EventBatch(impressions=impressions, clicks=clicks)


def offer_of(event: Event) -> Offer | None:
    """Give the offer that an event is about; entries from before slots were kept name none."""
    if event.request_id is None or event.slot is None:
        return None
    return (event.request_id.int, event.slot)


def apply_batch(batch: EventBatch, known: StoredState) -> Additions:
    """Choose what is new, in the ledger's order, and mark what the other events of its offer tell."""
    impressions = _new(batch.impressions, known, set(known.impressions))
    clicks = _new(batch.clicks, known, set(known.clicks))
    seen, clicked = _Seconds(known.offers.impressions), _Seconds(known.offers.clicks)
    impression_rows: list[EventRow] = []
    for kept in impressions.kept:
        event = kept[1]
        marks = [*event.marks, Mark.SECOND_IMPRESSION] if seen.has_before(event) else event.marks
        impression_rows.append(_row(kept, event.referrer_url, marks, known))
    click_rows: list[EventRow] = []
    for kept in clicks.kept:
        event = kept[1]
        marks = [*event.marks, Mark.SECOND_CLICK] if clicked.has_before(event) else list(event.marks)
        offer = offer_of(event)
        if offer is not None and offer not in seen.offers:
            marks.append(Mark.CLICK_WITHOUT_IMPRESSION)
        click_rows.append(_row(kept, event.destination_url, marks, known))
    return Additions(
        impressions=impression_rows,
        clicks=click_rows,
        repeated=impressions.repeated + clicks.repeated,
        dropped=impressions.dropped + clicks.dropped,
        impression_entries=[(entry_id, event) for entry_id, event, _, _ in impressions.kept],
        clicks_now_seen=[
            click
            for offer, clicks in known.offers.clicks_alone.items()
            if offer in seen.offers
            for click in clicks
        ],
    )


class _Seconds:
    """Tells the first event of an offer from the others of its kind, in the ledger's order."""

    def __init__(self, known: OfferSet) -> None:
        self.offers = set(known.all)
        self._well = set(known.valid)

    def has_before(self, event: Event) -> bool:
        """Tell whether an event is not the first of its offer, and note it.

        A browser that prefetches, or a crawler, must not take the place of the reader who comes
        after it: what is good is a second one only behind what is good.
        """
        offer = offer_of(event)
        if offer is None:
            return False
        is_valid = not event.marks or event.is_valid
        is_second = offer in (self._well if is_valid else self.offers)
        self.offers.add(offer)
        if is_valid:
            self._well.add(offer)
        return is_second


def _new(events: Sequence[tuple[str, E]], known: StoredState, taken: set[str]) -> _New[E]:
    """Keep what has a place in the catalog and a correlation id of its own; the first of several wins."""
    kept: list[tuple[str, E, int, int]] = []
    banners, placements = known.banners, known.placements
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
    return _New(kept, repeated, dropped)


def _row(
    kept: tuple[str, Event, int, int], address: str | None, marks: Sequence[str], known: StoredState
) -> EventRow:
    entry_id, event, banner_id, placement_id = kept
    entry_ms, entry_seq = parse_entry_id(entry_id)
    session_id, user_id, page_url = event.session_id, event.user_id, event.page_url
    if known.erased_at and user_id and event.received_at <= known.erased_at.get(user_id, NEVER):
        session_id = user_id = page_url = None
        if isinstance(event, Impression):
            address = None
    return EventRow(
        event.correlation_id,
        banner_id,
        placement_id,
        None if event.campaign_id is None else known.campaigns.get(event.campaign_id.int),
        session_id,
        user_id,
        event.device_type,
        event.country_code,
        page_url,
        address,
        event.occurred_at.astimezone(UTC),
        event.received_at,
        event.request_id,
        event.slot,
        event.client_network,
        marks or None,
        not marks or HARMLESS_MARKS.issuperset(marks),
        entry_ms,
        entry_seq,
    )


def count_by_key(added: Additions) -> dict[CountKey, Count]:
    """Count the rows that are added, by what counts are kept by."""
    counted: dict[CountKey, Count] = {}
    for key, rows in Counter(map(_counted_by, added.impressions)).items():
        count = counted.setdefault(_count_key(key), Count())
        count.impressions += rows
        count.invalid_impressions += 0 if key[-1] else rows
    for key, rows in Counter(map(_counted_by, added.clicks)).items():
        count = counted.setdefault(_count_key(key), Count())
        count.clicks += rows
        count.invalid_clicks += 0 if key[-1] else rows
    return counted


def _counted_by(row: EventRow) -> _CountedBy:
    """Give what a row is counted by, and whether it is valid."""
    device = row.device_type if row.device_type in COUNTED_DEVICES else None
    hour = row.occurred_at.toordinal() * 24 + row.occurred_at.hour
    return hour, row.banner_id, row.placement_id, row.campaign_id, row.country_code, device, row.is_valid


def _count_key(key: _CountedBy) -> CountKey:
    hour, banner_id, placement_id, campaign_id, country_code, device_type, _ = key
    day = datetime.fromordinal(hour // 24).replace(hour=hour % 24, tzinfo=UTC)
    return CountKey(day, banner_id, placement_id, campaign_id, country_code, device_type)


def count_by_day(added: Additions) -> dict[date, DayCount]:
    """Count the rows that are added by their day of UTC."""
    counted: dict[date, DayCount] = {}
    for row in (*added.impressions, *added.clicks):
        if (count := counted.get(day := row.occurred_at.date())) is None:
            count = counted[day] = DayCount()
        count.events += 1
        count.last_entry_ms = max(count.last_entry_ms, row.entry_ms)
    return counted
