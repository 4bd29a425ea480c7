"""What the server refuses of groups of events is never said to be there, and no number is used twice."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import urlsplit

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.log.event import encode_event, parse_entry_id
from adloom.events.log.event_group import BLOCK, GroupIds
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.projections.group import ConsumerGroup
from adloom.runtime.valkey import Valkey, open_valkey
from tests.events.builders import USER, an_impression

LONE = encode_event(an_impression(user_id=USER))
OTHER = encode_event(an_impression())


@asynccontextmanager
async def open_limited(valkey: Valkey, redis_url: str, *rules: str) -> AsyncGenerator[Valkey]:
    await valkey.execute_command(
        "ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "&*", "+@all", *rules
    )
    parts = urlsplit(redis_url)
    place = parts.netloc.rpartition("@")[2]
    async with open_valkey(parts._replace(netloc=f"limited:secret@{place}").geturl()) as client:
        yield client
    await valkey.execute_command("ACL", "DELUSER", "limited")


async def add_from_a_clock_ahead(valkey: Valkey) -> None:
    """Append an event as while the server's clock was ahead."""
    seconds, _ = await valkey.time()
    await valkey.xadd(STREAM, {"e": OTHER}, id=f"{(seconds + 60) * 1000}-7")


@pytest.mark.parametrize("appends_before", [0, 1])
async def test_events_are_not_said_to_be_appended_if_the_script_may_not_ask_for_the_newest_id(
    valkey: Valkey, redis_url: str, appends_before: int
) -> None:
    async with open_limited(valkey, redis_url, "-xinfo|stream") as limited:
        event_log = ValkeyEventLog(limited)
        for _ in range(appends_before):
            await event_log.append([OTHER] * 30)
        await add_from_a_clock_ahead(valkey)

        with pytest.raises(UnavailableError):
            await event_log.append([OTHER] * 30)


async def test_the_millisecond_in_which_the_script_has_appended_gets_no_group_by_its_id(
    valkey: Valkey,
) -> None:
    """While a clock is set back all events go into one millisecond, as many as they are, by whatever process."""
    event_log = ValkeyEventLog(valkey)
    await add_from_a_clock_ahead(valkey)
    newest = await event_log.read_last_id()
    await event_log.append([OTHER] * 30)
    millis, sequence = parse_entry_id(await event_log.read_last_id())
    assert (millis, sequence) == (parse_entry_id(newest)[0], 7 + 30)

    ids = GroupIds()
    ids.note_time(millis / 1000, at=1.0)
    ids.note_used(millis)

    assert ids.choose(1, at=1.0005) is None
    assert ids.choose(1, at=1.0015) == [f"{millis + 1}-{BLOCK - 1}"]


async def test_after_an_older_snapshot_ids_go_on_beyond_all_that_were_given(
    valkey: Valkey,
) -> None:
    """The worker had applied what is gone."""
    logs = [ValkeyEventLog(valkey), ValkeyEventLog(valkey)]
    for event_log in logs * 2:
        await event_log.append([OTHER] * 30)
    snapshot = cast("bytes", await valkey.dump(STREAM))
    for event_log in logs * 2:
        await event_log.append([OTHER] * 30 + [LONE])
    cursor = await logs[0].read_last_id()
    await valkey.delete(STREAM)
    await valkey.restore(STREAM, 0, snapshot)
    await asyncio.sleep(0.005)  # A server does not start faster.
    assert parse_entry_id(await logs[0].read_last_id()) < parse_entry_id(cursor)

    new = [b"%d" % number for number in range(30)]
    for event_log in logs * 2:
        await asyncio.sleep(0.002)
        await event_log.append([*new, LONE])

    group = ConsumerGroup(valkey, "test", consumer="one@host", incarnation="1")
    assert await group.acquire()
    read = await group.read(cursor, until=None, count_max=500)
    assert read is not None
    assert sorted(entry.data for entry in read) == sorted([*new, LONE] * 4)
