"""The list of all projections of the event log: the worker runs it, `adloom ledger status` and the doctor show it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from adloom.budgets.confirms import projection as confirms
from adloom.budgets.worker import BudgetService, make_confirm_projection
from adloom.core.clock import SystemClock
from adloom.events.auction_log import store as auctions
from adloom.events.auction_log.side_stream import AuctionSideStream
from adloom.events.conversions.attribute import AttributionRules
from adloom.events.ctr import trainer as learning
from adloom.events.ctr.store import LEARNING, LearningStore
from adloom.events.cursor_store import read_all_cursors
from adloom.events.followers.counted import RecentCounted
from adloom.events.followers.counted_store import CountedStore
from adloom.events.frequency import projection as frequency
from adloom.events.frequency.capped_store import CappedBannerStore
from adloom.events.ports import ProjectionStore
from adloom.events.projections.group import ConsumerGroup
from adloom.events.projections.projection import BATCH_MAX, Projection
from adloom.events.projections.recent_entries import RecentEntries
from adloom.events.tables.dedup import DedupFilter
from adloom.events.tables.store import EVENT_TABLES, EventTables
from adloom.events.topics import publish
from adloom.market.results import store as results
from adloom.runtime.locks import HeldLocks
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import AUCTION_RETENTION_DAYS, LEARNING_WAIT_SECONDS
from adloom.runtime.valkey import Valkey

# The pause between small batches of rows that are not needed within a second: auctions and results of contextual
# slots. It is shorter than entries are kept in memory for followers.
UNHURRIED_SECONDS: Final = 3.0
UNHURRIED: Final = (auctions.AUCTIONS, results.CONTEXTUAL_RESULTS)


class ProjectionSpec(msgspec.Struct, frozen=True):
    """A projection's store, and the projection that it follows and may not pass.

    `may_own` returns whether this worker may run it; None if every worker may.
    """

    name: str
    store: ProjectionStore
    follows: str | None = None
    batch_max: int = BATCH_MAX
    may_own: Callable[[], bool] | None = None


def list_projections(  # noqa: PLR0913 - settings, each with its default
    pool: Pool,
    valkey: Valkey,
    *,
    topic_entries_max: int = publish.ENTRIES_MAX,
    auction_days: int = AUCTION_RETENTION_DAYS,
    learning_wait_seconds: int = LEARNING_WAIT_SECONDS,
    budget_actors: BudgetService | None = None,
    attribution: AttributionRules | None = None,
) -> list[ProjectionSpec]:
    """List the projections, each after the one it follows. Without budget actors charges stand still."""
    recent_counted = RecentCounted() if budget_actors is None else budget_actors.recent_counted
    lookup = CountedStore(pool, recent_counted)
    return [
        ProjectionSpec(
            EVENT_TABLES,
            EventTables(pool, dedup=DedupFilter(), recent_counted=recent_counted, attribution=attribution),
        ),
        ProjectionSpec(
            publish.TOPICS_PROJECTION,
            publish.TopicsProjection(valkey, lookup, entries_max=topic_entries_max),
            EVENT_TABLES,
        ),
        ProjectionSpec(
            frequency.FREQUENCY,
            frequency.FrequencyProjection(valkey, lookup, CappedBannerStore(pool).find),
            EVENT_TABLES,
        ),
        ProjectionSpec(
            confirms.CHARGES,
            make_confirm_projection(pool, confirms.NullHost(), SystemClock(), recent_counted=recent_counted)
            if budget_actors is None
            else budget_actors.confirms,
            EVENT_TABLES,
            confirms.BATCH_MAX,
            None if budget_actors is None else budget_actors.is_leader,
        ),
        ProjectionSpec(
            results.CONTEXTUAL_RESULTS,
            results.ContextualResults(pool, lookup),
            EVENT_TABLES,
        ),
        ProjectionSpec(
            auctions.AUCTIONS,
            auctions.AuctionTables(
                pool, AuctionSideStream(valkey), clock=SystemClock(), kept_days=auction_days
            ),
            EVENT_TABLES,
        ),
        ProjectionSpec(
            LEARNING,
            learning.LearningProjection(LearningStore(pool), wait=timedelta(seconds=learning_wait_seconds)),
            auctions.AUCTIONS,
        ),
    ]


def build_projections(
    specs: Iterable[ProjectionSpec],
    valkey: Valkey,
    *,
    consumer: str,
    incarnation: str,
    held_locks: HeldLocks | None = None,
) -> list[Projection]:
    """Build the projections that one worker runs."""
    made: dict[str, Projection] = {}
    recent = RecentEntries()
    for spec in specs:
        group = ConsumerGroup(
            valkey,
            spec.name,
            consumer=consumer,
            incarnation=incarnation,
            recent=recent,
            is_first=spec.follows is None,
            may_own=spec.may_own,
            held_locks=held_locks,
        )
        follows = made[spec.follows] if spec.follows is not None else None
        made[spec.name] = Projection(
            spec.name,
            group,
            spec.store,
            follows=follows,
            recent=recent,
            batch_max=spec.batch_max,
            small_seconds=UNHURRIED_SECONDS if spec.name in UNHURRIED else None,
        )
    return list(made.values())


async def read_cursors(specs: Sequence[ProjectionSpec], pool: Pool) -> dict[str, str]:
    """Return the cursor of each projection, also of one that is being rebuilt in the database."""
    found = await read_all_cursors(pool)
    elsewhere = [spec for spec in specs if spec.name not in found]
    return found | {spec.name: await spec.store.read_cursor() for spec in elsewhere}
