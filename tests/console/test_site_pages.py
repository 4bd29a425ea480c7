"""The pages of a site in the console: what each is about and why, for those who may see it."""

from uuid import UUID

import pytest

from adloom.console.components.categories import STEP
from adloom.core.caller import Role
from tests.console.visitor import Visitor, make_person
from tests.support.builders import Json
from tests.support.control import ControlPlane

CATS, DOGS = "424", "425"
FAILED = "This could not be loaded"


@pytest.fixture
async def site(console: ControlPlane) -> Json:
    async with console.acting_as(Role.ADMIN) as admin:
        publisher = await admin.make_publisher()
        return await admin.make_site(domain="magazine.test", publisherId=publisher["id"])


async def give(console: ControlPlane, site: Json, path: str, *categories: str, **fields: object) -> Json:
    given = [{"id": one, "confidence": 0.87} for one in categories]
    async with console.acting_as(Role.ADMIN) as admin:
        answer = await admin.post(
            f"/admin/sites/{site['id']}/pages",
            json={"url": f"https://magazine.test{path}", "categories": given, **fields},
        )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_site_without_pages_says_what_to_do(ann: Visitor, site: Json) -> None:
    overview = (await ann.get(f"/console/sites/{site['id']}")).text
    pages = (await ann.get(f"/console/sites/{site['id']}?tab=pages")).text
    crawls = (await ann.get(f"/console/sites/{site['id']}?tab=crawls")).text

    assert "Nothing is known about its pages yet" in overview
    assert "0 of 3 done" in overview
    assert "A crawl begins at https://magazine.test/" in overview
    assert "Not crawled yet" in crawls
    assert "No pages yet" in pages
    assert "Add a page" in pages


async def test_pages_are_listed_with_what_they_are_about(
    console: ControlPlane, ann: Visitor, site: Json
) -> None:
    await give(console, site, "/paws", CATS, title="Four paws")
    await give(console, site, "/walk", DOGS, title="A long walk")

    overview = (await ann.get(f"/console/sites/{site['id']}")).text
    listed = (await ann.get(f"/console/sites/{site['id']}?tab=pages")).text
    narrowed = (await ann.get(f"/console/sites/{site['id']}?tab=pages&category={CATS}")).text

    assert "2 classified pages" in overview
    assert "Four paws" in listed
    assert "A long walk" in listed
    assert "al-chip" in listed
    assert "Four paws" in narrowed
    assert "A long walk" not in narrowed


async def test_a_page_says_why_it_has_its_categories(console: ControlPlane, ann: Visitor, site: Json) -> None:
    page = await give(console, site, "/paws", CATS, title="<img src=x onerror=alert(1)>")

    shown = await ann.get(f"/console/sites/{site['id']}/pages/{page['id']}")

    assert shown.status_code == 200
    assert FAILED not in shown.text
    assert "Somebody gave these categories by hand" in shown.text
    assert f"Pets{STEP}Cats" in shown.text
    assert "<img src=x" not in shown.text


async def test_a_publisher_sees_the_pages_of_its_own_sites_only(console: ControlPlane, site: Json) -> None:
    page = await give(console, site, "/paws", CATS)
    await make_person(console, "owner@example.com", Role.PUBLISHER, account_id=UUID(site["publisherId"]))
    await make_person(console, "other@example.com", Role.PUBLISHER)
    addresses = [
        f"/console/sites/{site['id']}?tab=pages",
        f"/console/sites/{site['id']}/pages/{page['id']}",
    ]

    async with Visitor(console) as owner, Visitor(console) as other:
        await owner.log_in("owner@example.com")
        await other.log_in("other@example.com")
        for address in addresses:
            assert "magazine.test/paws" in (await owner.get(address)).text
            refused = await other.get(address)
            assert refused.status_code == 404
            assert "magazine.test/paws" not in refused.text


async def test_a_crawl_is_shown_with_what_it_found(console: ControlPlane, ann: Visitor, site: Json) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        started = await admin.post(f"/admin/sites/{site['id']}/crawl")
        assert started.status_code == 202, started.text

    overview = (await ann.get(f"/console/sites/{site['id']}")).text
    crawls = (await ann.get(f"/console/sites/{site['id']}?tab=crawls")).text

    assert "A crawl is under way" in overview
    assert "waits for the crawler" in crawls
    assert "Cancel the crawl" in crawls


async def test_who_may_not_write_gets_no_buttons(console: ControlPlane, site: Json) -> None:
    await make_person(console, "viewer@example.com", Role.VIEWER)

    async with Visitor(console) as viewer:
        await viewer.log_in("viewer@example.com")
        pages = [
            (await viewer.get(f"/console/sites/{site['id']}?tab={tab}")).text
            for tab in ("overview", "pages", "crawls")
        ]

    for button in ("Show me how", "Crawl now", "Add a page", "Classify again", "New placement"):
        assert all(button not in page for page in pages), button
