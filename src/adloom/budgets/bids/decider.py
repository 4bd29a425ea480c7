"""Decides the multipliers of all campaigns that ask, many at once, in a thread beside the actors.

Questions may be lost and answers may come too late: a campaign that hears nothing for ten seconds decides by itself. So
a strategy that raises or hangs costs one line of the log, and the campaigns fall back.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, Protocol
from uuid import UUID

import msgspec
import structlog

from adloom.bidding.decide import ShadowedAnswer, WindowRequest, decide_with_shadows
from adloom.bidding.ports import Nets
from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.bid_model import (
    BIDS_TOPIC,
    NOTHING_FOUND,
    BidsDecided,
    FoundCounts,
    MultiplierRequest,
    bid_in_full,
    build_decided,
    build_window_request,
)
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address, Broadcaster
from adloom.runtime.loops import pass_on, pause

BATCH_MAX: Final = 1_000
WAITING_MAX: Final = 100_000  # Beyond this a campaign decides by itself.
GATHER_SECONDS: Final = 0.2  # Windows begin for all campaigns at once.
DECIDE_SECONDS_MAX: Final = 5.0
EVENTS_MIN: Final = 10  # Of a campaign, before its rate of clicks or conversions says anything.
FAILED: Final = "the strategy failed"

log: structlog.stdlib.BoundLogger = structlog.get_logger()

Decide = Callable[[Sequence[WindowRequest], Nets], list[ShadowedAnswer]]


class ReadsCounts(Protocol):
    """Reads what the campaigns that ask have brought."""

    async def read(self, requests: Sequence[MultiplierRequest]) -> Mapping[UUID, FoundCounts]: ...


class LocalTopics:
    """Hands questions to the decider of this process, and everything else to all listeners."""

    def __init__(self, others: Broadcaster, take: Callable[[MultiplierRequest], None]) -> None:
        self._others = others
        self._take = take

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        others = [one for one in messages if one[0] != BIDS_TOPIC]
        for _, message in messages:
            if isinstance(message, MultiplierRequest):
                self._take(message)
        if others:
            await self._others.publish(others)


class BidDecider:
    """Answers the questions of campaigns; `tell` sends an answer to one."""

    def __init__(
        self,
        counts: ReadsCounts,
        *,
        load_nets: Callable[[], Nets],
        decide: Decide = decide_with_shadows,
        seconds_max: float = DECIDE_SECONDS_MAX,
    ) -> None:
        self._counts = counts
        self._load_nets = load_nets
        self._decide = decide
        self._seconds_max = seconds_max
        self.tell: Callable[[Address, msgspec.Struct], bool] = _drop_message
        self._waiting: list[MultiplierRequest] = []
        self._has_work = asyncio.Event()
        self._running: Future[list[ShadowedAnswer]] | None = None
        # Plain counters, read by a collector.
        self.decided = 0
        self.failed = 0

    def take(self, request: MultiplierRequest) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(request)
            self._has_work.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Answer until `stop` is set."""
        self._waiting.clear()
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(pass_on(stop, self._has_work))
            while not stop.is_set():
                await self._has_work.wait()
                await pause(GATHER_SECONDS, stop)
                self._has_work.clear()
                while self._waiting and not stop.is_set():
                    batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                    await self._try_to_answer(batch)
            stopping.cancel()

    async def _try_to_answer(self, requests: Sequence[MultiplierRequest]) -> None:
        try:
            await self.answer(requests)
        except UnavailableError as error:
            log.warning("bid_counts_unavailable", reason=error.detail)
        except Exception:
            # The outermost loop: those that asked decide by themselves.
            log.exception("bid_decisions_failed")

    async def answer(self, requests: Sequence[MultiplierRequest]) -> None:
        """Decide for some campaigns, and tell each."""
        found = await self._counts.read(requests)
        complete = [add_counts(one, found.get(one.campaign_id, NOTHING_FOUND)) for one in requests]
        for request in complete:
            if not request.has_budget:
                self._answer(request, bid_in_full(request))
        asked = [one for one in complete if one.has_budget]
        if not asked:
            return
        answers = await self._run_strategies([build_window_request(one) for one in asked])
        for request, answer in zip(asked, answers, strict=False):
            self._answer(request, build_decided(request, answer.decision, answer.state, answer.shadows))

    def _answer(self, request: MultiplierRequest, decided: BidsDecided) -> None:
        self.decided += self.tell(make_campaign_address(request.campaign_id, request.advertiser_id), decided)

    async def _run_strategies(self, asked: Sequence[WindowRequest]) -> Sequence[ShadowedAnswer]:
        """Run them in the thread; nothing is answered while a run hangs."""
        if self._running is not None and not self._running.done():
            self.failed += len(asked)
            return []
        self._running = _run_in_thread(lambda: self._decide(asked, self._load_nets()))
        try:
            async with asyncio.timeout(self._seconds_max):
                return await asyncio.wrap_future(self._running)
        except TimeoutError:
            log.warning("bid_strategies_hang", campaigns=len(asked))
            self.failed += len(asked)
            return []
        except Exception:
            # A strategy is not to be trusted, whatever it raises: the pacer decides for all of them.
            log.exception("bid_strategies_failed", campaigns=len(asked))
            self.failed += len(asked)
        return decide_with_shadows(asked, Nets(FAILED, FAILED))


def _drop_message(address: Address, message: msgspec.Struct) -> bool:
    del address, message
    return False


def _run_in_thread(work: Callable[[], list[ShadowedAnswer]]) -> "Future[list[ShadowedAnswer]]":
    """Run something in a thread that the process does not wait for at its end."""
    future = Future[list[ShadowedAnswer]]()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_exception(error)

    threading.Thread(target=run, name="bids", daemon=True).start()
    return future


def add_counts(request: MultiplierRequest, found: FoundCounts) -> MultiplierRequest:
    """Add what a campaign's ads brought: their value is what so many impressions bring at the campaign's own rate.

    That is its rate of clicks only where no conversions are to be expected: with a target for a conversion, a campaign
    that waits for its first one would have a hundred times its value. Whether they are is the advertiser's word: else a
    stranger who reports one would take nearly all of its value away.
    """
    window, counts = request.window, found.counts
    before = counts if window.window == 0 else request.counted_before
    today, last = counts.subtract(before), request.counts.subtract(before)
    known = request.days_before + today
    events = known.conversions if found.has_conversions else known.clicks
    rate = min(1.0, events / known.impressions) if known.impressions > 0 else 0.0
    shown = max(0.0, float(today.impressions - last.impressions))
    return msgspec.structs.replace(
        request,
        counts=counts,
        counted_before=before,
        window=msgspec.structs.replace(
            window,
            value=today.impressions * rate,
            window_value=shown * rate,
            wins=shown,
            opportunities=max(window.opportunities, shown),
        ),
        rules=msgspec.structs.replace(request.rules, is_calibrated=events >= EVENTS_MIN),
    )
