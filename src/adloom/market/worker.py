"""Builds the market of a worker: its actors and their followers."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, cast

import msgspec

from adloom.budgets.worker import WorkerIdentity
from adloom.core.clock import Clock
from adloom.market.follower import MarketFollower
from adloom.market.kinds import make_kinds
from adloom.market.results.follower import ResultsFollower
from adloom.market.results.placement_results import PlacementResultsFollower
from adloom.market.shared_workers import (
    REFRESH_SECONDS,
    MarketRefresh,
    SharedMarketFollower,
    SharedMarketTables,
    SharedResultsFollower,
)
from adloom.market.shortlist.model import name_channel
from adloom.market.store import MarketTables, MarketTerm, MarketWriter
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.nats.runner import ActorFamily
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.actors.nats.store import ShardStore
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.locks import LeaderLoop, Run
from adloom.runtime.postgres import Pool
from adloom.runtime.random import make_system_chance
from adloom.runtime.valkey import Valkey

OWNER_KEY: Final = "adloom:market:owner"
# Bidders get messages every minute, auctioneers check every five minutes; only rankers become idle.
IDLE_MAX: Final = timedelta(minutes=30)
# An auctioneer that wakes may have thousands of pages to read: campaigns of the same worker do not wait for many.
ALARMS_AT_ONCE: Final = 50

_encode: Final = msgspec.json.Encoder().encode


class MarketService(msgspec.Struct, frozen=True, kw_only=True):
    """What tells the market's actors of the world, on the one worker that leads."""

    follower: MarketFollower
    results: ResultsFollower
    leader: LeaderLoop


class MarketActors(MarketService, frozen=True, kw_only=True):
    """The same, with the actors: all of them run on the worker that leads."""

    host: ActorHost


class SharedMarketActors(MarketService, frozen=True, kw_only=True):
    """The same, with what a worker needs to run some of the actors, whether it leads or not."""

    family: ActorFamily


class NoticeBroadcaster:
    """Publishes the market's notices on Valkey, one channel a topic."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        async with self._valkey.pipeline(transaction=False) as at_once:
            for topic, notice in messages:
                # The stubs have each call wait for its own answer.
                cast("Any", at_once).publish(name_channel(topic), _encode(notice))
            await at_once.execute()


def make_market(
    pool: Pool, valkey: Valkey, clock: Clock, *, worker: WorkerIdentity, campaigns_max: int
) -> MarketActors:
    term = MarketTerm()
    host = ActorHost(
        make_kinds(campaigns_max=campaigns_max),
        PostgresStateStore(pool, MarketWriter(term), clock),
        introduction=MarketTables(pool),
        audience=NoticeBroadcaster(valkey),
        clock=clock,
        chance=make_system_chance(),
        idle_max=IDLE_MAX,
    )
    follower = MarketFollower(pool, valkey, host)
    results = ResultsFollower(pool, valkey, host, clock)

    async def run_host(over: asyncio.Event) -> None:
        await term.begin(pool)
        await host.run(over)

    on_placements = PlacementResultsFollower(pool, valkey, clock)
    leader = _make_leader_loop(valkey, worker, [run_host, follower.run, results.run, on_placements.run])
    return MarketActors(host=host, follower=follower, results=results, leader=leader)


def share_market(  # noqa: PLR0913 - what it connects
    sender: NatsSender,
    pool: Pool,
    valkey: Valkey,
    clock: Clock,
    *,
    worker: WorkerIdentity,
    campaigns_max: int,
    shard_pool: Pool,
) -> SharedMarketActors:
    """Build actors of the market that several workers share; their rows are written by `shard_pool`."""
    tables = SharedMarketTables(pool)
    family = ActorFamily(
        kinds=make_kinds(campaigns_max=campaigns_max),
        store=ShardStore(shard_pool, MarketWriter(), clock),
        introduction=tables,
        audience=NoticeBroadcaster(valkey),
        refresh_seconds=REFRESH_SECONDS,
        refresh=MarketRefresh(pool),
        list_woken=tables.list_woken,
        idle_max=IDLE_MAX,
        alarms_at_once=ALARMS_AT_ONCE,
    )
    follower = SharedMarketFollower(pool, valkey, sender)
    results = SharedResultsFollower(pool, valkey, sender, clock)
    on_placements = PlacementResultsFollower(pool, valkey, clock)
    leader = _make_leader_loop(valkey, worker, [follower.run, results.run, on_placements.run])
    return SharedMarketActors(family=family, follower=follower, results=results, leader=leader)


def _make_leader_loop(valkey: Valkey, worker: WorkerIdentity, runs: Sequence[Run]) -> LeaderLoop:
    return LeaderLoop(worker.make_lock(valkey, OWNER_KEY), runs, name="market")
