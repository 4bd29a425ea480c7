"""Which step has taken a bidder out of an auction, by the name that an explanation gives it. Pure."""

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
LIMITS: Final = "caps_and_budgets"  # Of the campaign, where it is not told which of them.
NOT_HELD: Final = "not_held"
FREQUENCY_CAP: Final = "frequency_cap"
FREQUENCY_UNKNOWN: Final = "frequency_unknown"  # How often it was seen, and the operator withholds it then.
FLOOR: Final = "floor"

ReasonOf = Callable[[int], str | None]


def find_removal(  # noqa: PLR0913 - all that can keep somebody out
    bidder: Bidder,
    context: Context,
    *,
    now: datetime,
    reason_of: ReasonOf,
    seen_enough: Collection[int],
    without: Collection[int],
    is_unknown: bool = False,
) -> str:
    """Name the first step that removes a bidder who does not take part: dates, rules, schedule, limits, the floor."""
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
    excluded = reason_of(bidder.campaign_key)
    if excluded is not None:
        return excluded
    if bidder.campaign_key in without:
        return NOT_HELD
    return name_frequency_step(is_unknown=is_unknown) if bidder.banner_key in seen_enough else FLOOR


def name_frequency_step(*, is_unknown: bool) -> str:
    """Name the step that removes who was seen often enough, or may have been."""
    return FREQUENCY_UNKNOWN if is_unknown else FREQUENCY_CAP
