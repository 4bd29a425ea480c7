import heapq
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.ops.capacity import plan as model
from adloom.ops.capacity.coefficients_file import read_coefficients
from adloom.ops.capacity.demand import Coefficients, MachineSizes, PlanBounds, Prices, TrafficDemand
from adloom.ops.capacity.plan import CapacityPlan, MachineRole, plan_capacity
from adloom.ops.capacity.queueing import (
    Queue,
    count_own_queues,
    count_shared_queue,
    find_wait_seconds,
    find_waiting_share,
)
from adloom.serving.background import site_tables
from adloom.serving.leases import campaign_lease, local_leases

MEASURED = [name for name, kind in Coefficients.__annotations__.items() if kind is float]
DEMANDS = st.builds(
    TrafficDemand,
    requests_per_day=st.floats(1, 1e11),
    campaigns=st.floats(0, 1e6),
    sites=st.floats(0, 1e6),
    auction_share=st.floats(0, 0.5),
    contextual_share=st.floats(0, 0.5),
    paid_share=st.floats(0, 1),
    peak=st.floats(1, 10),
)


def some_costs(**changes: float) -> Coefficients:
    values = dict.fromkeys(MEASURED, 100.0)
    return Coefficients(
        measured_at=datetime(2026, 11, 17, tzinfo=UTC),
        commit="0123456789ab",
        version="1",
        python="3.11",
        processor="a processor",
        cpus=2,
        **{**values, "delivery_bytes": 1e8, "worker_bytes": 1e8, "classifier_bytes": 2e8, **changes},
    )


def plan(
    demand: TrafficDemand,
    costs: Coefficients | None = None,
    *,
    bounds: PlanBounds | None = None,
    prices: Prices | None = None,
) -> CapacityPlan:
    return plan_capacity(
        demand, costs or some_costs(), MachineSizes(), bounds or PlanBounds(), prices or Prices()
    )


def machines_of(found: CapacityPlan, role: MachineRole) -> int:
    return next(need.machines for need in found.roles if need.role is role)


@given(DEMANDS, st.floats(1, 100))
def test_more_requests_never_need_fewer_machines(demand: TrafficDemand, factor: float) -> None:
    more = msgspec.structs.replace(demand, requests_per_day=demand.requests_per_day * factor)

    few, many = plan(demand), plan(more)

    assert 1 <= few.machines <= many.machines
    assert few.installations <= many.installations
    assert few.cores <= many.cores


@given(DEMANDS)
def test_every_role_has_a_machine_and_a_spare_one_and_no_part_is_too_full(demand: TrafficDemand) -> None:
    bounds = PlanBounds()

    found, without = plan(demand, bounds=bounds), plan(demand, bounds=PlanBounds(spare=0))

    assert {
        MachineRole.DELIVERY,
        MachineRole.WORKER,
        MachineRole.CONTROL,
        MachineRole.POSTGRES,
        MachineRole.VALKEY,
    } <= {need.role for need in found.roles}
    for need, bare in zip(found.roles, without.roles, strict=True):
        assert need.role is MachineRole.NATS or need.machines == bare.machines + 1
        assert bare.machines * need.cores >= 1
        assert need.utilisation <= bounds.utilisation + 1e-6
    assert all(limit.utilisation <= 1 + 1e-6 for limit in found.limits)
    assert found.bottleneck.utilisation == max(limit.utilisation for limit in found.limits)


@given(DEMANDS, st.sampled_from(MEASURED), st.floats(1, 10))
def test_nothing_becomes_cheaper_by_costing_more(demand: TrafficDemand, name: str, factor: float) -> None:
    costs = some_costs()
    dearer = some_costs(**{name: getattr(costs, name) * factor})

    assert plan(demand, costs).cores <= plan(demand, dearer).cores


@given(st.floats(0.01, 1e6), st.floats(1e-6, 1), st.floats(0.1, 0.9), st.floats(1e-4, 10))
def test_the_counts_are_the_least_that_meet_both_bounds(
    arrivals: float, seconds: float, utilisation: float, wait: float
) -> None:
    seconds = min(seconds, 2_000 / arrivals)  # At most some thousand servers.

    def is_met(number: int, *, is_shared: bool) -> bool:
        queue = Queue(
            arrivals=arrivals if is_shared else arrivals / number,
            service_seconds=seconds,
            servers=number if is_shared else 1,
        )
        return queue.utilisation <= utilisation and find_wait_seconds(queue) <= wait

    for count, is_shared in ((count_own_queues, False), (count_shared_queue, True)):
        found = count(arrivals, seconds, utilisation_max=utilisation, wait_max=wait)
        assert is_met(found, is_shared=is_shared)
        assert found == 1 or not is_met(found - 1, is_shared=is_shared)


def test_the_formulas_of_one_server_are_those_of_the_books() -> None:
    queue = Queue(arrivals=6, service_seconds=0.1)

    assert find_waiting_share(queue) == pytest.approx(0.6)
    assert find_wait_seconds(queue) == pytest.approx(math.log(0.6 / 0.01) / 4)
    assert find_wait_seconds(Queue(arrivals=11, service_seconds=0.1)) == math.inf
    assert find_wait_seconds(Queue(arrivals=0.01, service_seconds=0.1)) == 0


def simulate_p99(queue: Queue, draw_service: Callable[[random.Random], float], *, seed: int) -> float:
    """Serve arrivals in their order by the first free server; return the wait that 1 % exceed."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    free_at = [0.0] * queue.servers
    now, waits = 0.0, list[float]()
    for _ in range(120_000):
        now += chance.expovariate(queue.arrivals)
        start = max(now, heapq.heappop(free_at))
        heapq.heappush(free_at, start + draw_service(chance))
        waits.append(start - now)
    return sorted(waits)[int(len(waits) * 0.99)]


@pytest.mark.slow
def test_a_simulation_confirms_the_waits_of_two_points_of_the_guide() -> None:
    costs = read_coefficients(None)
    # A delivery process of a billion requests a day.
    large = plan(TrafficDemand(requests_per_day=1e9, campaigns=1e5, sites=1e4), costs)
    delivery = large.roles[0]
    arrivals = (large.requests_per_second + large.events_per_second) / delivery.processes
    own = Queue(arrivals=arrivals, service_seconds=delivery.utilisation / arrivals)
    # The classifiers of ten billion, who take pages from one queue.
    largest = TrafficDemand(requests_per_day=1e10, campaigns=1e5, sites=1e5)
    seconds = costs.page_micros / 1e6
    pages = Queue(arrivals=largest.pages_per_second, service_seconds=seconds)
    servers = count_shared_queue(pages.arrivals, seconds, utilisation_max=0.9, wait_max=0.05)
    shared = msgspec.structs.replace(pages, servers=servers)
    assert servers >= 1

    for queue, seed in ((own, 1), (shared, 2)):
        expected = find_wait_seconds(queue)
        found = simulate_p99(
            queue, lambda chance, queue=queue: chance.expovariate(1 / queue.service_seconds), seed=seed
        )
        assert found == pytest.approx(expected, rel=0.15)

    # Real requests take one of a few times: what the model says is an upper bound.
    kinds = [costs.direct_micros, costs.auction_micros, costs.contextual_micros, costs.event_micros]
    weights = [0.5, 0.3, 0.2, large.demand.events_per_request]
    mean = sum(kind * weight for kind, weight in zip(kinds, weights, strict=True)) / sum(weights) / 1e6
    assert mean == pytest.approx(own.service_seconds, rel=1e-6)
    real = simulate_p99(own, lambda chance: chance.choices(kinds, weights)[0] / 1e6, seed=3)
    assert 0 < real <= find_wait_seconds(own)


def test_the_bottleneck_is_what_cannot_be_shared_and_says_when_it_is_full() -> None:
    costs = some_costs(valkey_event_micros=1_000.0)
    small = TrafficDemand(requests_per_day=1e6, campaigns=100, sites=10)

    found = plan(small, costs)
    at_the_end = msgspec.structs.replace(small, requests_per_day=found.bottleneck.requests_per_day_max)
    beyond = msgspec.structs.replace(at_the_end, requests_per_day=at_the_end.requests_per_day * 1.01)

    assert "Valkey" in found.bottleneck.name
    assert (plan(at_the_end, costs).installations, plan(beyond, costs).installations) == (1, 2)


def test_a_small_installation_is_one_machine_and_a_large_one_shares_its_actors() -> None:
    small = plan(TrafficDemand(requests_per_day=1e6, campaigns=100, sites=10))
    large = plan(TrafficDemand(requests_per_day=2e8, campaigns=1e5, sites=10))

    assert (small.is_one_machine, small.machines) == (True, 2)
    assert not large.is_one_machine
    assert machines_of(large, MachineRole.ENTITY) >= 2
    assert machines_of(large, MachineRole.NATS) == 3


def test_a_million_requests_cost_what_the_prices_say() -> None:
    demand = TrafficDemand(requests_per_day=1e6, campaigns=100, sites=10, peak=1.0)
    costs = some_costs(request_out_bytes=1_000.0, event_out_bytes=0.0, row_bytes=0.0)

    found = plan(demand, costs, prices=Prices(core_hour=0.5, gb_egress=0.1))

    assert found.cost_per_million == pytest.approx(2 * 8 * 24 * 0.5 + 0.1)


def test_the_model_has_the_figures_of_delivery() -> None:
    assert model.LEASE_OFFERS == campaign_lease.OFFERS_MIN
    assert model.LEASE_SECONDS == campaign_lease.LEASE_SECONDS
    assert model.REPORT_SECONDS == local_leases.REPORT_SECONDS
    assert model.DELIVERY_PAGES_MAX == site_tables.PAGES_MAX
