"""Spend updates as server-sent events, per account, over real sockets and a real Valkey."""

import asyncio
import contextlib
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
from adloom.core.caller import Caller, Role
from adloom.core.clock import SystemClock
from adloom.core.errors import RateLimitedError, UnavailableError
from adloom.core.ids import AdvertiserId, CampaignId, SystemIds
from adloom.core.money import Micros
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.http.event_feed import (
    BEGINNING,
    HEARTBEAT,
    LISTENERS_PER_CALLER_MAX,
    LISTENING,
    ListenerBounds,
)
from adloom.runtime.http.server import serve
from adloom.runtime.valkey import Valkey
from adloom.stats.spend.feed import SpendFeed, SpendListener, encode_update
from tests.support.builders import NOON
from tests.support.control import SECRET, control_settings, problem
from tests.support.eventually import eventually

PAYER, OTHER_ADVERTISER = AdvertiserId(UUID(int=1)), AdvertiserId(UUID(int=2))
IN_TIME = 60.0


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


def _log_in(role: Role, account_id: UUID | None) -> dict[str, str]:
    caller = Caller(subject="test", role=role, account_id=account_id)
    token = issue_access_token(SECRET, caller, now=SystemClock().now(), lifetime=timedelta(hours=1))
    return {"Authorization": f"Bearer {token}"}


class Control:
    """A control plane that listens on a port."""

    def __init__(self, port: int, feed: SpendFeed) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.feed = feed

    async def ask(self, role: Role, account_id: UUID) -> httpx.Response:
        """Ask for a stream that is refused."""
        async with httpx.AsyncClient(base_url=self.url, headers=_log_in(role, account_id)) as client:
            return await client.get("/admin/spend/stream", timeout=IN_TIME)

    @asynccontextmanager
    async def following(
        self, role: Role = Role.ADMIN, account_id: UUID | None = None
    ) -> AsyncGenerator["Follower"]:
        """Follow spend updates; from here on none is missed."""
        async with (
            httpx.AsyncClient(base_url=self.url, headers=_log_in(role, account_id)) as client,
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
        """Read the next event; skip comments and retry hints."""
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


async def test_a_follower_receives_spend_updates(control: Control, valkey: Valkey) -> None:
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


async def test_an_advertiser_receives_only_its_own_updates(control: Control, valkey: Valkey) -> None:
    sent = [an_update(1, OTHER_ADVERTISER), an_update(2, None), an_update(3, PAYER)]

    async with (
        control.following(Role.ADVERTISER, PAYER) as payer,
        control.following(Role.VIEWER) as viewer,
    ):
        await valkey.publish(SPEND_CHANNEL, encode_updates(sent))

        assert (await payer.next())["data"]["campaignId"] == str(UUID(int=3))
        seen = [(await viewer.next())["data"]["campaignId"] for _ in sent]
        assert seen == [str(UUID(int=number)) for number in (1, 2, 3)]
        await valkey.publish(
            SPEND_CHANNEL, encode_updates([an_update(1, OTHER_ADVERTISER), an_update(4, PAYER)])
        )
        assert (await payer.next())["data"]["campaignId"] == str(UUID(int=4))


async def test_all_followers_share_one_subscription(control: Control, valkey: Valkey) -> None:
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


async def test_other_messages_on_the_channel_are_ignored(control: Control, valkey: Valkey) -> None:
    async with control.following() as follower:
        await valkey.publish(SPEND_CHANNEL, b"not an update")
        restored = CampaignRestored(campaign_id=CampaignId(UUID(int=9)), at=NOON)
        await valkey.publish(SPEND_CHANNEL, encode_updates([restored, an_update()]))

        assert (await follower.next())["data"]["campaignId"] == str(UUID(int=100))


async def test_followers_are_notified_after_a_lost_connection(control: Control, valkey: Valkey) -> None:
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


async def test_only_the_last_pending_update_of_a_campaign_is_sent() -> None:
    listener = SpendListener(None)
    updates = listener.stream_updates()
    assert await anext(updates) == BEGINNING
    listener.begin()
    for update in (an_update(1, spent=1), an_update(2), an_update(1, spent=2)):
        listener.push(update.campaign_id, encode_update(update))

    assert await anext(updates) == LISTENING + encode_update(an_update(1, spent=2)) + encode_update(
        an_update(2)
    )


async def test_a_quiet_listener_receives_heartbeats() -> None:
    updates = SpendListener(None, bounds=ListenerBounds(heartbeat_seconds=0.01)).stream_updates()

    assert [await anext(updates) for _ in range(3)] == [BEGINNING, HEARTBEAT, HEARTBEAT]


async def test_a_listener_ends_after_its_time_limit() -> None:
    listener = SpendListener(None, bounds=ListenerBounds(heartbeat_seconds=0.01, seconds_max=0.05))

    parts = [part async for part in listener.stream_updates()]

    assert parts[0] == BEGINNING
    assert set(parts[1:]) <= {HEARTBEAT}


async def test_a_slow_listener_is_disconnected_and_counted() -> None:
    feed = SpendFeed()
    slow, quick = (SpendListener(None, bounds=ListenerBounds(waiting_max=most)) for most in (2, 3))
    updates = slow.stream_updates()
    await anext(updates)

    with feed.listen(slow), feed.listen(quick):
        feed.distribute(encode_updates([an_update(number) for number in range(3)]))
        feed.distribute(encode_updates([an_update(0)]))

        assert (slow.is_over, quick.is_over, feed.cut_off) == (True, False, 1)
        assert [part async for part in updates] == []


async def test_one_account_has_a_bound_on_its_streams_and_others_are_not_concerned() -> None:
    feed = SpendFeed()
    with contextlib.ExitStack() as listening:
        for _ in range(LISTENERS_PER_CALLER_MAX):
            feed.check_room("one")
            listening.enter_context(feed.listen(SpendListener(None, caller="one")))

        with pytest.raises(RateLimitedError):
            feed.check_room("one")
        feed.check_room("other")

    feed.check_room("one")


async def test_the_bound_on_streams_is_a_429_over_http(control: Control) -> None:
    async with contextlib.AsyncExitStack() as listening:
        for _ in range(LISTENERS_PER_CALLER_MAX):
            listening.enter_context(control.feed.listen(SpendListener(PAYER, caller=str(PAYER))))

        refused = await control.ask(Role.ADVERTISER, PAYER)

    problem(refused, 429, "RATE_LIMITED")
    assert int(refused.headers["retry-after"]) > 0


async def test_too_many_listeners_are_refused() -> None:
    feed = SpendFeed(listeners_max=1)
    feed.check_room()

    with feed.listen(SpendListener(None)), pytest.raises(UnavailableError):
        feed.check_room()

    feed.close()
    with pytest.raises(UnavailableError):
        feed.check_room()
