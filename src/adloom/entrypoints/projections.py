"""Every projection of the ledger, in one list: the worker runs it, `adloom ledger status` and the doctor show it."""

from collections.abc import Iterable, Sequence

import msgspec

from adloom.ledger.followers.store import CountedEvents
from adloom.ledger.frequency import projection as frequency
from adloom.ledger.group import ValkeyGroup
from adloom.ledger.known_names import KnownNames
from adloom.ledger.projection import BATCH_MAX, Projection, ProjectionStore
from adloom.ledger.store import EVENT_TABLES, EventTables, all_cursors
from adloom.ledger.topics import publish
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey


class Place(msgspec.Struct, frozen=True):
    """Where a projection keeps what it folds, and the name of the one that it may not pass."""

    name: str
    store: ProjectionStore
    follows: str | None = None
    batch_max: int = BATCH_MAX


def places(pool: Pool, valkey: Valkey, *, topic_entries_max: int = publish.ENTRIES_MAX) -> list[Place]:
    """List the projections; whom one follows comes before it."""
    lookup = CountedEvents(pool)
    return [
        Place(EVENT_TABLES, EventTables(pool, names=KnownNames())),
        Place(
            publish.TOPICS_PROJECTION,
            publish.TopicsProjection(valkey, lookup, entries_max=topic_entries_max),
            EVENT_TABLES,
            publish.BATCH_MAX,
        ),
        Place(
            frequency.FREQUENCY,
            frequency.FrequencyProjection(valkey, lookup),
            EVENT_TABLES,
            frequency.BATCH_MAX,
        ),
    ]


def projections(
    listed: Iterable[Place], valkey: Valkey, *, consumer: str, incarnation: str
) -> list[Projection]:
    """Make the projections that one worker runs."""
    made: dict[str, Projection] = {}
    for place in listed:
        group = ValkeyGroup(valkey, place.name, consumer=consumer, incarnation=incarnation)
        follows = made[place.follows] if place.follows is not None else None
        made[place.name] = Projection(
            place.name, group, place.store, follows=follows, batch_max=place.batch_max
        )
    return list(made.values())


async def cursors(listed: Sequence[Place], pool: Pool) -> dict[str, str]:
    """Tell how far each projection is, one that is being rebuilt in the database included."""
    return {place.name: await place.store.cursor() for place in listed} | await all_cursors(pool)
