"""Days of a campaign: they roll once, forwards, in its zone, at any message, and are published."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adloom.budgets.campaign.reports import build_spend_update
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.campaign.step import advance_to, step
from adloom.budgets.messages import (
    AskBudget,
    CampaignMessage,
    CheckClock,
    Confirm,
    Confirms,
    GiveBack,
    LeaseUsage,
    OpenWindow,
    SessionOver,
    SpendUpdate,
)
from adloom.core.money import Micros
from tests.budgets.builders import NOON, SECOND, UNIT, CampaignBench, a_campaign, a_confirm, a_usage

MIDNIGHT = NOON.replace(hour=0) + timedelta(days=1)
MESSAGES: tuple[CampaignMessage, ...] = (
    CheckClock(),
    AskBudget(),
    a_usage(),
    a_confirm(),
    Confirms((a_confirm(1), a_confirm(2))),
    SessionOver(session=1, second=int(NOON.timestamp())),
    GiveBack(),
    OpenWindow(reason="again"),
    a_campaign(version=2),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_the_day_rolls_at_any_message_and_is_published(message: CampaignMessage) -> None:
    bench = CampaignBench()
    bench.now = MIDNIGHT

    bench.take(message)

    assert bench.state.day == MIDNIGHT.date()
    assert bench.published(SpendUpdate)[0].day == MIDNIGHT.date()
    assert bench.is_persisted


def test_a_day_rolls_once() -> None:
    bench = CampaignBench()
    bench.take(CheckClock(), after=timedelta(days=1))
    window = bench.state.window

    bench.take(CheckClock())
    bench.take(CheckClock(), after=SECOND)

    assert bench.state.window == window
    assert bench.published(SpendUpdate) == []


def test_a_clock_that_goes_back_does_not_roll_the_day_back() -> None:
    bench = CampaignBench(now=MIDNIGHT + SECOND)
    bench.take(bench.offered())

    bench.take(CheckClock(), after=-2 * SECOND)

    assert bench.state.day == MIDNIGHT.date()
    assert bench.state.spent_window == UNIT


def test_a_change_to_a_zone_further_west_does_not_roll_the_day_back() -> None:
    bench = CampaignBench(a_campaign(timezone="Asia/Tokyo"), NOON.replace(hour=16))
    assert bench.state.day == NOON.date() + timedelta(days=1)

    bench.take(a_campaign(version=2, timezone="America/New_York"))

    assert bench.state.day == NOON.date() + timedelta(days=1)


@pytest.mark.parametrize(
    ("zone", "before", "day"),
    [
        ("America/New_York", datetime(2026, 11, 16, 4, 59, 59, tzinfo=UTC), date(2026, 11, 15)),
        ("Asia/Tokyo", datetime(2026, 11, 15, 14, 59, 59, tzinfo=UTC), date(2026, 11, 15)),
        ("Europe/Berlin", datetime(2026, 3, 29, 21, 59, 59, tzinfo=UTC), date(2026, 3, 29)),
        ("America/Sao_Paulo", datetime(2018, 11, 4, 2, 59, 59, tzinfo=UTC), date(2018, 11, 3)),
    ],
)
def test_the_day_rolls_at_midnight_in_the_zone_of_the_account(zone: str, before: datetime, day: date) -> None:
    bench = CampaignBench(a_campaign(timezone=zone), before)
    assert bench.state.day == day

    bench.take(CheckClock(), after=SECOND)

    assert bench.state.day == day + timedelta(days=1)


def test_a_new_day_resets_the_daily_spend_and_nothing_else() -> None:
    bench = CampaignBench(a_campaign(daily_budget=Micros(9 * UNIT), total_budget=Micros(9 * UNIT)))
    lease = bench.answered(want=Micros(2 * UNIT)).lease
    bench.take(bench.offered(lease))

    bench.take(CheckClock(), after=timedelta(hours=12))

    update = bench.published(SpendUpdate)[0]
    assert (update.spent_window, update.spent_today, update.spent_total) == (0, 0, UNIT)
    assert len(bench.rows) == 1, "earlier charges are durable together with the new day"
    assert bench.rows[0].day == NOON.date()


def test_buffered_charges_are_flushed_by_a_late_check_of_the_clock() -> None:
    bench = CampaignBench()
    bench.take(bench.offered())

    bench.take(CheckClock(), after=timedelta(minutes=5))

    assert bench.charged == UNIT
    assert bench.woken_at is None


def test_a_loaded_state_can_be_advanced_to_the_current_day() -> None:
    bench = CampaignBench(a_campaign(hold_seconds=300))
    lease = bench.answered().lease
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=Micros(0)))
    bench.take(bench.offered())

    later = advance_to(bench.state, NOON + timedelta(days=1))

    update = build_spend_update(later, NOON + timedelta(days=1))
    assert (update.day, update.spent_today, update.held) == (NOON.date() + timedelta(days=1), 0, 0)
    assert bench.state.day == NOON.date(), "the original state does not change"


@pytest.mark.parametrize(
    "message", [CheckClock(), a_usage(), a_confirm()], ids=lambda one: type(one).__name__
)
def test_a_campaign_without_a_configuration_does_nothing(message: Any) -> None:
    assert isinstance(message, CheckClock | LeaseUsage | Confirm)
    bench = CampaignBench()

    state, effects = step(CampaignState(), message, NOON, bench.chance)

    assert (state, effects) == (CampaignState(), ())
    assert advance_to(state, NOON) is state
