"""Names the step that removed a bidder from an auction, as explanations do."""

# pure

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

from adloom.schedule.schedule_window import find_closed_reason
from adloom.serving.index.bid_block import Bidder
from adloom.targeting.context import Context
from adloom.targeting.evaluate import find_failing

CAMPAIGN_DATES: Final = "campaign_dates"
TARGETING: Final = "targeting"
SCHEDULE: Final = "schedule"
LIMITS: Final = "caps_and_budgets"  # Of the campaign, where it is not known which.
NOT_HELD: Final = "not_held"
FREQUENCY_CAP: Final = "frequency_cap"
FREQUENCY_UNKNOWN: Final = (
    "frequency_unknown"  # It is unknown how often it was seen, and the operator withholds it.
)
FLOOR: Final = "floor"

FindExclusion = Callable[[int], str | None]


def find_removal(  # noqa: PLR0913 - all that can remove a bidder
    bidder: Bidder,
    context: Context,
    *,
    now: datetime,
    find_exclusion: FindExclusion,
    seen_enough: Collection[int],
    unreserved: Collection[int],
    is_unknown: bool = False,
) -> str:
    """Return the first step that removes a bidder: dates, rules, schedule, limits, frequency, floor."""
    timing = bidder.timing
    if timing is not None and (
        (timing.starts_at is not None and now < timing.starts_at)
        or (timing.ends_at is not None and timing.ends_at <= now)
    ):
        return CAMPAIGN_DATES
    rule = find_failing(bidder.rules, context)
    if rule is not None:
        return f"{TARGETING}:{rule.rule_type}"
    closed = None if timing is None else find_closed_reason(timing.schedule, now=now)
    if closed is not None:
        return f"{SCHEDULE}:{closed}"
    excluded = find_exclusion(bidder.campaign_key)
    if excluded is not None:
        return excluded
    if bidder.campaign_key in unreserved:
        return NOT_HELD
    return name_frequency_step(is_unknown=is_unknown) if bidder.banner_key in seen_enough else FLOOR


def name_frequency_step(*, is_unknown: bool) -> str:
    return FREQUENCY_UNKNOWN if is_unknown else FREQUENCY_CAP
