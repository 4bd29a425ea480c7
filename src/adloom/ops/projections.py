"""Every projection of the ledger, in one list: the worker runs it, `adloom ledger status` and the doctor show it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from adloom.budgets.charges import projection as charges
from adloom.budgets.worker import BudgetActors, make_charges_projection
from adloom.core.clock import SystemClock
from adloom.events.auction_log import store as auctions
from adloom.events.auction_log.side_stream import AuctionSideStream
from adloom.events.ctr import projection as learning
from adloom.events.ctr.store import LEARNING, LearningStore
from adloom.events.cursor_store import read_all_cursors
from adloom.events.followers.counted import RecentCounted
from adloom.events.followers.counted_store import CountedStore
from adloom.events.frequency import projection as frequency
from adloom.events.ports import ProjectionStore
from adloom.events.projections.group import ConsumerGroup
from adloom.events.projections.projection import BATCH_MAX, Projection
from adloom.events.projections.recent_entries import RecentEntries
from adloom.events.tables.dedup import DedupFilter
from adloom.events.tables.store import EVENT_TABLES, EventTables
from adloom.events.topics import publish
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import AUCTION_RETENTION_DAYS, LEARNING_WAIT_SECONDS
from adloom.runtime.valkey import Valkey


class ProjectionSpec(msgspec.Struct, frozen=True):
    """Where a projection keeps what it folds, and the name of the one that it may not pass.

    `is_its_turn` tells whether this worker may fold it, where not any may.
    """

    name: str
    store: ProjectionStore
    follows: str | None = None
    batch_max: int = BATCH_MAX
    is_its_turn: Callable[[], bool] | None = None


def list_projections(  # noqa: PLR0913 - settings, each with its default
    pool: Pool,
    valkey: Valkey,
    *,
    topic_entries_max: int = publish.ENTRIES_MAX,
    auction_days: int = AUCTION_RETENTION_DAYS,
    learning_wait_seconds: int = LEARNING_WAIT_SECONDS,
    budget_actors: BudgetActors | None = None,
) -> list[ProjectionSpec]:
    """List the projections; whom one follows comes before it. Without budget actors charges stand still."""
    recent_counted = RecentCounted() if budget_actors is None else budget_actors.recent_counted
    lookup = CountedStore(pool, recent_counted)
    return [
        ProjectionSpec(EVENT_TABLES, EventTables(pool, dedup=DedupFilter(), recent_counted=recent_counted)),
        ProjectionSpec(
            publish.TOPICS_PROJECTION,
            publish.TopicsProjection(valkey, lookup, entries_max=topic_entries_max),
            EVENT_TABLES,
            publish.BATCH_MAX,
        ),
        ProjectionSpec(
            frequency.FREQUENCY,
            frequency.FrequencyProjection(valkey, lookup),
            EVENT_TABLES,
            frequency.BATCH_MAX,
        ),
        ProjectionSpec(
            charges.CHARGES,
            make_charges_projection(pool, charges.NullHost(), SystemClock(), recent_counted=recent_counted)
            if budget_actors is None
            else budget_actors.charges,
            EVENT_TABLES,
            charges.BATCH_MAX,
            None if budget_actors is None else budget_actors.is_leader,
        ),
        ProjectionSpec(
            auctions.AUCTIONS,
            auctions.AuctionTables(
                pool, AuctionSideStream(valkey), clock=SystemClock(), kept_days=auction_days
            ),
            EVENT_TABLES,
            auctions.BATCH_MAX,
        ),
        ProjectionSpec(
            LEARNING,
            learning.LearningProjection(LearningStore(pool), wait=timedelta(seconds=learning_wait_seconds)),
            auctions.AUCTIONS,
            learning.BATCH_MAX,
        ),
    ]


def build_projections(
    listed: Iterable[ProjectionSpec], valkey: Valkey, *, consumer: str, incarnation: str
) -> list[Projection]:
    """Make the projections that one worker runs."""
    made: dict[str, Projection] = {}
    recent = RecentEntries()
    for place in listed:
        group = _TurnGroup(
            place,
            valkey,
            consumer=consumer,
            incarnation=incarnation,
            recent=recent,
            leads=place.follows is None,
        )
        follows = made[place.follows] if place.follows is not None else None
        made[place.name] = Projection(
            place.name, group, place.store, follows=follows, recent=recent, batch_max=place.batch_max
        )
    return list(made.values())


async def read_cursors(listed: Sequence[ProjectionSpec], pool: Pool) -> dict[str, str]:
    """Tell how far each projection is, one that is being rebuilt in the database included."""
    return {place.name: await place.store.read_cursor() for place in listed} | await read_all_cursors(pool)


class _TurnGroup(ConsumerGroup):
    """A place in a group that is given up while it is another worker's turn."""

    def __init__(self, place: ProjectionSpec, valkey: Valkey, **names: Any) -> None:  # noqa: ANN401 - as the group has them
        super().__init__(valkey, place.name, **names)
        self._is_its_turn = place.is_its_turn

    async def acquire(self) -> bool:
        """Take the lease, or keep it; tell whether it is ours."""
        if self._is_its_turn is None or self._is_its_turn():
            return await super().acquire()
        await self.release()
        return False
