"""Server-sent events of the API as the console reads them, in process."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from adloom.console.client import ApiClient, ProblemError
from adloom.console.event_source import parse_events, read_events
from adloom.core.caller import Role
from adloom.core.ids import SiteId
from adloom.pages.live.feed import SiteFeed
from adloom.runtime.http.event_feed import BEGINNING, HEARTBEAT, LISTENING
from tests.support.builders import NOON
from tests.support.control import ControlPlane, control
from tests.support.eventually import eventually
from tests.support.pages import write_page

__all__ = ["control"]

IN_TIME = 60.0


def test_comments_and_reconnection_times_are_no_events() -> None:
    assert parse_events(BEGINNING + HEARTBEAT + LISTENING) == [("listening", {})]


async def test_an_event_that_comes_in_pieces_waits_for_its_end() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for part in (b'event: page\ndata: {"a"', b": 1}\n", b'\nevent: crawl\ndata: {"b": 2}\n\n'):
            yield part

    assert [events async for events in read_events(parts())] == [[("page", {"a": 1}), ("crawl", {"b": 2})]]


async def a_client(control: ControlPlane, role: Role) -> ApiClient:
    async def token(_: bool) -> str:  # noqa: FBT001 - as its type says
        async with control.acting_as(role) as client:
            return client.headers["Authorization"].removeprefix("Bearer ")

    return ApiClient(control.app, token)


async def test_a_stream_is_read_as_it_comes_and_ends_with_its_reader(control: ControlPlane) -> None:
    feed: SiteFeed = control.app.state.site_feed
    async with control.acting_as(Role.ADMIN) as admin:
        site = await admin.make_site(domain="magazine.test")
    api, seen = await a_client(control, Role.ADMIN), list[str]()

    async with asyncio.timeout(IN_TIME), api.stream(f"/admin/sites/{site['id']}/events") as answer:
        async for events in read_events(answer.aiter_bytes()):
            seen += [name for name, _ in events]
            if "listening" in seen and "page" not in seen:
                await write_page(control.app.state.pool, SiteId(UUID(site["id"])), "magazine.test/a", at=NOON)
            if "page" in seen:
                break

    assert seen == ["listening", "page"]
    await eventually(lambda: feed.listeners == 0, seconds=IN_TIME)


async def test_a_refused_stream_says_why(control: ControlPlane) -> None:
    async with control.acting_as(Role.ADMIN) as admin:
        site = await admin.make_site(domain="magazine.test")
    api = await a_client(control, Role.PUBLISHER)

    with pytest.raises(ProblemError) as refused:
        async with api.stream(f"/admin/sites/{site['id']}/events"):
            pass

    assert (refused.value.status, refused.value.code) == (404, "SITE_NOT_FOUND")
