"""The brains of a worker: the host of campaigns and advertisers, and all that stands around it."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from adloom.budgets.charges.projection import CHARGES, ChargesProjection
from adloom.budgets.charges.store import ChargeStore
from adloom.budgets.config.catalog_follower import CatalogFollower
from adloom.budgets.config.catalog_store import BrainCatalog
from adloom.budgets.config.entity_config import Introductions
from adloom.budgets.config.entity_lookup import CatalogWhereabouts
from adloom.budgets.kinds import all_kinds
from adloom.budgets.leader import Turn
from adloom.budgets.leader_lock import Ownership
from adloom.budgets.money.store import MoneyWriter
from adloom.budgets.ports import Host
from adloom.budgets.transport.broadcast import ValkeyAudience
from adloom.budgets.transport.inbox import MailRoom
from adloom.budgets.transport.session_store import SessionStore
from adloom.budgets.transport.sessions import Sessions
from adloom.core.clock import Clock
from adloom.events.followers.counted import RecentCounted
from adloom.events.followers.counted_store import CountedStore
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from adloom.runtime.random import system_chance
from adloom.runtime.valkey import Valkey


class Worker(NamedTuple):
    """Who a worker is: its name, and which of its lives."""

    consumer: str
    incarnation: str


class Brains(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that runs while it is a worker's turn, and what follows the ledger for it.

    `recent_counted` is what the event tables shall tell it of what they count in the same process.
    """

    host: ActorHost
    room: MailRoom
    follower: CatalogFollower
    money: MoneyWriter
    charges: ChargesProjection
    recent_counted: RecentCounted
    turn: Turn

    def is_ours(self) -> bool:
        """Tell whether brains run here now."""
        return self.turn.is_ours


def make_brains(  # noqa: PLR0913 - the last is for tests
    pool: Pool,
    valkey: Valkey,
    clock: Clock,
    *,
    worker: Worker,
    hold_seconds: int,
    sessions: Sessions | None = None,
) -> Brains:
    """Put the brains of one worker together."""
    catalog, audience, money = BrainCatalog(pool), ValkeyAudience(valkey), MoneyWriter()
    introductions = Introductions(catalog, clock, hold_seconds=hold_seconds)
    host = ActorHost(
        all_kinds(),
        PostgresStateStore(pool, money, clock),
        introduction=introductions,
        audience=audience,
        clock=clock,
        chance=system_chance(),
    )
    room = MailRoom(valkey, SessionStore(pool), host, audience, clock, sessions=sessions)
    follower = CatalogFollower(valkey, catalog, introductions, host)
    claim = Ownership(valkey, consumer=worker.consumer, incarnation=worker.incarnation)
    turn = Turn(claim, [host.run, room.run, follower.run])
    recent_counted = RecentCounted()
    return Brains(
        host=host,
        room=room,
        follower=follower,
        money=money,
        charges=charging(pool, host, clock, recent_counted=recent_counted, turn=lambda: turn.turns),
        recent_counted=recent_counted,
        turn=turn,
    )


def charging(
    pool: Pool,
    host: Host,
    clock: Clock,
    *,
    recent_counted: RecentCounted,
    turn: Callable[[], int] = lambda: 1,
) -> ChargesProjection:
    """Make the projection that tells the campaigns of a host what is to be charged."""
    return ChargesProjection(
        ChargeStore(pool, projection=CHARGES),
        CountedStore(pool, recent_counted),
        CatalogWhereabouts(BrainCatalog(pool)),
        host,
        clock,
        turn=turn,
    )
