"""Every reason an explanation can give, with what to do about it, and the steps that remove a candidate, in their order."""

# pure

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.schedule.schedule import Schedule
from adloom.schedule.schedule_window import ClosedReason, find_closed_reason
from adloom.serving.auction.bid_record import FLOOR, FREQUENCY_CAP
from adloom.serving.eligibility.caps import CLICK_CAP, IMPRESSION_CAP, find_reached_cap
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Caps
from adloom.targeting.context import Context
from adloom.targeting.evaluate import find_failing, get_value
from adloom.targeting.rules import Operator, Rule, RuleType

THROTTLE_MIN: Final = 0.005  # What is a share of one hundredth when it is rounded.
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NEW_CAMPAIGN: Final = "Make a new campaign with this banner."
_RAISE_BID: Final = "Raise bidAmount of the campaign to what it would have had to bid"
SUBJECTS: Final = {
    RuleType.DEVICE: "the device",
    RuleType.COUNTRY: "the country",
    RuleType.USER_SEGMENT: "the reader's segment",
    RuleType.LANGUAGE: "the language",
    RuleType.HOUR_OF_DAY: "the hour at the placement",
    RuleType.DAY_OF_WEEK: "the day at the placement",
    RuleType.REFERRER_DOMAIN: "the site that the reader came from",
    RuleType.LOGIN_STATE: "the reader",
    RuleType.NEW_VISITOR: "the reader",
}


class CandidateOutcome(StrEnum):
    """What became of a candidate."""

    WON = "won"
    LOST = "lost"
    REMOVED = "removed"


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the rows; counts and missing budgets are by campaign."""

    context: Context
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]
    now: datetime
    throttles: Mapping[int, float] = {}  # The share of its offers that a campaign's pace leaves out.


class Reason(msgspec.Struct, frozen=True):
    """Why, and what would have to change; nothing would have to for a winner."""

    name: str
    sentence: str
    change: str | None = None


def _build_table(*rows: tuple[str, str] | tuple[str, str, str]) -> dict[str, Reason]:
    return {row[0]: Reason(*row) for row in rows}


# What removes a candidate. Parts in braces are filled in by the functions below.
# fmt: off
REASONS: Final = _build_table(
    ("placement_inactive", "The placement is switched off.", "Set isActive of the placement."),
    ("placement_not_direct", "The placement is filled by another kind of delivery.",
     "Set delivery of the placement to direct, or ask the explanation of the other kind."),
    (AssignmentStatus.NO_BID, "The campaign bids nothing.", "Give the campaign a bidAmount."),
    (AssignmentStatus.ADVERTISER_DELETED, "The advertiser of the campaign or the banner is deleted.",
     "Restore the advertiser."),
    (AssignmentStatus.CAMPAIGN_DELETED, "The campaign is deleted.",
     "Restore the campaign, then activate it."),
    (AssignmentStatus.CAMPAIGN_DRAFT, "The campaign is still a draft.", "Activate or schedule the campaign."),
    (AssignmentStatus.CAMPAIGN_PAUSED, "The campaign is paused.", "Resume the campaign."),
    (AssignmentStatus.CAMPAIGN_ENDED, "The campaign has ended, which is final.", _NEW_CAMPAIGN),
    (AssignmentStatus.CAMPAIGN_CANCELLED, "The campaign is cancelled, which is final.", _NEW_CAMPAIGN),
    (AssignmentStatus.CAMPAIGN_UNDATED, "The campaign is scheduled, but has no start.",
     "Give the campaign a startsAt, or activate it."),
    (AssignmentStatus.LINK_REQUESTED, "The placement's publisher has not accepted the campaign yet.",
     "Wait for the publisher or an admin to accept the link."),
    (AssignmentStatus.LINK_REFUSED, "The placement's publisher has refused the campaign.",
     "Ask the publisher or an admin to accept the link, or use another placement."),
    (AssignmentStatus.LINK_INACTIVE, "The campaign may not use this placement at the moment.",
     "Set isActive of the link between campaign and placement."),
    (AssignmentStatus.SITE_MISSING,
     "The advertiser blocks sites, and it is not known on which site the placement is.",
     "Set siteId of the placement, or empty the advertiser's blockedSites."),
    (AssignmentStatus.SITE_BLOCKED, "The advertiser has blocked the placement's site.",
     "Take the site's domain out of the advertiser's blockedSites."),
    (AssignmentStatus.WARMUP, "The placement's site warms up: its traffic is learned, and nothing is shown.",
     "Wait for the publisher, or switch pacing.warmup of the site off."),
    (AssignmentStatus.RULE_UNREADABLE,
     "A targeting rule of the campaign cannot be read, so it is shown to nobody.",
     "Write the campaign's targeting rules again."),
    (AssignmentStatus.ASSIGNMENT_INACTIVE, "The banner's assignment to this placement is switched off.",
     "Set isActive of the assignment."),
    (AssignmentStatus.BANNER_REFUSED, "The placement's publisher has refused the banner.",
     "Ask the publisher or an admin to accept the banner, or show another one."),
    (AssignmentStatus.BANNER_DELETED, "The banner is deleted.", "Restore the banner."),
    (AssignmentStatus.BANNER_INACTIVE, "The banner is switched off.", "Activate the banner."),
    ("campaign_dates:before", "The campaign starts at {moment}.",
     "Wait for it, or move startsAt of the campaign to an earlier time."),
    ("campaign_dates:after", "The campaign was over at {moment}.",
     "Move endsAt of the campaign to a later time."),
    ("targeting", "The campaign wants {subject} to be {wanted}, and it is {found}.",
     "Change or switch off the campaign's {rule_type} rule, or ask with another context."),
    ("schedule:draft", "The banner's schedule is a draft.", "Set scheduleStatus of the banner."),
    ("schedule:expired", "The banner has expired.",
     "Give the banner a later expiresAt, and a scheduleStatus that is not expired."),
    ("schedule:not_yet_published", "The banner is published at {publish_at}.",
     "Wait for it, or move publishAt of the banner to an earlier time."),
    ("schedule:unreadable", "The banner's time zone or recurrence rule cannot be read.",
     "Write scheduleTimezone and recurrenceRule of the banner again."),
    ("schedule:outside_window", "The banner is shown from {start} to {end} in {zone}.",
     "Wait for it, or change recurrenceWindowStart and recurrenceWindowEnd of the banner."),
    ("schedule:not_recurring_now", "The banner's recurrence rule does not name this day or hour in {zone}.",
     "Wait for it, or change recurrenceRule of the banner."),
    (IMPRESSION_CAP, "The campaign has had its {count} impressions.", "Raise impressionCap of the campaign."),
    (CLICK_CAP, "The campaign has had its {count} clicks.", "Raise clickCap of the campaign."),
    ("daily_budget",
     ("What is left of the campaign's daily budget does not pay for one more offer; offers that are out "
      "and may still be charged count as spent."),
     "Raise budgetDailyPaisa of the campaign, or wait for its next day."),
    ("total_budget",
     ("What is left of the campaign's total budget does not pay for one more offer; offers that are out "
      "and may still be charged count as spent."), "Raise budgetTotalPaisa of the campaign."),
    ("advertiser_budget",
     ("What is left of the advertiser's daily budget does not pay for one more offer; offers of all its "
      "campaigns that are out and may still be charged count as spent."),
     "Raise dailyBudgetPaisa of the advertiser, or wait for its next day."),
    ("pacing",
     "The campaign spreads its daily budget over the day, and has spent what it may have spent by now.",
     ("Nothing is wrong: it goes on bit by bit. To spend faster, raise budgetDailyPaisa of the campaign, "
      "or set its pacingStrategy to Accelerated.")),
    ("pacing:some",
     "To spread its daily budget over the traffic of the day, the campaign leaves out {share} of its offers now.",
     ("Nothing is wrong: other ads get those slots. To spend faster, raise budgetDailyPaisa of the campaign, "
      "or set its pacingStrategy to Accelerated.")),
    (FREQUENCY_CAP,
     "The user has seen the ad as often as its frequency caps allow, or it is not known how often.",
     "Wait for the next window of the cap, or delete the cap."),
    (FLOOR, "Its eCPM is under the floor of the placement.",
     f"{_RAISE_BID}, or lower floorCpm of the placement."),
    ("no_partial_render",
     "The banner is a fallback, and the placement does not fill free slots with fallbacks.",
     "Set allowPartialRender of the placement, or make the banner a primary one (isFallback false)."),
)
# fmt: on
# What becomes of a candidate that no step removes.
# fmt: off
OUTCOMES: Final = _build_table(
    ("won", "The banner fills a slot."),
    ("won_as_fallback", "The banner fills a slot that no other banner filled."),
    ("won_as_evergreen",
     ("There was nothing else to show, so the placement shows its evergreen fallback, whatever the rules "
      "of the campaign say.")),
    ("won_turn",
     ("The banner takes turns with the others of its displayOrder, and is one of those that fill the slots: "
      "another request may show another one.")),
    ("other_turn", "The banner takes turns with the others of its displayOrder. It fills a slot in other requests.",
     "Nothing is wrong. Where the rotation is weighted, raise its weight to show it more often."),
    ("slots_filled", "Banners that come before this one fill all slots.",
     "Lower its displayOrder or raise its weight, or raise maxBanners of the placement."),
    ("shown_already", "The banner fills a slot already, for a campaign that comes before this one.",
     "Nothing is wrong: no banner fills two slots. To show this campaign first, lower the displayOrder of its assignment."),
    ("fallback_not_needed", "The banner is a fallback, and other banners fill all slots.",
     "Nothing is wrong. To show it beside them, make it a primary banner (isFallback false)."),
    ("won_auction", "It has the highest eCPM, or the oldest campaign of those who have it."),
    ("outbid", "Another ad has a higher eCPM, or the same with an older campaign.", f"{_RAISE_BID}."),
)
# fmt: on


def explain_throttle(throttle: float) -> Reason | None:
    """Explain a campaign that its pace leaves out of some requests; under half a hundredth is none."""
    if throttle < THROTTLE_MIN:
        return None
    return _fill("pacing:some", name="pacing", share=f"{throttle:.0%}")


def explain_dates(starts_at: datetime | None, ends_at: datetime | None, now: datetime) -> Reason | None:
    """Explain a campaign before its start or after its end."""
    if starts_at is not None and now < starts_at:
        return _fill("campaign_dates:before", name="campaign_dates", moment=_format(starts_at))
    if ends_at is not None and ends_at <= now:
        return _fill("campaign_dates:after", name="campaign_dates", moment=_format(ends_at))
    return None


def explain_rule(rule: Rule, context: Context) -> Reason:
    """Explain a rule that does not hold."""
    kind = rule.rule_type
    match kind:
        case RuleType.LOGIN_STATE:
            words, is_so = ("not logged in", "logged in"), context.is_logged_in
        case RuleType.NEW_VISITOR:
            words, is_so = ("known", "new"), context.is_new_visitor
        case _:
            words, is_so = None, False
    return _fill(
        "targeting",
        name=f"targeting:{kind}",
        subject=SUBJECTS[kind],
        wanted=_describe_wanted(rule) if words is None else words[bool(rule.values[0])],
        found=_describe(kind, get_value(kind, context)) if words is None else words[is_so],
        rule_type=kind,
    )


def explain_schedule(closed: ClosedReason, schedule: Schedule) -> Reason:
    """Explain a banner outside its schedule."""
    return _fill(
        f"schedule:{closed}",
        publish_at=_format(schedule.publish_at),
        start=schedule.window_start,
        end=schedule.window_end,
        zone=schedule.timezone,
    )


def explain_cap(name: str, caps: Caps) -> Reason:
    return _fill(name, count=caps.impressions if name == IMPRESSION_CAP else caps.clicks)


def _fill(key: str, *, name: str | None = None, **values: object) -> Reason:
    reason = REASONS[key]
    assert reason.change is not None, "whatever removes a candidate can be changed"
    return Reason(name or key, reason.sentence.format(**values), reason.change.format(**values))


def _describe_wanted(rule: Rule) -> str:
    values = [_describe(rule.rule_type, value) for value in rule.values]
    match rule.operator:
        case Operator.BETWEEN:
            return f"between {values[0]} and {values[1]}"
        case Operator.NOT_IN:
            return f"anything but {', '.join(values)}"
        case _:
            return " or ".join(values)


def _describe(rule_type: RuleType, value: object) -> str:
    if value is None:
        return "unknown"
    return DAYS[value] if rule_type is RuleType.DAY_OF_WEEK and isinstance(value, int) else str(value)


def _format(moment: datetime | None) -> str:
    return "a time that is not given" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def find_removal(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    """Return why the first step removes a candidate, or None."""
    return next((reason for step in STEPS if (reason := step(row, facts)) is not None), None)


def _check_status(row: AssignmentRow, _: RequestFacts) -> Reason | None:
    return None if row.status is AssignmentStatus.LIVE else REASONS[row.status]


def _check_dates(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    return explain_dates(row.starts_at, row.ends_at, facts.now)


def _check_targeting(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    rule = find_failing(row.rules, facts.context)
    return None if rule is None else explain_rule(rule, facts.context)


def _check_schedule(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    closed = find_closed_reason(row.schedule, now=facts.now)
    return None if closed is None else explain_schedule(closed, row.schedule)


def _check_caps(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    if row.caps is None:
        return None
    name = find_reached_cap(row.caps, facts.counts.get(row.campaign_key, NO_COUNTS))
    return None if name is None else explain_cap(name, row.caps)


def _check_budget(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    missing = facts.budgets.get(row.campaign_key)
    return None if missing is None else REASONS[missing]


STEPS: Final[tuple[Callable[[AssignmentRow, RequestFacts], Reason | None], ...]] = (
    _check_status,
    _check_dates,
    _check_targeting,
    _check_schedule,
    _check_caps,
    _check_budget,
)
