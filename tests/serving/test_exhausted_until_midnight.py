"""An exhausted budget is marked in every process, and the mark is cleared at midnight without a request."""

from datetime import UTC, datetime, timedelta

from adloom.serving.leases.campaign_lease import REASON_BY_VERDICT
from tests.serving.lease_world import COST, LeaseWorld

BEFORE_MIDNIGHT = datetime(2026, 11, 15, 23, 59, 30, tzinfo=UTC)
MIDNIGHT = BEFORE_MIDNIGHT + timedelta(seconds=30)
OFFERS = 40  # Enough for a lease in every process.


def marks(world: LeaseWorld) -> list[dict[str, frozenset[int]]]:
    """Return the campaigns that each process excludes for lack of a budget, by reason."""
    return [
        {
            reason: keys
            for reason, keys in process.leases.registry.list_excluded().items()
            if reason in REASON_BY_VERDICT.values()
        }
        for process in world.processes
    ]


def spend_all(world: LeaseWorld, *, offers: int) -> None:
    """Spend the whole budget; then there are no more visitors."""
    for _ in world.run(15):
        for process in world.processes:
            for key in world.keys:
                world.offer(process, key, confirmed_after=0.05)
    assert world.given_total.total() == offers * COST
    for process in world.processes:
        process.has_visitors = False


def wait_until(world: LeaseWorld, moment: datetime) -> None:
    world.wait((moment - world.now).total_seconds())


def test_a_spent_daily_budget_is_marked_until_midnight() -> None:
    world = LeaseWorld(daily={7: OFFERS}, processes=3, start=BEFORE_MIDNIGHT)
    spend_all(world, offers=OFFERS)
    before = marks(world)

    wait_until(world, MIDNIGHT - timedelta(seconds=1))
    until = marks(world)
    wait_until(world, MIDNIGHT + timedelta(seconds=1))

    assert before == until == [{"daily_budget": frozenset({7})}] * 3
    assert marks(world) == [{}] * 3
    assert all(world.offer(process, 7) for process in world.processes)


def test_a_spent_daily_budget_of_an_advertiser_is_marked_until_midnight() -> None:
    world = LeaseWorld(daily={7: None}, advertiser_daily=OFFERS, processes=3, start=BEFORE_MIDNIGHT)
    spend_all(world, offers=OFFERS)

    wait_until(world, MIDNIGHT - timedelta(seconds=1))
    until = marks(world)
    wait_until(world, MIDNIGHT + timedelta(seconds=3))

    assert until == [{"advertiser_budget": frozenset({7})}] * 3
    assert marks(world) == [{}] * 3
    assert all(world.offer(process, 7) for process in world.processes)


def test_the_first_visitor_sees_a_campaign_whose_advertiser_has_a_budget() -> None:
    world = LeaseWorld(daily={7: None}, advertiser_daily=OFFERS, processes=3)
    for process in world.processes:
        process.has_visitors = False

    world.wait(3)

    assert all(world.offer(process, 7) for process in world.processes)


def test_a_spent_total_budget_stays_marked() -> None:
    world = LeaseWorld(daily={7: 2 * OFFERS}, total={7: OFFERS}, processes=3, start=BEFORE_MIDNIGHT)
    spend_all(world, offers=OFFERS)

    world.wait(60)

    assert marks(world) == [{"total_budget": frozenset({7})}] * 3


def test_midnight_is_in_the_time_zone_of_the_account() -> None:
    """In Tokyo the day ends at 15:00 UTC."""
    afternoon = BEFORE_MIDNIGHT.replace(hour=14)
    world = LeaseWorld(daily={7: OFFERS}, processes=2, timezone="Asia/Tokyo", start=afternoon)
    spend_all(world, offers=OFFERS)
    assert marks(world) == [{"daily_budget": frozenset({7})}] * 2

    world.wait(20)

    assert marks(world) == [{}] * 2
