"""Builds the site actors of a worker, and what follows pages and catalog for them."""

from collections.abc import Sequence

import msgspec

from adloom.core.clock import Clock
from adloom.pages.site.follower import NewsBroadcaster, SharedSiteFollower, SiteFollower, SiteReader
from adloom.pages.site.step import SiteKind
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.nats.runner import ActorFamily
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.actors.nats.store import ShardStore
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.random import make_system_chance
from adloom.runtime.valkey import Valkey

OWNER_KEY = "adloom:sites:owner"


class NoRecords:
    """Sites record no rows beside their states."""

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        del connection
        assert not records, "a site records nothing"


class SharedSites(msgspec.Struct, frozen=True):
    """What a worker needs to run some of the site actors, and what one worker follows for all."""

    family: ActorFamily
    follower: SharedSiteFollower


class SiteActors(msgspec.Struct, frozen=True):
    """What runs while a worker owns the sites."""

    host: ActorHost
    follower: SiteFollower


def make_site_actors(pool: Pool, valkey: Valkey, clock: Clock) -> SiteActors:
    reader = SiteReader(pool)
    host = ActorHost(
        [SiteKind()],
        PostgresStateStore(pool, NoRecords(), clock),
        introduction=reader,
        audience=NewsBroadcaster(valkey),
        clock=clock,
        chance=make_system_chance(),
    )
    return SiteActors(host, SiteFollower(pool, valkey, reader, host))


def share_site_actors(
    sender: NatsSender, pool: Pool, valkey: Valkey, clock: Clock, *, shard_pool: Pool
) -> SharedSites:
    """Build site actors that several workers share; states are written by `shard_pool`."""
    reader = SiteReader(pool)
    family = ActorFamily(
        kinds=[SiteKind()],
        store=ShardStore(shard_pool, NoRecords(), clock),
        introduction=reader,
        audience=NewsBroadcaster(valkey),
    )
    return SharedSites(family, SharedSiteFollower(pool, valkey, sender))
