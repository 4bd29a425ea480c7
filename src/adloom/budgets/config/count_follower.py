"""Tells campaigns with caps what the event tables have counted.

Counts and the cursor of the tables are read in one snapshot, so that a campaign knows which entries they include. A
campaign that asks is told until when the counts are complete: of the moment in which the last entry of the log was
looked up, as soon as the tables have that entry. What waits in the spool of a delivery process is not in the log yet:
the counts are complete until it began to wait.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.config.cap_counts import CapCounts
from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.budgets.messages import CampaignCounts
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.events.log.event import BEGINNING, parse_entry_id
from adloom.events.tables.store import EVENT_TABLES
from adloom.resource.changes import read_marks, read_marks_together
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Connection, Pool, raise_if_away

POLL_SECONDS: Final = 1.0
# What was read is read again after so long, even if neither catalog nor tables have moved.
READ_AGAIN: Final = timedelta(seconds=10)

CAPPED: Final = """
    SELECT campaign.id AS key, campaign.public_id AS id, payer.public_id AS payer_id
      FROM campaigns AS campaign
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     WHERE num_nonnulls(campaign.impression_cap, campaign.click_cap) > 0
       AND campaign.status IN ('active', 'scheduled') AND campaign.deleted_at IS NULL
"""


class CampaignCount(NamedTuple):
    """What a campaign has had, and its advertiser."""

    campaign_id: CampaignId
    payer_id: AdvertiserId | None
    counts: LifetimeCounts


class CountReading(NamedTuple):
    """What was read, when, and how far catalog and tables were just before."""

    counts: Sequence[CampaignCount]
    until: str
    read_at: datetime
    moved: tuple[int, str | None]


class CountReader:
    """Reads the counts of campaigns with caps in PostgreSQL; UnavailableError when it is away."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._cap_counts = CapCounts()
        self._last: CountReading | None = None

    async def read(self) -> tuple[Sequence[CampaignCount], str]:
        """Read the counts of the campaigns, and the last entry that they include."""
        now, last = self._clock.now(), self._last
        with raise_if_away("The counts of campaigns cannot be read"):
            marks = await read_marks_together(self._pool)
            moved = marks.catalog, marks.cursors.get(EVENT_TABLES)
            if last is None or last.moved != moved or now - last.read_at >= READ_AGAIN:
                async with self._pool.acquire() as connection:
                    last = self._last = await self._read(connection, now, moved)
        return last.counts, last.until

    async def _read(
        self, connection: Connection, now: datetime, moved: tuple[int, str | None]
    ) -> CountReading:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            rows = await connection.fetch(CAPPED)
            cursors = (await read_marks(connection)).cursors
            keys = [row["key"] for row in rows]
            self._cap_counts.recheck_settled()  # A worker may have to catch up with days.
            counts = await self._cap_counts.read(connection, keys, now, projected=cursors)
        found = [CampaignCount(row["id"], row["payer_id"], counts[row["key"]]) for row in rows]
        return CountReading(found, cursors.get(EVENT_TABLES, BEGINNING), now, moved)


class LogEnd(Protocol):
    """Knows how far the event log goes; UnavailableError when it is away."""

    async def read_last_id(self) -> str: ...


class CountFollower:
    """Follows the event tables for the campaigns of one host."""

    def __init__(
        self,
        reader: CountReader,
        log_end: LogEnd,
        host: Host,
        clock: Clock,
        *,
        again_seconds: float | None = None,
    ) -> None:
        self._reader = reader
        self._log_end = log_end
        self._host = host
        self._clock = clock
        self._again_seconds = again_seconds
        self.find_logged_until: Callable[[], float] = lambda: math.inf
        self._again_at = 0.0
        self._told: dict[CampaignId, LifetimeCounts] = {}
        self._asking: set[CampaignId] = set()
        self._awaited: tuple[str, int] | None = None  # An entry, and the second in which it was the last.
        self._complete_until = 0

    async def run(self, stop: asyncio.Event) -> None:
        self._told.clear()  # Another worker may have led meanwhile.
        # Budgets do not depend on caps.
        await PollLoop(self.poll, every_seconds=POLL_SECONDS, away=(UnavailableError,), name="caps").run(stop)

    def take_request(self, campaign_id: CampaignId) -> None:
        """Let a campaign know with the next poll until when its counts are complete."""
        self._asking.add(campaign_id)

    async def poll(self) -> None:
        """Tell the campaigns that ask, or whose counts have changed since the last poll; from time to time, all."""
        now = asyncio.get_running_loop().time()
        if self._again_seconds is not None and now >= self._again_at:
            self._again_at = now + self._again_seconds
            self._told.clear()
        if self._asking:
            second = int(min(self._clock.now().timestamp(), self.find_logged_until()))
            last = await self._log_end.read_last_id()
            # A log that has lost its end may never have the entry that we wait for.
            if self._awaited is None or parse_entry_id(last) < parse_entry_id(self._awaited[0]):
                self._awaited = last, second
        found, until = await self._reader.read()
        answered = self._find_complete(until)
        for campaign_id, payer_id, counts in found:
            if self._told.get(campaign_id) == counts and campaign_id not in answered:
                continue
            message = CampaignCounts(
                impressions=counts.impressions,
                clicks=counts.clicks,
                until=until,
                complete_until=self._complete_until,
            )
            if self._host.tell(make_campaign_address(campaign_id, payer_id), message):
                self._told[campaign_id] = counts

    def _find_complete(self, until: str) -> set[CampaignId]:
        """Return the campaigns that asked, if the tables now have all that was in the log then."""
        if self._awaited is None or parse_entry_id(until) < parse_entry_id(self._awaited[0]):
            return set()
        self._complete_until = self._awaited[1]
        answered, self._asking, self._awaited = self._asking, set(), None
        return answered
