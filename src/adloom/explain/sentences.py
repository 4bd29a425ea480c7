"""The sentences of an explanation: what a campaign manager reads, and can do about it."""

# pure

from datetime import datetime
from typing import Final

import msgspec

from adloom.schedule.schedule import Schedule
from adloom.schedule.schedule_window import ClosedReason
from adloom.serving.eligibility.caps import IMPRESSION_CAP
from adloom.serving.index.rows import AssignmentStatus, Caps
from adloom.targeting.context import Context
from adloom.targeting.evaluate import value_of
from adloom.targeting.rules import Operator, Rule, RuleType

DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


class Reason(msgspec.Struct, frozen=True):
    """Why, and what would have to change; nothing would for who was shown."""

    name: str
    sentence: str
    change: str | None = None


REASONS: Final = {
    reason.name: reason
    for reason in (
        Reason("won", "The banner fills a slot."),
        Reason("won_as_fallback", "The banner fills a slot that no other banner filled."),
        Reason(
            "won_as_evergreen",
            "There was nothing else to show, so the placement shows its evergreen fallback, "
            "whatever the rules of the campaign say.",
        ),
        Reason(
            "slots_filled",
            "Banners that come before this one fill all slots.",
            "Lower its displayOrder or raise its weight, or raise maxBanners of the placement.",
        ),
        Reason(
            "fallback_not_needed",
            "The banner is a fallback, and other banners fill all slots.",
            "Nothing is wrong. To show it beside them, make it a primary banner (isFallback false).",
        ),
        Reason(
            "no_partial_render",
            "The banner is a fallback, and the placement does not fill free slots with fallbacks.",
            "Set allowPartialRender of the placement, or make the banner a primary one (isFallback false).",
        ),
        Reason("placement_inactive", "The placement is switched off.", "Set isActive of the placement."),
        Reason(
            "placement_not_direct",
            "The placement is filled by another kind of delivery.",
            "Set delivery of the placement to direct, or ask the explanation of the other kind.",
        ),
        Reason(
            AssignmentStatus.ADVERTISER_DELETED,
            "The advertiser of the campaign or the banner is deleted.",
            "Restore the advertiser.",
        ),
        Reason(
            AssignmentStatus.CAMPAIGN_DELETED,
            "The campaign is deleted.",
            "Restore the campaign, then activate it.",
        ),
        Reason(
            AssignmentStatus.CAMPAIGN_DRAFT,
            "The campaign is still a draft.",
            "Activate or schedule the campaign.",
        ),
        Reason(AssignmentStatus.CAMPAIGN_PAUSED, "The campaign is paused.", "Activate the campaign."),
        Reason(
            AssignmentStatus.CAMPAIGN_ENDED,
            "The campaign has ended, which is final.",
            "Make a new campaign with this banner.",
        ),
        Reason(
            AssignmentStatus.CAMPAIGN_CANCELLED,
            "The campaign is cancelled, which is final.",
            "Make a new campaign with this banner.",
        ),
        Reason(
            AssignmentStatus.CAMPAIGN_UNDATED,
            "The campaign is scheduled, but has no start.",
            "Give the campaign a startsAt, or activate it.",
        ),
        Reason(
            AssignmentStatus.LINK_INACTIVE,
            "The campaign may not use this placement at the moment.",
            "Set isActive of the link between campaign and placement.",
        ),
        Reason(
            AssignmentStatus.SITE_BLOCKED,
            "The advertiser has blocked the placement's site.",
            "Take the site's domain out of the advertiser's blockedSites.",
        ),
        Reason(
            AssignmentStatus.RULE_UNREADABLE,
            "A targeting rule of the campaign cannot be read, so it is shown to nobody.",
            "Write the campaign's targeting rules again.",
        ),
        Reason(
            AssignmentStatus.ASSIGNMENT_INACTIVE,
            "The banner's assignment to this placement is switched off.",
            "Set isActive of the assignment.",
        ),
        Reason(
            "daily_budget",
            "What is left of the campaign's daily budget does not pay for one more offer; "
            "offers that are out and may still be charged count as spent.",
            "Raise budgetDailyPaisa of the campaign, or wait for its next day.",
        ),
        Reason(
            "total_budget",
            "What is left of the campaign's total budget does not pay for one more offer; "
            "offers that are out and may still be charged count as spent.",
            "Raise budgetTotalPaisa of the campaign.",
        ),
        Reason(
            "advertiser_budget",
            "What is left of the advertiser's daily budget does not pay for one more offer; "
            "offers of all its campaigns that are out and may still be charged count as spent.",
            "Raise dailyBudgetPaisa of the advertiser, or wait for its next day.",
        ),
        Reason(
            "pacing",
            "The campaign spreads its daily budget over the day, and has spent what it may have spent by now.",
            "Nothing is wrong: it goes on bit by bit. To spend faster, raise budgetDailyPaisa of the campaign, "
            "or set its pacingStrategy to Accelerated.",
        ),
        Reason(AssignmentStatus.BANNER_DELETED, "The banner is deleted.", "Restore the banner."),
        Reason(AssignmentStatus.BANNER_INACTIVE, "The banner is switched off.", "Activate the banner."),
    )
}

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


def campaign_dates_reason(starts_at: datetime | None, ends_at: datetime | None, now: datetime) -> Reason:
    """Explain a campaign that is before its start or after its end."""
    if starts_at is not None and now < starts_at:
        return Reason(
            "campaign_dates",
            f"The campaign starts at {_moment(starts_at)}.",
            "Wait for it, or move startsAt of the campaign to an earlier time.",
        )
    assert ends_at is not None
    return Reason(
        "campaign_dates",
        f"The campaign was over at {_moment(ends_at)}.",
        "Move endsAt of the campaign to a later time.",
    )


def rule_reason(rule: Rule, context: Context) -> Reason:
    """Explain a rule that does not hold."""
    name = f"targeting:{rule.rule_type}"
    match rule.rule_type:
        case RuleType.LOGIN_STATE:
            wanted, found = _either(rule, context.is_logged_in, "logged in", "not logged in")
        case RuleType.NEW_VISITOR:
            wanted, found = _either(rule, context.is_new_visitor, "new", "known")
        case _:
            wanted, found = _wanted(rule), _shown(rule.rule_type, value_of(rule.rule_type, context))
    return Reason(
        name,
        f"The campaign wants {SUBJECTS[rule.rule_type]} to be {wanted}, and it is {found}.",
        f"Change or switch off the campaign's {rule.rule_type} rule, or ask with another context.",
    )


def schedule_reason(closed: ClosedReason, schedule: Schedule) -> Reason:
    """Explain a banner whose time it is not."""
    zone = schedule.timezone
    sentence, change = {
        ClosedReason.DRAFT: ("The banner's schedule is a draft.", "Set scheduleStatus of the banner."),
        ClosedReason.EXPIRED: (
            "The banner has expired.",
            "Give the banner a later expiresAt, and a scheduleStatus that is not expired.",
        ),
        ClosedReason.NOT_YET_PUBLISHED: (
            f"The banner is published at {_moment(schedule.publish_at)}.",
            "Wait for it, or move publishAt of the banner to an earlier time.",
        ),
        ClosedReason.UNREADABLE: (
            "The banner's time zone or recurrence rule cannot be read.",
            "Write scheduleTimezone and recurrenceRule of the banner again.",
        ),
        ClosedReason.OUTSIDE_WINDOW: (
            f"The banner is shown from {schedule.window_start} to {schedule.window_end} in {zone}.",
            "Wait for it, or change recurrenceWindowStart and recurrenceWindowEnd of the banner.",
        ),
        ClosedReason.NOT_RECURRING_NOW: (
            f"The banner's recurrence rule does not name this day or hour in {zone}.",
            "Wait for it, or change recurrenceRule of the banner.",
        ),
    }[closed]
    return Reason(f"schedule:{closed}", sentence, change)


def cap_reason(name: str, caps: Caps) -> Reason:
    """Explain a campaign that has had all that it may have."""
    if name == IMPRESSION_CAP:
        return Reason(
            name,
            f"The campaign has had its {caps.impressions} impressions.",
            "Raise impressionCap of the campaign.",
        )
    return Reason(name, f"The campaign has had its {caps.clicks} clicks.", "Raise clickCap of the campaign.")


def _wanted(rule: Rule) -> str:
    values = [_shown(rule.rule_type, value) for value in rule.values]
    match rule.operator:
        case Operator.BETWEEN:
            return f"between {values[0]} and {values[1]}"
        case Operator.NOT_IN:
            return f"anything but {', '.join(values)}"
        case _:
            return " or ".join(values)


def _either(rule: Rule, is_so: bool, yes: str, no: str) -> tuple[str, str]:  # noqa: FBT001 - a value
    return (yes if rule.values[0] else no), (yes if is_so else no)


def _shown(rule_type: RuleType, value: object) -> str:
    if value is None:
        return "unknown"
    return DAYS[value] if rule_type is RuleType.DAY_OF_WEEK and isinstance(value, int) else str(value)


def _moment(moment: datetime | None) -> str:
    return "a time that is not given" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")
