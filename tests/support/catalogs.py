"""Random catalogs of one placement, for laws that hold for all of them."""

from datetime import UTC, datetime, time, timedelta

from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Caps
from adloom.targeting.rules import parse_rule
from tests.support.contexts import COUNTRIES, SEGMENTS
from tests.support.rows import an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)

RULES = (
    parse_rule("device", "in", ["mobile", "tablet"]),
    parse_rule("country", "in", list(COUNTRIES[:2])),
    parse_rule("country", "not_in", list(COUNTRIES[:1])),
    parse_rule("user_segment", "in", list(SEGMENTS[:1])),
    parse_rule("login_state", "is", value=True),
    parse_rule("language", "not_in", ["de"]),
    parse_rule("hour_of_day", "between", [22, 13]),
    parse_rule("day_of_week", "in", [0, 1, 2, 3]),
    parse_rule("new_visitor", "is", value=False),
    parse_rule("referrer_domain", "in", ["example.com"]),
)


# Made once: Hypothesis checks each strategy that is new to it.
MOMENTS = st.none() | st.integers(-72, 72).map(lambda hours: NOON + timedelta(hours=hours))
DAY_WINDOWS = st.sampled_from(((None, None), (time(9), time(17)), (time(22), time(4, 59, 59))))
STATUSES = st.sampled_from(ScheduleStatus)
ZONES = st.sampled_from(("UTC", "Asia/Kolkata", "America/New_York"))
RECURRENCES = st.sampled_from((None, "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,SU"))
RULES_OR_NONE = st.just(()) | st.lists(st.sampled_from(RULES), max_size=3, unique=True).map(tuple)
CAMPAIGNS = st.integers(1, 4)
CAPPED = st.frozensets(CAMPAIGNS)
LIVE_OR_PAUSED = st.sampled_from(
    (AssignmentStatus.LIVE, AssignmentStatus.LIVE, AssignmentStatus.CAMPAIGN_PAUSED)
)
UP_TO_ONE, UP_TO_TWO, FLAGS = st.integers(0, 1), st.integers(0, 2), st.booleans()
FALLBACK_PRIORITIES = st.none() | st.integers(0, 3)


@st.composite
def some_schedules(draw: st.DrawFn) -> Schedule:
    start, end = draw(DAY_WINDOWS)
    return Schedule(
        status=draw(STATUSES),
        publish_at=draw(MOMENTS),
        expires_at=draw(MOMENTS),
        timezone=draw(ZONES),
        recurrence_rule=draw(RECURRENCES),
        window_start=start,
        window_end=end,
        created_at=NOON,
    )


SCHEDULES = st.just(Schedule(status=ScheduleStatus.EVERGREEN)) | some_schedules()


@st.composite
def some_assignments(draw: st.DrawFn, *, most: int = 10) -> list[AssignmentRow]:
    numbers = draw(st.lists(st.integers(10, 10_000), max_size=most, unique=True))
    capped = draw(CAPPED)  # Caps belong to a campaign, and are the same on all its assignments.
    return [
        an_assignment_row(
            title=str(number),
            banner_id=BannerId(an_id(number)),
            banner_key=number,
            campaign_key=(campaign := draw(CAMPAIGNS)),
            campaign_id=CampaignId(an_id(campaign)),
            status=draw(LIVE_OR_PAUSED),
            display_order=draw(UP_TO_TWO),
            weight=draw(UP_TO_TWO),
            campaign_priority=draw(UP_TO_ONE),
            banner_priority=draw(UP_TO_ONE),
            is_fallback=draw(FLAGS),
            fallback_priority=draw(FALLBACK_PRIORITIES),
            is_evergreen_fallback=draw(FLAGS),
            starts_at=draw(MOMENTS),
            ends_at=draw(MOMENTS),
            schedule=draw(SCHEDULES),
            rules=draw(RULES_OR_NONE),
            caps=Caps(5, None) if campaign in capped else None,
        )
        for number in numbers
    ]
