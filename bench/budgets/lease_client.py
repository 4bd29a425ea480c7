"""A delivery process as budget actors see it: it sends heartbeats, takes leases and reports usage."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

from adloom.budgets.messages import LeaseAnswer, LeaseUsage
from adloom.budgets.transport.wire import (
    HEARTBEAT_SECONDS,
    INBOX_CHANNEL,
    BudgetMessage,
    SessionHeartbeat,
    decode_updates,
    encode_envelopes,
    make_session_address,
    make_session_channel,
)
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.runtime.valkey import Subscription, Valkey
from bench.processes import LoadError

MESSAGES_AT_ONCE: Final = 1_000
UNANSWERED_MAX: Final = 5_000  # Real processes also ask in the background, in batches.
ANSWER_SECONDS_MAX: Final = 30.0
POLL_SECONDS: Final = 0.01
ATTEMPTS_MAX: Final = 100
AGAIN_SECONDS: Final = 0.1
REPEAT_SECONDS: Final = 2.0  # Messages may get lost.


class BenchLeaseClient:
    """One session of a delivery process."""

    def __init__(self, valkey: Valkey, session: int) -> None:
        self._valkey = valkey
        self._session = session
        self._report = 0
        self._answers: dict[CampaignId, LeaseAnswer] = {}  # Answers to the last report.
        self._leases: dict[CampaignId, int] = {}

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncGenerator["BenchLeaseClient"]:
        """Listen, and send heartbeats."""
        stop, is_listening = asyncio.Event(), asyncio.Event()
        channel = make_session_channel(self._session)
        subscription = Subscription(
            self._valkey, channel, on_message=self._on_update, on_start=is_listening.set
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(subscription.run(stop))
            beating = group.create_task(self._send_heartbeats())
            try:
                await is_listening.wait()
                yield self
            finally:
                beating.cancel()
                stop.set()

    async def report_usage(
        self,
        campaigns: Mapping[CampaignId, Address],
        *,
        want: Micros,
        cost: Micros,
        given: Mapping[CampaignId, tuple[int, int]] | None = None,
    ) -> dict[CampaignId, int]:
        """Report what was spent, and ask until all campaigns have leased enough; return the lease numbers."""
        asking, spent = dict(campaigns), given or {}
        for _ in range(ATTEMPTS_MAX):
            await self._send_reports(asking, want=want, cost=cost, given=spent)
            spent = {}  # Spending is reported once.
            asking = {
                campaign: address
                for campaign, address in asking.items()
                if self._answers[campaign].granted - self._answers[campaign].given < want
            }
            if not asking:
                return {campaign: self._leases[campaign] for campaign in campaigns}
            await asyncio.sleep(AGAIN_SECONDS)  # The campaigns are asking their advertisers.
        raise LoadError(f"{len(asking)} of {len(campaigns)} campaigns grant no lease.")

    async def _send_reports(
        self,
        campaigns: Mapping[CampaignId, Address],
        *,
        want: Micros,
        cost: Micros,
        given: Mapping[CampaignId, tuple[int, int]],
    ) -> None:
        """Send each campaign one report, and wait for the answers."""
        self._report += 1
        self._answers = {}
        letters: dict[CampaignId, tuple[Address, BudgetMessage]] = {
            campaign: (
                address,
                LeaseUsage(
                    session=self._session,
                    report=self._report,
                    lease=self._leases.get(campaign, 0),
                    given=(given[campaign],) if campaign in given else (),
                    want=want,
                    cost=cost,
                ),
            )
            for campaign, address in campaigns.items()
        }
        waiting = list(letters)
        for first in range(0, len(waiting), MESSAGES_AT_ONCE):
            part = waiting[first : first + MESSAGES_AT_ONCE]
            await self._send([letters[campaign] for campaign in part])
            await self._wait_for_answers(letters, first + len(part) - UNANSWERED_MAX)
        await self._wait_for_answers(letters, len(letters))

    async def _wait_for_answers(
        self, letters: Mapping[CampaignId, tuple[Address, BudgetMessage]], count: int
    ) -> None:
        """Wait for so many answers; send reports again where none comes."""
        clock = asyncio.get_running_loop().time
        ends_at, repeat_at = clock() + ANSWER_SECONDS_MAX, clock() + REPEAT_SECONDS
        before = len(self._answers)
        while len(self._answers) < count:
            await asyncio.sleep(POLL_SECONDS)
            if len(self._answers) > before:
                before = len(self._answers)
                ends_at, repeat_at = clock() + ANSWER_SECONDS_MAX, clock() + REPEAT_SECONDS
            elif clock() > ends_at:
                raise LoadError(f"Only {len(self._answers)} of {count} campaigns have answered.")
            elif clock() > repeat_at:
                repeat_at = clock() + REPEAT_SECONDS
                late = [letter for campaign, letter in letters.items() if campaign not in self._answers]
                await self._send(late[:MESSAGES_AT_ONCE])

    def _on_update(self, data: bytes) -> None:
        for news in decode_updates(data):
            if isinstance(news, LeaseAnswer) and news.report == self._report and news.lease:
                self._answers[news.campaign_id] = news
                self._leases[news.campaign_id] = news.lease

    async def _send_heartbeats(self) -> None:
        beat = SessionHeartbeat(session=self._session, process=f"bench-{self._session}")
        while True:
            await self._send([(make_session_address(self._session), beat)])
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _send(self, letters: Sequence[tuple[Address, BudgetMessage]]) -> None:
        await self._valkey.publish(INBOX_CHANNEL, encode_envelopes(letters))
