"""A campaign that leaves the index and returns gets a lease again, in the same session."""

from tests.serving.lease_world import COST, PLACEMENT, LeaseWorld


def test_a_campaign_that_was_paused_is_offered_again_within_a_second() -> None:
    world = LeaseWorld(daily={7: 1_000})
    for _ in world.run(2):
        for process in world.processes:
            world.offer(process, 7)
    before = world.given_total[7]

    for process in world.processes:
        process.leases.update({PLACEMENT: {}}, at=world.at)
    world.wait(2)
    assert world.leased() == 0, "the lease is returned"
    for process in world.processes:
        process.leases.update({PLACEMENT: world.terms}, at=world.at)
    for _ in world.run(1):
        for process in world.processes:
            world.offer(process, 7)

    assert before > COST
    assert world.given_total[7] > before
