"""Random catalogs of one placement, for laws that hold for all of them."""

from datetime import UTC, datetime, time, timedelta

from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Caps
from adloom.targeting.rules import Rule, parse_rule
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


def some_moments() -> st.SearchStrategy[datetime | None]:
    return st.none() | st.integers(-72, 72).map(lambda hours: NOON + timedelta(hours=hours))


@st.composite
def some_schedules(draw: st.DrawFn) -> Schedule:
    start, end = draw(st.sampled_from(((None, None), (time(9), time(17)), (time(22), time(4, 59, 59)))))
    return Schedule(
        status=draw(st.sampled_from(ScheduleStatus)),
        publish_at=draw(some_moments()),
        expires_at=draw(some_moments()),
        timezone=draw(st.sampled_from(("UTC", "Asia/Kolkata", "America/New_York"))),
        recurrence_rule=draw(st.sampled_from((None, "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,SU"))),
        window_start=start,
        window_end=end,
        created_at=NOON,
    )


def some_rules() -> st.SearchStrategy[tuple[Rule, ...]]:
    return st.lists(st.sampled_from(RULES), max_size=3, unique=True).map(tuple)


@st.composite
def some_assignments(draw: st.DrawFn, *, most: int = 10) -> list[AssignmentRow]:
    numbers = draw(st.lists(st.integers(10, 10_000), max_size=most, unique=True))
    capped = draw(
        st.frozensets(st.integers(1, 4))
    )  # Caps belong to a campaign, and are the same on all its assignments.
    return [
        an_assignment_row(
            title=str(number),
            banner_id=BannerId(an_id(number)),
            banner_key=number,
            campaign_key=(campaign := draw(st.integers(1, 4))),
            campaign_id=CampaignId(an_id(campaign)),
            status=draw(
                st.sampled_from(
                    (AssignmentStatus.LIVE, AssignmentStatus.LIVE, AssignmentStatus.CAMPAIGN_PAUSED)
                )
            ),
            display_order=draw(st.integers(0, 2)),
            weight=draw(st.integers(0, 2)),
            campaign_priority=draw(st.integers(0, 1)),
            banner_priority=draw(st.integers(0, 1)),
            is_fallback=draw(st.booleans()),
            fallback_priority=draw(st.none() | st.integers(0, 3)),
            is_evergreen_fallback=draw(st.booleans()),
            starts_at=draw(some_moments()),
            ends_at=draw(some_moments()),
            schedule=draw(st.just(Schedule(status=ScheduleStatus.EVERGREEN)) | some_schedules()),
            rules=draw(st.just(()) | some_rules()),
            caps=Caps(5, None) if campaign in capped else None,
        )
        for number in numbers
    ]
