"""A campaign is requested while one of its placements is."""

from adloom.serving.leases.registry import RECENT_SECONDS, Demand

PLACEMENTS = {7: (1, 2), 8: (2,), 9: ()}


def a_demand() -> Demand:
    return Demand(lambda campaign: PLACEMENTS[campaign])


def test_a_campaign_is_requested_while_one_of_its_placements_is() -> None:
    demand = a_demand()

    demand.record_requests([1], at=10.0)

    assert [demand.is_requested(campaign) for campaign in (7, 8, 9)] == [True, False, False]


def test_a_request_counts_only_for_a_while() -> None:
    demand = a_demand()

    demand.record_requests([1], at=10.0)
    demand.record_requests([], at=10.0 + RECENT_SECONDS)

    assert not demand.is_requested(7)


def test_waiting_campaigns_are_returned_once_when_a_placement_is_requested() -> None:
    demand = a_demand()
    demand.is_requested(7)
    demand.is_requested(8)

    requested = [demand.record_requests(placements, at=20.0) for placements in ([3], [2], [2], [1])]

    # A campaign that waits on two placements is returned again for the second, which does no harm.
    assert requested == [set(), {7, 8}, set(), {7}]
    assert not demand.has_waiting
