"""The brains of a worker: the host of campaigns and advertisers, and all that stands around it."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from adloom.brain.audience import ValkeyAudience
from adloom.brain.catalog_follower import CatalogFollower
from adloom.brain.catalog_store import BrainCatalog
from adloom.brain.charge_store import ChargeStore
from adloom.brain.charges import CHARGES, ChargesProjection
from adloom.brain.introductions import Introductions
from adloom.brain.kinds import all_kinds
from adloom.brain.mail_room import MailRoom
from adloom.brain.money_store import MoneyWriter
from adloom.brain.ownership import Ownership
from adloom.brain.ports import Host
from adloom.brain.session_store import SessionStore
from adloom.brain.sessions import Sessions
from adloom.brain.turn import Turn
from adloom.brain.whereabouts import CatalogWhereabouts
from adloom.core.clock import Clock
from adloom.ledger.followers.lately import CountedLately
from adloom.ledger.followers.store import CountedEvents
from adloom.runtime.chance import system_chance
from adloom.runtime.entities.host import EntityHost
from adloom.runtime.entities.state_store import PostgresStates
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey


class Worker(NamedTuple):
    """Who a worker is: its name, and which of its lives."""

    consumer: str
    incarnation: str


class Brains(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that runs while it is a worker's turn, and what follows the ledger for it.

    `lately` is what the event tables shall tell it of what they count in the same process.
    """

    host: EntityHost
    room: MailRoom
    follower: CatalogFollower
    money: MoneyWriter
    charges: ChargesProjection
    lately: CountedLately
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
    host = EntityHost(
        all_kinds(),
        PostgresStates(pool, money, clock),
        introduction=introductions,
        audience=audience,
        clock=clock,
        chance=system_chance(),
    )
    room = MailRoom(valkey, SessionStore(pool), host, audience, clock, sessions=sessions)
    follower = CatalogFollower(valkey, catalog, introductions, host)
    claim = Ownership(valkey, consumer=worker.consumer, incarnation=worker.incarnation)
    turn = Turn(claim, [host.run, room.run, follower.run])
    lately = CountedLately()
    return Brains(
        host=host,
        room=room,
        follower=follower,
        money=money,
        charges=charging(pool, host, clock, lately=lately, turn=lambda: turn.turns),
        lately=lately,
        turn=turn,
    )


def charging(
    pool: Pool, host: Host, clock: Clock, *, lately: CountedLately, turn: Callable[[], int] = lambda: 1
) -> ChargesProjection:
    """Make the projection that tells the campaigns of a host what is to be charged."""
    return ChargesProjection(
        ChargeStore(pool, projection=CHARGES),
        CountedEvents(pool, lately),
        CatalogWhereabouts(BrainCatalog(pool)),
        host,
        clock,
        turn=turn,
    )
