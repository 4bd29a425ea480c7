"""Receives messages of delivery processes and passes them on to campaigns.

Only the tables are durable here, and no sender is owed an answer: messages that do not fit, or that
cannot be recorded at the moment, are dropped, and the sender repeats them. A first lease is recorded
before the campaign learns of it. A process that is silent for too long is gone: all campaigns in which it
has leases are told, and a lease is deleted only when its campaign has persisted that.
"""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
import structlog

from adloom.budgets.addresses import CAMPAIGN, make_campaign_address, make_session_topic, parse_campaign_key
from adloom.budgets.messages import CountsRequest, LeaseUsage, OpenWindow, Refund, SessionOver
from adloom.budgets.transport.session_store import SessionStore
from adloom.budgets.transport.sessions import DeliverySessions
from adloom.budgets.transport.wire import (
    HEARTBEAT_SECONDS,
    INBOX_CHANNEL,
    BudgetEnvelope,
    BudgetUpdate,
    SessionEnds,
    SessionHeartbeat,
    SessionVoid,
    decode_envelopes,
    encode_envelopes,
    encode_updates,
    make_topic_channel,
)
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import CampaignId
from adloom.runtime.actors.actor import Address, Broadcaster
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.loops import pause, pause_until_next
from adloom.runtime.valkey import VALKEY_AWAY, Subscription, Valkey
from adloom.schedule.traffic_shape import TrafficShape

WAITING_MAX: Final = 100_000  # First leases that wait to be noted; beyond, they are asked for again.
NOTED_MAX: Final = 5_000
CLOSED_MAX: Final = 1_000  # Leases that are closed at once: between two such parts others have their turn.
RETRY_SECONDS: Final = 0.5
CLOSE_AGAIN_SECONDS: Final = 5.0  # After a campaign could not keep it.
STALLED_SECONDS: Final = 3.0  # After such a pause of ours, silence of others does not count.
# So long after a process is gone, another one has adopted its spool and reports what is in it: it looks for such files
# every 30 seconds. A spool in a folder that no other process has is not waited for.
ADOPTED_SECONDS: Final = 35.0
POLL_SECONDS_MAX: Final = 1.0
SESSION_MAX: Final = 2**63 - 1
PROCESS_LENGTH_MAX: Final = 200

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class _Ending(msgspec.Struct):
    """A session that is over and may have leases."""

    is_noted: bool = False
    again_at: float = 0.0


class Inbox:
    """Takes messages to the actors of one host."""

    def __init__(  # noqa: PLR0913 - what it stands between
        self,
        valkey: Valkey,
        store: SessionStore,
        host: Host,
        audience: Broadcaster,
        clock: Clock,
        *,
        sessions: DeliverySessions | None = None,
        find_shape: Callable[[int | None], TrafficShape | None] = lambda _: None,
        find_day_seconds: Callable[[int | None], int | None] = lambda _: None,
        request_counts: Callable[[CampaignId], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._host = host
        self._audience = audience
        self._clock = clock
        self._find_shape = find_shape
        self._find_day_seconds = find_day_seconds
        self._request_counts = request_counts
        self._sessions = DeliverySessions() if sessions is None else sessions
        self._subscription = Subscription(
            valkey, INBOX_CHANNEL, on_message=self.receive, on_start=self._restart_silence
        )
        self._has_work = asyncio.Event()
        self._processes: dict[int, str] = {}
        self._logged_until: dict[int, float] = {}  # By session, as it last said.
        # The same of processes that are gone, and until when it counts.
        self._left: list[tuple[float, float]] = []
        self._waiting: list[BudgetEnvelope] = []
        self._ending: dict[int, _Ending] = {}
        self._void: set[int] = set()
        # Plain counters, read by a collector.
        self.envelopes: Counter[str] = Counter(dict.fromkeys(("taken", "refused", "void", "unknown"), 0))
        self.sessions_ended = 0
        self.leases = 0

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def find_logged_until(self) -> float:
        """Return the second until which the log has all that processes took; 0 if one has not said."""
        self._drop_left()
        said = [self._logged_until.get(session, 0) for session in self._sessions]
        return min([*said, *(logged_until for logged_until, _ in self._left)], default=math.inf)

    async def run(self, stop: asyncio.Event) -> None:
        self._forget()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(stop))
            keeping = group.create_task(self._maintain())
            await stop.wait()
            keeping.cancel()

    def receive(self, data: bytes) -> None:
        """Dispatch what a process has sent; unreadable messages are dropped."""
        envelopes = decode_envelopes(data)
        if not envelopes:
            self.envelopes["unknown"] += 1
        for envelope in envelopes:
            outcome = self._dispatch(envelope)
            self.envelopes[outcome] += 1
        if self._waiting or self._ending or self._void:
            self._has_work.set()

    def _dispatch(self, envelope: BudgetEnvelope) -> str:
        address, message = envelope
        match message:
            case SessionHeartbeat():
                return self._on_heartbeat(message)
            case SessionEnds(session=session):
                return self._on_session_end(session)
            case LeaseUsage() if _is_campaign(address) and _is_session(message.session):
                usage = msgspec.structs.replace(
                    message,
                    shape=self._find_shape(message.site_key),
                    day_seconds=self._find_day_seconds(message.site_key),
                )
                return self._on_usage(BudgetEnvelope(address, usage), usage)
            case CountsRequest():
                self._request_counts(message.campaign_id)
                return "taken"
            case OpenWindow() | Refund() if _is_campaign(address):
                return "taken" if self._host.tell(address, message) else "refused"
            case _:
                # Unknown, or what only campaigns, advertisers, the catalog and the event log may send.
                return "unknown"

    def _on_heartbeat(self, beat: SessionHeartbeat) -> str:
        if not _is_session(beat.session) or not self._record_seen(beat.session):
            return "void"
        self._processes[beat.session] = beat.process.replace("\0", "")[:PROCESS_LENGTH_MAX]
        logged_until = math.inf if beat.logged_until is None else beat.logged_until
        if beat.unlogged_seconds is not None:
            # By our own clock, because theirs may be wrong; we may read the message late.
            logged_until = self._clock.now().timestamp() - beat.unlogged_seconds - HEARTBEAT_SECONDS
        self._logged_until[beat.session] = logged_until
        return "taken"

    def _on_session_end(self, session: int) -> str:
        if not _is_session(session) or self._sessions.is_over(session):
            return "void"
        self._end_session(session)
        return "taken"

    def _on_usage(self, envelope: BudgetEnvelope, usage: LeaseUsage) -> str:
        if not self._record_seen(usage.session):
            return "void"
        if usage.lease:
            return "taken" if self._host.tell(*envelope) else "refused"
        if len(self._waiting) >= WAITING_MAX:
            return "refused"
        self._waiting.append(envelope)
        return "taken"

    def _record_seen(self, session: int) -> bool:
        is_open = self._sessions.record_seen(session, at=_read_seconds())
        if not is_open:
            self._void.add(session)
        return is_open

    def _end_session(self, session: int) -> None:
        if session in self._sessions:
            self._drop_left()
            self._left.append((self._logged_until.pop(session, 0), _read_seconds() + ADOPTED_SECONDS))
        self._sessions.end(session)
        self._ending[session] = _Ending()
        self.sessions_ended += 1

    def _drop_left(self) -> None:
        self._left = [one for one in self._left if one[1] > _read_seconds()]

    def _forget(self) -> None:
        self._processes.clear()
        self._logged_until.clear()
        self._left.clear()
        self._waiting.clear()
        self._ending.clear()
        self._void.clear()

    # ------------------------------------------------------------ what takes its time

    async def _listen(self, stop: asyncio.Event) -> None:
        """Load the known sessions, and listen from then on."""
        while not stop.is_set():
            try:
                known = await self._store.load()
            except UnavailableError as error:
                log.warning("budget_inbox_waits", reason=error.detail)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._sessions.restore(known.open, known.over, at=_read_seconds())
            self.leases = known.leases
            self._ending = {session: _Ending(is_noted=True) for session in known.unsettled}
            self._has_work.set()
            await self._subscription.run(stop)

    def _restart_silence(self) -> None:
        self._sessions.reset_silence(at=_read_seconds())

    async def _maintain(self) -> None:
        """Record leases, end sessions and publish it, in the order of the messages."""
        polled_at = _read_seconds()
        while True:
            await self._wait()
            if _read_seconds() - polled_at > STALLED_SECONDS:
                self._restart_silence()
            polled_at = _read_seconds()
            self._has_work.clear()
            try:
                self._end_silent()
                await self._record_waiting()
                for session in self._list_due():
                    await self._close_next_leases(session, self._ending[session])
                await self._publish_void()
            except UnavailableError as error:
                log.warning("budget_inbox_waits", reason=error.detail)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                # The outermost loop: whatever one envelope does, the next ones are taken.
                log.exception("budget_inbox_failed")
                await asyncio.sleep(RETRY_SECONDS)
            if self._waiting or self._list_due():
                self._has_work.set()

    async def _wait(self) -> None:
        # While we do not listen no silence counts, so do not wait for it.
        next_at = self._sessions.find_next_silence() if self._subscription.is_listening else None
        seconds = math.inf if next_at is None else max(0.0, next_at - _read_seconds())
        if seconds > POLL_SECONDS_MAX:
            await pause_until_next(POLL_SECONDS_MAX, self._has_work)
        else:
            await pause(seconds, self._has_work)

    def _end_silent(self) -> None:
        if not self._subscription.is_listening:
            return
        for session in self._sessions.find_silent(at=_read_seconds()):
            log.warning("delivery_process_gone", session=session, delivery=self._processes.get(session, ""))
            self._end_session(session)

    async def _record_waiting(self) -> None:
        """Record sessions and leases before campaigns learn of them; messages are dropped if that fails."""
        while self._waiting:
            envelopes, self._waiting = self._waiting[:NOTED_MAX], self._waiting[NOTED_MAX:]
            usages = [(one.to, one.message) for one in envelopes if isinstance(one.message, LeaseUsage)]
            sessions = {usage.session: self._processes.get(usage.session, "") for _, usage in usages}
            leases = [(usage.session, address.key) for address, usage in usages]
            self.leases += await self._store.record(sessions, leases, now=self._clock.now())
            for address, usage in usages:
                if self._sessions.is_over(usage.session):
                    self._void.add(usage.session)
                elif not self._host.tell(address, usage):
                    self.envelopes["refused"] += 1

    def _list_due(self) -> list[int]:
        return [session for session, ending in self._ending.items() if ending.again_at <= _read_seconds()]

    async def _close_next_leases(self, session: int, ending: "_Ending") -> None:
        """Close some leases of an ended session; those that fail are tried again later."""
        if not ending.is_noted:
            await self._store.record_end(session, self._processes.pop(session, ""), now=self._clock.now())
            ending.is_noted = True
        keys = await self._store.list_leases(session, count_max=CLOSED_MAX)
        closed = await self._close_leases(session, keys)
        if closed:
            await self._store.delete_leases(session, closed)
            self.leases -= len(closed)
        if len(closed) < len(keys):
            log.warning("leases_not_closed", session=session, leases=len(keys) - len(closed))
            ending.again_at = _read_seconds() + CLOSE_AGAIN_SECONDS
        elif len(keys) < CLOSED_MAX:
            del self._ending[session]

    async def _close_leases(self, session: int, keys: Sequence[str]) -> list[str]:
        """Tell campaigns that a session is over; return those that have persisted it."""
        over = SessionOver(session=session, second=int(self._clock.now().timestamp()))
        closing: dict[str, asyncio.Future[None]] = {}
        with contextlib.suppress(UnavailableError):
            for key in keys:
                closing[key] = self._host.send_durably(Address(CAMPAIGN, key), over)
                # If we stop meanwhile, no one reads the result.
                closing[key].add_done_callback(lambda done: done.cancelled() or done.exception())
        if closing:
            await asyncio.wait(closing.values())
        return [key for key, done in closing.items() if done.exception() is None]

    async def _publish_void(self) -> None:
        void, self._void = self._void, set()
        if void:
            try:
                await self._audience.publish(
                    [(make_session_topic(session), SessionVoid(session=session)) for session in void]
                )
            except VALKEY_AWAY as error:
                log.warning("sessions_not_told", count=len(void), reason=repr(error))


def _is_session(session: int) -> bool:
    return 0 < session <= SESSION_MAX


def _is_campaign(address: Address) -> bool:
    try:
        return address.kind == CAMPAIGN and make_campaign_address(*parse_campaign_key(address.key)) == address
    except ValueError:
        return False


def _read_seconds() -> float:
    return asyncio.get_running_loop().time()


class ValkeyBroadcaster:
    """Publishes to all listeners of a channel; what campaigns ask for goes to the inbox."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """One round trip, one message per channel."""
        by_topic: dict[str, list[BudgetUpdate]] = {}
        requests: list[tuple[Address, CountsRequest]] = []
        for topic, message in messages:
            if isinstance(message, CountsRequest):
                requests.append((make_campaign_address(message.campaign_id, message.advertiser_id), message))
            else:
                by_topic.setdefault(topic, []).append(cast("BudgetUpdate", message))
        async with self._valkey.pipeline(transaction=False) as at_once:
            for topic, news in by_topic.items():
                # The stubs have each call wait for its own answer.
                cast("Any", at_once).publish(make_topic_channel(topic), encode_updates(news))
            if requests:
                cast("Any", at_once).publish(INBOX_CHANNEL, encode_envelopes(requests))
            await at_once.execute()
