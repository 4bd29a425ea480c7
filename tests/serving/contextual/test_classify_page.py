"""Texts from readers' browsers: taken from verified sites, from each page for itself, one at a time."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import RateLimitedError, UnavailableError, ValidationFailedError
from adloom.core.ids import SiteId
from adloom.pages.model import PageSource
from adloom.runtime.http.fast.errors import answer_error
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.contextual.classify_page import (
    ACCEPTED,
    FRESH,
    PENDING_MAX,
    QUEUED,
    ClassifyPageRoutes,
)
from adloom.serving.contextual.page_host import SiteHostMismatchError
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.index.compile import compile_index
from tests.support.contextual import BREAD, NOON, SITE, World, a_request, an_index, known
from tests.support.rows import a_site_row, a_snapshot, an_id


async def test_a_text_goes_to_the_queue_under_the_normalised_url() -> None:
    world = World()

    answer = await world.send(f"{BREAD}/?utm_source=x#top", title="Bread", language="de-AT")

    assert answer is ACCEPTED
    [request] = world.queue.put_requests
    assert (request.site_id, request.url, request.source) == (SITE, "example.com/bread", PageSource.TAG)
    assert (request.title, request.text) == ("Bread", "Bake the loaf in a hot oven.")
    assert request.language == "de"
    assert request.requested_at == NOON


async def test_a_fresh_page_needs_no_text_and_a_stale_one_does() -> None:
    world = World()
    world.pages.tables[SITE] = known("example.com/bread", NOON)

    assert await world.send() is FRESH
    world.clock.advance(timedelta(hours=48))
    assert await world.send() is ACCEPTED


async def test_without_the_pages_of_the_site_the_text_is_taken() -> None:
    world = World()
    world.pages.tables.clear()

    assert await world.send() is ACCEPTED


@pytest.mark.parametrize(
    "site",
    [
        pytest.param({"verified_host": None}, id="not verified"),
        pytest.param({"domain": "another.example"}, id="another site"),
        pytest.param({"host_pattern": "blog[.].*"}, id="not a host of the site"),
    ],
)
async def test_a_page_is_of_a_verified_site(site: dict[str, Any]) -> None:
    world = World(an_index(**site))

    with pytest.raises(SiteHostMismatchError):
        await world.send()
    assert world.queue.put_requests == []


@pytest.mark.parametrize(
    "origin",
    [
        "https://elsewhere.example",
        "null",
        "",
        "https://blog.example.com",
        "https://example.com.evil.example",
        "x\xff",
    ],
)
async def test_a_page_speaks_for_itself_only(origin: str) -> None:
    """Not even for another host of the same site, which may be another person's."""
    world = World()

    with pytest.raises(SiteHostMismatchError):
        await world.send(origin=origin)
    assert world.queue.put_requests == []


@pytest.mark.parametrize(
    "origin", ["https://example.com", "https://www.example.com", "http://EXAMPLE.com:8000"]
)
async def test_with_and_without_www_a_host_is_the_same(origin: str) -> None:
    assert await World().send(origin=origin) is ACCEPTED


async def test_without_an_origin_the_referrer_counts_and_with_one_it_does_not() -> None:
    world = World()
    request = a_request(origin="")
    request.headers = [(b"referer", b"https://www.example.com/bread")]

    assert await world.routes.classify(request) is ACCEPTED

    request = a_request(origin="https://elsewhere.example")
    request.headers.append((b"referer", b"https://example.com/bread"))
    with pytest.raises(SiteHostMismatchError):
        await world.routes.classify(request)


async def test_a_subdomain_is_a_page_of_both_sites_that_it_is_of() -> None:
    blog = SiteId(an_id(101))
    index = compile_index(
        a_snapshot(
            sites=[
                a_site_row(key=1, id=SITE, domain="example.com", verified_host="example.com"),
                a_site_row(key=2, id=blog, domain="blog.example.com", verified_host="blog.example.com"),
            ]
        )
    )
    world = World(index)

    await world.send("https://blog.example.com/bread", origin="https://blog.example.com")

    assert {one.site_id for one in world.queue.put_requests} == {SITE, blog}


async def test_one_text_of_a_page_is_taken_at_a_time_over_all_processes() -> None:
    world = World()
    other = world.process()

    answers = await asyncio.gather(*(routes.classify(a_request()) for routes in (world.routes, other) * 5))

    assert sorted(map(id, answers)) == sorted(map(id, [ACCEPTED, *[QUEUED] * 9]))
    assert len(world.queue.put_requests) == 1


async def test_a_full_queue_is_429_and_the_page_can_come_again() -> None:
    world = World()
    world.queue.room = 0

    with pytest.raises(RateLimitedError):
        await world.send()
    world.queue.room = 1
    assert await world.send() is ACCEPTED


async def test_a_queue_that_is_away_is_503_and_the_page_can_come_again() -> None:
    world = World()
    world.queue.is_away = True

    with pytest.raises(UnavailableError):
        await world.send()
    world.queue.is_away = False
    assert await world.send() is ACCEPTED


async def test_an_address_sends_so_many_texts_a_minute() -> None:
    world = World(per_address=2)
    for number in range(2):
        await world.send(f"{BREAD}/{number}")

    with pytest.raises(RateLimitedError) as limited:
        await world.send(f"{BREAD}/2")

    assert 1 <= limited.value.retry_after_seconds <= 60
    world.rate_key = b"5678"
    assert await world.send(f"{BREAD}/3") is ACCEPTED


async def test_a_site_has_so_many_texts_a_minute_and_those_not_taken_do_not_count() -> None:
    world = World(per_site=2)
    world.rate_key = None
    world.pages.tables[SITE] = known("example.com/fresh", NOON)
    for path in ("fresh", "fresh", "fresh", "a", "a", "a", "b"):
        await world.send(f"https://example.com/{path}")

    with pytest.raises(RateLimitedError):
        await world.send("https://example.com/c")
    assert [one.url for one in world.queue.put_requests] == ["example.com/a", "example.com/b"]


async def test_only_so_many_texts_wait_at_once() -> None:
    world = World()
    world.rate_key = None
    waiting = [world.routes.classify(a_request(f"{BREAD}/{number}")) for number in range(PENDING_MAX)]

    with pytest.raises(RateLimitedError):
        world.routes.classify(a_request(f"{BREAD}/more"))
    for one in waiting:
        assert await one is ACCEPTED
    assert await world.send(f"{BREAD}/more") is ACCEPTED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", None),
        ("url", "ftp://example.com/"),
        ("url", "example.com"),
        ("url", 7),
        ("text", None),
        ("text", ""),
        ("text", " \n\t"),
        ("text", "x" * (64 * 1024 + 1)),
        ("text", "ü" * (32 * 1024 + 1)),
        ("text", "a\0b"),
        ("title", 7),
        ("language", "in German"),
        ("language", ""),
    ],
)
async def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(ValidationFailedError) as error:
        await World().send(**{field: value})  # pyright: ignore[reportArgumentType] - that is the test

    assert [one.field for one in error.value.errors] == [field]


async def test_the_longest_text_is_taken() -> None:
    world = World()

    assert await world.send(text="ü" * (32 * 1024)) is ACCEPTED


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
bodies = st.one_of(
    st.binary(max_size=200),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {"url": st.just(BREAD) | st.text() | json_values, "text": st.text() | json_values},
        optional={"title": json_values, "language": st.text() | json_values, "other": json_values},
    ).map(lambda value: json.dumps(value).encode()),
)


@given(bodies, st.binary(max_size=60) | st.just(b"https://example.com"))
async def test_whatever_is_sent_is_answered_or_refused_by_name(body: bytes, origin: bytes) -> None:
    world = World()
    request = FastRequest(b"POST", b"/v1/classify-page", headers=[(b"origin", origin)], body=body)
    answer = await answer_of(world.routes, request)

    assert answer is ACCEPTED or answer.head[9:12] in {b"400", b"403"}
    assert answer is not ACCEPTED or origin == b"https://example.com"


async def answer_of(routes: ClassifyPageRoutes, request: FastRequest) -> FastAnswer:
    """Answer as a connection does."""
    try:
        return await routes.classify(request)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return answer_error(error)


def test_the_route_takes_bodies_of_96_kib() -> None:
    [route] = World().routes.list_routes()

    assert route.body_bytes_max == 96 * 1024


def test_recent_texts_are_forgotten_after_a_while_and_beyond_a_bound() -> None:
    recent = RecentTexts(pages_max=2)
    recent.add(SITE, "a", NOON)

    assert recent.find_wait(SITE, "a", NOON) == timedelta(seconds=30)
    assert recent.find_wait(SITE, "b", NOON) is None
    assert recent.find_wait(SITE, "a", NOON + timedelta(seconds=30)) is None
    for url in "abc":
        recent.add(SITE, url, NOON)
    assert len(recent) == 2
    assert recent.find_wait(SITE, "a", NOON) is None
