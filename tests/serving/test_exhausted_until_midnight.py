"""What is exhausted is marked, and the mark clears itself when the day rolls: nobody has to ask for it."""

from datetime import UTC, datetime, timedelta

from adloom.serving.leases.campaign_lease import REASON_BY_VERDICT
from tests.serving.lease_world import COST, LeaseWorld

EVENING = datetime(2026, 11, 15, 23, 59, 30, tzinfo=UTC)
MIDNIGHT = EVENING + timedelta(seconds=30)
OFFERS = 40  # Enough for a lease in every process.


def marks(world: LeaseWorld) -> list[dict[str, frozenset[int]]]:
    """Tell who may not be shown in which process, for want of a budget."""
    return [
        {
            reason: keys
            for reason, keys in process.leases.list_excluded().items()
            if reason in REASON_BY_VERDICT.values()
        }
        for process in world.processes
    ]


def spend_all(world: LeaseWorld, *, offers: int) -> None:
    """Offer and see whatever the budget pays for; then no reader comes any more."""
    for _ in world.run(15):
        for process in world.processes:
            for key in world.keys:
                world.offer(process, key, confirmed_after=0.05)
    assert world.given_total.total() == offers * COST
    for process in world.processes:
        process.has_readers = False


def wait_until(world: LeaseWorld, moment: datetime) -> None:
    world.wait((moment - world.now).total_seconds())


def test_a_day_that_is_spent_is_marked_until_midnight_and_not_longer() -> None:
    world = LeaseWorld(daily={7: OFFERS}, processes=3, start=EVENING)
    spend_all(world, offers=OFFERS)
    before = marks(world)

    wait_until(world, MIDNIGHT - timedelta(seconds=1))
    until = marks(world)
    wait_until(world, MIDNIGHT + timedelta(seconds=1))

    assert before == until == [{"daily_budget": frozenset({7})}] * 3
    assert marks(world) == [{}] * 3
    assert all(world.offer(process, 7) for process in world.processes)


def test_an_advertisers_day_that_is_spent_is_marked_until_midnight_and_not_longer() -> None:
    world = LeaseWorld(daily={7: None}, advertiser_daily=OFFERS, processes=3, start=EVENING)
    spend_all(world, offers=OFFERS)

    wait_until(world, MIDNIGHT - timedelta(seconds=1))
    until = marks(world)
    wait_until(world, MIDNIGHT + timedelta(seconds=3))

    assert until == [{"advertiser_budget": frozenset({7})}] * 3
    assert marks(world) == [{}] * 3
    assert all(world.offer(process, 7) for process in world.processes)


def test_the_first_reader_of_a_campaign_whose_advertiser_has_a_budget_is_shown_it() -> None:
    world = LeaseWorld(daily={7: None}, advertiser_daily=OFFERS, processes=3)
    for process in world.processes:
        process.has_readers = False

    world.wait(3)

    assert all(world.offer(process, 7) for process in world.processes)


def test_a_total_that_is_spent_stays_marked() -> None:
    world = LeaseWorld(daily={7: 2 * OFFERS}, total={7: OFFERS}, processes=3, start=EVENING)
    spend_all(world, offers=OFFERS)

    world.wait(60)

    assert marks(world) == [{"total_budget": frozenset({7})}] * 3


def test_midnight_is_the_accounts_own() -> None:
    """In Tokyo the day is over at 15:00 UTC."""
    afternoon = EVENING.replace(hour=14)
    world = LeaseWorld(daily={7: OFFERS}, processes=2, timezone="Asia/Tokyo", start=afternoon)
    spend_all(world, offers=OFFERS)
    assert marks(world) == [{"daily_budget": frozenset({7})}] * 2

    world.wait(20)

    assert marks(world) == [{}] * 2
