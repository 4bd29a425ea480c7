"""Dead letters: laid aside once, kept until somebody decides, and back in the ledger in one step."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.log.stream import DEAD_STREAM, STREAM
from adloom.events.projections.dead_letters import INDEX, DeadLetterQueue
from adloom.runtime.valkey import Valkey


@pytest.fixture
def letters(valkey: Valkey) -> DeadLetterQueue:
    return DeadLetterQueue(valkey)


async def bury(letters: DeadLetterQueue, entry_id: str = "1-0", *, projection: str = "tables") -> None:
    await letters.add(
        projection, entry_id, b"data", reason="It is no event.", tries=5, again=b"again " + entry_id.encode()
    )


async def ledger_of(valkey: Valkey) -> list[bytes]:
    # The stubs know every protocol version and decoding.
    rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", await valkey.xrange(STREAM))
    return [fields[b"e"] for _, fields in rows]


async def test_a_letter_names_its_projection_reason_and_time(letters: DeadLetterQueue) -> None:
    await bury(letters)

    [letter] = await letters.list_after()

    assert (letter.projection, letter.entry_id, letter.tries) == ("tables", "1-0", 5)
    assert (letter.reason, letter.data) == ("It is no event.", b"data")
    assert abs(datetime.now(UTC) - letter.at) < timedelta(minutes=1)
    assert await letters.get(letter.id) == letter


async def test_an_entry_is_added_once_for_each_projection(letters: DeadLetterQueue) -> None:
    for _ in range(3):
        await bury(letters, projection="tables")
    await bury(letters, projection="frequency")

    assert await letters.count() == 2
    assert await letters.count_by_projection() == {"tables": 1, "frequency": 1}


async def test_a_retried_letter_is_appended_to_the_log(letters: DeadLetterQueue, valkey: Valkey) -> None:
    await bury(letters)
    [letter] = await letters.list_after()

    assert await letters.retry(letter.id)
    assert not await letters.retry(letter.id)

    assert await ledger_of(valkey) == [b"again 1-0"]
    assert await letters.count() == 0
    assert await letters.count_by_projection() == {}


async def test_a_letter_that_fails_again_is_added_again(letters: DeadLetterQueue) -> None:
    await bury(letters)
    await letters.retry((await letters.list_after())[0].id)

    await bury(letters)

    assert await letters.count() == 1


async def test_a_deleted_letter_is_gone(letters: DeadLetterQueue, valkey: Valkey) -> None:
    await bury(letters, "1-0")
    await bury(letters, "2-0")
    first, second = await letters.list_after()

    assert await letters.delete(first.id)
    assert not await letters.delete(first.id)

    assert await letters.list_after() == [second]
    assert await ledger_of(valkey) == []
    assert await letters.get(first.id) is None


async def test_letters_are_never_dropped_to_make_room(valkey: Valkey) -> None:
    letters = DeadLetterQueue(valkey, letters_max=2)
    await bury(letters, "1-0")
    await bury(letters, "2-0")

    with pytest.raises(UnavailableError, match="adloom ledger dead list"):
        await bury(letters, "3-0")
    await bury(letters, "2-0")

    assert [letter.entry_id for letter in await letters.list_after()] == ["1-0", "2-0"]


async def test_letters_come_in_pages(letters: DeadLetterQueue) -> None:
    for number in range(5):
        await bury(letters, f"{number}-0")

    first = await letters.list_after(count_max=3)
    second = await letters.list_after(first[-1].id, count_max=3)

    assert [letter.entry_id for letter in (*first, *second)] == ["0-0", "1-0", "2-0", "3-0", "4-0"]


async def test_a_letter_of_an_older_version_can_be_read_and_tried_again(
    letters: DeadLetterQueue, valkey: Valkey
) -> None:
    await valkey.xadd(DEAD_STREAM, {"entry": "1-0", "e": b"old", "reason": "It is no event."})
    [letter] = await letters.list_after()

    assert (letter.projection, letter.tries, letter.data) == ("event_tables", 1, b"old")
    assert await letters.retry(letter.id)
    assert await ledger_of(valkey) == [b"old"]
    assert not await valkey.exists(INDEX)
