"""What a site is about: its pages, counted by category and by state."""

from datetime import timedelta
from uuid import UUID

import pytest

from adloom.core.actor import Role
from adloom.core.ids import SiteId
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane, problem
from tests.support.pages import write_page

CATS, DOGS = "424", "425"


async def test_pages_are_counted_by_category_and_by_state(admin: Client, pool: Pool) -> None:
    site = await admin.make_site()
    site_id = SiteId(UUID(site["id"]))
    await write_page(pool, site_id, "a", at=NOON, categories={CATS: 0.9})
    await write_page(pool, site_id, "b", at=NOON, categories={CATS: 0.5, DOGS: 0.4})
    await write_page(pool, site_id, "old", at=NOON - timedelta(days=9), categories={CATS: 0.7})
    await write_page(pool, site_id, "waits", at=None)

    topics = (await admin.get(f"/admin/sites/{site['id']}/topics")).json()

    assert {name: topics[name] for name in ("pages", "classified", "fresh", "failed")} == {
        "pages": 4,
        "classified": 3,
        "fresh": 2,
        "failed": 0,
    }
    cats, dogs = topics["items"]
    assert cats == {
        "id": CATS,
        "name": "Cats",
        "path": ["Pets", "Cats"],
        "pages": 3,
        "confidence": pytest.approx(0.7),
    }
    assert (dogs["id"], dogs["pages"]) == (DOGS, 1)


async def test_a_site_without_pages_is_about_nothing(admin: Client) -> None:
    site = await admin.make_site()

    topics = (await admin.get(f"/admin/sites/{site['id']}/topics")).json()

    assert topics == {"pages": 0, "classified": 0, "fresh": 0, "failed": 0, "items": []}


async def test_a_publisher_reads_its_own_only(control: ControlPlane, admin: Client) -> None:
    publisher = await admin.make_publisher()
    site = await admin.make_site(publisherId=publisher["id"])
    path = f"/admin/sites/{site['id']}/topics"

    async with control.acting_as(Role.PUBLISHER, UUID(publisher["id"])) as owner:
        assert (await owner.get(path)).status_code == 200
    async with control.acting_as(Role.PUBLISHER) as other:
        assert (await other.get(path)).status_code == 404
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        problem(await advertiser.get(path), 403, "FORBIDDEN")
