"""The spool's files on a real disk: private, held by one process, released."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from adloom.events.log.spool.backlog import Backlog
from adloom.events.log.spool.disk import LocalDisk, make_folder

NAME = "delivery-1.00000000000000000000000000000001.000001.spool"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "spool"
    make_folder(folder)
    return folder


@pytest.fixture
def disk(folder: Path) -> Iterator[LocalDisk]:
    disk = LocalDisk(folder)
    yield disk
    disk.close()


def get_mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_folder_and_files_are_for_their_owner_only(disk: LocalDisk, folder: Path) -> None:
    before = os.umask(0)
    try:
        file = await disk.create(NAME, b"head")
    finally:
        os.umask(before)

    assert (get_mode(folder), get_mode(folder / NAME)) == (0o700, 0o600)
    await file.release()


async def test_a_file_is_written_read_cut_off_renamed_and_removed(disk: LocalDisk, folder: Path) -> None:
    file = await disk.create(NAME, b"head")
    await file.write(4, b"and more")

    assert await file.measure() == 12
    assert await file.read(4, 100) == b"and more"
    await file.truncate(4)
    assert (folder / NAME).read_bytes() == b"head"
    await file.rename("another")
    assert (await disk.list_names(), file.name) == (["another"], "another")
    await file.remove()
    assert await disk.list_names() == []


async def test_only_a_released_file_can_be_claimed(disk: LocalDisk, folder: Path) -> None:
    other = LocalDisk(folder)
    file = await disk.create(NAME, b"head")

    assert await other.claim(NAME) is None
    assert await disk.claim(NAME) is None
    assert await other.claim("nothing") is None

    await file.release()
    claimed = await other.claim(NAME)
    assert claimed is not None
    assert await disk.claim(NAME) is None
    await claimed.remove()
    other.close()


async def test_a_name_that_is_taken_is_an_error(disk: LocalDisk) -> None:
    file = await disk.create(NAME, b"head")

    with pytest.raises(FileExistsError):
        await disk.create(NAME, b"head")

    assert await file.measure() == 4
    await file.release()


async def test_a_backlog_on_a_real_disk_is_drained_by_its_successor(disk: LocalDisk, folder: Path) -> None:
    entries = [b"%d" % number for number in range(1000)]
    before = Backlog(disk, owner="delivery-1", life=UUID(int=1), segment_bytes_max=2000)
    for start in range(0, 1000, 100):
        await before.put(entries[start : start + 100])
    assert len(await disk.list_names()) > 3
    await before.release()

    after = Backlog(LocalDisk(folder), owner="delivery-1", life=UUID(int=2))
    await after.adopt(is_all=False)
    drained: list[bytes] = []
    while (batch := await after.read_batch(70)) is not None:
        drained += batch.found.entries
        after.advance(batch)

    assert drained == entries
    assert await disk.list_names() == []


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="Not a directory"):
        make_folder(tmp_path / "file" / "spool")
