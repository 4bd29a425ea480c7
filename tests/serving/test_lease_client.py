"""The lease client over a real Valkey: what a delivery process reports to budget actors, and how it uses their answers."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.messages import BudgetVerdict, CampaignRestored, LeaseAnswer, LeaseUsage, Recall
from adloom.budgets.transport.wire import (
    INBOX_CHANNEL,
    SPEND_CHANNEL,
    BudgetEnvelope,
    BudgetUpdate,
    SessionEnds,
    SessionHeartbeat,
    SessionVoid,
    decode_envelopes,
    encode_updates,
    make_session_channel,
)
from adloom.core.clock import SystemClock
from adloom.core.ids import AdvertiserId, BannerId, CampaignId
from adloom.core.money import Micros
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow, OfferPrice
from adloom.serving.leases import client
from adloom.serving.leases.campaign_lease import OFFERS_MIN
from adloom.serving.leases.client import BATCH_MAX, LeaseClient
from adloom.serving.leases.local_leases import UNDER_WAY_MAX
from tests.support.contexts import a_context
from tests.support.eventually import eventually, measure_fastest
from tests.support.relay import Relay
from tests.support.rows import a_snapshot, an_assignment_row, an_id

COST = Micros(1_000)
ADVERTISER = AdvertiserId(an_id(900))
END_OF_TIME = datetime(2100, 1, 1, tzinfo=UTC)
NEVER = datetime(2000, 1, 1, tzinfo=UTC)


def a_row(key: int, **fields: Any) -> AssignmentRow:
    return msgspec.structs.replace(
        an_assignment_row(
            campaign_key=key,
            campaign_id=campaign_id(key),
            banner_key=key,
            banner_id=BannerId(an_id(10_000 + key)),
            advertiser_id=ADVERTISER,
            price=OfferPrice(COST),
            is_limited=True,
        ),
        **fields,
    )


def campaign_id(key: int) -> CampaignId:
    return CampaignId(an_id(1_000 + key))


class FakeBudgetActors:
    """Answers reports with a set verdict, and records what it received."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self.envelopes: list[BudgetEnvelope] = []
        self.messages: list[int] = []  # The number of envelopes in each.
        self.given: dict[CampaignId, dict[tuple[int, int], int]] = {}  # By session and report.
        self.verdict = BudgetVerdict.GRANTED
        self.is_silent = False

    @property
    def usages(self) -> list[LeaseUsage]:
        """All reports, each once: on a busy machine an answer may take so long that the same is sent again."""
        found = {
            (one.to, one.message.session, one.message.report): one.message
            for one in self.envelopes
            if isinstance(one.message, LeaseUsage)
        }
        return list(found.values())

    @property
    def beats(self) -> list[SessionHeartbeat]:
        return [one.message for one in self.envelopes if isinstance(one.message, SessionHeartbeat)]

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["FakeBudgetActors"]:
        async with self._valkey.pubsub() as subscription, asyncio.TaskGroup() as group:
            await subscription.subscribe(INBOX_CHANNEL)
            await subscription.get_message(timeout=30)
            task = group.create_task(self._listen(subscription))
            yield self
            task.cancel()

    async def publish(self, session: int, *updates: BudgetUpdate) -> None:
        await self._valkey.publish(make_session_channel(session), encode_updates(updates))

    async def _listen(self, subscription: Any) -> None:
        async for message in subscription.listen():
            envelopes = decode_envelopes(message["data"])
            self.envelopes += envelopes
            self.messages.append(len(envelopes))
            answers = [
                self._answer(one, one.message) for one in envelopes if isinstance(one.message, LeaseUsage)
            ]
            if answers and not self.is_silent:
                await self.publish(answers[0].session, *answers)

    def _answer(self, envelope: BudgetEnvelope, usage: LeaseUsage) -> LeaseAnswer:
        campaign = CampaignId(msgspec.convert(envelope.to.key.partition("|")[2], CampaignId))
        reports = self.given.setdefault(campaign, {})
        reports[usage.session, usage.report] = sum(amount for _, amount in usage.given)
        given = sum(reports.values())
        return LeaseAnswer(
            campaign_id=campaign,
            session=usage.session,
            report=usage.report,
            lease=9,
            granted=Micros(given + (usage.want if self.verdict is BudgetVerdict.GRANTED else 0)),
            given=Micros(given),
            ends_at=END_OF_TIME,
            verdict=self.verdict,
        )


class DeliveryProcess:
    """A delivery process without HTTP."""

    def __init__(self, valkey: Valkey) -> None:
        self.states = PlacementStates()
        sessions = count(71)
        self.client = LeaseClient(
            valkey,
            self.states,
            SystemClock(),
            process="delivery-1",
            new_session=lambda: next(sessions),
            find_logged_until=lambda second: int(second) - 17,
        )
        self.index: Index = compile_index(a_snapshot())
        self.stop = asyncio.Event()

    def load(self, *rows: AssignmentRow) -> None:
        self.index = compile_index(a_snapshot(*rows, max_banners=200))
        self.states.install(self.index, [])
        self.client.update(self.index)

    def offered(self) -> list[int]:
        """Request the placement, without reserving anything."""
        now = SystemClock().now()
        state = self.states.get(self.index.by_slug[b"home"], now)
        offers = self.states.decide_offers(state, a_context(), int(now.timestamp()))
        return sorted(offer.candidate.campaign_key for offer in offers)

    def take(self, key: int) -> int | None:
        lease = self.client.leases.reserve(key, COST, int(SystemClock().now().timestamp()))
        if self.client.leases.changes:
            self.states.mark_changed(self.client.leases.take_changes())
        return lease

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["DeliveryProcess"]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.client.run(self.stop))
            yield self
            self.stop.set()


@pytest.fixture
async def actors(valkey: Valkey) -> AsyncGenerator[FakeBudgetActors]:
    async with FakeBudgetActors(valkey).listening() as actors:
        yield actors


@pytest.fixture
async def process(valkey: Valkey, actors: FakeBudgetActors) -> AsyncGenerator[DeliveryProcess]:
    del actors  # It subscribes before the process starts, and ends after it.
    async with DeliveryProcess(valkey).running() as process:
        yield process


async def test_a_campaign_with_a_budget_is_offered_as_soon_as_it_has_a_lease(
    process: DeliveryProcess, actors: FakeBudgetActors
) -> None:
    process.load(a_row(7), a_row(8, is_limited=False))
    before = process.offered()

    await eventually(lambda: process.offered() == [7, 8], seconds=30)

    assert before == [8]
    assert process.take(7) == 9
    assert actors.envelopes[-1].to == make_campaign_address(campaign_id(7), ADVERTISER)
    assert len(actors.usages) == 1


async def test_the_first_message_of_a_process_is_a_heartbeat(
    process: DeliveryProcess, actors: FakeBudgetActors
) -> None:
    process.load(a_row(7))

    await eventually(lambda: bool(actors.usages), seconds=30)

    beat = actors.envelopes[0].message
    assert isinstance(beat, SessionHeartbeat)
    assert (beat.session, beat.process) == (71, "delivery-1")
    assert 17 <= (beat.unlogged_seconds or 0) < 18
    assert time.time() - 120 < (beat.logged_until or 0) < time.time() - 16
    await eventually(lambda: len(actors.beats) == 2, seconds=30)


async def test_a_lease_that_is_used_up_is_renewed_within_half_a_second(
    process: DeliveryProcess, actors: FakeBudgetActors
) -> None:
    process.load(a_row(7))
    await eventually(lambda: process.offered() == [7], seconds=30)

    async def use_up() -> None:
        for _ in range(OFFERS_MIN):
            process.take(7)
        assert process.offered() == []
        await eventually(lambda: process.offered() == [7], seconds=30)

    assert await measure_fastest(use_up, seconds=0.5) < 0.5
    given = [sum(amount for _, amount in usage.given) for usage in actors.usages]
    assert given[:2] == [0, OFFERS_MIN * COST]


async def test_many_campaigns_report_in_batches(process: DeliveryProcess, actors: FakeBudgetActors) -> None:
    process.load(*(a_row(key) for key in range(1_200)))

    await eventually(lambda: process.client.leases.offerable_count == 1_200, seconds=30)

    assert max(actors.messages) <= BATCH_MAX
    # On a busy machine an answer may take so long that the same report is sent again.
    reports = {
        (one.to.key, one.message.report) for one in actors.envelopes if isinstance(one.message, LeaseUsage)
    }
    assert len(reports) == 1_200


async def test_a_refused_campaign_asks_again_when_its_placement_is_requested(
    process: DeliveryProcess, actors: FakeBudgetActors
) -> None:
    actors.verdict = BudgetVerdict.DAILY_BUDGET
    process.load(a_row(7))
    await eventually(lambda: len(actors.usages) == 1, seconds=30)
    await asyncio.sleep(1.2)
    without_a_request = len(actors.usages)

    process.offered()
    await eventually(lambda: len(actors.usages) > without_a_request, seconds=30)

    assert without_a_request == 1
    assert actors.usages[-1].is_needed
    assert process.states.find_reason(7) == "daily_budget"


async def test_a_restored_campaign_asks_again_at_once(
    process: DeliveryProcess, actors: FakeBudgetActors, valkey: Valkey
) -> None:
    actors.verdict = BudgetVerdict.DAILY_BUDGET
    process.load(a_row(7))
    await eventually(lambda: bool(actors.usages), seconds=30)
    await asyncio.sleep(0.1)

    actors.verdict = BudgetVerdict.GRANTED
    restored = CampaignRestored(campaign_id=campaign_id(7), at=NEVER)
    await valkey.publish(SPEND_CHANNEL, encode_updates([restored]))

    # Nobody requests the placement meanwhile, or it would ask for that.
    await eventually(lambda: len(actors.usages) == 2, seconds=30)
    await eventually(lambda: process.offered() == [7], seconds=30)


async def test_a_recalled_lease_is_returned(process: DeliveryProcess, actors: FakeBudgetActors) -> None:
    process.load(a_row(7))
    await eventually(lambda: process.offered() == [7], seconds=30)

    await actors.publish(71, Recall(campaign_id=campaign_id(7), session=71))
    await eventually(lambda: len(actors.usages) == 2, seconds=30)

    assert actors.usages[-1].want == 0
    assert process.offered() == []


async def test_a_void_session_is_followed_by_another(
    process: DeliveryProcess, actors: FakeBudgetActors
) -> None:
    process.load(a_row(7))
    await eventually(lambda: process.offered() == [7], seconds=30)

    await actors.publish(71, SessionVoid(session=71))
    await eventually(lambda: any(beat.session == 72 for beat in actors.beats), seconds=30)
    await eventually(lambda: process.offered() == [7], seconds=30)

    assert any(envelope.message == SessionEnds(session=71) for envelope in actors.envelopes)
    assert actors.usages[-1].session == 72
    assert process.client.sessions == 2


async def test_a_process_that_stops_returns_its_leases_and_ends_its_session(
    valkey: Valkey, actors: FakeBudgetActors
) -> None:
    async with DeliveryProcess(valkey).running() as process:
        process.load(*(a_row(key) for key in range(20)))
        await eventually(lambda: process.client.leases.offerable_count == 20, seconds=30)
        process.take(3)
    await eventually(lambda: actors.envelopes[-1].message == SessionEnds(session=71), seconds=30)

    returned = [usage for usage in actors.usages if usage.want == 0]
    assert len(returned) == 20
    assert sum(amount for usage in returned for _, amount in usage.given) == COST


async def test_a_process_that_stops_returns_all_leases_in_one_message(
    valkey: Valkey, actors: FakeBudgetActors
) -> None:
    count = UNDER_WAY_MAX + 500
    async with DeliveryProcess(valkey).running() as process:
        process.load(*(a_row(key) for key in range(count)))
        await eventually(lambda: process.client.leases.offerable_count == count, seconds=30)
        actors.is_silent = True
        leased = len(actors.messages)
    await eventually(lambda: actors.envelopes[-1].message == SessionEnds(session=71), seconds=30)

    assert max(actors.messages[leased:]) >= count, "in one message"
    returned = {
        envelope.to
        for envelope in actors.envelopes
        if isinstance(envelope.message, LeaseUsage) and envelope.message.want == 0
    }
    assert len(returned) == count


async def test_a_process_stops_without_waiting_if_no_budget_actor_listens(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CLOSE_SECONDS_MAX", 3_600.0)
    process = DeliveryProcess(valkey)
    actors = FakeBudgetActors(valkey)
    async with asyncio.timeout(60), process.running(), actors.listening():
        process.load(a_row(7))
        await eventually(lambda: process.offered() == [7], seconds=30)


async def test_a_report_without_an_answer_is_sent_again(
    process: DeliveryProcess, actors: FakeBudgetActors
) -> None:
    actors.is_silent = True
    process.load(a_row(7))
    await eventually(lambda: len(actors.usages) == 1, seconds=30)

    actors.is_silent = False
    await eventually(lambda: process.offered() == [7], seconds=30)

    first, again = [one.message for one in actors.envelopes if isinstance(one.message, LeaseUsage)][:2]
    assert first == again


async def test_leases_are_spent_while_valkey_is_away_and_renewed_when_it_is_back(
    shared_valkey: EmbeddedValkey, actors: FakeBudgetActors
) -> None:
    parts = urlsplit(shared_valkey.url)
    assert parts.port is not None
    async with Relay(parts.port).running() as relay:
        host = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{relay.port}"
        async with (
            open_valkey(parts._replace(netloc=host).geturl()) as valkey,
            DeliveryProcess(valkey).running() as process,
        ):
            process.load(a_row(7))
            await eventually(lambda: process.offered() == [7], seconds=30)
            before = len(actors.usages)
            relay.silence()

            taken = [process.take(7) for _ in range(OFFERS_MIN + 1)]
            await asyncio.sleep(0.5)
            out, received = process.offered(), len(actors.usages) - before
            await eventually(lambda: process.offered() == [7], seconds=30)

    assert taken == [9] * OFFERS_MIN + [None]
    assert (out, received) == ([], 0)
