"""The backlog on the disk: bounded, removed when it is drained, adopted when its process is dead."""

from uuid import UUID

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.log.spool.backlog import READ_TRIES_MAX, Backlog
from adloom.events.log.spool.format import HEADER_BYTES
from tests.support.fake_disk import DiskImage, FakeDisk, Fault

MANY = 1000


@pytest.fixture
def image() -> DiskImage:
    return DiskImage()


def a_backlog(
    image: DiskImage,
    *,
    owner: str = "delivery-1",
    life: int = 1,
    bytes_max: int = 10_000,
    segment_bytes_max: int = 1_000,
) -> tuple[Backlog, FakeDisk]:
    disk = FakeDisk(image)
    backlog = Backlog(
        disk, owner=owner, life=UUID(int=life), bytes_max=bytes_max, segment_bytes_max=segment_bytes_max
    )
    return backlog, disk


async def drain_all(backlog: Backlog, count_max: int = MANY) -> list[bytes]:
    """Drain everything, and return it."""
    entries: list[bytes] = []
    while (batch := await backlog.read_batch(count_max)) is not None:
        entries += batch.found.entries
        backlog.advance(batch)
    return entries


def entries(count: int, *, size: int = 12) -> list[bytes]:
    return [b"%0*d" % (size, number) for number in range(count)]


async def test_entries_are_read_in_batches_until_they_are_drained(image: DiskImage) -> None:
    backlog, _ = a_backlog(image)
    await backlog.put(entries(3))

    first = await backlog.read_batch(2)
    again = await backlog.read_batch(2)

    assert first is not None
    assert again is not None
    assert first.found.entries == again.found.entries == entries(3)[:2]
    backlog.advance(first)
    assert await drain_all(backlog) == entries(3)[2:]
    assert backlog.waiting_bytes == 0


async def test_drained_files_are_removed_and_their_bytes_are_free_again(image: DiskImage) -> None:
    backlog, _ = a_backlog(image, bytes_max=2_000, segment_bytes_max=300)
    for _ in range(5):
        await backlog.put(entries(10))
    files = len(image.files)

    assert len(await drain_all(backlog, 7)) == 50

    assert files == 3
    assert image.files == {}
    await backlog.put(entries(100))


async def test_at_the_bound_a_batch_is_refused_whole(image: DiskImage) -> None:
    backlog, _ = a_backlog(image, bytes_max=100)
    await backlog.put(entries(4))  # 20 bytes each with their frames
    assert backlog.has_room()
    assert not backlog.has_room(share=0.5)

    with pytest.raises(UnavailableError) as refused:
        await backlog.put(entries(2))

    assert "full" in refused.value.detail
    await backlog.put(entries(1))
    assert not backlog.has_room()
    assert len(await drain_all(backlog)) == 5


@pytest.mark.parametrize("after_steps", range(5))
async def test_a_batch_that_the_disk_fails_to_write_is_refused_whole(
    image: DiskImage, after_steps: int
) -> None:
    backlog, disk = a_backlog(image)
    disk.plan(Fault.FAILS, after_steps=after_steps)
    with pytest.raises(UnavailableError) as refused:
        await backlog.put(entries(5))
    assert "No space left" in refused.value.detail

    await backlog.put([b"next"])

    assert backlog.waiting_bytes == len(b"next") + 8
    assert await drain_all(backlog) == [b"next"]
    assert image.files == {}


async def test_a_failed_write_is_truncated(image: DiskImage) -> None:
    backlog, disk = a_backlog(image)
    await backlog.put([b"before"])
    [content] = image.files.values()
    size = len(content.seen)
    disk.plan(Fault.FAILS, after_steps=0, share_written=0.9)

    with pytest.raises(UnavailableError):
        await backlog.put(entries(5))

    assert len(content.seen) == len(content.durable) == size


async def test_a_torn_record_is_dropped_and_its_file_removed(image: DiskImage) -> None:
    before, disk = a_backlog(image)
    await before.put(entries(3))
    disk.die()
    [content] = image.files.values()
    del content.seen[-1]

    after, _ = a_backlog(image, life=2)
    await after.adopt(is_all=False)

    assert await drain_all(after) == entries(3)[:2]
    assert (after.damaged, image.files) == (0, {})


@pytest.mark.parametrize("place", [0, HEADER_BYTES, HEADER_BYTES + 25])
async def test_a_damaged_file_is_drained_as_far_as_possible_and_kept(image: DiskImage, place: int) -> None:
    before, disk = a_backlog(image)
    await before.put(entries(3))
    disk.die()
    [(name, content)] = image.files.items()
    content.seen[place] ^= 1
    damaged_content = bytes(content.seen)

    after, _ = a_backlog(image, life=2)
    await after.adopt(is_all=False)
    drained = await drain_all(after)

    lost = {0: [], HEADER_BYTES: [0], HEADER_BYTES + 25: [1]}[place]
    assert drained == [entry for number, entry in enumerate(entries(3)) if number not in lost]
    assert after.damaged == 1
    assert list(image.files) == [f"{name}.damaged"]
    assert bytes(image.files[f"{name}.damaged"].seen) == damaged_content
    assert after.waiting_bytes == 0
    await after.adopt(is_all=True)
    assert await drain_all(after) == []


async def test_damage_at_the_end_of_our_own_file_is_detected(
    image: DiskImage,
) -> None:
    backlog, _ = a_backlog(image)
    await backlog.put(entries(3))
    [content] = image.files.values()
    content.seen[-1] ^= 1

    assert await drain_all(backlog) == entries(3)[:2]

    assert backlog.damaged == 1
    assert [name.endswith(".damaged") for name in image.files] == [True]


async def test_files_of_a_living_process_are_not_adopted(image: DiskImage) -> None:
    living, _ = a_backlog(image)
    await living.put(entries(3))

    other, _ = a_backlog(image, life=2)
    await other.adopt(is_all=True)

    assert await drain_all(other) == []
    assert await drain_all(living) == entries(3)


async def test_files_of_another_owner_are_adopted_only_on_request(image: DiskImage) -> None:
    before, disk = a_backlog(image, owner="delivery-2")
    await before.put(entries(3))
    disk.die()
    after, _ = a_backlog(image, life=2)

    await after.adopt(is_all=False)
    assert after.waiting_bytes == 0

    await after.adopt(is_all=True)
    assert after.adopted_bytes == after.waiting_bytes > 0
    assert await drain_all(after) == entries(3)


async def test_adopted_files_count_towards_the_size_limit(image: DiskImage) -> None:
    before, disk = a_backlog(image)
    await before.put(entries(4))
    disk.die()
    after, _ = a_backlog(image, life=2, bytes_max=100)
    await after.adopt(is_all=False)

    with pytest.raises(UnavailableError):
        await after.put(entries(2))


async def test_our_own_files_are_drained_before_adopted_ones(image: DiskImage) -> None:
    before, disk = a_backlog(image)
    await before.put([b"old"])
    disk.die()
    after, _ = a_backlog(image, life=2)
    await after.adopt(is_all=False)
    await after.put([b"new"])

    assert await drain_all(after) == [b"new", b"old"]


async def test_a_file_that_cannot_be_removed_is_not_drained_again(image: DiskImage) -> None:
    backlog, disk = a_backlog(image)
    await backlog.put(entries(3))
    batch = await backlog.read_batch(MANY)
    assert batch is not None
    backlog.advance(batch)
    disk.plan(Fault.FAILS, after_steps=0)
    assert await backlog.read_batch(MANY) is None
    assert len(image.files) == 1

    other, _ = a_backlog(image, life=2)
    await other.adopt(is_all=True)
    assert await drain_all(other) == []

    await backlog.tidy()
    assert image.files == {}


async def test_an_unreadable_file_is_retried_and_then_left_to_the_next_adoption(
    image: DiskImage,
) -> None:
    backlog, disk = a_backlog(image, segment_bytes_max=10)
    await backlog.put([b"first"])
    await backlog.put([b"second"])
    for _ in range(READ_TRIES_MAX - 1):
        disk.plan(Fault.FAILS, after_steps=0)
        with pytest.raises(OSError, match="No space"):
            await backlog.read_batch(MANY)

    disk.plan(Fault.FAILS, after_steps=0)
    assert await drain_all(backlog) == [b"second"]

    assert backlog.waiting_bytes == 0
    await backlog.adopt(is_all=True)
    assert await drain_all(backlog) == [b"first"]


async def test_other_files_in_the_folder_are_left_alone(image: DiskImage) -> None:
    other_disk = FakeDisk(image)
    for name in ("notes.txt", "delivery-1.spool", "a.b.000001.spool.damaged"):
        await (await other_disk.create(name, b"")).release()

    backlog, _ = a_backlog(image)
    await backlog.adopt(is_all=True)

    assert await drain_all(backlog) == []
    assert len(image.files) == 3


async def test_a_released_file_can_be_adopted(image: DiskImage) -> None:
    before, _ = a_backlog(image)
    await before.put(entries(3))
    await before.release()

    after, _ = a_backlog(image, life=2)
    await after.adopt(is_all=True)

    assert await drain_all(after) == entries(3)
