"""Composes the actors of a worker: all of them in this process, or shared with other workers by NATS."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from adloom.app.metrics.worker import register_budget_actors, register_market, register_shards
from adloom.budgets.bids.nets import FleetWeights
from adloom.budgets.kinds import make_kinds
from adloom.budgets.worker import BudgetService, WorkerIdentity, make_budget_actors, share_budget_actors
from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.market.kinds import make_kinds as make_market_kinds
from adloom.market.worker import make_market, share_market
from adloom.pages.site.step import SiteKind
from adloom.pages.site.worker import OWNER_KEY, make_site_actors, share_site_actors
from adloom.runtime.locks import LeaderLoop
from adloom.runtime.postgres import Pool
from adloom.runtime.process.roles import NatsSettings, WorkerRole
from adloom.runtime.settings import SettingsError, WorkerSettings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey

if TYPE_CHECKING:
    from adloom.runtime.actors.nats.link import NatsLink

LIFE_CHARACTERS: Final = 6  # Of a worker's life, in its name among other workers.

Run: TypeAlias = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


class WorkerParts(NamedTuple):
    """What the parts of a worker are made of."""

    settings: WorkerSettings
    metrics: Metrics
    clock: Clock
    valkey: Valkey
    pool: Pool
    ledger_pool: Pool
    shard_pool: Pool  # Of actors that several workers share.
    worker: WorkerIdentity
    link: "NatsLink | None"
    weights: FleetWeights


class WorkerActors(NamedTuple):
    """What sends actors messages; what runs on the leading worker, and beside the actors of each worker."""

    budgets: BudgetService
    leading: Sequence[Run]
    beside: Sequence[Run] = ()


def make_link(settings: NatsSettings, worker: WorkerIdentity) -> "NatsLink | None":
    """Make the connection of a worker that runs actors on several machines, or sends to them."""
    if settings.url is None:
        if set(settings.roles) != set(WorkerRole):
            raise SettingsError(
                "ADLOOM_WORKER_ROLES is set and ADLOOM_NATS_URL is not: without NATS a worker has all roles."
            )
        return None
    if not {WorkerRole.ENTITY, WorkerRole.SINGLETON} & set(settings.roles):
        return None
    # The client library is not loaded where it is not needed.
    from adloom.runtime.actors.nats.link import NatsLink  # noqa: PLC0415

    name = f"{worker.consumer}:{worker.incarnation[-LIFE_CHARACTERS:]}"
    kinds = [*make_kinds(), SiteKind(), *make_market_kinds()]
    return NatsLink(settings.url, kinds, SystemIds(), name=name, replicas=settings.replicas)


def compose_actors(parts: WorkerParts) -> WorkerActors:
    """Compose campaigns, advertisers, sites and the market."""
    settings, valkey, clock, worker = parts.settings, parts.valkey, parts.clock, parts.worker
    if parts.link is not None:
        return _share_actors(parts, parts.link)
    market = make_market(parts.pool, valkey, clock, worker=worker, campaigns_max=settings.campaigns_per_slot)
    register_market(parts.metrics, market, market.host)
    budgets = make_budget_actors(
        parts.ledger_pool,
        valkey,
        clock,
        worker=worker,
        hold_seconds=settings.hold_seconds,
        look_pool=parts.pool,
        weights=parts.weights,
    )
    register_budget_actors(parts.metrics, budgets, budgets.host)
    sites = make_site_actors(parts.pool, valkey, clock)
    lead_sites = _lead_sites(parts, [sites.host.run, sites.follower.run])
    return WorkerActors(budgets, [budgets.leader.run, lead_sites.run, market.leader.run])


def _share_actors(parts: WorkerParts, link: "NatsLink") -> WorkerActors:
    """Compose all actors, of which this worker runs some if it has that role."""
    budgets = share_budget_actors(
        link.sender,
        parts.ledger_pool,
        parts.valkey,
        parts.clock,
        worker=parts.worker,
        hold_seconds=parts.settings.hold_seconds,
        look_pool=parts.pool,
        shard_pool=parts.shard_pool,
        weights=parts.weights,
    )
    sites = share_site_actors(link.sender, parts.pool, parts.valkey, parts.clock, shard_pool=parts.shard_pool)
    market = share_market(
        link.sender,
        parts.pool,
        parts.valkey,
        parts.clock,
        worker=parts.worker,
        campaigns_max=parts.settings.campaigns_per_slot,
        shard_pool=parts.shard_pool,
    )
    host = None
    if WorkerRole.ENTITY in parts.settings.nats.roles:
        families = [budgets.family, sites.family, market.family]
        host = link.add_host(families, parts.shard_pool, parts.clock)
        register_shards(parts.metrics, host)
    register_budget_actors(parts.metrics, budgets, host)
    register_market(parts.metrics, market, host)
    lead_sites = _lead_sites(parts, [sites.follower.run])
    leading = [budgets.leader.run, lead_sites.run, market.leader.run]
    return WorkerActors(budgets, leading, [budgets.decider.run])


def _lead_sites(parts: WorkerParts, runs: Sequence[Run]) -> LeaderLoop:
    """Run what there is of sites once, on the worker that holds their lock."""
    return LeaderLoop(parts.worker.make_lock(parts.valkey, OWNER_KEY), runs, name="sites")
