"""What the events of the same offer tell of each other, looked up in the tables, and taken back there."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from adloom.events.log.event import HARMLESS_MARKS, Event
from adloom.events.tables.apply_batch import (
    COUNTED_DEVICES,
    GOOD,
    CountKey,
    EventBatch,
    Offer,
    OfferSet,
    StoredOffers,
)
from adloom.runtime.postgres import Connection, Record

# An offer has at most one good event of a kind and a bad one before it that are not second ones: however
# often somebody repeats theirs, the answer is not longer. The conditions are those of the indexes, word
# for word. Whether an event was good is by what came with it, not by the other events of its offer.
_SEEN: Final = """
    SELECT request_id, slot, coalesce(marks <@ $3::text[], true) AS is_good, NULL AS unseen_click FROM {schema}.banner_impressions
     WHERE request_id = ANY ($1::uuid[]) AND occurred_at >= $2
       AND (marks && '{{second_impression,second_click}}') IS NOT TRUE
    UNION ALL
    SELECT request_id, slot, NULL, correlation_id FROM {schema}.banner_clicks
     WHERE request_id = ANY ($1::uuid[]) AND occurred_at >= $2
       AND marks @> '{{click_without_impression}}'
"""
_CLICKED: Final = """
    SELECT request_id, slot, coalesce(marks <@ $3::text[], true) AS is_good FROM {schema}.banner_clicks
     WHERE request_id = ANY ($1::uuid[]) AND occurred_at >= $2
       AND (marks && '{{second_impression,second_click}}') IS NOT TRUE
"""
_TAKE_BACK: Final = """
    UPDATE {schema}.banner_clicks
       SET marks = nullif(array_remove(marks, 'click_without_impression'), '{{}}'),
           is_valid = array_remove(marks, 'click_without_impression') <@ $3::text[]
     WHERE correlation_id = ANY ($1::text[]) AND occurred_at >= $2
       AND marks @> '{{click_without_impression}}'
    RETURNING date_trunc('hour', occurred_at, 'UTC'), banner_id, placement_id, campaign_id, country_code,
              CASE WHEN device_type = ANY ($4::text[]) THEN device_type END, is_valid
"""


class OfferMarks:
    """Offers in the tables of a schema; keys go there in their order, which makes looking them up cheaper."""

    def __init__(self, schema: str) -> None:
        self._seen = _SEEN.format(schema=schema)
        self._clicked = _CLICKED.format(schema=schema)
        self._take_back = _TAKE_BACK.format(schema=schema)

    async def look_up(self, connection: Connection, batch: EventBatch, since: datetime) -> StoredOffers:
        """Tell which offers of a batch have an impression, which have clicks, and which only those."""
        seen: dict[Offer, bool] = {}
        unseen: dict[Offer, list[str]] = {}
        for request_id, slot, is_good, unseen_click in await _of_requests(
            connection, self._seen, batch.events, since
        ):
            offer = (request_id.int, slot)
            if unseen_click is None:
                seen[offer] = is_good or seen.get(offer, False)
            else:
                unseen.setdefault(offer, []).append(unseen_click)
        clicked: dict[Offer, bool] = {}
        clicks = [click for _, click in batch.clicks]
        for request_id, slot, is_good in await _of_requests(connection, self._clicked, clicks, since):
            offer = (request_id.int, slot)
            clicked[offer] = is_good or clicked.get(offer, False)
        return StoredOffers(impressions=_reported(seen), clicks=_reported(clicked), clicks_alone=unseen)

    async def unmark_clicks(
        self, connection: Connection, unseen_clicks: Collection[str], since: datetime
    ) -> Counter[CountKey]:
        """Unmark clicks that came before their impression; tell how many became valid by that."""
        if not unseen_clicks:
            return Counter()
        unmarked = await connection.fetch(
            self._take_back, unseen_clicks, since, HARMLESS_MARKS, COUNTED_DEVICES
        )
        return Counter(CountKey(*key) for *key, is_valid in unmarked if is_valid)


async def _of_requests(
    connection: Connection, statement: str, events: Sequence[Event], since: datetime
) -> Sequence[Record]:
    requests = {
        event.request_id.int: event.request_id
        for event in events
        if event.request_id is not None and event.slot is not None
    }
    if not requests:
        return []
    return await connection.fetch(statement, [requests[one] for one in sorted(requests)], since, GOOD)


def _reported(is_good: Mapping[Offer, bool]) -> OfferSet:
    return OfferSet(all=is_good.keys(), valid={offer for offer, good in is_good.items() if good})
