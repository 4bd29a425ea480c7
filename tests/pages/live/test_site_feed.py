"""What happens on a site, as server-sent events."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from adloom.app.control import build_control
from adloom.core.caller import Caller, Role
from adloom.core.clock import SystemClock
from adloom.core.ids import SiteId, SystemIds
from adloom.identity.issued_tokens import revoke_issued
from adloom.pages.live.feed import BOUNDS, PAGES_MAX, SiteFeed, SiteListener
from adloom.pages.live.store import ApprovalEvent, find_changes
from adloom.runtime.auth.access_token import issue_access_token, verify_access_token
from adloom.runtime.http.api import event_stream
from adloom.runtime.http.event_feed import (
    BEGINNING,
    HEARTBEAT,
    LISTENERS_PER_CALLER_MAX,
    LISTENING,
    ListenerBounds,
)
from adloom.runtime.http.server import serve
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON
from tests.support.control import SECRET, ControlPlane, admin, control, control_settings, problem
from tests.support.eventually import eventually
from tests.support.pages import insert_approval, insert_creative, insert_site, write_page

__all__ = ["admin", "control"]

IN_TIME = 60.0
INSERT_CRAWL = """
    INSERT INTO site_crawls (public_id, site_id, state, created_at)
    SELECT gen_random_uuid(), id, 'queued', now() FROM sites WHERE public_id = $1
"""


def parse(text: bytes) -> list[tuple[str, dict[str, Any]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    for part in text.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
        if "event" in lines:
            events.append((lines["event"], json.loads(lines["data"])))
    return events


class Follower:
    """A listener that was told that it follows its site."""

    def __init__(self, feed: SiteFeed, pool: Pool, listener: SiteListener) -> None:
        self._feed = feed
        self._pool = pool
        self._updates = listener.stream_updates()

    async def next(self) -> list[tuple[str, dict[str, Any]]]:
        """Look once, and return what it is told then."""
        async with self._pool.acquire() as connection:
            await self._feed.poll(connection)
        return parse(await self.read())

    async def read(self) -> bytes:
        async with asyncio.timeout(IN_TIME):
            return await anext(self._updates)


@asynccontextmanager
async def following(
    feed: SiteFeed, pool: Pool, site_id: SiteId, *, bounds: ListenerBounds = BOUNDS
) -> AsyncGenerator[Follower]:
    listener = SiteListener(site_id, bounds=bounds)
    with feed.listen(listener):
        follower = Follower(feed, pool, listener)
        assert await follower.read() == BEGINNING
        assert (await follower.next())[0] == ("listening", {})
        yield follower


async def test_a_page_is_told_with_its_names(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")
    await write_page(pool, site_id, "a.test/before", at=NOON)

    async with following(feed, pool, site_id) as follower:
        await write_page(pool, site_id, "a.test/tennis", at=NOON, categories={"539": 0.9})
        ((name, page),) = await follower.next()

    assert name == "page"
    assert page["url"] == "a.test/tennis"
    assert page["categories"] == [{"id": "539", "name": "Tennis", "confidence": 0.9}]
    assert page["classifiedAt"] == "2026-11-15T12:00:00Z"


async def test_many_pages_are_told_a_part_at_a_time_and_none_is_left_out(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")
    count = PAGES_MAX + 5

    async with following(feed, pool, site_id) as follower:
        for number in range(count):
            await write_page(pool, site_id, f"a.test/{number}", at=NOON)
        told = [await follower.next(), await follower.next()]

    assert [len(one) for one in told] == [PAGES_MAX, 5]
    urls = [page["url"] for part in told for _, page in part]
    assert urls == [f"a.test/{number}" for number in range(count)]


async def test_a_removal_is_told(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")
    await write_page(pool, site_id, "a.test/a", at=NOON)

    async with following(feed, pool, site_id) as follower:
        await pool.execute("DELETE FROM site_pages")
        ((name, data),) = await follower.next()

    assert (name, data["isRemoved"]) == ("page", True)


async def test_a_crawl_is_told_as_it_is_and_as_it_goes(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")
    await pool.execute(INSERT_CRAWL, site_id)
    listener = SiteListener(site_id)

    with feed.listen(listener):
        follower = Follower(feed, pool, listener)
        await follower.read()
        beginning = await follower.next()
        await pool.execute("UPDATE site_crawls SET state = 'running', pages_fetched = 3")
        ((name, crawl),) = await follower.next()

    assert [event for event, _ in beginning] == ["listening", "crawl"]
    assert beginning[1][1]["state"] == "queued"
    assert (name, crawl["state"], crawl["pagesFetched"]) == ("crawl", "running", 3)
    assert {
        "id",
        "startedAt",
        "finishedAt",
        "pagesClassified",
        "pagesUnchanged",
        "pagesFailed",
        "reason",
    } <= set(crawl)


async def test_banners_that_wait_and_decisions_are_told(control: ControlPlane, pool: Pool) -> None:
    async with control.acting_as(Role.ADMIN) as admin:
        site, campaign = await admin.make_site(), await admin.make_campaign()
        banners = [await admin.make_banner(title=f"Ad {number}") for number in range(2)]
        old, new = (banner["id"] for banner in banners)
        await insert_approval(pool, site["id"], old, campaign["id"], at=NOON)
        path, told = f"/admin/sites/{site['id']}/approvals", list[tuple[str, str]]()

        async with following(SiteFeed(), pool, SiteId(UUID(site["id"]))) as follower:
            await insert_approval(pool, site["id"], new, campaign["id"], at=NOON)
            ((name, event),) = await follower.next()
            for decision in ("approve", "revoke", "reject", "flag", "unflag"):
                body = {"decision": decision, "bannerIds": [old]}
                assert (await admin.post(path, json=body)).json() == {"changed": 1}
                told += [(name, event["bannerId"]) for name, event in await follower.next()]

    assert (name, event["bannerId"], event["title"], event["state"]) == ("pending", new, "Ad 1", "pending")
    assert told == [(name, old) for name in ("approved", "revoked", "rejected", "flagged", "pending")]


async def test_a_banner_is_told_of_with_another_campaign_once_its_first_is_deleted(
    control: ControlPlane, pool: Pool
) -> None:
    async with control.acting_as(Role.ADMIN) as admin:
        site, first, second = (
            await admin.make_site(),
            await admin.make_campaign(),
            await admin.make_campaign(),
        )
        banner, other = await admin.make_banner(), await admin.make_banner()
        await insert_approval(pool, site["id"], banner["id"], first["id"], at=NOON)
        await insert_creative(pool, banner["id"], second["id"])

        async with following(SiteFeed(), pool, SiteId(UUID(site["id"]))) as follower:
            await pool.execute("UPDATE campaigns SET deleted_at = $1 WHERE public_id = $2", NOON, first["id"])
            await insert_approval(pool, site["id"], other["id"], second["id"], at=NOON)
            new = await follower.next()
            body = {"decision": "approve", "bannerIds": [banner["id"]]}
            await admin.post(f"/admin/sites/{site['id']}/approvals", json=body)
            ((name, event),) = await follower.next()

    assert [(name, event["bannerId"]) for name, event in new] == [("pending", other["id"])]
    assert (name, event["bannerId"], event["campaignId"]) == ("approved", banner["id"], second["id"])


async def test_a_changed_banner_waits_again(control: ControlPlane, pool: Pool) -> None:
    async with control.acting_as(Role.ADMIN) as admin:
        site, campaign, banner = (
            await admin.make_site(),
            await admin.make_campaign(),
            await admin.make_banner(),
        )
        await insert_approval(pool, site["id"], banner["id"], campaign["id"], at=NOON, state="approved")

        async with following(SiteFeed(), pool, SiteId(UUID(site["id"]))) as follower:
            await admin.patch(f"/admin/banners/{banner['id']}", json={"headline": "Other words"})
            ((name, _),) = await follower.next()

    assert name == "pending"


def test_many_decisions_are_told_oldest_first() -> None:
    def an_event(number: int, state: str) -> ApprovalEvent:
        return ApprovalEvent(
            banner_id=UUID(int=number),
            campaign_id=UUID(int=0),
            title="Ad",
            state=state,
            reason=None,
            first_seen_at=NOON,
            decided_at=None,
        )

    before = {one.banner_id: one for one in (an_event(1, "approved"), an_event(2, "pending"))}
    after = {
        one.banner_id: one
        for one in (an_event(3, "pending"), an_event(1, "rejected"), an_event(2, "pending"))
    }

    assert [(name, event.banner_id.int) for name, event in find_changes(before, after)] == [
        ("rejected", 1),
        ("pending", 3),
    ]


async def test_nothing_of_another_site_is_told(pool: Pool) -> None:
    feed = SiteFeed()
    site_id, other = await insert_site(pool, "a.test"), await insert_site(pool, "b.test")

    async with following(feed, pool, site_id) as follower, following(feed, pool, other):
        await write_page(pool, other, "b.test/a", at=NOON)
        await pool.execute(INSERT_CRAWL, other)
        await write_page(pool, site_id, "a.test/a", at=NOON)
        told = await follower.next()

    assert [page["url"] for _, page in told] == ["a.test/a"]


async def test_a_stream_says_that_it_is_alive(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")

    async with following(feed, pool, site_id, bounds=ListenerBounds(heartbeat_seconds=0.01)) as follower:
        assert await follower.read() == HEARTBEAT


async def test_a_stream_ends_with_its_site(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")

    async with following(feed, pool, site_id) as follower:
        await pool.execute("DELETE FROM sites")
        with pytest.raises(StopAsyncIteration):
            await follower.next()


async def test_a_client_that_does_not_read_is_cut_off(pool: Pool) -> None:
    feed, site_id = SiteFeed(), await insert_site(pool, "a.test")
    listener = SiteListener(site_id, bounds=ListenerBounds(waiting_max=1))

    with feed.listen(listener):
        async with pool.acquire() as connection:
            await feed.poll(connection)
            for number in range(3):
                await write_page(connection, site_id, f"a.test/{number}", at=NOON)
            await feed.poll(connection)

    assert listener.is_over
    assert feed.cut_off == 1


@asynccontextmanager
async def running(database_url: str, redis_url: str) -> AsyncGenerator[tuple[str, SiteFeed]]:
    app = build_control(control_settings(database_url, redis_url), clock=SystemClock(), ids=SystemIds())
    listener = socket.create_server(("127.0.0.1", 0))
    feed: SiteFeed = app.state.site_feed
    serving = asyncio.create_task(
        serve(app, listener, drain_seconds_max=60, has_lifespan=True, before_drain=feed.close)
    )
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", feed
    finally:
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(IN_TIME):
            await serving


async def test_a_stream_over_http_tells_and_ends_with_its_client(
    database_url: str, redis_url: str, pool: Pool
) -> None:
    site_id = await insert_site(pool, "a.test")
    caller = Caller(subject="test", role=Role.ADMIN, account_id=None)
    token = issue_access_token(SECRET, caller, now=SystemClock().now(), lifetime=timedelta(hours=1))
    async with (
        running(database_url, redis_url) as (url, feed),
        httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}) as client,
    ):
        async with asyncio.timeout(60), client.stream("GET", f"/admin/sites/{site_id}/events") as answer:
            parts = answer.aiter_bytes()
            seen = b""
            while LISTENING not in seen:
                seen += await anext(parts)
            await write_page(pool, site_id, "a.test/a", at=NOON)
            while b"event: page" not in seen:
                seen += await anext(parts)

        await eventually(lambda: feed.listeners == 0, seconds=IN_TIME)
        async with asyncio.timeout(60), client.stream("GET", f"/admin/sites/{site_id}/events") as answer:
            feed.close()
            assert [part async for part in answer.aiter_bytes()] == [BEGINNING]

    assert answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("end", ["revoked", "closed"])
async def test_a_stream_ends_with_its_token(
    database_url: str, redis_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(event_stream, "ACCESS_SECONDS", 0.2)
    site_id, now = await insert_site(pool, "a.test"), SystemClock().now()
    publisher_id = await pool.fetchval(
        "INSERT INTO publishers (public_id, name, created_at, updated_at) VALUES ($1, 'P', $2, $2) RETURNING public_id",
        SystemIds().make(),
        now,
    )
    await pool.execute("UPDATE sites SET publisher_id = (SELECT id FROM publishers)")
    caller = Caller(subject="test", role=Role.PUBLISHER, account_id=publisher_id)
    token = issue_access_token(SECRET, caller, now=now, lifetime=timedelta(hours=1))
    async with (
        running(database_url, redis_url) as (url, feed),
        httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}) as client,
        asyncio.timeout(IN_TIME),
        client.stream("GET", f"/admin/sites/{site_id}/events") as answer,
    ):
        parts = answer.aiter_bytes()
        await anext(parts)
        await asyncio.sleep(1.0)
        still = feed.listeners
        if end == "revoked":
            async with pool.acquire() as connection:
                await revoke_issued(connection, verify_access_token(SECRET, token, now=now).id, now)
        else:
            await pool.execute("UPDATE publishers SET deleted_at = now()")
        async for _ in parts:
            pass

    assert (still, feed.listeners) == (1, 0)


async def test_a_program_has_so_many_streams(control: ControlPlane) -> None:
    feed: SiteFeed = control.app.state.site_feed
    async with control.acting_as(Role.ADMIN) as admin:
        site = await admin.make_site()
        with ExitStack() as streams:
            for _ in range(LISTENERS_PER_CALLER_MAX):
                listener = SiteListener(SiteId(UUID(site["id"])), caller="test")
                streams.enter_context(feed.listen(listener))

            problem(await admin.get(f"/admin/sites/{site['id']}/events"), 429, "RATE_LIMITED")
