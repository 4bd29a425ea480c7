"""The client of the budget service: sends the reports of this process's leases, and applies the answers.

Everything goes over Valkey and may be lost. While Valkey is away, leases last until they are used up or
their day ends; then their campaigns are excluded. A session lives as long as the process, unless the budget
service gives it up: then another begins, and all leases of the one before are void.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.messages import (
    AdvertiserExhausted,
    AdvertiserRestored,
    CampaignExhausted,
    CampaignRestored,
    LeaseAnswer,
    Recall,
    SpendUpdate,
)
from adloom.budgets.transport.wire import (
    HEARTBEAT_SECONDS,
    INBOX_CHANNEL,
    SPEND_CHANNEL,
    BudgetMessage,
    BudgetUpdate,
    SessionEnds,
    SessionHeartbeat,
    SessionVoid,
    decode_updates,
    encode_envelopes,
    make_session_address,
    make_session_channel,
)
from adloom.core.clock import Clock
from adloom.runtime.actors.actor import Address
from adloom.runtime.loops import compute_wait
from adloom.runtime.valkey import VALKEY_AWAY, Subscription, Valkey
from adloom.serving.eligibility.placement_state import BUDGETS, PlacementStates
from adloom.serving.index.index import Index
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.registry import Demand, collect_terms
from adloom.serving.leases.traffic_report import TrafficReport

BATCH_MAX: Final = 500
BATCHES_A_TURN_MAX: Final = 4
CLOSING_BATCH_MAX: Final = 5_000  # No request waits meanwhile, so one message may be long.
GATHER_SECONDS: Final = 0.005  # Urgent reports within it share one message.
TURN_SECONDS_MIN: Final = 0.02
POLL_SECONDS: Final = 0.25  # How often waiting campaigns learn of demand.
RETRY_SECONDS: Final = 0.2
CLOSE_SECONDS_MAX: Final = 1.0  # What is not returned by then expires later.
SESSION_BITS: Final = 48
QUIET_SECONDS: Final = 2.0  # A dead connection is found within twice that.

log: structlog.stdlib.BoundLogger = structlog.get_logger()

Messages = list[tuple[Address, BudgetMessage]]


def make_session_name() -> int:
    return secrets.randbits(SESSION_BITS) or 1


class LeaseClient:
    """Connects local leases and placement states with the budget service."""

    def __init__(  # noqa: PLR0913 - the last two are for tests
        self,
        valkey: Valkey,
        states: PlacementStates,
        clock: Clock,
        *,
        process: str,
        new_session: Callable[[], int] = make_session_name,
        draw: Callable[[], float] = lambda: 1.0,
        find_logged_until: Callable[[float], int | None] = lambda _: None,
    ) -> None:
        self._valkey = valkey
        self._states = states
        self._clock = clock
        self._process = process
        self._new_session = new_session
        self._find_logged_until = find_logged_until
        self._has_work = asyncio.Event()
        self.leases = LocalLeases(new_session(), on_urgent=self._has_work.set, draw=draw)
        self._demand = Demand(self.leases.list_placements)
        self._is_subscribed = asyncio.Event()  # Whether we are subscribed to answers.
        self._over: list[int] = []  # Ended sessions that were not yet reported to the budget service.
        self._beats_at = 0.0
        self._polls_at = 0.0
        self._sleeps_until = 0.0
        self._is_cut_off = False
        self._listeners = 0  # Of the last message.
        self._traffic = TrafficReport(self.leases.registry, states)
        # A plain counter, read by a collector.
        self.sessions = 1

    def update(self, index: Index) -> None:
        """Apply a new index; a campaign that needs a lease and has none is excluded from now on."""
        placed = collect_terms(index)
        self._traffic.site_keys = {key: index.by_key[key].site_key for key in placed}
        self.leases.update(placed, at=_read_loop_seconds())
        self._update_exclusions()
        self._has_work.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then return all leases, as far as that reaches the budget service."""
        ends = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(_wake_on(stop, self._has_work))
            news = self._make_subscription(SPEND_CHANNEL, on_start=lambda: None)
            group.create_task(news.run(ends))
            session_ends = self._listen(group)
            while not stop.is_set():
                if self.leases.is_void:
                    session_ends.set()
                    self._start_new_session()
                    session_ends = self._listen(group)
                await self._try_send_due()
                await self._sleep()
            await self._close()
            session_ends.set()
            ends.set()
            stopping.cancel()

    # ------------------------------------------------------------ sending

    async def _try_send_due(self) -> None:
        try:
            await self._send_due()
        except Exception:
            # The outermost loop: one faulty report must not block all others.
            log.exception("lease_turn_failed")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send_due(self) -> None:
        """Send what is due, a heartbeat first: it tells a process whose session is over."""
        at = _read_loop_seconds()
        messages: Messages = []
        if at >= self._beats_at:
            messages += [(make_session_address(over), SessionEnds(session=over)) for over in self._over]
            now = self._clock.now().timestamp()
            logged_until = self._find_logged_until(now)
            beat = SessionHeartbeat(
                session=self.leases.session,
                process=self._process,
                logged_until=logged_until,
                unlogged_seconds=None if logged_until is None else now - logged_until,
            )
            messages.append((make_session_address(self.leases.session), beat))
        if self._is_subscribed.is_set():
            self._check_demand(at)
            messages += self._collect_reports(at)
        for start in range(0, len(messages), self._batch_max):
            if not await self._send(messages[start : start + self._batch_max]):
                return
        if at >= self._beats_at:
            self._over.clear()
            self._beats_at = at + compute_wait(HEARTBEAT_SECONDS)

    def _check_demand(self, at: float) -> None:
        if at < self._polls_at:
            return
        self._polls_at = at + POLL_SECONDS
        for key in self._demand.record_requests(self._states.take_requested(), at=at):
            self.leases.on_demand(key, at=at)

    def _collect_reports(self, at: float) -> Messages:
        said = self.leases.collect_reports(
            second=self._read_second(),
            at=at,
            most=self._batch_max * BATCHES_A_TURN_MAX,
            is_wanted=self._demand.is_requested,
        )
        self._update_exclusions()
        return [
            (
                make_campaign_address(terms.campaign_id, terms.advertiser_id),
                self._traffic.add_to(terms, usage),
            )
            for terms, usage in said
        ]

    @property
    def _batch_max(self) -> int:
        return CLOSING_BATCH_MAX if self.leases.is_closing else BATCH_MAX

    async def _send(self, messages: Sequence[tuple[Address, BudgetMessage]]) -> bool:
        try:
            self._listeners = await self._valkey.publish(INBOX_CHANNEL, encode_envelopes(messages))
        except VALKEY_AWAY as error:
            if not self._is_cut_off:
                log.warning("leases_cut_off_from_brains", error=repr(error))
            self._is_cut_off = True
            await asyncio.sleep(RETRY_SECONDS)
            return False
        if self._is_cut_off:
            log.info("leases_reach_brains_again")
        self._is_cut_off = False
        return True

    async def _sleep(self) -> None:
        """Wait until something is due or urgent; urgent reports are gathered for a moment."""
        at = _read_loop_seconds()
        moments = [self._beats_at]
        if self._demand.has_waiting:
            moments.append(self._polls_at)
        if self._is_subscribed.is_set():
            if self.leases.next_at is not None:
                moments.append(max(self.leases.next_at, at + TURN_SECONDS_MIN))
            if self.leases.next_end is not None:
                moments.append(
                    at + max(TURN_SECONDS_MIN, self.leases.next_end - self._clock.now().timestamp())
                )
        self._sleeps_until = min(moments)
        try:
            async with asyncio.timeout_at(self._sleeps_until):
                await self._has_work.wait()
        except TimeoutError:
            pass
        else:
            await asyncio.sleep(GATHER_SECONDS)
        self._has_work.clear()

    # ------------------------------------------------------------ receiving

    def _listen(self, group: asyncio.TaskGroup) -> asyncio.Event:
        """Listen to this session's channel until the returned event is set."""
        self._is_subscribed.clear()
        ends = asyncio.Event()
        answers = self._make_subscription(
            make_session_channel(self.leases.session), on_start=self._on_subscribed
        )
        group.create_task(answers.run(ends))
        return ends

    def _make_subscription(self, channel: str, *, on_start: Callable[[], None]) -> Subscription:
        return Subscription(
            self._valkey, channel, on_message=self._on_data, on_start=on_start, quiet_seconds=QUIET_SECONDS
        )

    def _on_subscribed(self) -> None:
        self._is_subscribed.set()
        self._has_work.set()

    def _on_data(self, data: bytes) -> None:
        at, second = _read_loop_seconds(), self._read_second()
        for news in decode_updates(data):
            self._apply(news, second, at)
        self._update_exclusions()
        next_at = self.leases.next_at
        if (
            self.leases.is_void
            or self.leases.is_closing
            or (next_at is not None and next_at < self._sleeps_until)
        ):
            self._has_work.set()

    def _apply(self, news: BudgetUpdate, second: int, at: float) -> None:
        match news:
            case LeaseAnswer():
                self.leases.on_answer(news, second=second, at=at)
            case Recall():
                self.leases.on_recall(news, second=second, at=at)
            case SpendUpdate():
                self.leases.on_spend_update(news.campaign_id, at=at)
            case CampaignRestored():
                self.leases.on_campaign_restored(news.campaign_id, at=at)
            case CampaignExhausted():
                self.leases.on_campaign_exhausted(news.campaign_id, at=at)
            case AdvertiserRestored():
                self.leases.on_advertiser_restored(news.advertiser_id, at=at)
            case SessionVoid():
                self.leases.is_void |= news.session == self.leases.session
            case AdvertiserExhausted():
                pass  # Its campaigns learn it when they ask.

    # ------------------------------------------------------------ sessions

    def _start_new_session(self) -> None:
        log.warning("lease_session_over", session=self.leases.session)
        self._over.append(self.leases.session)
        self.leases.start_session(self._new_session(), at=_read_loop_seconds())
        self.sessions += 1
        self._beats_at = 0.0
        self._update_exclusions()

    async def _close(self) -> None:
        """Return everything, and wait a little for the confirmation.

        The end of the session is sent last: whatever arrived before it is returned, answered or not.
        """
        self.leases.close(at=_read_loop_seconds())
        self._update_exclusions()
        ends_at = _read_loop_seconds() + CLOSE_SECONDS_MAX
        while not self.leases.is_settled and not self.leases.is_void and _read_loop_seconds() < ends_at:
            await self._try_send_due()
            if not self._listeners:
                break
            await asyncio.sleep(TURN_SECONDS_MIN)
        await self._send(
            [(make_session_address(self.leases.session), SessionEnds(session=self.leases.session))]
        )

    def _update_exclusions(self) -> None:
        if multipliers := self.leases.registry.take_multipliers():
            self._states.set_multipliers(multipliers)
        if self.leases.changes:
            self._states.mark_changed(self.leases.take_changes(), source=BUDGETS)

    def _read_second(self) -> int:
        return int(self._clock.now().timestamp())


def _read_loop_seconds() -> float:
    return asyncio.get_running_loop().time()


async def _wake_on(stop: asyncio.Event, work: asyncio.Event) -> None:
    await stop.wait()
    work.set()
