"""Dead letters: added once, kept until an operator decides, and appended to the log again in one step."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, encode_event
from adloom.events.log.event_group import pack_group
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.runtime.valkey import Valkey
from tests.events.builders import an_impression


@pytest.fixture
def queue(valkey: Valkey) -> DeadLetterQueue:
    return DeadLetterQueue(valkey)


async def add_letter(queue: DeadLetterQueue, entry_id: str = "1-0", *, projection: str = "tables") -> None:
    await queue.add(
        projection, entry_id, b"data", reason="It is no event.", tries=5, again=b"again " + entry_id.encode()
    )


async def read_log(valkey: Valkey) -> list[bytes]:
    # The stubs allow every protocol version and decoding.
    rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", await valkey.xrange(STREAM))
    return [fields[b"e"] for _, fields in rows]


async def test_a_dead_letter_names_its_projection_reason_and_time(queue: DeadLetterQueue) -> None:
    await add_letter(queue)

    [letter] = await queue.list_after()

    assert (letter.projection, letter.entry_id, letter.tries) == ("tables", "1-0", 5)
    assert (letter.reason, letter.data) == ("It is no event.", b"data")
    assert abs(datetime.now(UTC) - letter.at) < timedelta(minutes=1)
    assert await queue.get(letter.id) == letter


async def test_an_entry_is_added_once_for_each_projection(queue: DeadLetterQueue) -> None:
    for _ in range(3):
        await add_letter(queue, projection="tables")
    await add_letter(queue, projection="frequency")

    assert await queue.count() == 2
    assert await queue.count_by_projection() == {"tables": 1, "frequency": 1}


async def test_a_retried_dead_letter_is_appended_to_the_log(queue: DeadLetterQueue, valkey: Valkey) -> None:
    await add_letter(queue)
    [letter] = await queue.list_after()

    assert await queue.retry(letter.id)
    assert not await queue.retry(letter.id)

    assert await read_log(valkey) == [b"again 1-0"]
    assert await queue.count() == 0
    assert await queue.count_by_projection() == {}


async def test_a_group_that_an_older_worker_could_not_read_comes_back_as_a_group(
    queue: DeadLetterQueue, valkey: Valkey
) -> None:
    events = [encode_event(an_impression(f"{number}")) for number in range(9)]
    packed = pack_group(events).packed
    await queue.add("event_tables", "1-8", packed, reason="It is no event.", tries=5, again=packed)
    [letter] = await queue.list_after()

    assert await queue.retry(letter.id)

    entries = await ValkeyEventLog(valkey).read(BEGINNING, count_max=100, wait_seconds=1)
    assert [entry.data for entry in entries] == events
    assert len({entry.id for entry in entries}) == 9
    assert await queue.count() == 0


async def test_a_dead_letter_that_fails_again_is_added_again(queue: DeadLetterQueue) -> None:
    await add_letter(queue)
    await queue.retry((await queue.list_after())[0].id)

    await add_letter(queue)

    assert await queue.count() == 1


async def test_a_deleted_dead_letter_is_gone(queue: DeadLetterQueue, valkey: Valkey) -> None:
    await add_letter(queue, "1-0")
    await add_letter(queue, "2-0")
    first, second = await queue.list_after()

    assert await queue.delete(first.id)
    assert not await queue.delete(first.id)

    assert await queue.list_after() == [second]
    assert await read_log(valkey) == []
    assert await queue.get(first.id) is None


async def test_dead_letters_are_never_dropped_to_make_room(valkey: Valkey) -> None:
    queue = DeadLetterQueue(valkey, letters_max=2)
    await add_letter(queue, "1-0")
    await add_letter(queue, "2-0")

    with pytest.raises(UnavailableError, match="adloom ledger dead list"):
        await add_letter(queue, "3-0")
    await add_letter(queue, "2-0")

    assert [letter.entry_id for letter in await queue.list_after()] == ["1-0", "2-0"]


async def test_dead_letters_are_listed_in_pages(queue: DeadLetterQueue) -> None:
    for number in range(5):
        await add_letter(queue, f"{number}-0")

    first = await queue.list_after(count_max=3)
    second = await queue.list_after(first[-1].id, count_max=3)

    assert [letter.entry_id for letter in (*first, *second)] == ["0-0", "1-0", "2-0", "3-0", "4-0"]
