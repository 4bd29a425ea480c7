"""The pages of a site over HTTP."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from adloom.core.ids import SiteId
from adloom.pages.classify.queue import LENGTH_MAX, STREAM, ClassifyQueue
from adloom.pages.model import PageSource
from adloom.pages.notice import PAGE_NOTICES, PageNotice, read_page_notice
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON, Json
from tests.support.control import Client, admin, control, problem
from tests.support.for_each import for_each
from tests.support.pages import write_page

__all__ = ["admin", "control"]

SPORTS, TENNIS, PETS, CATS = "483", "539", "422", "424"


@pytest.fixture
async def site(admin: Client) -> Json:
    return await admin.make_site(domain="magazine.test")


@pytest.fixture
async def notices(valkey: Valkey) -> AsyncIterator[Any]:
    """Follow what is published about pages."""
    listener = valkey.pubsub(ignore_subscribe_messages=True)
    await listener.subscribe(PAGE_NOTICES)
    await listener.get_message(timeout=30)
    yield listener
    await listener.aclose()


async def next_notice(notices: Any) -> PageNotice:
    message = await notices.get_message(timeout=30)
    assert message is not None, "a notice"
    return read_page_notice(message["data"])


def categories_of(*ids: str) -> list[Json]:
    return [{"id": one, "confidence": 0.9} for one in ids]


async def give(client: Client, site: Json, path: str, *categories: str, **fields: Any) -> Json:
    body = {"url": f"https://{site['domain']}{path}", "categories": categories_of(*categories), **fields}
    answer = await client.post(f"/admin/sites/{site['id']}/pages", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(client: Client, site: Json, **query: Any) -> list[str]:
    answer = await client.get(f"/admin/sites/{site['id']}/pages", params={"sort": "url", **query})
    assert answer.status_code == 200, answer.text
    return [page["url"].removeprefix(site["domain"]) for page in answer.json()["items"]]


async def test_a_page_that_is_given_comes_back_as_it_was_given(admin: Client, site: Json) -> None:
    page = await give(admin, site, "/net", TENNIS, title="At the net")

    wanted = {
        "url": "magazine.test/net",
        "title": "At the net",
        "language": None,
        "categories": [{"id": TENNIS, "name": "Tennis", "path": ["Sports", "Tennis"], "confidence": 0.9}],
        "classifiedAt": "2026-11-15T12:00:00Z",
        "expiresAt": "2026-11-17T12:00:00Z",
        "isFresh": True,
        "source": "given",
        "classifier": None,
        "classifierVersion": None,
        "failure": None,
        "evidence": [],
        "slots": [],
    }
    assert {field: page[field] for field in wanted} == wanted
    assert (await admin.get(f"/admin/sites/{site['id']}/pages/{page['id']}")).json() == page


@pytest.mark.parametrize(
    "other",
    [
        "http://WWW.magazine.test/story/?b=2&a=1",
        "https://magazine.test/story?a=1&b=2#end",
        "https://magazine.test/story?b=2&utm_source=letter&fbclid=q&a=1",
    ],
)
async def test_two_ways_to_write_an_address_are_one_page(other: str, admin: Client, site: Json) -> None:
    first = await give(admin, site, "/story?b=2&a=1", TENNIS, title="A story")

    second = await admin.post(
        f"/admin/sites/{site['id']}/pages", json={"url": other, "categories": categories_of(CATS)}
    )

    assert second.json()["id"] == first["id"]
    assert (second.json()["title"], second.json()["categories"][0]["id"]) == ("A story", CATS)
    assert second.json()["updatedAt"] != first["updatedAt"]
    assert await listed(admin, site) == ["/story?a=1&b=2"]


async def test_a_write_raises_the_version_and_is_noticed(
    admin: Client, site: Json, pool: Pool, notices: Any
) -> None:
    versions = "SELECT version FROM site_pages"

    await give(admin, site, "/a", TENNIS)
    first = await next_notice(notices)
    page = await give(admin, site, "/a", CATS)
    second = await next_notice(notices)
    assert (str(second.site_id), second.version) == (site["id"], await pool.fetchval(versions))
    await admin.delete(f"/admin/sites/{site['id']}/pages/{page['id']}")
    third = await next_notice(notices)

    assert first.version < second.version < third.version


async def test_a_text_waits_to_be_classified(admin: Client, site: Json, valkey: Valkey) -> None:
    body = {"url": "https://magazine.test/bread?ref=x", "title": "Bread", "text": "Flour and\n water."}

    page = (await admin.post(f"/admin/sites/{site['id']}/pages", json=body)).json()

    (queued,) = await ClassifyQueue(valkey).read("test", count_max=10, wait_seconds=1)
    assert (page["source"], page["classifiedAt"], page["isFresh"]) == ("api", None, False)
    assert (page["title"], page["categories"]) == ("Bread", [])
    assert (str(queued.request.site_id), queued.request.url) == (site["id"], "magazine.test/bread")
    assert (queued.request.title, queued.request.text) == ("Bread", "Flour and water.")
    assert queued.request.source is PageSource.API


async def test_a_page_keeps_its_categories_while_its_new_text_waits(admin: Client, site: Json) -> None:
    before = await give(admin, site, "/a", TENNIS)

    body = {"url": "https://magazine.test/a", "text": "About cats."}
    after = (await admin.post(f"/admin/sites/{site['id']}/pages", json=body)).json()

    assert after == before


async def test_categories_count_where_a_text_is_given_too(admin: Client, site: Json, valkey: Valkey) -> None:
    page = await give(admin, site, "/a", TENNIS, text="About cats.")

    assert page["source"] == "given"
    assert await valkey.exists(STREAM) == 0


async def test_a_full_queue_is_told_and_leaves_no_page(admin: Client, site: Json, valkey: Valkey) -> None:
    for _ in range(LENGTH_MAX):
        await valkey.xadd(STREAM, {"r": b"x"})

    body = {"url": "https://magazine.test/a", "text": "About cats."}
    answer = await admin.post(f"/admin/sites/{site['id']}/pages", json=body)

    problem(answer, 429, "RATE_LIMITED")
    assert answer.headers["retry-after"]
    assert await listed(admin, site) == []


@for_each(
    ("change", "field"),
    [
        ({"categories": None}, "categories"),
        ({"categories": []}, "categories"),
        ({"categories": categories_of("no-such")}, "categories.0.id"),
        ({"categories": [{"id": TENNIS, "confidence": 1.5}]}, "categories.0.confidence"),
        ({"categories": [{"id": TENNIS, "confidence": "1"}]}, "categories.0.confidence"),
        ({"categories": categories_of(TENNIS, CATS, PETS, SPORTS)}, "categories"),
        ({"categories": categories_of(TENNIS, TENNIS)}, "categories"),
        ({"url": "magazine.test/a"}, "url"),
        ({"url": "ftp://magazine.test/a"}, "url"),
        ({"url": "https://magazine.test/" + "a" * 9_000}, "url"),
        ({"url": None}, "url"),
        ({"title": "a" * 501}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"text": ""}, "text"),
        ({"categories": None, "text": " \n\0 "}, "text"),
        ({"url": "https://magazine.test/" + "a" * 2_050}, "url"),
        ({"source": "crawl"}, "source"),
    ],
)
async def test_a_bad_page_is_refused_by_its_field(
    change: Json, field: str, admin: Client, site: Json
) -> None:
    body = {"url": "https://magazine.test/a", "categories": categories_of(TENNIS), **change}

    answer = await admin.post(f"/admin/sites/{site['id']}/pages", json=body)

    errors = problem(answer, 400, "VALIDATION_FAILED")["errors"]
    assert [error["field"] for error in errors] == [field]
    assert await listed(admin, site) == []


@for_each("host", ["elsewhere.test", "magazine.test.evil.example", "notmagazine.test"])
async def test_a_page_of_another_host_is_refused(host: str, admin: Client, site: Json) -> None:
    body = {"url": f"https://{host}/a", "categories": categories_of(TENNIS)}

    answer = await admin.post(f"/admin/sites/{site['id']}/pages", json=body)

    assert problem(answer, 400, "PAGE_NOT_OF_SITE")["errors"][0]["field"] == "url"


async def test_the_host_pattern_narrows_what_is_of_the_site(admin: Client) -> None:
    site = await admin.make_site(domain="magazine.test", hostPattern=r"news\.magazine\.test")
    path = f"/admin/sites/{site['id']}/pages"
    body = {"categories": categories_of(TENNIS)}

    refused = await admin.post(path, json={"url": "https://blog.magazine.test/", **body})
    taken = await admin.post(path, json={"url": "https://news.magazine.test/", **body})

    problem(refused, 400, "PAGE_NOT_OF_SITE")
    assert taken.json()["url"] == "news.magazine.test"


async def test_pages_are_filtered(admin: Client, site: Json, pool: Pool) -> None:
    await give(admin, site, "/court", TENNIS, title="100% tennis")
    await pool.execute("UPDATE site_pages SET expires_at = $1", NOON)
    await give(admin, site, "/sofa", CATS)

    assert await listed(admin, site) == ["/court", "/sofa"]
    assert await listed(admin, site, search="COURT") == ["/court"]
    assert await listed(admin, site, search="100%") == ["/court"]
    assert await listed(admin, site, search="%") == ["/court"]
    assert await listed(admin, site, category=CATS) == ["/sofa"]
    assert await listed(admin, site, category=PETS) == ["/sofa"], "what is below a node is of it"
    assert await listed(admin, site, category=SPORTS) == ["/court"]
    assert await listed(admin, site, isFresh="true") == ["/sofa"]
    assert await listed(admin, site, isFresh="false") == ["/court"]
    assert await listed(admin, site, source="crawl") == []
    assert await listed(admin, site, sort="-url", pageSize=1) == ["/sofa"]


@pytest.mark.parametrize(("query", "field"), [("category=cats", "category"), ("isFresh=maybe", "isFresh")])
async def test_a_filter_that_cannot_be_is_refused(query: str, field: str, admin: Client, site: Json) -> None:
    answer = await admin.get(f"/admin/sites/{site['id']}/pages?{query}")

    assert problem(answer, 400, "VALIDATION_FAILED")["errors"][0]["field"] == field


async def test_a_page_is_forgotten(admin: Client, site: Json) -> None:
    page = await give(admin, site, "/a", TENNIS)
    path = f"/admin/sites/{site['id']}/pages/{page['id']}"

    assert (await admin.delete(path)).status_code == 204

    problem(await admin.get(path), 404, "PAGE_NOT_FOUND")
    problem(await admin.delete(path), 404, "PAGE_NOT_FOUND")


async def test_a_page_is_read_on_its_own_site_only(admin: Client, site: Json) -> None:
    page = await give(admin, site, "/a", TENNIS)
    other = await admin.make_site()

    problem(await admin.get(f"/admin/sites/{other['id']}/pages/{page['id']}"), 404, "PAGE_NOT_FOUND")
    problem(await admin.delete(f"/admin/sites/{other['id']}/pages/{page['id']}"), 404, "PAGE_NOT_FOUND")


async def test_what_a_site_is_about_is_summed_up(admin: Client, site: Json) -> None:
    await give(admin, site, "/a", TENNIS, CATS)
    await give(admin, site, "/b", CATS)

    topics = (await admin.get(f"/admin/sites/{site['id']}/topics")).json()["items"]

    assert [(one["id"], one["name"], one["pages"]) for one in topics] == [
        (CATS, "Cats", 2),
        (TENNIS, "Tennis", 1),
    ]
    assert topics[0]["weight"] == pytest.approx(1.8)
    assert topics[0]["path"] == ["Pets", "Cats"]


async def test_pages_are_counted_by_their_state(admin: Client, site: Json, pool: Pool) -> None:
    site_id = SiteId(UUID(site["id"]))
    await give(admin, site, "/a", CATS)
    await write_page(pool, site_id, "magazine.test/old", at=NOON - timedelta(days=9))
    await write_page(pool, site_id, "magazine.test/waits", at=None)

    topics = (await admin.get(f"/admin/sites/{site['id']}/topics")).json()

    counts = {name: topics[name] for name in ("pages", "classified", "fresh", "failed")}
    assert counts == {"pages": 3, "classified": 2, "fresh": 1, "failed": 0}
