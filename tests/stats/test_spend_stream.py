"""Following what is spent: events for who may see them, over real sockets and a real Valkey."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from adloom.app.control import build_control
from adloom.budgets.messages import CampaignRestored, SpendUpdate
from adloom.budgets.transport.wire import SPEND_CHANNEL, encode_updates
from adloom.core.actor import Actor, Role
from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import AdvertiserId, CampaignId, SystemIds
from adloom.core.money import Micros
from adloom.runtime.auth import issue_access_token
from adloom.runtime.http.server import serve
from adloom.runtime.valkey import Valkey
from adloom.stats.spend.feed import BEGINNING, HEARTBEAT, LISTENING, Listener, SpendFeed, encode_update
from tests.support.builders import NOON
from tests.support.control import SECRET, control_settings
from tests.support.eventually import eventually

PAYER, STRANGER = AdvertiserId(UUID(int=1)), AdvertiserId(UUID(int=2))
IN_TIME = 5.0


def an_update(campaign: int = 100, advertiser_id: AdvertiserId | None = PAYER, spent: int = 1) -> SpendUpdate:
    paisa = 10_000
    return SpendUpdate(
        campaign_id=CampaignId(UUID(int=campaign)),
        advertiser_id=advertiser_id,
        day=NOON.date(),
        window=1,
        daily_budget=None,
        total_budget=None,
        spent_window=Micros(0),
        spent_today=Micros(spent * paisa),
        spent_total=Micros(2 * spent * paisa),
        held=Micros(3 * paisa),
        leased=Micros(4 * paisa + 9_999),
        at=NOON,
    )


class Control:
    """A control plane that listens on a port."""

    def __init__(self, port: int, feed: SpendFeed) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.feed = feed

    @asynccontextmanager
    async def following(
        self, role: Role = Role.ADMIN, account_id: UUID | None = None
    ) -> AsyncGenerator["Follower"]:
        """Follow what is spent, from when on nothing is left out."""
        actor = Actor(subject="test", role=role, account_id=account_id)
        token = issue_access_token(SECRET, actor, now=SystemClock().now(), lifetime=timedelta(hours=1))
        async with (
            httpx.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {token}"}) as client,
            client.stream("GET", "/admin/spend/stream") as answer,
        ):
            follower = Follower(answer)
            assert (await follower.next())["event"] == "listening"
            yield follower


class Follower:
    """A client that reads events."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200
        self.headers = answer.headers
        self._lines = answer.aiter_lines()

    async def next(self) -> dict[str, Any]:
        """Read the next event; comments and what tells when to come back are none."""
        event: dict[str, Any] = {}
        async with asyncio.timeout(IN_TIME):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if name == "event":
                    event["event"] = value
                elif name == "data":
                    event["data"] = json.loads(value)
                elif not line and event:
                    return event
        raise EOFError

    async def has_ended(self) -> bool:
        async with asyncio.timeout(IN_TIME):
            return [line async for line in self._lines if line] == []


@asynccontextmanager
async def running(database_url: str, redis_url: str) -> AsyncGenerator[Control]:
    app = build_control(control_settings(database_url, redis_url), clock=SystemClock(), ids=SystemIds())
    listener = socket.create_server(("127.0.0.1", 0))
    feed: SpendFeed = app.state.spend_feed
    serving = asyncio.create_task(
        serve(app, listener, drain_seconds_max=60, has_lifespan=True, before_drain=feed.close)
    )
    control = Control(listener.getsockname()[1], feed)
    async with httpx.AsyncClient(base_url=control.url) as client:
        assert (await client.get("/health/live")).status_code == 200
    try:
        yield control
    finally:
        if not serving.done():
            signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(IN_TIME):
            await serving


@pytest.fixture
async def control(database_url: str, redis_url: str) -> AsyncGenerator[Control]:
    async with running(database_url, redis_url) as control:
        yield control


async def test_who_follows_hears_what_brains_say(control: Control, valkey: Valkey) -> None:
    async with control.following() as follower:
        await valkey.publish(SPEND_CHANNEL, encode_updates([an_update()]))

        event = await follower.next()

    assert follower.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert follower.headers["cache-control"] == "no-store"
    assert event == {
        "event": "spend",
        "data": {
            "campaignId": str(UUID(int=100)),
            "advertiserId": str(PAYER),
            "day": "2026-11-15",
            "spentTodayPaisa": 1,
            "spentTotalPaisa": 2,
            "heldPaisa": 3,
            "leasedPaisa": 4,
        },
    }


async def test_an_advertiser_follows_its_own_and_nobody_elses(control: Control, valkey: Valkey) -> None:
    said = [an_update(1, STRANGER), an_update(2, None), an_update(3, PAYER)]

    async with (
        control.following(Role.ADVERTISER, PAYER) as payer,
        control.following(Role.VIEWER) as viewer,
    ):
        await valkey.publish(SPEND_CHANNEL, encode_updates(said))

        assert (await payer.next())["data"]["campaignId"] == str(UUID(int=3))
        seen = [(await viewer.next())["data"]["campaignId"] for _ in said]
        assert seen == [str(UUID(int=number)) for number in (1, 2, 3)]
        await valkey.publish(SPEND_CHANNEL, encode_updates([an_update(1, STRANGER), an_update(4, PAYER)]))
        assert (await payer.next())["data"]["campaignId"] == str(UUID(int=4))


async def test_however_many_follow_there_is_one_subscription_and_none_when_nobody_does(
    control: Control, valkey: Valkey
) -> None:
    async def subscribed() -> int:
        [(_, count)] = await valkey.pubsub_numsub(SPEND_CHANNEL)
        return count

    before = await subscribed()
    async with control.following(), control.following(), control.following():
        during = await subscribed()
        assert control.feed.listeners == 3
    await eventually(lambda: control.feed.listeners == 0, seconds=IN_TIME)
    async with asyncio.timeout(IN_TIME):
        while await subscribed():  # noqa: ASYNC110 - what is waited for happens in Valkey
            await asyncio.sleep(0.01)

    assert (before, during) == (0, 1)
    async with control.following() as follower:
        await valkey.publish(SPEND_CHANNEL, encode_updates([an_update()]))
        assert (await follower.next())["event"] == "spend"


async def test_what_is_no_update_of_spend_is_not_handed_on(control: Control, valkey: Valkey) -> None:
    async with control.following() as follower:
        await valkey.publish(SPEND_CHANNEL, b"nobody has written this")
        restored = CampaignRestored(campaign_id=CampaignId(UUID(int=9)), at=NOON)
        await valkey.publish(SPEND_CHANNEL, encode_updates([restored, an_update()]))

        assert (await follower.next())["data"]["campaignId"] == str(UUID(int=100))


async def test_after_a_broken_connection_it_is_said_that_something_may_be_lost(
    control: Control, valkey: Valkey
) -> None:
    async with control.following() as follower:
        await valkey.client_kill_filter(_type="pubsub")

        assert (await follower.next())["event"] == "listening"
        await valkey.publish(SPEND_CHANNEL, encode_updates([an_update()]))
        assert (await follower.next())["event"] == "spend"


async def test_streams_end_when_the_process_stops(database_url: str, redis_url: str) -> None:
    async with running(database_url, redis_url) as control, control.following() as follower:
        signal.raise_signal(signal.SIGTERM)

        assert await follower.has_ended()


# ---------------------------------------------------------------- one listener


async def test_of_several_updates_that_wait_the_last_is_said() -> None:
    listener = Listener(None)
    said = listener.updates()
    assert await anext(said) == BEGINNING
    listener.begin()
    for update in (an_update(1, spent=1), an_update(2), an_update(1, spent=2)):
        listener.push(update.campaign_id, encode_update(update))

    assert await anext(said) == LISTENING + encode_update(an_update(1, spent=2)) + encode_update(an_update(2))


async def test_who_hears_nothing_hears_a_heartbeat() -> None:
    said = Listener(None, heartbeat_seconds=0.01).updates()

    assert [await anext(said) for _ in range(3)] == [BEGINNING, HEARTBEAT, HEARTBEAT]


async def test_nobody_listens_for_ever() -> None:
    listener = Listener(None, heartbeat_seconds=0.01, seconds_max=0.05)

    said = [part async for part in listener.updates()]

    assert said[0] == BEGINNING
    assert set(said[1:]) <= {HEARTBEAT}


async def test_who_does_not_keep_up_is_cut_off_and_counted() -> None:
    feed, slow, quick = SpendFeed(), Listener(None, waiting_max=2), Listener(None, waiting_max=3)
    said = slow.updates()
    await anext(said)

    with feed.listen(slow), feed.listen(quick):
        feed.distribute(encode_updates([an_update(number) for number in range(3)]))
        feed.distribute(encode_updates([an_update(0)]))

        assert (slow.is_over, quick.is_over, feed.cut_off) == (True, False, 1)
        assert [part async for part in said] == []


async def test_too_many_listeners_are_refused() -> None:
    feed = SpendFeed(listeners_max=1)
    feed.check_room()

    with feed.listen(Listener(None)), pytest.raises(UnavailableError):
        feed.check_room()

    feed.close()
    with pytest.raises(UnavailableError):
        feed.check_room()
