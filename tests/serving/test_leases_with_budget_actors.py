"""Law 2 with the real code on both sides: local leases in processes, and budget actors that grant them."""

from datetime import UTC, datetime, timedelta

import pytest

from adloom.schedule.pacing import PacingStrategy
from tests.serving.lease_world import COST, MANY_FAULTS, START, LeaseWorld
from tests.support.for_each import for_each, seeds


@pytest.mark.parametrize("offers", [1, 2, 3])
@for_each("seed", range(5))
def test_four_processes_make_exactly_as_many_offers_as_the_budget_allows(seed: int, offers: int) -> None:
    world = LeaseWorld(seed=seed, processes=4, daily={7: offers})
    world.wait(1)

    for _ in world.run(10):
        for process in world.chance.sample(world.processes, 4):
            for _ in range(5):
                world.offer(process, 7)

    assert world.given_total[7] == offers * COST


@pytest.mark.parametrize("campaigns", [1, 10])
@pytest.mark.parametrize("offers", [1, 2])
def test_an_advertisers_budget_holds_over_all_its_campaigns(campaigns: int, offers: int) -> None:
    world = LeaseWorld(daily=dict.fromkeys(range(campaigns), 100), advertiser_daily=offers)
    world.wait(1)

    for _ in world.run(20):
        for process in world.chance.sample(world.processes, 4):
            for key in world.keys:
                world.offer(process, key)

    assert world.given_total.total() == offers * COST


def test_a_busy_process_gets_the_lease_of_an_idle_one_within_three_seconds() -> None:
    world = LeaseWorld(processes=2, daily={7: 4})
    idle, busy = world.processes
    idle.has_visitors = False
    world.wait(3)

    made = [world.at for _ in world.run(5) if world.offer(busy, 7)]

    assert len(made) == 4
    assert made[-1] - made[0] < 3


def test_a_raised_budget_is_offered_within_a_second() -> None:
    world = LeaseWorld(daily={7: 1})
    for _ in world.run(5):
        for process in world.processes:
            world.offer(process, 7, confirmed_after=0.01)

    world.configure(daily={7: 3})
    raised_at, made = world.at, list[float]()
    for _ in world.run(5):
        for process in world.processes:
            if world.offer(process, 7):
                made.append(world.at)

    assert len(made) == 2
    assert made[0] - raised_at < 1


@pytest.mark.parametrize("after", [0.02, 0.3, 0.6, 0.9, 3])
def test_an_advertisers_raised_budget_is_offered_within_a_second(after: float) -> None:
    world = LeaseWorld(daily={7: None}, advertiser_daily=1)
    for _ in world.run(5):
        if any(world.offer(process, 7) for process in world.processes):
            break
    for process in world.processes:
        world.offer(process, 7)
    world.wait(after)

    world.configure(advertiser_daily=2)
    raised_at, made = world.at, list[float]()
    for _ in world.run(3):
        made += [world.at for process in world.processes if world.offer(process, 7)]

    assert len(made) == 1
    assert made[0] - raised_at < 1


def test_a_budget_that_is_lowered_below_its_spend_stops_offers_within_a_second() -> None:
    world = LeaseWorld(daily={7: 1_000_000})
    for _ in world.run(5):
        world.offer(world.processes[0], 7, confirmed_after=0.01)

    world.configure(daily={7: 1})
    for _ in world.run(1):
        world.offer(world.processes[0], 7)
    stopped = world.given_total[7]
    for _ in world.run(3):
        world.offer(world.processes[0], 7)

    assert world.given_total[7] == stopped


def test_serving_goes_on_across_midnight() -> None:
    world = LeaseWorld(daily={7: 100_000}, start=START.replace(hour=23, minute=59, second=50))
    seconds_without_offers = 0.0
    world.wait(2)

    for _ in world.run(15):
        seconds_without_offers += 0.02 * (
            sum(world.offer(process, 7) for process in world.processes) < len(world.processes)
        )

    assert len({day for _, day in world.given}) == 2
    assert seconds_without_offers < 0.5


def test_an_exhausted_campaign_is_offered_again_on_the_next_day() -> None:
    world = LeaseWorld(daily={7: 2}, start=START.replace(hour=23, minute=59, second=40))

    for _ in world.run(40):
        for process in world.processes:
            world.offer(process, 7, confirmed_after=0.1)

    assert sorted(world.given.values()) == [2 * COST, 2 * COST]


def test_a_new_budget_window_is_offered_within_seconds() -> None:
    world = LeaseWorld(daily={7: 2})
    for _ in world.run(5):
        for process in world.processes:
            world.offer(process, 7, confirmed_after=0.1)

    world.open_window(7)
    for _ in world.run(3):
        for process in world.processes:
            world.offer(process, 7)

    assert world.given_total[7] == 4 * COST


def test_a_process_whose_session_ended_starts_another() -> None:
    world = LeaseWorld(processes=1, daily={7: 1_000})
    [process] = world.processes
    world.wait(1)
    before = process.leases.session
    world.end_session(before)

    made = 0
    for _ in world.run(5):
        made += world.offer(process, 7)

    assert process.leases.session != before
    assert made > 100


def test_a_process_that_stops_returns_all_leases() -> None:
    world = LeaseWorld(processes=2, daily={7: 1_000, 8: 1_000})
    stopping, other = world.processes
    for _ in world.run(2):
        world.offer(stopping, 7)
    world.processes.remove(other)
    world.end_session(other.leases.session)

    stopping.leases.close(at=world.at)
    world.wait(2)

    assert stopping.leases.is_settled
    assert world.leased() == 0


def test_unconfirmed_holds_are_offered_again() -> None:
    world = LeaseWorld(daily={7: 2}, hold_seconds=5)

    for _ in world.run(30):
        for process in world.processes:
            world.offer(process, 7)

    assert world.given_total[7] >= 6 * COST


def test_idle_campaigns_send_no_reports() -> None:
    world = LeaseWorld(processes=2, daily=dict.fromkeys(range(200), 1_000))
    world.wait(2)
    before = world.exchanges

    world.wait(60)

    assert before >= 400
    assert world.exchanges == before


def test_smooth_pacing_follows_the_allowance() -> None:
    start = datetime(2026, 11, 15, 12, tzinfo=UTC)
    world = LeaseWorld(daily={7: 86_400}, start=start, pacing=PacingStrategy.SMOOTH)

    for _ in world.run(30):
        for process in world.processes:
            for _ in range(100):
                world.offer(process, 7)

    allowance = 86_400 * 1.2 * (43_200 + 30) / 86_400
    assert 0.97 * allowance <= world.given_total[7] / COST <= allowance


@for_each("seed", seeds(20))
def test_no_budget_is_overspent_whatever_happens_to_messages_and_processes(seed: int) -> None:
    run_with_faults(seed)


def run_with_faults(seed: int) -> LeaseWorld:
    """Lose, repeat and reorder messages, kill processes, end sessions, change budgets, cross midnight and DST."""
    world = LeaseWorld(
        seed=seed,
        processes=1 + seed % 4,
        daily={key: (1, 2, 10, 100, 400)[(seed + key) % 5] for key in range(1 + seed % 3)},
        total={0: 150} if seed % 4 == 0 else None,
        advertiser_daily=(None, 1, 5, 200)[seed // 3 % 4],
        faults=MANY_FAULTS,
        timezone=("UTC", "Europe/Berlin", "America/New_York")[seed % 3],
        start=(START.replace(hour=23, minute=59, second=40), START.replace(hour=22, minute=59, second=45))[
            seed % 2
        ],
        hold_seconds=(1_000_000, 4)[seed // 2 % 2],
    )
    for _ in world.run(40, step_seconds=0.05):
        for process in list(world.processes):
            for _ in range(world.chance.randrange(4)):
                confirmed = world.chance.expovariate(1) if world.chance.random() < 0.7 else None
                world.offer(process, world.chance.choice(world.keys), confirmed_after=confirmed)
        fault = world.chance.random()
        if fault < 0.004:
            world.kill(world.chance.choice(world.processes))
            world.start()
        elif fault < 0.006:
            world.end_session(world.chance.choice(world.processes).leases.session)
        elif fault < 0.01:
            for process in world.processes:
                process.has_visitors = world.chance.random() < 0.5
    world.check()
    return world


def test_a_day_ends_at_midnight_in_the_zone_of_the_account_also_after_a_clock_change() -> None:
    """In Berlin the day of 2026-03-28 ends at 23:00 UTC, the next one at 22:00."""
    world = LeaseWorld(
        daily={7: 3}, timezone="Europe/Berlin", start=datetime(2026, 3, 29, 21, 59, 55, tzinfo=UTC)
    )

    for _ in world.run(15):
        for process in world.processes:
            world.offer(process, 7)

    ends = sorted(day for _, day in world.given)
    assert ends == [
        datetime(2026, 3, 29, 22, tzinfo=UTC),
        datetime(2026, 3, 29, 22, tzinfo=UTC) + timedelta(days=1),
    ]
