"""The capacity model: machines by role, the load of the servers, the first bottleneck and what it costs.

Everything is computed for the peak. What cannot be shared by several processes is a limit of one installation;
beyond it the sites are divided among several installations.
"""
# pure

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from adloom.ops.capacity.demand import (
    DAY_SECONDS,
    GIGABYTE,
    Coefficients,
    MachineSizes,
    PlanBounds,
    Prices,
    TrafficDemand,
)
from adloom.ops.capacity.queueing import Queue, count_own_queues, count_shared_queue, find_wait_seconds

MICROS: Final = 1e-6
MONTH_DAYS: Final = 30
MILLION: Final = 1e6
# As in delivery, which a test compares: a lease lasts so many offers or seconds, spend is reported at least so
# often, and a process has so many pages in memory.
LEASE_OFFERS: Final = 16
LEASE_SECONDS: Final = 2.0
REPORT_SECONDS: Final = 5.0
DELIVERY_PAGES_MAX: Final = 100_000
LOG_MEMORY_SHARE: Final = 0.5  # Of Valkey's memory: beyond it the oldest applied entries go.
LOG_DAYS_MAX: Final = 7.0
NATS_SERVERS: Final = 3
INSTALLATIONS_MAX: Final = 100_000


class MachineRole(StrEnum):
    """A kind of process, or a server."""

    DELIVERY = "delivery"
    WORKER = "worker"
    ENTITY = "entity worker"
    CONTROL = "control"
    CLASSIFIER = "classifier"
    POSTGRES = "PostgreSQL"
    VALKEY = "Valkey"
    NATS = "NATS"


class RoleNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What one role of one installation needs; `machines` has the spare ones."""

    role: MachineRole
    processes: int
    machines: int
    cores: int  # Of a machine.
    utilisation: float
    process_bytes: float = 0.0
    wait_seconds: float | None = None


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A part that cannot be shared: how full it is at the peak, and at how many requests a day it is full."""

    name: str
    utilisation: float
    requests_per_day_max: float


class CapacityPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one demand. Roles and limits are of one of the installations, which are all alike."""

    demand: TrafficDemand
    installations: int
    machines: int  # Of all installations, with the spare ones.
    cores: int  # Of all these.
    is_one_machine: bool
    roles: Sequence[RoleNeed]
    limits: Sequence[Limit]  # The fullest first.
    requests_per_second: float
    events_per_second: float
    lease_reports_per_second: float
    valkey_utilisation: float  # Of a core.
    log_hours: float
    database_cores: float
    database_write_bytes_per_second: float
    database_bytes: float
    in_bits_per_second: float
    out_bits_per_second: float
    site_groups: int
    cost_per_million: float

    @property
    def bottleneck(self) -> Limit:
        return self.limits[0]


def plan_capacity(
    demand: TrafficDemand, costs: Coefficients, sizes: MachineSizes, bounds: PlanBounds, prices: Prices
) -> CapacityPlan:
    """Compute what a demand needs: as few installations as their limits allow."""
    installations = _count_installations(demand, costs, sizes, bounds)
    part = _divide(demand, installations)
    roles = _plan_roles(part, costs, sizes, bounds)
    events_a_day = part.requests_per_day * part.events_per_request
    log_days = LOG_MEMORY_SHARE * sizes.valkey_bytes / max(events_a_day * costs.log_bytes, 1e-9)
    stored = events_a_day * costs.row_bytes * part.event_retention_days
    out = _count_bits(part, costs.request_out_bytes, costs.event_out_bytes)
    is_one_machine = installations == 1 and _fits_one_machine(roles, sizes, bounds)
    one = [
        RoleNeed(
            role=MachineRole.DELIVERY,
            processes=1,
            machines=1 + bounds.spare,
            cores=sizes.cores,
            utilisation=0,
        )
    ]
    machines = one if is_one_machine else roles
    plan = CapacityPlan(
        demand=demand,
        installations=installations,
        machines=installations * sum(need.machines for need in machines),
        cores=installations * sum(need.machines * need.cores for need in machines),
        is_one_machine=is_one_machine,
        roles=roles,
        limits=sorted(_find_limits(part, costs, sizes, bounds), key=lambda limit: -limit.utilisation),
        requests_per_second=part.requests_per_second,
        events_per_second=part.events_per_second,
        lease_reports_per_second=_count_reports(part, roles[0].processes),
        valkey_utilisation=part.events_per_second * costs.valkey_event_micros * MICROS,
        log_hours=24 * min(log_days, LOG_DAYS_MAX),
        database_cores=_count_database_cores(part, costs),
        database_write_bytes_per_second=part.events_per_second * costs.wal_bytes,
        database_bytes=stored,
        in_bits_per_second=_count_bits(part, costs.request_in_bytes, costs.event_in_bytes),
        out_bits_per_second=out,
        site_groups=max(1, math.ceil(part.pages / DELIVERY_PAGES_MAX)),
        cost_per_million=0.0,
    )
    return msgspec.structs.replace(plan, cost_per_million=_compute_cost(plan, part, prices))


def _divide(demand: TrafficDemand, installations: int) -> TrafficDemand:
    """Return one installation's part: the sites are divided, every campaign may be on all."""
    return msgspec.structs.replace(
        demand,
        requests_per_day=demand.requests_per_day / installations,
        sites=demand.sites / installations,
    )


def _count_installations(
    demand: TrafficDemand, costs: Coefficients, sizes: MachineSizes, bounds: PlanBounds
) -> int:
    limits = _find_limits(demand, costs, sizes, bounds)
    # Every limit grows in proportion to the requests.
    return min(INSTALLATIONS_MAX, max(1, math.ceil(max(limit.utilisation for limit in limits) - 1e-9)))


def _find_limits(
    demand: TrafficDemand, costs: Coefficients, sizes: MachineSizes, bounds: PlanBounds
) -> list[Limit]:
    events = demand.events_per_second
    shares = {
        "appending events: Valkey has one core": events * costs.valkey_event_micros * MICROS,
        "counting events: one worker, one core": events * costs.counting_micros * MICROS,
        "PostgreSQL, CPU": _count_database_cores(demand, costs) / sizes.database_cores,
        "PostgreSQL, write-ahead log": events * costs.wal_bytes / sizes.database_write_bytes,
    }
    return [
        Limit(
            name=name,
            utilisation=share / bounds.utilisation,
            requests_per_day_max=demand.requests_per_day * bounds.utilisation / share if share else math.inf,
        )
        for name, share in shares.items()
    ]


def _plan_roles(
    demand: TrafficDemand, costs: Coefficients, sizes: MachineSizes, bounds: PlanBounds
) -> list[RoleNeed]:
    delivery = _plan_delivery(demand, costs, sizes, bounds)
    counting = demand.events_per_second * costs.counting_micros * MICROS
    acting = (
        demand.events_per_second * demand.paid_share * costs.charging_micros
        + _count_reports(demand, delivery.processes) * costs.lease_micros
    ) * MICROS
    memory = costs.worker_bytes + demand.campaigns * costs.worker_campaign_bytes
    is_shared = counting + acting > bounds.utilisation
    one = _compute_need(MachineRole.WORKER, 1, counting if is_shared else counting + acting, sizes, bounds)
    needs = [
        delivery,
        msgspec.structs.replace(one, process_bytes=costs.worker_bytes if is_shared else memory),
    ]
    if is_shared:
        processes = max(1, math.ceil(acting / bounds.utilisation))
        each = costs.worker_bytes + demand.campaigns * costs.worker_campaign_bytes / processes
        entity = _compute_need(
            MachineRole.ENTITY, processes, acting / processes, sizes, bounds, process_bytes=each
        )
        nats = _compute_need(MachineRole.NATS, NATS_SERVERS, 0.0, sizes, bounds)
        needs += [entity, msgspec.structs.replace(nats, machines=NATS_SERVERS)]
    return [*needs, *_plan_others(demand, costs, sizes, bounds)]


def _plan_delivery(
    demand: TrafficDemand, costs: Coefficients, sizes: MachineSizes, bounds: PlanBounds
) -> RoleNeed:
    direct_share = 1 - demand.auction_share - demand.contextual_share
    request_micros = (
        direct_share * costs.direct_micros
        + demand.auction_share * costs.auction_micros
        + demand.contextual_share * costs.contextual_micros
    )
    arrivals = demand.requests_per_second + demand.events_per_second
    busy = (
        demand.requests_per_second * request_micros + demand.events_per_second * costs.event_micros
    ) * MICROS
    service = busy / arrivals if arrivals else 0.0
    processes = count_own_queues(
        arrivals, service, utilisation_max=bounds.utilisation, wait_max=bounds.wait_seconds
    )
    each = (
        costs.delivery_bytes
        + demand.campaigns * costs.delivery_campaign_bytes
        + min(demand.pages, DELIVERY_PAGES_MAX) * costs.delivery_page_bytes
    )
    bits = max(
        _count_bits(demand, costs.request_out_bytes, costs.event_out_bytes),
        _count_bits(demand, costs.request_in_bytes, costs.event_in_bytes),
    )
    need = _compute_need(MachineRole.DELIVERY, processes, busy / processes, sizes, bounds, process_bytes=each)
    by_network = math.ceil(bits / (sizes.network_bits * bounds.utilisation)) + bounds.spare
    queue = Queue(arrivals=arrivals / processes, service_seconds=service)
    return msgspec.structs.replace(
        need, machines=max(need.machines, by_network), wait_seconds=find_wait_seconds(queue)
    )


def _plan_others(
    demand: TrafficDemand, costs: Coefficients, sizes: MachineSizes, bounds: PlanBounds
) -> list[RoleNeed]:
    service = costs.page_micros * MICROS
    classifiers = count_shared_queue(
        demand.pages_per_second,
        service,
        utilisation_max=bounds.utilisation,
        wait_max=bounds.page_wait_seconds,
    )
    pages = Queue(arrivals=demand.pages_per_second, service_seconds=service, servers=classifiers)
    classifier = _compute_need(
        MachineRole.CLASSIFIER,
        classifiers,
        pages.utilisation,
        sizes,
        bounds,
        process_bytes=costs.classifier_bytes,
    )
    database = _count_database_cores(demand, costs) / sizes.database_cores
    valkey = demand.events_per_second * costs.valkey_event_micros * MICROS
    return [
        _compute_need(MachineRole.CONTROL, 1, 0.0, sizes, bounds),  # Its load goes by people.
        msgspec.structs.replace(classifier, wait_seconds=find_wait_seconds(pages)),
        msgspec.structs.replace(
            _compute_need(MachineRole.POSTGRES, 1, database, sizes, bounds), cores=sizes.database_cores
        ),
        _compute_need(MachineRole.VALKEY, 1, valkey, sizes, bounds, process_bytes=0.0),
    ]


def _compute_need(  # noqa: PLR0913 - what a role needs
    role: MachineRole,
    processes: int,
    utilisation: float,
    sizes: MachineSizes,
    bounds: PlanBounds,
    *,
    process_bytes: float = 0.0,
) -> RoleNeed:
    """Put processes on machines: one a core, and no more than fit in memory; and the spare ones."""
    by_memory = int(sizes.memory_bytes // process_bytes) if process_bytes else processes
    a_machine = max(1, min(sizes.cores, by_memory))
    return RoleNeed(
        role=role,
        processes=processes,
        machines=math.ceil(processes / a_machine) + bounds.spare,
        cores=sizes.cores,
        utilisation=utilisation,
        process_bytes=process_bytes,
    )


def _fits_one_machine(roles: Sequence[RoleNeed], sizes: MachineSizes, bounds: PlanBounds) -> bool:
    """Return whether `adloom up` on one machine can do it all: every process shares its cores and memory."""
    busy = sum(
        need.processes * need.utilisation * (need.cores if need.role is MachineRole.POSTGRES else 1)
        for need in roles
    )
    memory = sum(need.processes * need.process_bytes for need in roles)
    has_entities = any(need.role is MachineRole.ENTITY for need in roles)
    return not has_entities and busy <= sizes.cores * bounds.utilisation and memory <= sizes.memory_bytes / 2


def _count_reports(demand: TrafficDemand, processes: int) -> float:
    """Return lease reports a second: of each campaign in each process when a lease is used up, and now and then."""
    offers = demand.requests_per_second * demand.paid_share
    pairs = demand.campaigns * processes
    return min(offers, pairs / REPORT_SECONDS) + min(offers / LEASE_OFFERS, pairs / LEASE_SECONDS)


def _count_database_cores(demand: TrafficDemand, costs: Coefficients) -> float:
    micros = costs.database_counting_micros + demand.paid_share * costs.database_charging_micros
    return demand.events_per_second * micros * MICROS


def _count_bits(demand: TrafficDemand, request_bytes: float, event_bytes: float) -> float:
    return 8 * (demand.requests_per_second * request_bytes + demand.events_per_second * event_bytes)


def _compute_cost(plan: CapacityPlan, part: TrafficDemand, prices: Prices) -> float:
    """Return what a million requests cost: cores of all machines, what is sent to visitors, what is stored."""
    egress = plan.out_bits_per_second / 8 / part.peak * DAY_SECONDS / GIGABYTE
    a_day = (
        plan.cores / plan.installations * 24 * prices.core_hour
        + egress * prices.gb_egress
        + plan.database_bytes / GIGABYTE * prices.gb_month / MONTH_DAYS
    )
    return a_day / part.requests_per_day * MILLION
