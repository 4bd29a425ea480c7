"""Who is not shown is asked for where its placements are."""

from adloom.serving.leases.registry import RECENT_SECONDS, Demand

PLACEMENTS = {7: (1, 2), 8: (2,), 9: ()}


def a_demand() -> Demand:
    return Demand(lambda campaign: PLACEMENTS[campaign])


def test_a_campaign_is_asked_for_while_one_of_its_placements_is() -> None:
    demand = a_demand()

    demand.record_requests([1], at=10.0)

    assert [demand.is_requested(campaign) for campaign in (7, 8, 9)] == [True, False, False]


def test_what_was_asked_for_a_while_ago_is_not_any_more() -> None:
    demand = a_demand()

    demand.record_requests([1], at=10.0)
    demand.record_requests([], at=10.0 + RECENT_SECONDS)

    assert not demand.is_requested(7)


def test_who_waits_is_told_once_when_somebody_asks() -> None:
    demand = a_demand()
    demand.is_requested(7)
    demand.is_requested(8)

    told = [demand.record_requests(asked, at=20.0) for asked in ([3], [2], [2], [1])]

    # Who waited at two places is told again at the second, which harms nobody.
    assert told == [set(), {7, 8}, set(), {7}]
    assert not demand.has_waiting
