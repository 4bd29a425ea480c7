"""Totals of many auctions: whole hours come from hourly sums, only the rest is counted one by one."""

from datetime import UTC, datetime, timedelta
from typing import Final

from adloom.runtime.listing import Filters
from adloom.stats.auctions.model import AuctionQuestion

HOUR: Final = timedelta(hours=1)

_WHOLE: Final = """
    SELECT it.hour, it.placement_type, it.auctions, it.wins, it.ecpm_sum, it.bids
      FROM auction.hours AS it WHERE {filters}
"""
# Covered by the index on the time, which has all of these columns.
_PARTIAL: Final = """
    SELECT date_bin('1 hour', it.auction_time, 'epoch') AS hour, it.placement_type, count(*) AS auctions,
           count(it.winning_campaign_id) AS wins, coalesce(sum(it.winning_ecpm), 0) AS ecpm_sum,
           sum(it.bid_count)::bigint AS bids
      FROM auction.auctions AS it WHERE {filters}
     GROUP BY 1, 2
"""


def is_by_hour(question: AuctionQuestion) -> bool:
    """Whether hourly sums can answer: they know neither the visitor nor who took part."""
    return question.user_id is None and question.campaign_ids is None


def hours_of(question: AuctionQuestion) -> tuple[str, list[object]]:
    """Build the query for the totals, as rows by hour and type."""
    assert is_by_hour(question), "what hours do not know is not asked of them"
    filters = Filters()
    parts = [_WHOLE.format(filters=_between(filters, "it.hour", question, *_whole_hours(question)))]
    parts += [
        _PARTIAL.format(filters=_between(filters, "it.auction_time", question, since, before))
        for since, before in _rests(question)
    ]
    return " UNION ALL ".join(parts), filters.values


def _whole_hours(question: AuctionQuestion) -> tuple[datetime | None, datetime | None]:
    since = None if question.since is None else _floor_to_hour(question.since + HOUR - timedelta.resolution)
    return since, None if question.before is None else _floor_to_hour(question.before)


def _rests(question: AuctionQuestion) -> list[tuple[datetime | None, datetime | None]]:
    """Return the pieces at both ends that are not whole hours."""
    first, last = _whole_hours(question)
    if first is not None and last is not None and first > last:
        return [(question.since, question.before)]  # Both ends are in the same hour.
    rests: list[tuple[datetime | None, datetime | None]] = []
    if question.since != first:
        rests.append((question.since, first))
    if question.before != last:
        rests.append((last, question.before))
    return rests


def _floor_to_hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _between(
    filters: Filters, column: str, question: AuctionQuestion, since: datetime | None, before: datetime | None
) -> str:
    conditions = [
        f"{condition} {filters.bind(value)}"
        for condition, value in (
            (f"{column} >=", since),
            (f"{column} <", before),
            ("it.placement_type =", question.placement_type),
        )
        if value is not None
    ]
    return " AND ".join(conditions) or "true"
