"""Reads what was counted in contextual slots, and sends it to rankers, delivery and moving floors.

It runs on the one worker that leads the market. After a start it reads the last hour, and wakes the rankers that have
not recorded all rows: they read the rest themselves.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from adloom.budgets.messages import CheckClock
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.money import Micros
from adloom.market.auctioneer.floors import LATE_TICKS_MAX
from adloom.market.auctioneer.state import FloorTick
from adloom.market.messages import RecordResults
from adloom.market.results import store
from adloom.market.results.publish import publish_results
from adloom.market.results.window import ResultRow, ResultWindows, build_results, sum_for_rankers
from adloom.market.routing import make_auctioneer_address, make_ranker_address
from adloom.market.weights import FORGOTTEN_AFTER, SITES_MAX
from adloom.resource.changes import read_marks_together
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Pool, raise_if_away
from adloom.runtime.valkey import ANYTHING_AWAY, VALKEY_AWAY, Valkey

POLL_SECONDS: Final = 2.0
PUBLISH_ALL: Final = timedelta(minutes=1)  # Minutes leave the window, and Valkey may have lost what it had.
CLEAN_EVERY: Final = timedelta(hours=1)
TICK: Final = timedelta(minutes=15)
TICK_DELAY: Final = timedelta(seconds=30)  # For events of the quarter that are still on their way.
TICK_AGAIN: Final = timedelta(minutes=1)  # Then a quarter is told once more, in case the message was lost.


class ResultsFollower:
    """Follows the results for the actors of the market and for delivery."""

    def __init__(self, pool: Pool, valkey: Valkey, host: Host, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._host = host
        self._clock = clock
        self._loop = PollLoop(self._poll, every_seconds=POLL_SECONDS, away=ANYTHING_AWAY, name="results")
        self._begin()

    def _begin(self) -> None:
        self._through: int | None = None  # The last row that was read,
        self._cursor: str | None = None  # and how far events were counted before that.
        self._untold: list[tuple[Address, RecordResults]] = []  # To rankers that had no room.
        self._windows = ResultWindows()
        self._publish_all_at = self._clean_at = datetime.min.replace(tzinfo=UTC)
        self._ticked = 0
        self._tick_again_at = datetime.max.replace(tzinfo=UTC)

    async def run(self, stop: asyncio.Event) -> None:
        self._begin()
        await self._loop.run(stop)

    async def _poll(self) -> None:
        with raise_if_away("The results cannot be read"):
            cursor = (await read_marks_together(self._pool)).cursors.get(store.CONTEXTUAL_RESULTS)
            await self.poll(may_have_more=cursor != self._cursor)
            self._cursor = cursor

    async def poll(self, *, may_have_more: bool = True) -> None:
        """Tell what was counted since the last poll."""
        now = self._clock.now()
        if self._through is None:
            await self._catch_up(now)
        else:
            self._send_to_rankers([])
            while may_have_more and (rows := await store.read_rows(self._pool, after=self._through)):
                self._send_to_rankers(rows)
                self._windows.add(rows)
                self._through = rows[-1].id
        await self._publish(now)
        await self._tick(now)
        if now >= self._clean_at:
            await store.clean(self._pool, now=now, forgotten_after=FORGOTTEN_AFTER, sites_max=SITES_MAX)
            self._clean_at = now + CLEAN_EVERY

    async def _catch_up(self, now: datetime) -> None:
        newest = await store.read_newest(self._pool)
        for category, site in await store.find_behind(self._pool):
            if not self._wake(make_ranker_address(category, site)):
                raise UnavailableError("There is no room for what was counted.")
        self._windows.add(await store.read_window(self._pool, until=newest, now=now))
        self._through = newest

    def _wake(self, address: Address) -> bool:
        """Have a ranker read its rows; it died with the follower before this one."""
        return self._host.tell(address, CheckClock())

    def _send_to_rankers(self, rows: list[ResultRow]) -> None:
        """Tell each ranker its sums; one without room is told at the next poll, in order."""
        untold: list[tuple[Address, RecordResults]] = []
        late: set[Address] = set()
        for address, message in (*self._untold, *sum_for_rankers(rows)):
            if address in late or not self._host.tell(address, message):
                late.add(address)
                untold.append((address, message))
        self._untold = untold

    async def _publish(self, now: datetime) -> None:
        if now >= self._publish_all_at:
            self._windows.drop_old(now)
            self._windows.mark_all()
            self._publish_all_at = now + PUBLISH_ALL
        version = int(now.timestamp() * 1_000)
        changed = self._windows.take_changed()
        try:
            await publish_results(
                self._valkey, {site_id: build_results(sums, version) for site_id, sums in changed.items()}
            )
        except VALKEY_AWAY:
            self._publish_all_at = now  # At the next poll.
            raise

    async def _tick(self, now: datetime) -> None:
        """Tell sites whose floors move how the last quarter of an hour was, once it is over."""
        number = int((now - TICK_DELAY).timestamp() // TICK.total_seconds()) - 1
        if number < self._ticked - LATE_TICKS_MAX:
            self._ticked = 0  # The clock was ahead.
        is_again = number == self._ticked
        if number < self._ticked or (is_again and now < self._tick_again_at):
            return
        since = datetime.fromtimestamp(number * TICK.total_seconds(), UTC)
        results = await store.read_categories(self._pool, since=since, until=since + TICK)
        for site_id in await store.list_sweeping(self._pool):
            by_category = {
                category: (impressions, Micros(revenue))
                for category, (impressions, revenue) in results.get(site_id, {}).items()
            }
            self._host.tell(make_auctioneer_address(site_id), FloorTick(number, by_category))
        self._ticked = number
        self._tick_again_at = datetime.max.replace(tzinfo=UTC) if is_again else now + TICK_AGAIN
