"""Builds the market of a worker: its actors, and what tells them of the world."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, cast

import msgspec

from adloom.budgets.leader import LeaderLoop
from adloom.budgets.worker import WorkerIdentity
from adloom.core.clock import Clock
from adloom.market.follower import MarketFollower
from adloom.market.kinds import make_kinds
from adloom.market.results.follower import ResultsFollower
from adloom.market.results.placement_results import PlacementResultsFollower
from adloom.market.shortlist.notice import name_channel
from adloom.market.store import MarketTables, MarketWriter
from adloom.market.term import MarketTerm
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from adloom.runtime.random import system_chance
from adloom.runtime.valkey import Valkey, ValkeyLock

OWNER_KEY: Final = "adloom:market:owner"
# Bidders are told every minute, auctioneers look every five; only rankers leave.
IDLE_MAX: Final = timedelta(minutes=30)

_encode: Final = msgspec.json.Encoder().encode


class MarketActors(msgspec.Struct, frozen=True, kw_only=True):
    """The market's actors, and what tells them of the world: both run on the one worker that leads."""

    host: ActorHost
    follower: MarketFollower
    results: ResultsFollower
    leader: LeaderLoop


class NoticeBroadcaster:
    """Publishes the market's notices on Valkey, one channel a topic."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, said: Sequence[tuple[str, msgspec.Struct]]) -> None:
        async with self._valkey.pipeline(transaction=False) as at_once:
            for topic, notice in said:
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
        chance=system_chance(),
        idle_max=IDLE_MAX,
    )
    follower = MarketFollower(pool, valkey, host)
    results = ResultsFollower(pool, valkey, host, clock)
    lock = ValkeyLock(valkey, OWNER_KEY, consumer=worker.consumer, incarnation=worker.incarnation)

    async def run_host(over: asyncio.Event) -> None:
        await term.begin(pool)
        await host.run(over)

    on_placements = PlacementResultsFollower(pool, valkey, clock)
    leader = LeaderLoop(lock, [run_host, follower.run, results.run, on_placements.run])
    return MarketActors(host=host, follower=follower, results=results, leader=leader)
