"""A noun declared by the test gets routes, history, export and import; then a field is added to it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from fastapi import APIRouter

from adloom.catalog.advertiser import advertisers
from adloom.core.caller import Role
from adloom.core.ids import AdvertiserId, SystemIds
from adloom.resource.access import ADVERTISER
from adloom.resource.api import build_router
from adloom.resource.resource import Resource
from adloom.resource.soft_delete import SoftDeletable
from adloom.resource.transfer.api import build_transfer_router
from adloom.resource.transfer.exchange import Exchange
from adloom.runtime.http.api.shapes import Name, Natural, Text100
from adloom.runtime.postgres import Pool
from tests.support.control import Client, ControlPlane, error_fields, problem

GADGETS = "/admin/gadgets"
CREATE_TABLE = """
    CREATE TABLE gadgets (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        public_id uuid NOT NULL UNIQUE,
        advertiser_id integer REFERENCES advertisers (id),
        name text NOT NULL,
        price integer NOT NULL,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        deleted_at timestamptz
    )
"""


class Gadget(SoftDeletable, frozen=True, kw_only=True):
    """A noun that only this test declares."""

    noun_name = "gadget"

    id: UUID
    advertiser_id: AdvertiserId | None
    name: Name
    price: Natural = 0
    created_at: datetime


class ColoredGadget(Gadget, frozen=True, kw_only=True):
    """The same noun, with one more field."""

    color: Text100 | None = None


def declare(struct: type[Gadget]) -> Resource[Any]:
    return Resource(
        struct=struct,
        name="gadget",
        path=GADGETS,
        tag="gadgets",
        table_name="gadgets",
        owner=ADVERTISER,
        references={"advertiser_id": advertisers},
        filters=("price", "advertiser_id"),
        search=("name",),
        sort=("name", "price"),
        list_name="gadgets",
    )


@asynccontextmanager
async def with_gadgets(control: ControlPlane, struct: type[Gadget]) -> AsyncGenerator[Client]:
    gadgets = declare(struct)
    routes = APIRouter()
    routes.include_router(build_router(gadgets))
    # The app has its own export and import.
    routes.include_router(build_transfer_router(Exchange((advertisers, gadgets))), prefix="/gadgets")
    control.app.router.routes[:0] = routes.routes
    async with control.acting_as(Role.ADMIN) as client:
        yield client


@pytest.fixture
async def client(control: ControlPlane, pool: Pool) -> AsyncGenerator[Client]:
    await pool.execute(CREATE_TABLE)
    async with with_gadgets(control, Gadget) as client:
        yield client


async def find_actions(client: Client) -> list[str]:
    answer = await client.get("/admin/audit", params={"noun": "gadget"})
    return [entry["action"] for entry in answer.json()["items"]]


async def test_a_gadget_is_created_read_changed_deleted_and_restored(client: Client) -> None:
    made = await client.made(GADGETS, {"name": "Lamp", "price": 5})
    path = f"{GADGETS}/{made['id']}"

    read = await client.get(path)
    changed = await client.patch(path, json={"price": 7}, headers={"If-Match": read.headers["ETag"]})
    stale = await client.patch(path, json={"price": 8}, headers={"If-Match": read.headers["ETag"]})
    restored_early = await client.post(f"{path}/restore")
    deleted = await client.delete(path)
    deleted_twice = await client.delete(path)
    changed_late = await client.patch(path, json={"price": 9})
    restored = await client.post(f"{path}/restore")

    assert read.json() == made
    assert list(made) == ["id", "advertiserId", "name", "price", "createdAt", "updatedAt", "deletedAt"]
    assert (changed.status_code, changed.json()["price"]) == (200, 7)
    problem(stale, 409, "STALE_WRITE")
    assert deleted.status_code == 204
    problem(restored_early, 409, "GADGET_NOT_DELETED")
    problem(deleted_twice, 409, "GADGET_ALREADY_DELETED")
    problem(changed_late, 409, "GADGET_ALREADY_DELETED")
    assert (restored.status_code, restored.json()["deletedAt"]) == (200, None)
    assert await find_actions(client) == ["restore", "delete", "update", "create"]


async def test_gadgets_are_listed_filtered_searched_and_sorted(client: Client) -> None:
    for name, price in (("Lamp", 5), ("Lamp shade", 3), ("Chair", 3)):
        await client.made(GADGETS, {"name": name, "price": price})

    async def find(**query: str) -> list[str]:
        return [item["name"] for item in (await client.get(GADGETS, params=query)).json()["items"]]

    assert await find(sort="name") == ["Chair", "Lamp", "Lamp shade"]
    assert await find(search="LAMP", sort="-price") == ["Lamp", "Lamp shade"]
    assert await find(price="3", sort="name") == ["Chair", "Lamp shade"]
    problem(await client.get(GADGETS, params={"sort": "color"}), 400, "VALIDATION_FAILED")


async def test_a_body_is_checked_by_the_annotations_of_the_struct(client: Client) -> None:
    refused = problem(await client.post(GADGETS, json={"name": " ", "price": -1}), 400, "VALIDATION_FAILED")

    assert error_fields(refused) == {"name", "price"}


async def test_an_advertiser_has_its_own_gadgets_and_sees_no_others(
    client: Client, control: ControlPlane
) -> None:
    foreign_gadget = await client.made(GADGETS, {"name": "Without an owner"})

    async with control.acting_as(Role.ADVERTISER, SystemIds().make()) as advertiser:
        own = await advertiser.made(GADGETS, {"name": "Own"})
        listed = (await advertiser.get(GADGETS)).json()["items"]
        hidden = await advertiser.get(f"{GADGETS}/{foreign_gadget['id']}")

    assert [item["id"] for item in listed] == [own["id"]]
    problem(hidden, 404, "GADGET_NOT_FOUND")


async def test_gadgets_are_exported_and_imported(client: Client) -> None:
    made = await client.made(GADGETS, {"name": "Lamp", "price": 5})
    document = (await client.get("/gadgets/admin/export")).json()
    item = document["gadgets"][0]

    document["gadgets"] = [item | {"price": 6}, {"name": "Chair"}]
    report = (await client.post("/gadgets/admin/import", json=document)).json()

    assert (item["id"], item["price"]) == (made["id"], 5)
    assert report["counts"] == {"gadgets": {"created": 1, "updated": 1, "unchanged": 0}}
    assert (await client.get(f"{GADGETS}/{made['id']}")).json()["price"] == 6
    assert await find_actions(client) == ["update", "create", "create"]


async def test_a_new_field_is_a_column_and_a_field_of_the_struct(
    client: Client, control: ControlPlane, pool: Pool
) -> None:
    before = await client.made(GADGETS, {"name": "Lamp"})

    await pool.execute("ALTER TABLE gadgets ADD COLUMN color text")
    async with with_gadgets(control, ColoredGadget) as client:  # noqa: PLR1704 - the same client, later
        made = await client.made(GADGETS, {"name": "Chair", "color": "red"})
        changed = (await client.patch(f"{GADGETS}/{before['id']}", json={"color": "blue"})).json()
        refused = await client.patch(f"{GADGETS}/{before['id']}", json={"color": "x" * 101})
        newest = (await client.get("/admin/audit", params={"noun": "gadget"})).json()["items"][0]
        document = (await client.get("/gadgets/admin/export")).json()
        sheet = (await client.get("/gadgets/admin/export", params={"format": "csv"})).text
        green = [item | {"color": "green"} for item in document["gadgets"]]
        report = (await client.post("/gadgets/admin/import", json={"gadgets": green})).json()
        listed = (await client.get(GADGETS)).json()["items"]

    assert (made["color"], changed["color"]) == ("red", "blue")
    assert error_fields(problem(refused, 400, "VALIDATION_FAILED")) == {"color"}
    assert newest["changes"] == {"color": {"from": None, "to": "blue"}}
    assert {item["color"] for item in document["gadgets"]} == {"red", "blue"}
    assert "color" in sheet.splitlines()[0].split(",")
    assert report["updated"] == 2
    assert {item["color"] for item in listed} == {"green"}
