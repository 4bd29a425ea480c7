"""Events with a reason not to be billed: filter, reasons, what may be shown, and the SQL over a partial index of them."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.caller import Caller
from adloom.events.log.event import UNBILLED_MARKS, Mark
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record

# Behind these characters an address may carry anything, e-mail addresses and session keys included; also before an @.
_QUERY_AND_FRAGMENT: Final = re.compile(r"[?#].*", re.DOTALL)
_CREDENTIALS: Final = re.compile(r"^([a-z][a-z0-9+.-]*:)?//[^/]*@", re.IGNORECASE)


class EventKind(StrEnum):
    """An impression or a click."""

    IMPRESSION = "impression"
    CLICK = "click"


class RejectedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A filter on events; both days are included."""

    first: date
    last: date
    reason: Mark | None = None
    kind: EventKind | None = None
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    # The account whose events may be seen, or None for all.
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None


class RejectedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is not billed. The visitor's id is not even read."""

    kind: EventKind
    correlation_id: str
    banner_id: UUID
    placement_id: UUID
    campaign_id: UUID | None
    marks: tuple[Mark, ...]
    occurred_at: datetime
    received_at: datetime
    request_id: UUID | None
    device_type: str | None
    country_code: str | None
    client_network: str | None
    page_url: str | None

    @property
    def reasons(self) -> tuple[Mark, ...]:
        """The marks that keep the event out of billing."""
        return tuple(mark for mark in self.marks if mark in UNBILLED_MARKS)


class ReasonCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events have a reason; an event with two is counted in both."""

    reason: Mark
    impressions: int = 0
    clicks: int = 0


def list_reasons(found: Mapping[tuple[Mark, EventKind], int]) -> tuple[ReasonCount, ...]:
    """Return a line for every possible reason, with zeros."""
    return tuple(
        ReasonCount(
            reason=reason,
            impressions=found.get((reason, EventKind.IMPRESSION), 0),
            clicks=found.get((reason, EventKind.CLICK), 0),
        )
        for reason in UNBILLED_MARKS
    )


def filter_seen_by(caller: Caller, event: RejectedEvent) -> RejectedEvent:
    """Leave out the network that an event came from, unless the house itself asks."""
    return event if caller.sees_all else msgspec.structs.replace(event, client_network=None)


def strip_address(address: str | None) -> str | None:
    """Strip an address to the page that it names."""
    if address is None:
        return None
    return _CREDENTIALS.sub(r"\1//", _QUERY_AND_FRAGMENT.sub("", address))


SORTABLE: Final = frozenset({"occurred_at", "received_at"})

_OF_A_KIND: Final = """
    SELECT '{kind}' AS kind, id, correlation_id, banner_id, placement_id, campaign_id, marks, occurred_at, received_at,
           request_id, device_type, country_code, client_network, page_url
      FROM {table}
     WHERE {condition}
"""
# A click that did not fit the budget is valid.
_CONDITIONS: Final = {
    EventKind.IMPRESSION: ["NOT is_valid"],
    EventKind.CLICK: ["NOT is_valid", "is_valid AND marks @> '{over_budget}'"],
}
_OF_ALL_KINDS: Final = " UNION ALL ".join(
    _OF_A_KIND.format(kind=kind, table=f"events.banner_{kind}s", condition=condition)
    for kind, conditions in _CONDITIONS.items()
    for condition in conditions
)
# An advertiser's events are those of its campaigns; without a campaign, those of its banners.
TABLES: Final = f"""
    ({_OF_ALL_KINDS}) AS it
      JOIN banners ON banners.id = it.banner_id
      JOIN placements_ever AS placements ON placements.id = it.placement_id
      LEFT JOIN campaigns ON campaigns.id = it.campaign_id
      LEFT JOIN advertisers ON advertisers.id =
          CASE WHEN it.campaign_id IS NULL THEN banners.advertiser_id ELSE campaigns.advertiser_id END
      LEFT JOIN publishers ON publishers.id = placements.publisher_id
"""
EVENTS: Final = RowSource(
    columns="""
        it.kind, it.correlation_id, banners.public_id AS banner_id, placements.public_id AS placement_id,
        campaigns.public_id AS campaign_id, coalesce(it.marks, '{}') AS marks, it.occurred_at, it.received_at, it.request_id,
        it.device_type, it.country_code, it.client_network::text AS client_network, it.page_url
    """,
    tables=TABLES,
    tiebreak="(it.kind, it.id)",
)
COUNT_BY_REASON: Final = """
    SELECT reason, it.kind, count(*) AS events
      FROM {tables} CROSS JOIN unnest(it.marks) AS reason
     WHERE {filters}
     GROUP BY 1, 2
"""


def build_filters(question: RejectedQuestion) -> Filters:
    filters = Filters()
    filters.add("it.occurred_at >= {}::date::timestamp AT TIME ZONE 'UTC'", question.first)
    filters.add("it.occurred_at < ({}::date + 1)::timestamp AT TIME ZONE 'UTC'", question.last)
    filters.add_given("it.kind = {}", question.kind)
    filters.add_given("it.marks @> ARRAY[{}::text]", question.reason)
    filters.add_given("banners.public_id = {}", question.banner_id)
    filters.add_given("placements.public_id = {}", question.placement_id)
    filters.add_given("campaigns.public_id = {}", question.campaign_id)
    filters.add_given("advertisers.public_id = {}", question.advertiser_id)
    filters.add_given("publishers.public_id = {}", question.publisher_id)
    return filters


async def read_page(connection: Connection, filters: Filters, request: PageRequest) -> Listed[RejectedEvent]:
    rows = await fetch_page(connection, EVENTS, filters, request)
    return Listed(items=[_build_event(row) for row in rows.items], total_count=rows.total_count)


async def count_by_reason(connection: Connection, filters: Filters) -> dict[tuple[Mark, EventKind], int]:
    """Count the events of each reason and kind; reasons without events are left out."""
    statement = COUNT_BY_REASON.format(tables=TABLES, filters=filters.sql)
    rows = await connection.fetch(statement, *filters.values)
    return {
        (Mark(row["reason"]), EventKind(row["kind"])): row["events"]
        for row in rows
        if row["reason"] in UNBILLED_MARKS
    }


def _build_event(row: Record) -> RejectedEvent:
    return msgspec.convert({**row, "page_url": strip_address(row["page_url"])}, RejectedEvent)
