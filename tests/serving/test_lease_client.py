"""Leases over a real Valkey: what a delivery process says to the brains, and what it makes of what it hears."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from adloom.budgets.addresses import campaign_address
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
    session_channel,
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
from adloom.serving.leases.campaign_lease import OFFERS_MIN
from adloom.serving.leases.client import BATCH_MAX, LeaseClient
from adloom.serving.leases.local_leases import UNDER_WAY_MAX
from tests.support.contexts import a_context
from tests.support.eventually import eventually
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


class Brain:
    """Answers reports as it is told to, and remembers what was said."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self.letters: list[BudgetEnvelope] = []
        self.messages: list[int] = []  # How many letters were in each.
        self.given: dict[CampaignId, int] = {}
        self.verdict = BudgetVerdict.GRANTED
        self.is_silent = False

    @property
    def usages(self) -> list[LeaseUsage]:
        return [one.message for one in self.letters if isinstance(one.message, LeaseUsage)]

    @property
    def beats(self) -> list[SessionHeartbeat]:
        return [one.message for one in self.letters if isinstance(one.message, SessionHeartbeat)]

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["Brain"]:
        async with self._valkey.pubsub() as subscription, asyncio.TaskGroup() as group:
            await subscription.subscribe(INBOX_CHANNEL)
            await subscription.get_message(timeout=1)
            task = group.create_task(self._listen(subscription))
            yield self
            task.cancel()

    async def say(self, session: int, *news: BudgetUpdate) -> None:
        await self._valkey.publish(session_channel(session), encode_updates(news))

    async def _listen(self, subscription: Any) -> None:
        async for message in subscription.listen():
            letters = decode_envelopes(message["data"])
            self.letters += letters
            self.messages.append(len(letters))
            answers = [
                self._answer(one, one.message) for one in letters if isinstance(one.message, LeaseUsage)
            ]
            if answers and not self.is_silent:
                await self.say(answers[0].session, *answers)

    def _answer(self, letter: BudgetEnvelope, usage: LeaseUsage) -> LeaseAnswer:
        campaign = CampaignId(msgspec.convert(letter.to.key.partition("|")[2], CampaignId))
        given = self.given.get(campaign, 0) + sum(amount for _, amount in usage.given)
        self.given[campaign] = given
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


class Desk:
    """A delivery process without HTTP."""

    def __init__(self, valkey: Valkey) -> None:
        self.states = PlacementStates()
        sessions = count(71)
        self.client = LeaseClient(
            valkey, self.states, SystemClock(), process="delivery-1", new_session=lambda: next(sessions)
        )
        self.index: Index = compile_index(a_snapshot())
        self.stop = asyncio.Event()

    def learn(self, *rows: AssignmentRow) -> None:
        self.index = compile_index(a_snapshot(*rows, max_banners=200))
        self.states.install(self.index, [])
        self.client.update(self.index)

    def shown(self) -> list[int]:
        """Ask for the placement, without taking anything."""
        now = SystemClock().now()
        state = self.states.get(self.index.by_slug[b"home"], now)
        offers = self.states.decide_offers(state, a_context(), int(now.timestamp()))
        return sorted(offer.candidate.campaign_key for offer in offers)

    def take(self, key: int) -> int | None:
        lease = self.client.leases.reserve(key, COST, int(SystemClock().now().timestamp()))
        if self.client.leases.has_changes:
            self.states.mark_changed(self.client.leases.take_changes())
        return lease

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Desk"]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.client.run(self.stop))
            yield self
            self.stop.set()


@pytest.fixture
async def brain(valkey: Valkey) -> AsyncGenerator[Brain]:
    async with Brain(valkey).listening() as brain:
        yield brain


@pytest.fixture
async def desk(valkey: Valkey, brain: Brain) -> AsyncGenerator[Desk]:
    del brain  # It listens before anybody speaks, and longer.
    async with Desk(valkey).running() as desk:
        yield desk


async def test_a_campaign_with_a_budget_is_shown_as_soon_as_it_has_a_lease(desk: Desk, brain: Brain) -> None:
    desk.learn(a_row(7), a_row(8, is_limited=False))
    before = desk.shown()

    await eventually(lambda: desk.shown() == [7, 8], seconds=2)

    assert before == [8]
    assert desk.take(7) == 9
    assert brain.letters[-1].to == campaign_address(campaign_id(7), ADVERTISER)
    assert len(brain.usages) == 1


async def test_the_process_says_that_it_is_there_before_it_says_anything_else(
    desk: Desk, brain: Brain
) -> None:
    desk.learn(a_row(7))

    await eventually(lambda: bool(brain.usages), seconds=2)

    assert brain.letters[0].message == SessionHeartbeat(session=71, process="delivery-1")
    await eventually(lambda: len(brain.beats) == 2, seconds=4)


async def test_a_lease_that_runs_low_is_asked_for_within_moments(desk: Desk, brain: Brain) -> None:
    desk.learn(a_row(7))
    await eventually(lambda: desk.shown() == [7], seconds=2)

    took_at = asyncio.get_running_loop().time()
    for _ in range(OFFERS_MIN):
        desk.take(7)
    out = desk.shown()
    await eventually(lambda: desk.shown() == [7], seconds=2)

    assert out == []
    assert asyncio.get_running_loop().time() - took_at < 0.5
    assert [sum(amount for _, amount in usage.given) for usage in brain.usages] == [0, OFFERS_MIN * COST]


async def test_many_ask_in_batches(desk: Desk, brain: Brain) -> None:
    desk.learn(*(a_row(key) for key in range(1_200)))

    await eventually(lambda: desk.client.leases.offerable_count == 1_200, seconds=10)

    assert max(brain.messages) <= BATCH_MAX
    # On a busy machine an answer may take so long that the same report is said once more.
    said = {(one.to.key, one.message.report) for one in brain.letters if isinstance(one.message, LeaseUsage)}
    assert len(said) == 1_200


async def test_one_that_was_turned_away_asks_again_while_its_placement_is_asked_for(
    desk: Desk, brain: Brain
) -> None:
    brain.verdict = BudgetVerdict.DAILY_BUDGET
    desk.learn(a_row(7))
    await eventually(lambda: len(brain.usages) == 1, seconds=2)
    await asyncio.sleep(1.2)
    unasked = len(brain.usages)

    desk.shown()
    await eventually(lambda: len(brain.usages) > unasked, seconds=2)

    assert unasked == 1
    assert brain.usages[-1].is_needed
    assert desk.states.find_reason(7) == "daily_budget"


async def test_news_of_a_budget_are_followed_at_once(desk: Desk, brain: Brain, valkey: Valkey) -> None:
    brain.verdict = BudgetVerdict.DAILY_BUDGET
    desk.learn(a_row(7))
    await eventually(lambda: bool(brain.usages), seconds=2)
    await asyncio.sleep(0.1)

    brain.verdict = BudgetVerdict.GRANTED
    restored = CampaignRestored(campaign_id=campaign_id(7), at=NEVER)
    await valkey.publish(SPEND_CHANNEL, encode_updates([restored]))

    await eventually(lambda: desk.shown() == [7], seconds=0.5)


async def test_what_is_recalled_is_returned(desk: Desk, brain: Brain) -> None:
    desk.learn(a_row(7))
    await eventually(lambda: desk.shown() == [7], seconds=2)

    await brain.say(71, Recall(campaign_id=campaign_id(7), session=71))
    await eventually(lambda: len(brain.usages) == 2, seconds=2)

    assert brain.usages[-1].want == 0
    assert desk.shown() == []


async def test_a_session_that_is_over_is_followed_by_another(desk: Desk, brain: Brain) -> None:
    desk.learn(a_row(7))
    await eventually(lambda: desk.shown() == [7], seconds=2)

    await brain.say(71, SessionVoid(session=71))
    await eventually(lambda: any(beat.session == 72 for beat in brain.beats), seconds=2)
    await eventually(lambda: desk.shown() == [7], seconds=2)

    assert any(letter.message == SessionEnds(session=71) for letter in brain.letters)
    assert brain.usages[-1].session == 72
    assert desk.client.sessions == 2


async def test_who_stops_returns_everything_and_ends_the_session(valkey: Valkey, brain: Brain) -> None:
    async with Desk(valkey).running() as desk:
        desk.learn(*(a_row(key) for key in range(20)))
        await eventually(lambda: desk.client.leases.offerable_count == 20, seconds=2)
        desk.take(3)
    await eventually(lambda: brain.letters[-1].message == SessionEnds(session=71), seconds=2)

    returned = [usage for usage in brain.usages if usage.want == 0]
    assert len(returned) == 20
    assert sum(amount for usage in returned for _, amount in usage.given) == COST


async def test_who_stops_says_everything_at_once_and_waits_for_no_answer_to_say_the_rest(
    valkey: Valkey, brain: Brain
) -> None:
    count = UNDER_WAY_MAX + 500
    async with Desk(valkey).running() as desk:
        desk.learn(*(a_row(key) for key in range(count)))
        await eventually(lambda: desk.client.leases.offerable_count == count, seconds=10)
        brain.is_silent = True
        leased = len(brain.messages)
    await eventually(lambda: brain.letters[-1].message == SessionEnds(session=71), seconds=2)

    assert max(brain.messages[leased:]) >= count, "in one message"
    returned = {
        letter.to
        for letter in brain.letters
        if isinstance(letter.message, LeaseUsage) and letter.message.want == 0
    }
    assert len(returned) == count


async def test_who_stops_while_nobody_listens_does_not_wait(valkey: Valkey) -> None:
    desk = Desk(valkey)
    brain = Brain(valkey)
    async with desk.running():
        async with brain.listening():
            desk.learn(a_row(7))
            await eventually(lambda: desk.shown() == [7], seconds=2)
        stopped_at = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - stopped_at < 0.9


async def test_an_answer_that_is_lost_is_asked_for_again(desk: Desk, brain: Brain) -> None:
    brain.is_silent = True
    desk.learn(a_row(7))
    await eventually(lambda: len(brain.usages) == 1, seconds=2)

    brain.is_silent = False
    await eventually(lambda: desk.shown() == [7], seconds=2)

    assert brain.usages[0] == brain.usages[1]


async def test_leases_go_on_while_valkey_is_away_and_end_when_they_are_used_up(
    shared_valkey: EmbeddedValkey, brain: Brain
) -> None:
    parts = urlsplit(shared_valkey.url)
    assert parts.port is not None
    async with Relay(parts.port).running() as relay:
        host = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{relay.port}"
        async with (
            open_valkey(parts._replace(netloc=host).geturl()) as valkey,
            Desk(valkey).running() as desk,
        ):
            desk.learn(a_row(7))
            await eventually(lambda: desk.shown() == [7], seconds=2)
            asked = len(brain.usages)
            relay.silence()

            taken = [desk.take(7) for _ in range(OFFERS_MIN + 1)]
            await asyncio.sleep(0.5)
            out, unheard = desk.shown(), len(brain.usages) - asked
            await eventually(lambda: desk.shown() == [7], seconds=15)

    assert taken == [9] * OFFERS_MIN + [None]
    assert (out, unheard) == ([], 0)
