"""The queue hands each request to one classifier, is bounded, and loses nothing of a dead one."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

import pytest
from msgspec.structs import replace

from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId
from adloom.pages.classify.queue import FIELD, GROUP, LENGTH_MAX, STREAM, ClassifyQueue, PutResult
from adloom.pages.classify.request import ClassifyRequest, make_request
from adloom.pages.model import PageSource
from adloom.pages.notice import PAGE_NOTICES, PageNotice, publish_page_notice, read_page_notice
from adloom.runtime.valkey import Subscription, Valkey, open_valkey
from tests.support.eventually import eventually

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SITE = SiteId(UUID(int=7))


def a_request(path: str = "x") -> ClassifyRequest:
    return make_request(site_id=SITE, url=f"a.test/{path}", source=PageSource.CRAWL, now=NOW, text="A text.")


async def test_a_request_goes_to_one_classifier_and_is_forgotten_when_done(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    request = a_request()

    assert await queue.put(request)
    [taken] = await queue.read("one", count_max=10, wait_seconds=0.01)
    assert taken.request == request
    assert await queue.read("two", count_max=10, wait_seconds=0.01) == []
    assert await queue.count_waiting() == 1

    await queue.acknowledge([taken.entry_id])
    assert await queue.count_waiting() == 0
    assert await queue.claim("two", count_max=10, idle_seconds=0) == []


async def test_a_full_queue_takes_no_more(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)

    put = [await queue.put(a_request(str(number)), length_max=3) for number in range(5)]

    assert put == [True, True, True, False, False]
    [first] = await queue.read("one", count_max=1, wait_seconds=0.01)
    assert not await queue.put(a_request("6"), length_max=3)
    await queue.acknowledge([first.entry_id])
    assert await queue.put(a_request("7"), length_max=3)


async def test_a_page_is_put_once_in_a_while_by_all_processes_together(valkey: Valkey) -> None:
    queue, other = ClassifyQueue(valkey), ClassifyQueue(valkey)
    of_another_site = replace(a_request("bread"), site_id=SiteId(UUID(int=8)))

    async def put(request: ClassifyRequest, by: ClassifyQueue = queue) -> PutResult:
        return await by.put_once(request, lifetime=timedelta(seconds=30))

    assert await put(a_request("bread")) is PutResult.PUT
    assert await put(a_request("bread"), other) is PutResult.WAITS
    assert await put(a_request("cake")) is PutResult.PUT
    assert await put(of_another_site) is PutResult.PUT
    assert await queue.count_waiting() == 3
    for key in cast("list[bytes]", await valkey.keys("adloom:classify:page:*")):
        assert 0 < await valkey.ttl(key) <= 30
        await valkey.delete(key)  # As after its lifetime.
    assert await put(a_request("bread")) is PutResult.PUT


async def test_a_page_that_finds_the_queue_full_can_come_again(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    async with valkey.pipeline(transaction=False) as at_once:
        for number in range(LENGTH_MAX):
            at_once.xadd(STREAM, {FIELD: str(number)})
        await at_once.execute()

    assert await queue.put_once(a_request(), lifetime=timedelta(seconds=30)) is PutResult.FULL
    await valkey.delete(STREAM)
    assert await queue.put_once(a_request(), lifetime=timedelta(seconds=30)) is PutResult.PUT


async def test_what_a_dead_classifier_left_is_claimed_with_its_number_of_tries(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    await queue.put(a_request())
    [taken] = await queue.read("dead", count_max=10, wait_seconds=0.01)

    assert await queue.claim("living", count_max=10, idle_seconds=60) == []
    [claimed] = await queue.claim("living", count_max=10, idle_seconds=0)
    assert (claimed.entry_id, claimed.deliveries) == (taken.entry_id, 2)


async def test_what_is_still_being_worked_on_is_not_claimed(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    await queue.put(a_request())
    [taken] = await queue.read("slow", count_max=10, wait_seconds=0.2)
    await valkey.xclaim(STREAM, GROUP, "slow", 0, [taken.entry_id], idle=50_000, justid=True)

    await queue.keep("slow", [taken.entry_id])

    assert await queue.claim("other", count_max=10, idle_seconds=30) == []


async def test_a_classifier_that_restarts_takes_up_its_own(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    assert await queue.resume("one", count_max=10) == []
    await queue.put(a_request())
    [taken] = await queue.read("one", count_max=10, wait_seconds=0.01)

    [again] = await queue.resume("one", count_max=10)

    assert (again.entry_id, again.deliveries) == (taken.entry_id, 2)
    assert await queue.resume("two", count_max=10) == []


async def test_an_entry_that_cannot_be_read_is_dropped(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    await valkey.xadd(STREAM, {FIELD: b"nonsense"})
    await valkey.xadd(STREAM, {"other": b""})
    await queue.put(a_request())

    found = await queue.read("one", count_max=10, wait_seconds=0.01)

    assert [one.request for one in found] == [a_request()]
    assert await queue.count_waiting() == 1


async def test_the_group_is_made_again_after_valkey_lost_it(valkey: Valkey) -> None:
    queue = ClassifyQueue(valkey)
    await queue.put(a_request())
    await queue.read("one", count_max=10, wait_seconds=0.01)
    await valkey.flushall()

    assert await queue.claim("one", count_max=10) == []
    await valkey.flushall()
    await queue.put(a_request("again"))
    [taken] = await queue.read("one", count_max=10, wait_seconds=0.01)
    assert taken.request.url == "a.test/again"


async def test_without_valkey_the_queue_is_unavailable() -> None:
    async with open_valkey("redis://127.0.0.1:1") as away:
        with pytest.raises(UnavailableError):
            await ClassifyQueue(away).put(a_request())


async def test_a_notice_says_which_site_and_version(valkey: Valkey) -> None:
    heard: list[bytes] = []
    began, stop = asyncio.Event(), asyncio.Event()
    subscription = Subscription(valkey, PAGE_NOTICES, on_message=heard.append, on_start=began.set)
    async with asyncio.TaskGroup() as group:
        group.create_task(subscription.run(stop))
        await began.wait()

        await publish_page_notice(valkey, PageNotice(SITE, 12))

        await eventually(lambda: bool(heard), seconds=30)
        stop.set()
    assert [read_page_notice(message) for message in heard] == [PageNotice(SITE, 12)]
