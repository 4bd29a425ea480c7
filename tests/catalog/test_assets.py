"""Uploads over the admin API: stored once, owned, bounded, cleaned when nothing shows them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from adloom.catalog.asset.cleaning import AssetCleaning
from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.runtime.files.place import AssetSettings
from adloom.runtime.files.store import FilesAwayError, FolderStore
from adloom.runtime.postgres import Pool
from tests.catalog.asset_files import a_picture, a_zip
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, problem
from tests.support.described import list_deviations

PNG = a_picture()


async def upload(client: Client, data: bytes = PNG, *, status: int = 201, **query: str) -> Json:
    answer = await client.post("/admin/assets", content=data, params=query)
    assert answer.status_code == status, answer.text
    assert list_deviations(answer) == []
    return answer.json()


@pytest.fixture
def folder(control: ControlPlane, tmp_path: Path) -> Path:
    del control  # It has its files there.
    return tmp_path / "assets"


def files_in(folder: Path, pattern: str = "*.*") -> list[Path]:
    return list(folder.rglob(pattern))


async def test_a_file_is_stored_by_its_hash_and_has_an_address_on_delivery(
    admin: Client, folder: Path, control: ControlPlane
) -> None:
    asset = await upload(admin, name="red.png")

    sha256 = asset["sha256"]
    assert asset["url"] == f"{control.app.state.delivery_url}/p/{sha256}.png"
    assert (asset["name"], asset["kind"], asset["mime"]) == ("red.png", "image", "image/png")
    assert (asset["width"], asset["height"], asset["size"]) == (40, 30, len(PNG))
    path = folder / sha256[:2] / f"{sha256}.png"
    assert path.read_bytes() == PNG
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o640, 0o750)
    assert (await admin.get(f"/admin/assets/{asset['id']}")).json() == asset
    assert (await admin.get("/admin/assets", params={"kind": "image", "search": "RED"})).json()["items"] == [
        asset
    ]


async def test_the_same_file_again_is_the_same_asset(admin: Client) -> None:
    first = await upload(admin)

    assert await upload(admin, status=200, name="other") == first
    assert (await admin.get("/admin/assets")).json()["totalCount"] == 1


async def test_accounts_have_their_own(admin: Client, advertiser: Client) -> None:
    house, own = await upload(admin), await upload(advertiser)

    assert house["id"] != own["id"]
    assert house["url"] == own["url"]
    problem(await advertiser.get(f"/admin/assets/{house['id']}"), 404, "ASSET_NOT_FOUND")
    problem(await advertiser.delete(f"/admin/assets/{house['id']}"), 404, "ASSET_NOT_FOUND")
    assert [one["id"] for one in (await advertiser.get("/admin/assets")).json()["items"]] == [own["id"]]
    problem(
        await advertiser.post("/admin/assets", content=PNG, params={"advertiserId": str(SystemIds().make())}),
        400,
        "VALIDATION_FAILED",
    )
    problem(
        await admin.post("/admin/assets", content=PNG, params={"advertiserId": str(SystemIds().make())}),
        400,
        "VALIDATION_FAILED",
    )


async def test_what_cannot_be_shown_is_refused_with_what_to_change(admin: Client, folder: Path) -> None:
    refused = problem(await admin.post("/admin/assets", content=b"#!/bin/sh"), 400, "ASSET_REFUSED")

    assert "JPEG" in refused["message"]
    problem(await admin.post("/admin/assets", content=b""), 400, "ASSET_REFUSED")
    problem(await admin.post("/admin/assets", content=PNG + bytes(40 * 2**20)), 413, "ASSET_TOO_LARGE")
    problem(await admin.post("/admin/assets", content=bytes(65 * 2**20)), 413, "BODY_TOO_LARGE")
    assert not files_in(folder)


async def test_a_publisher_uploads_nothing(control: ControlPlane) -> None:
    async with control.acting_as(Role.PUBLISHER) as publisher:
        problem(await publisher.post("/admin/assets", content=PNG), 403, "FORBIDDEN")


async def test_an_account_has_no_more_bytes_than_it_may(
    advertiser: Client, control: ControlPlane, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = control.app.state.asset_uploads
    monkeypatch.setattr(uploads, "settings", AssetSettings(account_bytes_max=len(PNG)))
    await upload(advertiser)

    answer = await advertiser.post("/admin/assets", content=a_picture(width=50))

    problem(answer, 409, "ACCOUNT_QUOTA_REACHED")
    assert (await advertiser.get("/admin/assets")).json()["totalCount"] == 1
    # Nothing would remove a file that no row names.
    assert len(files_in(folder)) == 1


async def test_a_creative_that_cannot_be_written_whole_leaves_nothing(
    advertiser: Client, control: ControlPlane, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderStore(folder)
    write = files.write

    async def write_some(key: str, data: bytes, content_type: str) -> None:
        if key.endswith(".js"):
            raise FilesAwayError("the disk is full")
        await write(key, data, content_type)

    monkeypatch.setattr(files, "write", write_some)
    monkeypatch.setattr(control.app.state.asset_uploads, "_files", files)

    problem(await advertiser.post("/admin/assets", content=a_zip()), 503, "UNAVAILABLE")

    assert (await advertiser.get("/admin/assets")).json()["totalCount"] == 0
    assert not files_in(folder)


async def test_few_uploads_of_an_account_are_read_at_once(
    admin: Client, advertiser: Client, control: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces_read = 0

    async def send() -> AsyncGenerator[bytes]:
        nonlocal pieces_read
        pieces_read += 1
        yield PNG

    turns = control.app.state.asset_uploads.turns
    account_id = UUID((await upload(advertiser, a_picture(width=50)))["advertiserId"])
    monkeypatch.setattr(turns, "wait_seconds_max", 0.05)
    async with turns.take(account_id), turns.take(account_id):
        answer = await advertiser.post("/admin/assets", content=send())

        problem(answer, 503, "UNAVAILABLE")
        assert answer.headers["retry-after"] == "5"
        assert pieces_read == 0
        await upload(admin)
        monkeypatch.setattr(turns, "wait_seconds_max", 30)
        waiting = asyncio.create_task(advertiser.post("/admin/assets", content=send()))
        await asyncio.sleep(0.1)
        assert pieces_read == 0
    assert (await waiting).status_code == 201
    assert pieces_read == 1


async def test_a_file_that_something_shows_is_not_removed(admin: Client, folder: Path) -> None:
    asset = await upload(admin)
    banner = await admin.make_banner(primaryImageUrl=asset["url"])

    problem(await admin.delete(f"/admin/assets/{asset['id']}"), 409, "ASSET_IN_USE")
    await admin.patch(
        f"/admin/banners/{banner['id']}", json={"primaryImageUrl": "https://a.example.com/a.png"}
    )
    assert (await admin.delete(f"/admin/assets/{asset['id']}")).status_code == 204

    assert not files_in(folder)
    problem(await admin.get(f"/admin/assets/{asset['id']}"), 404, "ASSET_NOT_FOUND")


async def test_a_file_of_two_accounts_stays_while_one_has_it(
    admin: Client, advertiser: Client, folder: Path
) -> None:
    house, own = await upload(admin), await upload(advertiser)

    await admin.delete(f"/admin/assets/{house['id']}")
    assert len(files_in(folder, "*.png")) == 1
    await advertiser.delete(f"/admin/assets/{own['id']}")
    assert not files_in(folder, "*.png")


async def test_files_that_nothing_shows_are_removed_after_a_while(
    admin: Client, pool: Pool, folder: Path, control: ControlPlane
) -> None:
    shown, unused, html = (
        await upload(admin),
        await upload(admin, a_picture(width=50)),
        await upload(admin, a_zip()),
    )
    await admin.make_banner(
        primaryImageUrl="https://a.example.com/a.png", mediaVariants={"html": html["url"]}
    )
    await admin.make_placement(fallbackPlaceholderUrl=shown["url"])
    clock = ManualClock(control.app.state.clock.now())
    cleaning = AssetCleaning(pool, FolderStore(folder), clock, unused_days=30)

    clock.advance(timedelta(days=29))
    assert await cleaning.run() == 0
    clock.advance(timedelta(days=2))
    assert await cleaning.run() == 1

    left = {one["id"] for one in (await admin.get("/admin/assets")).json()["items"]}
    assert left == {shown["id"], html["id"]}
    assert not files_in(folder, f"{unused['sha256']}*")
    assert len(files_in(folder)) == 3


async def test_a_file_that_is_shown_while_others_are_removed_stays(
    admin: Client, pool: Pool, folder: Path, control: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, shown = await upload(admin), await upload(admin, a_picture(width=1_600))
    clock, files = ManualClock(control.app.state.clock.now()), FolderStore(folder)
    delete = files.delete

    async def delete_slowly(keys: Sequence[str]) -> None:
        await admin.make_banner(primaryImageUrl=shown["variants"]["mobile"])
        await delete(keys)

    monkeypatch.setattr(files, "delete", delete_slowly)
    clock.advance(timedelta(days=31))

    assert await AssetCleaning(pool, files, clock, unused_days=30).run() == 1

    assert [one["id"] for one in (await admin.get("/admin/assets")).json()["items"]] == [shown["id"]]
    assert not files_in(folder, f"{first['sha256']}*")
    assert files_in(folder, f"{shown['sha256']}*")


async def test_uploads_are_in_the_history(advertiser: Client) -> None:
    asset = await upload(advertiser, name="red.png")
    await advertiser.delete(f"/admin/assets/{asset['id']}")

    entries = (await advertiser.get("/admin/audit")).json()["items"]

    assert [(one["noun"], one["action"]) for one in entries][:2] == [("asset", "delete"), ("asset", "create")]
