"""Builds the site actors of a worker, and what follows pages and catalog for them."""

from collections.abc import Sequence

import msgspec

from adloom.core.clock import Clock
from adloom.pages.site.follower import NewsBroadcaster, SiteFollower, SiteReader
from adloom.pages.site.step import SiteKind
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.random import system_chance
from adloom.runtime.valkey import Valkey

OWNER_KEY = "adloom:sites:owner"


class NoRecords:
    """Sites record no rows beside their states."""

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        del connection
        assert not records, "a site records nothing"


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
        chance=system_chance(),
    )
    return SiteActors(host, SiteFollower(pool, valkey, reader, host))
