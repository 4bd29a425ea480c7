"""The projection `learning`: valid impressions of auctions are put where they wait for their clicks, each once.

It follows the auctions, which follow the event tables: so what was known at the auction, and what the
tables made of the impression, can be looked up. A click is learned when its impression's time is over, not
before: a beginner that hears of clicks at once and of the rest half an hour later takes every ad
for one that everybody clicks.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from adloom.events.ctr.store import LearningStore
from adloom.events.ctr.waiting import MILLIS, ExampleSampler
from adloom.events.log.entry import parse_entry_id
from adloom.events.ports import BatchResult, DecodedEntry

BATCH_MAX: Final = 2_000


class LearningProjection:
    """Puts impressions where they wait."""

    def __init__(self, store: LearningStore, *, wait: timedelta, inlet: ExampleSampler | None = None) -> None:
        self._store = store
        self._wait = wait
        self._inlet = inlet or ExampleSampler()

    async def read_cursor(self) -> str:
        """Tell the last entry that was looked at."""
        return await self._store.read_cursor()

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Have the impressions of a batch wait, and move the cursor."""
        found = await self._store.find_impressions(records)
        now_ms = parse_entry_id(cursor)[0]
        taken = self._inlet.sample(found, now_ms=now_ms)
        last_ms = max((one.seen_ms for one in taken), default=0)
        due_at = datetime.fromtimestamp(last_ms / MILLIS, UTC) + self._wait
        await self._store.add_pending(taken, due_at=due_at, after=after, cursor=cursor)
        return BatchResult(counted=len(taken), dropped=len(found) - len(taken))
