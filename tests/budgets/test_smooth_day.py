"""A day of a smooth campaign, second by second: always under its allowance, along its traffic, spent at the end."""

import heapq
import random
from datetime import date, datetime, timedelta

import msgspec
import pytest

from adloom.budgets.addresses import make_session_topic
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.headroom import compute_pacing_allowance
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import CampaignMessage, CheckClock, Confirm, LeaseAnswer, Recall
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Publish, Wake
from adloom.schedule.budget_day import build_budget_day
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve
from tests.budgets.builders import CAMPAIGN_ID, UNIT, a_campaign, a_confirm
from tests.budgets.simulated_process import SimulatedProcess

BUDGET = Micros(10_000 * UNIT)
COST = Micros(UNIT // 2)
PROCESSES = 3
NEVER_CONFIRMED = 0.1


# How busy each hour of a day is on a news site.
HOURS = (9, 6, 4, 4, 4, 5, 9, 15, 20, 22, 23, 24, 26, 25, 24, 23, 24, 26, 29, 33, 36, 34, 26, 16)
SHAPE = TrafficShape(tuple(map(float, HOURS)), tuple(map(float, HOURS)), "Europe/Berlin")


def traffic_share(share_of_day: float) -> float:
    """Return how busy a moment is; 1 on average."""
    hour, rest = divmod(share_of_day * 24, 1)
    this, following = HOURS[int(hour)], HOURS[(int(hour) + 1) % 24]
    return (this * (1 - rest) + following * rest) / (sum(HOURS) / 24)


class SmoothDay:
    """One campaign, and processes that report to it every second."""

    def __init__(self, zone: str, day: date, *, demand: float) -> None:
        self.day = build_budget_day(day, zone)
        self.seconds = self.day.length_micros // 1_000_000
        self.chance = random.Random(1)  # noqa: S311 - seeded, so that runs repeat
        self.offers_a_second = demand * BUDGET / COST / self.seconds
        self.now = self.day.starts_at
        self.wake_at: datetime | None = None
        self.state = CampaignState(incarnation=1)
        self.processes = {
            number: SimulatedProcess(number, {CAMPAIGN_ID: COST}) for number in range(1, PROCESSES + 1)
        }
        self.confirms: list[tuple[datetime, int, Confirm]] = []
        self.offers = 0
        self.take(a_campaign(daily_budget=BUDGET, pacing=PacingStrategy.SMOOTH, timezone=zone))

    def take(self, message: CampaignMessage) -> None:
        self.state, effects = campaign_step.step(self.state, message, self.now, self.chance)
        for effect in effects:
            if isinstance(effect, Wake):
                self.wake_at = effect.at
            elif isinstance(effect, Publish) and isinstance(effect.message, LeaseAnswer | Recall):
                process = self.processes[effect.message.session]
                assert effect.topic == make_session_topic(process.session)
                process.receive(effect.message)

    def pass_second(self) -> None:
        """Let visitors come, and processes report."""
        until = self.now + timedelta(seconds=1)
        while self.confirms and self.confirms[0][0] < until:
            self.now, _, confirm = heapq.heappop(self.confirms)
            self.take(confirm)
        if self.wake_at is not None and self.wake_at < until:
            self.now = max(self.now, self.wake_at)
            self.take(CheckClock())
        self.now = until
        share_of_day = (until - self.day.starts_at).total_seconds() / self.seconds
        rate = self.offers_a_second * traffic_share(share_of_day) / PROCESSES
        for process in self.processes.values():
            for _ in range(int(rate + self.chance.random())):
                self.serve(process)
            held = process.leases[CAMPAIGN_ID]
            if held.is_needed or held.unreported or held.is_recalled:
                usage = process.report(CAMPAIGN_ID, max(2, int(2 * rate)), self.now)
                self.take(msgspec.structs.replace(usage, shape=SHAPE))

    def serve(self, process: SimulatedProcess) -> None:
        held = process.leases[CAMPAIGN_ID]
        held.requests += 1
        if self.chance.random() < held.throttle:
            held.is_needed |= not held.unreported  # It reports all the same.
            return
        offer = process.make_offer(CAMPAIGN_ID, self.now)
        if offer is None:
            return
        self.offers += 1
        if self.chance.random() >= NEVER_CONFIRMED:
            at = self.now + timedelta(seconds=self.chance.expovariate(1 / 3))
            confirm = a_confirm(self.offers, lease=offer.lease, second=offer.second, amount=offer.amount)
            heapq.heappush(self.confirms, (at, self.offers, confirm))


@pytest.mark.slow
@pytest.mark.timeout(400)  # 90,000 seconds of three processes
def test_a_smooth_day_follows_its_traffic_under_its_allowance_and_is_spent() -> None:
    """A day of 25 hours; one in ten offers is never seen."""
    world = SmoothDay("Europe/Berlin", date(2026, 10, 25), demand=3.0)
    curve = build_day_curve(SHAPE, world.day.starts_at, world.day.ends_at)
    furthest = 0.0

    for second in range(1, world.seconds):
        world.pass_second()
        spent = world.state.spent_window
        assert spent <= compute_pacing_allowance(world.state, world.now), f"over the allowance at {world.now}"
        if second > 3_600:
            furthest = max(furthest, abs(spent / BUDGET - curve.compute_share(world.now)))

    assert 0.999 * BUDGET <= world.state.spent_window <= BUDGET
    assert furthest < 0.02
